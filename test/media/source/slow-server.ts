/**
 * A server that sends the first bytes of a file, and the rest when it is told. What is asked for by range comes at
 * once. It counts requests.
 */
export class SlowServer {
  whole = 0;
  unchanged = 0;
  parts = 0;
  closed = 0;
  readonly #rest: ((breaks: boolean) => void)[] = [];
  readonly #server: Bun.TCPSocketListener<{ write(): void } | undefined>;

  constructor(file: Uint8Array<ArrayBuffer>, sent: number, headers = 'ETag: "1"\r\n') {
    this.#server = Bun.listen<{ write(): void } | undefined>({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data: (socket, request) => {
          if (request.includes('if-none-match: "1"')) {
            this.unchanged++;
            socket.end('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n');
            return;
          }
          let left = Buffer.alloc(0);
          const send = (...parts: readonly Uint8Array[]) => {
            left = Buffer.concat([left, ...parts]);
            left = left.subarray(socket.write(left));
          };
          socket.data = { write: send };
          const from = /range: bytes=(\d+)-/.exec(request.toString())?.[1];
          if (from !== undefined) {
            this.parts++;
            const part = file.subarray(Number(from));
            const range = `Content-Range: bytes ${from}-${file.length - 1}/${file.length}`;
            const head = `HTTP/1.1 206 Partial Content\r\n${headers}${range}\r\nContent-Length: ${part.length}\r\n\r\n`;
            send(Buffer.from(head), part);
            return;
          }
          this.whole++;
          send(Buffer.from(`HTTP/1.1 200 OK\r\nContent-Length: ${file.length}\r\n${headers}\r\n`), file.subarray(0, sent));
          this.#rest.push((breaks) => {
            if (breaks) socket.terminate();
            else send(file.subarray(sent));
          });
        },
        drain: (socket) => socket.data?.write(),
        close: () => {
          this.closed++;
        },
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/x.wav`;
  }

  stop(): void {
    this.#server.stop(true);
  }

  /** Sends the rest to all that wait for it, or breaks off. */
  go({ breaks = false } = {}): void {
    for (const rest of this.#rest.splice(0)) rest(breaks);
  }
}
