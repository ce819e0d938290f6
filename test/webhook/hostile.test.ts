/** Receivers that mean harm: each costs one attempt of bounded time and memory, and has its word in the log. */
import { afterAll, expect, test } from 'bun:test';
import { createServer, type Socket } from 'node:net';
import { systemClock } from '../../src/clock.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { attemptDelivery } from '../../src/webhook/delivery.ts';

const TIMEOUT_MS = 400;
/** The limit for receivers whose status has to come in time: a busy machine has taken 400 ms for it. */
const STATUS_TIMEOUT_MS = 2_000;
const outbound = createOutbound(['127.0.0.0/8']);
const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

/** A server that answers by hand. Resolves with its URL. */
async function receiver(answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
}

/** Writes the same again and again, as fast as it is read, until the connection is closed. */
function pour(socket: Socket, head: string, piece: string, pauseMs = 0): void {
  socket.write(head);
  const more = () => {
    if (socket.destroyed) return;
    if (pauseMs > 0) {
      socket.write(piece);
      setTimeout(more, pauseMs);
    } else if (socket.write(piece)) setImmediate(more);
    else socket.once('drain', more);
  };
  more();
}

type Case = readonly [name: string, answer: (socket: Socket) => void, error: RegExp];
const BIG = 'a'.repeat(65_536);
const CASES: readonly Case[] = [
  ['says nothing', () => {}, /^timeout$/],
  ['closes at once', (socket) => socket.end(), /^unreachable$/],
  ['speaks something else', (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'), /^(invalid_response|unreachable)$/],
  ['closes within its head', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'), /^(invalid_response|unreachable)$/],
  [
    'never ends its head',
    (socket) => pour(socket, 'HTTP/1.1 200 OK\r\n', `X-A: ${BIG}\r\n`),
    /^(timeout|invalid_response|unreachable)$/,
  ],
  ['sends its head letter by letter', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\nX: ', 'a', 20), /^timeout$/],
  [
    'says 100 Continue for ever',
    (socket) => pour(socket, '', 'HTTP/1.1 100 Continue\r\n\r\n', 1),
    /^(timeout|invalid_response|unreachable)$/,
  ],
  [
    'leads elsewhere',
    (socket) => socket.end('HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n'),
    /^http_status$/,
  ],
  [
    'asks to wait for a year',
    (socket) => socket.end('HTTP/1.1 503 No\r\nRetry-After: 31536000\r\nContent-Length: 0\r\n\r\n'),
    /^http_status$/,
  ],
  // A status that has come is the answer, whatever becomes of its body.
  ['never ends its body', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\n\r\n', BIG), /^$/],
  ['sends its body letter by letter', (socket) => pour(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n', 'a', 20), /^$/],
  [
    'breaks its chunks',
    (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
    /^(|invalid_response|unreachable)$/,
  ],
];

for (const [name, answer, error] of CASES)
  test(`A receiver that ${name} costs one attempt of bounded time and memory.`, async () => {
    const url = await receiver(answer);
    const event = { appUuid: 'app_1', webhookId: 'evt_x', body: '{}' };
    const endpoint = { url, disabled: false, since: 0, keys: [], blocks: () => false };
    const before = process.memoryUsage().rss;
    const began = performance.now();
    const timeoutMs = error.test('') ? STATUS_TIMEOUT_MS : TIMEOUT_MS;
    const outcome = await attemptDelivery({ outbound, clock: systemClock(), timeoutSec: timeoutMs / 1000 }, endpoint, event, '');
    expect(outcome.error).toMatch(error);
    expect(outcome.response.length).toBeLessThanOrEqual(2_048);
    expect(performance.now() - began).toBeLessThan(10 * timeoutMs);
    expect(process.memoryUsage().rss - before).toBeLessThan(128 * 2 ** 20);
  });
