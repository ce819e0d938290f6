/** WebSocket servers, well-behaved and by hand, and a connection of ours that writes down what it is told. */
import net from 'node:net';
import { systemClock } from '../../src/clock.ts';
import { connector } from '../../src/outbound/connect.ts';
import { type ConnectionOptions, WebSocketConnection } from '../../src/websocket/connection.ts';

/** What stops the servers of a file; its `afterAll` calls `closeAll`. */
export const closers: (() => void)[] = [];
export const closeAll = (): void => {
  for (const close of closers.splice(0)) close();
};

/** A WebSocket server of the runtime. */
export const serve = (
  websocket: Bun.WebSocketHandler<undefined>,
  upgrade: (request: Request) => Record<string, string> | Response = () => ({}),
): string => {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, own) {
      const headers = upgrade(request);
      if (headers instanceof Response) return headers;
      return own.upgrade(request, { headers, data: undefined }) ? undefined : new Response('no', { status: 400 });
    },
    websocket,
  });
  closers.push(() => server.stop(true));
  return `ws://127.0.0.1:${server.port}/bot?x=1`;
};

/** A TCP server that answers as it is told. */
export const raw = async (onData: (socket: net.Socket, text: string) => void): Promise<string> => {
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => onData(socket, data.toString('latin1')));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  const address = server.address();
  return `ws://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
};

/** What a server by hand says beside the fields of every 101. */
export interface Answer {
  readonly before: string;
  readonly version: string;
  readonly fields: string;
}

/** A server by hand: completes the handshake, then does as it is told. */
export const byHand = (then: (socket: net.Socket) => void, answer: Partial<Answer> = {}) =>
  raw((socket, text) => {
    const key = /Sec-WebSocket-Key: (\S+)/.exec(text)?.[1];
    if (key === undefined) return;
    const accept = new Bun.CryptoHasher('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    const { before = '', version = '1.1', fields = '' } = answer;
    socket.write(
      `${before}HTTP/${version} 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${fields}\r\n`,
    );
    then(socket);
  });

/** A connection that writes down what it is told. */
export function open(url: string, more: Partial<ConnectionOptions> = {}) {
  const said: string[] = [];
  const waiting: { want: string; resolve: () => void }[] = [];
  const say = (what: string) => {
    said.push(what);
    for (const waiter of waiting.splice(0)) {
      if (what.startsWith(waiter.want)) waiter.resolve();
      else waiting.push(waiter);
    }
  };
  const connection = new WebSocketConnection({
    url: new URL(url),
    appUuid: '',
    headers: {},
    subprotocol: undefined,
    connectTimeoutMs: 3000,
    connect: connector(['127.0.0.0/8']),
    clock: systemClock(),
    onOpen: (subprotocol) => say(`open ${subprotocol}`),
    onFailed: (reason, error) => say(`failed ${reason} ${error}`),
    onBinary: (bytes) => {
      say(`binary ${bytes.length}`);
      return true;
    },
    onText: (text) => {
      say(`text ${text}`);
      return true;
    },
    readsText: () => true,
    onClosed: (reason, code) => say(`closed ${reason} ${code}`),
    ...more,
  });
  const until = (want: string) =>
    said.some((what) => what.startsWith(want))
      ? Promise.resolve()
      : new Promise<void>((resolve) => waiting.push({ want, resolve }));
  void connection.open();
  return { connection, said, until };
}
