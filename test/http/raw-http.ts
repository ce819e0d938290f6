/** HTTP as bytes on a socket, so that nothing is tidied up on the way. */
import { connect, type Socket } from 'node:net';

export interface RawResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

/** A connection that sends request targets as they are and reads the answers one by one. */
export class RawHttp {
  readonly socket: Socket;
  readonly #port: number;
  #held = Buffer.alloc(0);
  #ended = false;
  #wake: () => void = () => {};

  constructor(port: number) {
    this.#port = port;
    this.socket = connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (bytes: Buffer) => {
      this.#held = Buffer.concat([this.#held, bytes]);
      this.#wake();
    });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.#ended = true;
      this.#wake();
    });
  }

  /** `target` is written as Latin-1: a code unit, a byte. */
  send(method: string, target: string, headers: Readonly<Record<string, string>> = {}): void {
    const lines = Object.entries({ host: `127.0.0.1:${this.#port}`, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
    this.socket.write(Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1'));
  }

  /** The status line and header fields; undefined where the connection was closed without. */
  async head(): Promise<Omit<RawResponse, 'body'> | undefined> {
    while (this.#held.indexOf('\r\n\r\n') < 0) if (!(await this.#more())) return undefined;
    const end = this.#held.indexOf('\r\n\r\n');
    const [line = '', ...fields] = this.#held.subarray(0, end).toString('latin1').split('\r\n');
    this.#held = this.#held.subarray(end + 4);
    const named = fields.map((field): [string, string] => {
      const colon = field.indexOf(':');
      return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()];
    });
    return { status: Number(line.split(' ')[1]), headers: new Map(named) };
  }

  /** A whole response. Undefined where the connection was closed before it was complete. */
  async response(method = 'GET'): Promise<RawResponse | undefined> {
    const head = await this.head();
    if (head === undefined) return undefined;
    const bare = method === 'HEAD' || head.status === 304 || head.status === 204;
    const body = bare
      ? new Uint8Array()
      : head.headers.get('transfer-encoding') === 'chunked'
        ? await this.#chunked()
        : await this.#take(Number(head.headers.get('content-length') ?? 0));
    return body === undefined ? undefined : { ...head, body };
  }

  /** One chunk of a chunked body; empty at its end, undefined where the connection was closed. */
  async chunk(): Promise<Uint8Array | undefined> {
    while (this.#held.indexOf('\r\n') < 0) if (!(await this.#more())) return undefined;
    const end = this.#held.indexOf('\r\n');
    const size = Number.parseInt(this.#held.subarray(0, end).toString('latin1'), 16);
    this.#held = this.#held.subarray(end + 2);
    const bytes = await this.#take(size);
    await this.#take(2);
    return bytes;
  }

  /** Reads so many bytes of a body with a length. Undefined where the connection was closed before it had them. */
  body(bytes: number): Promise<Uint8Array | undefined> {
    return this.#take(bytes);
  }

  close(): void {
    this.socket.destroy();
  }

  async #chunked(): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    for (;;) {
      const part = await this.chunk();
      if (part === undefined) return undefined;
      if (part.length === 0) return Buffer.concat(parts);
      parts.push(part);
    }
  }

  async #take(count: number): Promise<Uint8Array | undefined> {
    const parts: Buffer[] = [];
    let left = count;
    while (left > 0) {
      if (this.#held.length === 0 && !(await this.#more())) return undefined;
      const part = this.#held.subarray(0, left);
      this.#held = this.#held.subarray(part.length);
      left -= part.length;
      parts.push(part);
    }
    return Buffer.concat(parts);
  }

  async #more(): Promise<boolean> {
    if (this.#ended) return false;
    const length = this.#held.length;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    return this.#held.length > length || !this.#ended;
  }
}

/** One request on a connection of its own. */
export async function rawRequest(
  port: number,
  method: string,
  target: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<RawResponse | undefined> {
  const connection = new RawHttp(port);
  try {
    connection.send(method, target, headers);
    return await connection.response(method);
  } finally {
    connection.close();
  }
}
