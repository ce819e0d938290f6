import { afterAll, describe, expect, test } from 'bun:test';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import { WEBSOCKET_PING_MS } from '../../src/limits.ts';
import { connector } from '../../src/outbound/connect.ts';
import type { ConnectionOptions } from '../../src/websocket/connection.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { type Answer, byHand, closeAll, closers, open, raw, serve } from './harness.ts';

afterAll(closeAll);

describe('a connection to a WebSocket server', () => {
  test('carries binary and text both ways, with our headers and the subprotocol', async () => {
    let seen: Request | undefined;
    const url = serve(
      {
        open: (socket) => void socket.sendText('hello'),
        message: (socket, message) => void socket.send(message),
      },
      (request) => {
        seen = request;
        return { 'sec-websocket-protocol': 'sidetone.v1' };
      },
    );
    const { connection, said, until } = open(url, { headers: { 'X-Session-Uuid': 'u' }, subprotocol: 'sidetone.v1' });
    await until('text');
    connection.send(new Uint8Array(320));
    await until('binary 320');
    connection.close();
    await until('closed');
    expect(said).toEqual(['open sidetone.v1', 'text hello', 'binary 320', 'closed local_closed 1000']);
    expect(seen?.headers.get('x-session-uuid')).toBe('u');
    expect(new URL(seen?.url ?? '').search).toBe('?x=1');
  });

  test('tells how the far end went', async () => {
    const closing = open(serve({ open: (socket) => socket.close(4001, 'bye'), message() {} }));
    await closing.until('closed');
    expect(closing.said).toEqual(['open ', 'closed remote_closed 4001']);
    const dying = open(serve({ open: (socket) => socket.terminate(), message() {} }));
    await dying.until('closed');
    expect(dying.said[1]).toBe('closed network_error 1006');
  });

  test('names each way in which it cannot be made', async () => {
    const cases: [string, string, Partial<ConnectionOptions>?][] = [
      [serve({ message() {} }, () => new Response('no', { status: 401 })), 'failed handshake_rejected http_4xx'],
      [serve({ message() {} }, () => new Response('no', { status: 503 })), 'failed handshake_rejected http_5xx'],
      [serve({ message() {} }, () => Response.redirect('http://127.0.0.1/')), 'failed handshake_rejected policy'],
      [await raw((socket) => socket.end('SSH-2.0\r\n\r\n')), 'failed handshake_rejected internal'],
      [await raw((socket) => socket.destroy()), 'failed handshake_rejected network'],
      [await raw((socket) => socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(17))), 'failed handshake_rejected internal'],
      [await raw(() => {}), 'failed connect_timeout timeout', { connectTimeoutMs: 100 }],
      [(await raw(() => {})).replace('ws:', 'wss:'), 'failed connect_timeout timeout', { connectTimeoutMs: 100 }],
      [(await raw((socket) => socket.end('plain'))).replace('ws:', 'wss:'), 'failed tls_failed tls'],
      ['ws://10.1.2.3/', 'failed connection_precondition_failed policy'],
      ['ws://127.0.0.1:1/', 'failed connection_refused network'],
      ['ws://nowhere.invalid/', 'failed dns_failed network', { connect: connector([], () => Promise.reject(new Error('no'))) }],
    ];
    const outcomes = await Promise.all(
      cases.map(async ([url, , more]) => {
        const { said, until } = open(url, more);
        await until('failed');
        return said;
      }),
    );
    expect(outcomes).toEqual(cases.map(([, outcome]) => [outcome]));
  });

  test('is not read while there is no room, and loses nothing over it', async () => {
    const total = 4 * 1024 * 1024;
    let sent = 0;
    const url = serve({
      open(socket) {
        for (; sent < total; sent += 65_536) socket.sendBinary(new Uint8Array(65_536).fill(sent >> 16));
      },
      message() {},
    });
    let got = 0;
    let full = false;
    let offered = 0;
    const { connection, until } = open(url, {
      onBinary: (bytes) => {
        offered++;
        if (full) return false;
        got += bytes.length;
        full = true;
        return true;
      },
    });
    await until('open');
    // Room comes bit by bit: each time exactly what waits is taken.
    while (got < total) {
      full = false;
      connection.resume();
      await Bun.sleep(0);
    }
    expect(got).toBe(total);
    expect(offered).toBeGreaterThan(50);
    connection.close();
  });

  test('has its socket paused while there is no room, when it misses no ping, and hears the answer to its close', async () => {
    const clock = new VirtualClock();
    const near = Promise.withResolvers<net.Socket>();
    const offered = Promise.withResolvers<void>();
    const connect: ConnectionOptions['connect'] = async (request) => {
      const socket = await connector(['127.0.0.0/8'])(request);
      near.resolve(socket);
      return socket;
    };
    const onBinary = () => {
      offered.resolve();
      return false;
    };
    // It answers our close frame, and none of the pings before it, each of two bytes and a mask of four.
    const url = await byHand((server) => {
      server.write(Buffer.of(0x82, 1, 7));
      server.on('data', (data) => {
        const bytes = Buffer.from(data);
        let at = 0;
        while (bytes[at] === 0x89) at += 6;
        if (bytes[at] === 0x88) server.end(Buffer.of(0x88, 2, 1000 >> 8, 1000 & 0xff));
      });
    });
    const { connection, said, until } = open(url, { clock, connect, onBinary });
    await offered.promise;
    const socket = await near.promise;
    expect(socket.isPaused()).toBe(true);
    for (let pings = 0; pings < 5; pings++) await clock.advance(WEBSOCKET_PING_MS);
    connection.close();
    expect(socket.isPaused()).toBe(false);
    await until('closed');
    expect(said).toEqual(['open ', 'closed local_closed 1000']);
  });

  test('is given up when two pings are not answered, and kept while they are', async () => {
    const clock = new VirtualClock();
    // Bun answers pings by itself; this one does not.
    const silent = await byHand(() => {});
    const gone = open(silent, { clock });
    await gone.until('open');
    await clock.advance(WEBSOCKET_PING_MS * 2);
    expect(gone.said).toEqual(['open ']);
    await clock.advance(WEBSOCKET_PING_MS);
    expect(gone.said).toEqual(['open ', 'closed keepalive_timeout 1006']);

    const pongs: (() => void)[] = [];
    const answering = serve({ message() {}, ping: () => void pongs.shift()?.() });
    const kept = open(answering, { clock });
    await kept.until('open');
    for (let pings = 0; pings < 8; pings++) {
      const ponged = new Promise<void>((resolve) => pongs.push(resolve));
      await clock.advance(WEBSOCKET_PING_MS);
      await ponged;
      await Bun.sleep(5); // the pong is on its way
    }
    expect(kept.said).toEqual(['open ']);
    kept.connection.close();
  });

  test('closes with the code of the rule that was broken', async () => {
    const broken = await byHand((socket) => socket.write(Buffer.of(0x83, 0)));
    const { said, until } = open(broken);
    await until('closed');
    expect(said).toEqual(['open ', 'closed protocol_error 1002']);
  });

  test('that is cut in the middle of a message is lost, and what came before is heard', async () => {
    const { said, until } = open(await byHand((socket) => socket.end(Buffer.of(0x82, 1, 9, 0x82, 100, 1, 2, 3))));
    await until('closed');
    expect(said).toEqual(['open ', 'binary 1', 'closed network_error 1006']);
  });

  test('takes a message of 8 MiB in slices, and refuses a longer one with 1009', async () => {
    const message = (bytes: number) => {
      const head = Buffer.alloc(10);
      head.set([0x82, 127]);
      head.writeUInt32BE(bytes, 6);
      return Buffer.concat([head, Buffer.alloc(bytes)]);
    };
    let got = 0;
    const { said, until, connection } = open(await byHand((socket) => socket.write(message(8 * 1024 * 1024))), {
      onBinary: (bytes) => {
        expect(bytes.length).toBeLessThanOrEqual(16 * 1024);
        got += bytes.length;
        if (got === 8 * 1024 * 1024) connection.close();
        return true;
      },
    });
    await until('closed');
    expect([got, ...said]).toEqual([8 * 1024 * 1024, 'open ', 'closed local_closed 1000']);
    const long = open(await byHand((socket) => socket.write(message(8 * 1024 * 1024 + 1).subarray(0, 1_000))));
    await long.until('closed');
    expect(long.said).toEqual(['open ', 'closed protocol_error 1009']);
  });

  test('drops text of any length where text means nothing, and goes on', async () => {
    const message = (opcode: number, bytes: number) => {
      const head = Buffer.alloc(10);
      head.set([0x80 | opcode, 127]);
      head.writeUInt32BE(bytes, 6);
      return Buffer.concat([head, Buffer.alloc(bytes, 0x61)]);
    };
    const sent: Buffer[] = [];
    const url = await byHand((socket) => {
      socket.on('data', (data) => sent.push(Buffer.from(data)));
      socket.write(Buffer.concat([message(1, 1_500_000), message(2, 320)]));
    });
    const { said, until, connection } = open(url, { readsText: () => false });
    await until('binary 320');
    connection.close();
    await until('closed');
    expect(said).toEqual(['open ', 'binary 320', 'closed local_closed 1000']);
    // It was closed as we said and not for the text: a head of two bytes, a mask of four, and the code under it.
    const frame = Buffer.concat(sent);
    expect([frame[0], frame.readUInt16BE(6) ^ frame.readUInt16BE(2)]).toEqual([0x88, 1000]);
    // A text message that means something is bounded too.
    const long = open(await byHand((socket) => socket.write(message(1, 1_500_000))));
    await long.until('closed');
    expect(long.said).toEqual(['open ', 'closed protocol_error 1009']);
  });

  test('works over TLS to the screened socket', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'websocket-tls-'));
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
    const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost';
    execFileSync('openssl', [...request.split(' '), '-keyout', key, '-out', cert], { stdio: 'ignore' });
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      tls: { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') },
      fetch: (incoming, own) => (own.upgrade(incoming, { data: undefined }) ? undefined : new Response('no', { status: 400 })),
      websocket: { message: (socket, message) => void socket.send(message) },
    });
    closers.push(() => {
      server.stop(true);
      rmSync(directory, { recursive: true });
    });
    const connect: ConnectionOptions['connect'] = ({ port }) =>
      new Promise((resolve, reject) => {
        const socket = tls.connect({
          host: '127.0.0.1',
          port,
          ca: readFileSync(cert),
          servername: 'localhost',
          checkServerIdentity: () => undefined,
        });
        socket.once('secureConnect', () => resolve(socket));
        socket.once('error', reject);
      });
    const { connection, said, until } = open(`wss://localhost:${server.port}/`, { connect });
    await until('open');
    connection.send(new Uint8Array(640));
    await until('binary 640');
    connection.close();
    await until('closed');
    expect(said).toEqual(['open ', 'binary 640', 'closed local_closed 1000']);
  });

  test('to a server that reads nothing leaves audio out instead of piling it up', async () => {
    const { connection, until } = open(await byHand((socket) => socket.pause()));
    await until('open');
    let taken = 0;
    for (let frame = 0; frame < 20_000; frame++) if (connection.send(new Uint8Array(640))) taken++;
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(20_000);
    connection.close();
    await until('closed local_closed');
  });

  test('is made with a server that says more, or less, than it has to, and not by HTTP/1.0', async () => {
    const cases: [Partial<Answer>, string, string?][] = [
      [{ before: 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n' }, 'open '],
      [{ fields: 'Sec-WebSocket-Extensions: \r\n' }, 'open '],
      [{ fields: 'Sec-WebSocket-Extensions: \t \r\n' }, 'open '],
      [{}, 'open ', 'sidetone.v1'],
      [{ fields: 'Sec-WebSocket-Protocol: sidetone.v1\r\n' }, 'open sidetone.v1', 'sidetone.v1'],
      [{ fields: 'Sec-WebSocket-Protocol: other\r\n' }, 'failed handshake_rejected internal', 'sidetone.v1'],
      [{ fields: 'Sec-WebSocket-Extensions: permessage-deflate\r\n' }, 'failed handshake_rejected internal'],
      [{ version: '1.0' }, 'failed handshake_rejected internal'],
    ];
    for (const [answer, outcome, subprotocol] of cases) {
      const { connection, said, until } = open(await byHand(() => {}, answer), { subprotocol });
      await until(outcome.split(' ')[0] ?? '');
      expect([answer, ...said]).toEqual([answer, outcome]);
      connection.close();
    }
  });

  test('answers a server that sends pings and never reads with one pong at a time, and stops reading it', async () => {
    const pings = Buffer.alloc(127 * 1_000);
    for (let at = 0; at < pings.length; at += 127) pings.set([0x89, 125], at);
    let wrote = 0;
    let stuck = () => {};
    const held = new Promise<void>((resolve) => {
      stuck = resolve;
    });
    const url = await byHand((socket) => {
      socket.pause();
      const more = () => {
        // What the platform does not read stays in the buffers of the two sockets, and then here.
        if (wrote > 256 * 1024 * 1024) return;
        wrote += pings.length;
        if (socket.write(pings)) setImmediate(more);
        else {
          const timer = setTimeout(stuck, 500);
          socket.once('drain', () => {
            clearTimeout(timer);
            more();
          });
        }
      };
      more();
    });
    let socket: net.Socket | undefined;
    const connect: ConnectionOptions['connect'] = async (request) => {
      socket = await connector(['127.0.0.0/8'])(request);
      return socket;
    };
    const { connection, until } = open(url, { connect });
    await until('open');
    await held;
    expect(socket?.writableLength).toBeLessThanOrEqual(256);
    // On a busy machine what was under way is still read. One that read on would do so until the server has no more.
    for (let read = -1; socket?.bytesRead !== read; ) {
      read = socket?.bytesRead ?? -1;
      for (let turn = 0; turn < 2_000; turn++) await new Promise(setImmediate);
    }
    expect(wrote).toBeLessThan(64 * 1024 * 1024);
    connection.close();
    await until('closed local_closed');
  });

  test('answers the ping of a server that is behind by little once it reads, and goes on to hear it', async () => {
    const far = Promise.withResolvers<net.Socket>();
    const url = await byHand((socket) => {
      socket.pause();
      far.resolve(socket);
    });
    const near = Promise.withResolvers<net.Socket>();
    const connect: ConnectionOptions['connect'] = async (request) => {
      const socket = await connector(['127.0.0.0/8'])(request);
      near.resolve(socket);
      return socket;
    };
    const { connection, until } = open(url, { connect });
    await until('open');
    const [server, own] = [await far.promise, await near.promise];
    // Less than a socket keeps before it tells `drain`.
    while (own.writableLength === 0) {
      connection.send(new Uint8Array(4_000));
      await new Promise(setImmediate);
    }
    const pongs: number[] = [];
    const newest = Promise.withResolvers<void>();
    let rest = Buffer.alloc(0);
    server.on('data', (data) => {
      rest = Buffer.concat([rest, Buffer.from(data)]);
      while (rest.length >= 7) {
        const short = rest.readUInt8(1) & 0x7f;
        const length = short < 126 ? 6 + short : 8 + rest.readUInt16BE(2);
        if (rest.length < length) break;
        if (rest[0] === 0x8a) pongs.push(rest.readUInt8(6) ^ rest.readUInt8(2));
        rest = rest.subarray(length);
      }
      if (pongs.at(-1) === 9) newest.resolve();
    });
    server.pause();
    // The newest of the pings that come while an answer is on its way is answered (RFC 6455 §5.5.3).
    server.write(Buffer.of(0x89, 1, 7, 0x89, 1, 8, 0x89, 1, 9, 0x82, 1, 1));
    await until('binary 1');
    server.resume();
    server.write(Buffer.of(0x82, 2, 1, 1));
    await until('binary 2');
    await newest.promise;
    expect(pongs).toEqual([7, 9]);
    connection.close();
    await until('closed local_closed');
  });

  test('answers a ping once', async () => {
    const frames: number[] = [];
    const said = Promise.withResolvers<void>();
    const url = await byHand((socket) => {
      // Each frame that comes has seven bytes: two, a mask of four, and one.
      let bytes = Buffer.alloc(0);
      socket.on('data', (data) => {
        bytes = Buffer.concat([bytes, Buffer.from(data)]);
        for (; bytes.length >= 7; bytes = bytes.subarray(7)) frames.push(bytes[0] ?? 0);
        if (frames.at(-1) === 0x82) said.resolve();
      });
      socket.write(Buffer.of(0x89, 1, 7, 0x82, 1, 1));
    });
    const { connection, until } = open(url);
    await until('binary 1');
    connection.send(new Uint8Array(1));
    await said.promise;
    expect(frames).toEqual([0x8a, 0x82]);
    connection.close();
    await until('closed');
  });

  test('hears one event of a server in a turn of the event loop, however tiny its frames are', async () => {
    const frames = Buffer.concat(new Array(2_000).fill(Buffer.of(0x8a, 0, 0x82, 0, 0x82, 1, 7, 0x81, 0)));
    let turn = 0;
    let inTurn = 0;
    let most = 0;
    let heard = 0;
    const count = () => {
      inTurn += 1;
      heard += 1;
      most = Math.max(most, inTurn);
      return true;
    };
    let over = false;
    const turns = () => {
      turn += 1;
      inTurn = 0;
      if (!over) setImmediate(turns);
    };
    setImmediate(turns);
    const { connection, until } = open(await byHand((socket) => socket.write(frames)), { onBinary: count, onText: count });
    await until('open');
    while (heard < 4_000) await new Promise((wake) => setImmediate(wake));
    over = true;
    expect(most).toBeLessThanOrEqual(2);
    expect(turn).toBeGreaterThan(4_000 / 2);
    connection.close();
  });

  test('that is closed reads little more of a server that sends without an end, also where that broke a rule', async () => {
    for (const isBroken of [false, true]) {
      const frame = Buffer.alloc(10 + 2 * 1024 * 1024);
      frame.set([isBroken ? 0x81 : 0x82, 127, 0, 0, 0, 0, 0, 0x20, 0, 0]);
      const gone = Promise.withResolvers<void>();
      let frames = 0;
      const flood = (socket: net.Socket): void => {
        socket.write(frame, (error) => {
          frames += 1;
          if (error === undefined || error === null) flood(socket);
        });
      };
      const url = await byHand((socket) => {
        socket.on('close', () => gone.resolve());
        flood(socket);
      });
      const { connection, until } = open(url);
      await until(isBroken ? 'open' : 'binary');
      const before = frames;
      if (!isBroken) connection.close();
      await until(isBroken ? 'closed protocol_error 1009' : 'closed local_closed 1000');
      await gone.promise;
      // A message of the greatest length, and what lies in the buffers of two sockets.
      expect(frames - before).toBeLessThan(25);
    }
  });

  test('goes to the port of the URL, or to that of its scheme', async () => {
    const asked: unknown[] = [];
    const connect: ConnectionOptions['connect'] = ({ hostname, port, tls }) => {
      asked.push([hostname, port, tls]);
      return Promise.reject(new Error('not here'));
    };
    for (const url of ['ws://a.test/', 'wss://a.test/', 'wss://a.test:8443/', 'ws://[::1]:443/'])
      await open(url, { connect }).until('failed');
    expect(asked).toEqual([
      ['a.test', 80, false],
      ['a.test', 443, true],
      ['a.test', 8443, true],
      ['[::1]', 443, false],
    ]);
  });

  test('that was given up closes a socket that comes all the same', async () => {
    const url = await raw(() => {});
    const { promise: later, resolve: connected } = Promise.withResolvers<net.Socket>();
    const { connection, said } = open(url, { connect: () => later });
    connection.close();
    const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
    socket.once('connect', () => connected(socket));
    await new Promise((resolve) => socket.once('close', resolve));
    expect(said).toEqual([]);
  });

  test('that is given up while it is being made says nothing more', async () => {
    const { connection, said } = open(await raw(() => {}));
    connection.close();
    await Bun.sleep(20);
    expect(said).toEqual([]);
  });
});
