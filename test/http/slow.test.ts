/** Requests that come byte by byte (slowloris), and connections that are held, at the port of the platform. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { connect, type Socket } from 'node:net';
import { type HttpListener, listen } from '../../src/compose/listen.ts';

/** The limit of the platform itself is a minute. The server looks every four seconds, and gives a first head 12 s. */
const IDLE_SEC = 4;
const ENDED_WITHIN_MS = 20_000;
const TRICKLE_MS = 500;
const HELD = 500;

let listener: HttpListener;
const sockets = new Set<Socket>();

beforeAll(() => {
  listener = listen({ http: { host: '127.0.0.1', port: 0 }, publicUrl: undefined }, IDLE_SEC);
  listener.ready({
    fetch: async (request) => new Response(await request.text().catch(() => 'broken')),
    failed: () => new Response(null, { status: 500 }),
    perform: () => Promise.reject(new Error('nobody forwards')),
    listeners: () => 0,
    routes: [],
  });
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await listener.stop();
});

const open = (): Socket => {
  const socket = connect(listener.port, '127.0.0.1');
  sockets.add(socket);
  socket.on('error', () => {});
  return socket;
};

/** Sends a head, then so much at a time, for as long as the connection lives. Resolves with how long that was. */
function trickle(head: string, more: string): Promise<number> {
  const begunAt = performance.now();
  const socket = open();
  socket.write(head);
  const sending = setInterval(() => socket.write(more), TRICKLE_MS);
  return new Promise((resolve) =>
    socket.on('close', () => {
      clearInterval(sending);
      resolve(performance.now() - begunAt);
    }),
  );
}

describe('A connection', () => {
  const POST = 'POST / HTTP/1.1\r\nHost: a\r\n';
  const SLOW: readonly (readonly [string, string, string])[] = [
    ['whose header field never ends', 'GET / HTTP/1.1\r\nHost: a\r\nX-A: ', 'a'],
    ['whose header fields never end', 'GET / HTTP/1.1\r\nHost: a\r\n', 'X-A: a\r\n'],
    ['whose body comes octet by octet', `${POST}Content-Length: 100000\r\n\r\n`, 'a'],
    ['whose chunks come octet by octet', `${POST}Transfer-Encoding: chunked\r\n\r\n`, '1\r\na\r\n'],
    ['whose request line never ends', 'GET /', 'a'],
    ['that says nothing', '', ''],
  ];
  test('that trickles is closed after the idle timeout, however often an octet comes', async () => {
    const lived = await Promise.all(SLOW.map(async ([name, head, more]) => ({ name, ms: await trickle(head, more) })));
    expect(lived.filter(({ ms }) => ms > ENDED_WITHIN_MS)).toEqual([]);
  });
});

test(`${HELD} half requests that are held do not keep others from their answers, and are all ended`, async () => {
  const begunAt = performance.now();
  const held = Array.from({ length: HELD }, open);
  const ended = Promise.all(held.map((socket) => new Promise<void>((resolve) => socket.on('close', () => resolve()))));
  await Promise.all(
    held.map((socket) => new Promise<void>((resolve) => socket.write('GET / HTTP/1.1\r\nHost: a\r\nX-A: a', () => resolve()))),
  );
  const answer = await fetch(`http://127.0.0.1:${listener.port}/`, { method: 'POST', body: 'quick' });
  expect(await answer.text()).toBe('quick');
  await ended;
  expect(performance.now() - begunAt).toBeLessThan(ENDED_WITHIN_MS);
});
