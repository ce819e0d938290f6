/** A server that answers each request with the bytes that it is told to, whether or not they are good HTTP. */

interface Asked {
  readonly path: string;
  /** The whole head, in lower case. */
  readonly head: string;
  /** Requests of that path before this one. */
  readonly before: number;
}

interface Answer {
  /** The lines of the head, from the status on: `200 OK`, `ETag: "1"`. */
  readonly head: readonly string[];
  readonly body?: Uint8Array | string;
  /** The connection afterwards: closed (unless said otherwise), left open, or reset. */
  readonly after?: 'open' | 'reset';
}

export class OddServer {
  /** The requests in order, each as its path and the range it asked for. */
  readonly asked: string[] = [];
  /** Connections that are open now. */
  open = 0;
  readonly #sockets = new Set<{ terminate(): void }>();
  readonly #times = new Map<string, number>();
  readonly #server: Bun.TCPSocketListener<{ write(): void } | undefined>;

  constructor(answer: (asked: Asked) => Answer) {
    this.#server = Bun.listen<{ write(): void } | undefined>({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        open: (socket) => {
          this.open++;
          this.#sockets.add(socket);
        },
        data: (socket, request) => {
          const text = request.toString('latin1');
          const path = text.split(' ')[1] ?? '';
          const before = this.#times.get(path) ?? 0;
          this.#times.set(path, before + 1);
          const range = /range: bytes=(\S+)/.exec(text)?.[1];
          this.asked.push(range === undefined ? path : `${path} ${range}`);
          const { head, body = '', after } = answer({ path, head: text.toLowerCase(), before });
          let left = Buffer.concat([Buffer.from(`HTTP/1.1 ${head.join('\r\n')}\r\n\r\n`, 'latin1'), Buffer.from(body)]);
          const write = () => {
            left = left.subarray(socket.write(left));
            if (left.length > 0 || after === 'open') return;
            if (after === 'reset') socket.terminate();
            else socket.end();
          };
          socket.data = { write };
          write();
        },
        drain: (socket) => socket.data?.write(),
        close: (socket) => {
          this.open--;
          this.#sockets.delete(socket);
        },
      },
    });
  }

  url(path = '/x.wav'): string {
    return `http://127.0.0.1:${this.#server.port}${path}`;
  }

  /** Resets every connection that is open. */
  reset(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  stop(): void {
    this.#server.stop(true);
  }
}
