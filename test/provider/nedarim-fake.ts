/**
 * A local stand-in for Nedarim Plus on a raw socket: takes the form, answers as told, or breaks off in every way a
 * server can.
 */
import { createServer, type Socket } from 'node:net';

export interface Taken {
  readonly path: string;
  readonly form: URLSearchParams;
}

const OK = {
  Status: 'OK',
  Message: 'עסקה אושרה',
  TransactionId: '99887766',
  Confirmation: '0012345',
  Shovar: '123',
  Zeout: '012345678',
  ClientName: 'Israel Israeli',
  Tokef: '1230',
  ReceiptData: 'https://example.test/receipt',
  TransactionTime: '20/11/2026 13:45:10',
  ReceiptCreated: true,
  LastNum: '1111',
  Tashloumim: '1',
  TransactionType: 'RAGIL',
  Tayar: '0',
  CompagnyCard: '2',
  Solek: '6',
};

export class NedarimFake {
  readonly taken: Taken[] = [];
  /** Connections so far. */
  connections = 0;
  /** What to write after a request; default: one good answer. */
  respond: (socket: Socket) => void = (socket) => socket.end(NedarimFake.answer());
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket);
    this.connections++;
    let held = '';
    socket.on('error', () => {});
    socket.on('close', () => this.#sockets.delete(socket));
    socket.on('data', (bytes) => {
      held += bytes.toString('latin1');
      for (;;) {
        const end = held.indexOf('\r\n\r\n');
        const length = Number(/content-length: (\d+)/i.exec(held)?.[1] ?? 0);
        if (end < 0 || held.length < end + 4 + length) return;
        const form = new URLSearchParams(held.slice(end + 4, end + 4 + length));
        this.taken.push({ path: held.split(' ', 2)[1] ?? '', form });
        held = held.slice(end + 4 + length);
        this.respond(socket);
      }
    });
  });

  static async open(): Promise<NedarimFake> {
    const fake = new NedarimFake();
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  /** A whole HTTP response of that JSON. */
  static answer(more: object = {}, status = '200 OK'): string {
    return NedarimFake.text(JSON.stringify({ ...OK, ...more }), status);
  }

  static text(body: string, status = '200 OK'): string {
    return `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
