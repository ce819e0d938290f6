import { afterAll, beforeAll, describe, expect, spyOn } from 'bun:test';
import { createServer, type Socket } from 'node:net';
import { LIVE_SILENT_MAX_BYTES } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { DecoderThread } from '../../src/media/decode/decoder.ts';
import { IcyStripper, icyInterval } from '../../src/media/format/icy.ts';
import { OpenStream } from '../../src/media/playback/live-stream.ts';
import { OpenPush } from '../../src/media/playback/push.ts';
import { HeldBytes } from '../../src/media/source/held-bytes.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import fc from '../support/fast-check.ts';
import { test } from '../support/real-time.ts';
import { type Call, Harness } from './harness.ts';
import { mulawSample, tone, toneSnrDb, wav } from './sound.ts';

const HZ = 8000;
let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
const closers: (() => void)[] = [];
afterAll(async () => {
  for (const close of closers) close();
  await harness.close();
});

const outbound = createOutbound(['127.0.0.0/8']);
const quiet = (packet: { payload: Buffer }): boolean => packet.payload.every((octet) => Math.abs(mulawSample(octet)) < 200);
const pcmOf = (packets: readonly { payload: Buffer }[]): number[] =>
  packets.flatMap((packet) => [...packet.payload].map(mulawSample));

/** An endless WAV's head, as a live encoder writes it. */
function endless(rateHz = HZ): Uint8Array<ArrayBuffer> {
  const head = wav(new Float64Array(0), rateHz);
  new DataView(head.buffer).setUint32(4, 0xffff_ffff, true);
  new DataView(head.buffer).setUint32(40, 0xffff_ffff, true);
  return head;
}
const samples = (hz: number, seconds: number): Uint8Array<ArrayBuffer> => wav(tone(hz, seconds, HZ), HZ).slice(44);

/** A server of old: each connection is handed over after its request. */
async function station(serve: (socket: Socket, connection: number) => void): Promise<string> {
  let connections = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => serve(socket, connections++));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => server.close());
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/`;
}

async function tuned(url: string, reconnectMs: readonly number[] = [5, 5], admissionMs?: number): Promise<Call> {
  const stream = new OpenStream({
    outbound,
    held: new HeldBytes(),
    url,
    reconnectMs,
    ...(admissionMs === undefined ? {} : { admissionMs }),
  });
  expect(await stream.admit()).toBeUndefined();
  const call = await harness.call();
  call.leg.negotiate(call.peer.parameters());
  call.leg.play({ operationUuid: 'op', playlist: stream, loop: 1, volume: 100 });
  await call.notices.until(() => call.notices.of('playback.started').length === 1);
  return call;
}

describe('a live stream', () => {
  test('of a streaming server is heard without its metadata', async () => {
    const audio = new Uint8Array([...endless(), ...samples(1000, 1)]);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < audio.length; at += 1_000) {
      parts.push(audio.subarray(at, at + 1_000));
      if (at + 1_000 <= audio.length)
        parts.push(Uint8Array.of(2), new TextEncoder().encode("StreamTitle='A song nobody hears';".slice(0, 32)));
    }
    const url = await station((socket) => {
      socket.write('ICY 200 OK\r\nicy-name: x\r\nicy-metaint: 1000\r\n\r\n');
      socket.write(Buffer.concat(parts));
    });
    await using call = await tuned(url);
    await call.peer.until(() => call.peer.heard.filter((packet) => !quiet(packet)).length >= 49);
    const heard = call.peer.heard.filter((packet) => !quiet(packet));
    expect(toneSnrDb(pcmOf(heard.slice(1, 48)), 1000, HZ)).toBeGreaterThan(30);
  });

  test('whose length is told ends as completed; one that just closes is connected to again, and in the end has failed', async () => {
    const whole = wav(tone(700, 0.3, HZ), HZ);
    const finite = await station((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n`);
      socket.end(whole);
    });
    await using first = await tuned(finite);
    await first.notices.until(() => first.notices.of('playback.completed').length === 1);

    let connections = 0;
    const closing = await station((socket, connection) => {
      connections++;
      if (connection > 2) return socket.end('HTTP/1.0 404 Gone\r\n\r\n');
      socket.write('HTTP/1.0 200 OK\r\n\r\n');
      socket.end(new Uint8Array([...endless(), ...samples(700, 0.2)]));
    });
    await using second = await tuned(closing, [5, 5, 5]);
    await second.notices.until(() => second.notices.of('playback.failed').length === 1);
    expect(second.notices.of('playback.failed')[0]).toEqual({
      type: 'playback.failed',
      operationUuid: 'op',
      reason: 'source_disconnected',
    });
    expect(connections).toBe(4);
    const heard = second.peer.heard.filter((packet) => !quiet(packet));
    expect(heard.length).toBeGreaterThanOrEqual(29);
  });

  test('that is connected to again and again leaves nothing behind of each pause', async () => {
    const url = await station((socket) => {
      socket.write('HTTP/1.0 200 OK\r\n\r\n');
      socket.end(new Uint8Array([...endless(), ...samples(700, 0.2)]));
    });
    const stream = new OpenStream({ outbound, held: new HeldBytes(), url, reconnectMs: [0, 0, 0] });
    expect(await stream.admit()).toBeUndefined();
    const added = spyOn(stream.signal, 'addEventListener');
    const removed = spyOn(stream.signal, 'removeEventListener');
    const decoders = new DecoderThread(silentLog);
    const pcm = stream.source({ loop: 1, rateHz: HZ, decoders }).pcm(0);
    const heard = (async () => {
      for await (const _ of pcm);
    })();
    await expect(heard).rejects.toThrow('source_disconnected');
    decoders.close();
    expect(added).toHaveBeenCalledTimes(3);
    expect(removed).toHaveBeenCalledTimes(3);
  });

  test('may be of any length: only what brings no sound for 16 MiB has failed', async () => {
    const rateHz = 48_000;
    const bytes = LIVE_SILENT_MAX_BYTES + 1024 * 1024;
    const url = await station((socket) => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${44 + bytes}\r\n\r\n`);
      socket.write(endless(rateHz));
      socket.end(Buffer.alloc(bytes));
    });
    const stream = new OpenStream({ outbound, held: new HeldBytes(), url, reconnectMs: [] });
    expect(await stream.admit()).toBeUndefined();
    const decoders = new DecoderThread(silentLog);
    let heard = 0;
    for await (const pcm of stream.source({ loop: 1, rateHz: HZ, decoders }).pcm(0)) heard += pcm.length;
    await decoders.close();
    expect(heard).toBeCloseTo((bytes / 2) * (HZ / rateHz), -2);
  });

  test('that becomes a playlist of playlists without an end, or drips, has failed after some time and requests', async () => {
    // Playlists of 400 playlists each: 64,000,000 requests, were they all followed.
    const lists = Array.from({ length: 400 }, (_, each) => harness.url(`/list/${each}`)).join('\n');
    const gone = Array.from({ length: 400 }, (_, each) => harness.url(`/gone/${each}`)).join('\n');
    for (let each = 0; each < 400; each++) harness.files.set(`/list/${each}`, () => new Response(`#EXTM3U\n${gone}`));
    for (const then of [`#EXTM3U\n${lists}`, undefined]) {
      harness.requests.length = 0;
      const url = await station((socket, connection) => {
        socket.write('HTTP/1.0 200 OK\r\n\r\n');
        if (connection === 0) socket.end(Buffer.concat([endless(), samples(500, 0.5)]));
        else if (then !== undefined) socket.end(then);
        else {
          const drip = setInterval(() => socket.write(' '), 5);
          socket.on('close', () => clearInterval(drip));
        }
      });
      await using call = await tuned(url, [5], 200);
      await call.notices.until(() => call.notices.of('playback.failed').length === 1);
      expect(call.notices.of('playback.failed')).toMatchObject([{ reason: 'source_disconnected' }]);
      expect(harness.requests.length).toBeLessThan(2_000);
    }
  });

  test('that stalls is heard live again afterwards: what came late is left out', async () => {
    let sink: Socket | undefined;
    const url = await station((socket) => {
      sink = socket;
      socket.write('HTTP/1.0 200 OK\r\n\r\n');
      socket.write(new Uint8Array([...endless(), ...samples(500, 0.4)]));
    });
    await using call = await tuned(url);
    // The stall: nothing comes until 60 packets of silence were sent.
    await call.peer.until(() => call.peer.heard.slice(-60).length === 60 && call.peer.heard.slice(-60).every(quiet));
    // Then the 1.2 s that are late, at once, and after them what is live. A busy machine makes the stall longer: some
    // of what is live is late too then, and left out, so the station goes on.
    sink?.write(new Uint8Array([...samples(900, 1.2), ...samples(1600, 1.2)]));
    const piece = samples(1600, 0.2);
    const live = setInterval(() => sink?.write(piece), 200);
    const from = call.peer.heard.length;
    const is = (hz: number) => (packet: { payload: Buffer }) => toneSnrDb(pcmOf([packet]), hz, HZ) > 15;
    await call.peer.until(() => call.peer.heard.slice(from).filter(is(1600)).length >= 25).finally(() => clearInterval(live));
    const late = call.peer.heard.slice(from).filter(is(900)).length;
    expect(late).toBeLessThan(30); // of 60; what the player keeps to go on with
  });

  test('that runs ahead is held back', async () => {
    let written = 0;
    const url = await station((socket) => {
      socket.write('HTTP/1.0 200 OK\r\n\r\n');
      socket.write(endless());
      const second = Buffer.from(samples(600, 30));
      const pump = () => {
        while (written < 200 && socket.write(second)) written++;
      };
      socket.on('drain', pump);
      pump();
    });
    await using call = await tuned(url);
    await call.peer.until(() => call.peer.heard.length > 40);
    expect(written).toBeLessThan(60); // of 96 MB, what sockets hold
    call.leg.stopPlayback('op');
    await call.notices.until(() => call.notices.of('playback.stopped').length === 1);
  });

  test('is refused for the same reasons as a file', async () => {
    const rows = [
      ['HTTP/1.1 404 No\r\n\r\n', { reason: 'not_found', retryable: false, upstream_status: 404 }],
      ['HTTP/1.1 200 OK\r\n\r\n<html></html>', { reason: 'unsupported', retryable: false, upstream_status: 200 }],
      [
        'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nRIFF',
        { reason: 'unsupported', retryable: false, upstream_status: 200 },
      ],
      ['nonsense', { reason: 'invalid_response', retryable: false }],
    ] as const;
    for (const [answer, refused] of rows) {
      const url = await station((socket) => socket.end(answer));
      expect(await harness.engine.openStream(url, 'app')).toEqual({ refused });
    }
    expect(await harness.engine.openStream('http://10.0.0.1/', 'app')).toEqual({
      refused: { reason: 'rejected', retryable: false },
    });
  });
});

describe('stripping metadata', () => {
  test('leaves the audio, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 400 }),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 1, max: 50 }),
        fc.nat(3),
        (audio, interval, step, blocks) => {
          const wire: number[] = [];
          audio.forEach((byte, i) => {
            wire.push(byte);
            if ((i + 1) % interval === 0) wire.push(blocks, ...new Array(blocks * 16).fill(7));
          });
          const stripper = new IcyStripper(interval);
          const out: number[] = [];
          for (let at = 0; at < wire.length; at += step) out.push(...stripper.strip(Uint8Array.from(wire.slice(at, at + step))));
          expect(out).toEqual([...audio]);
        },
      ),
    );
  });

  test('is done at intervals that a server may mean: one byte at a time costs as much as two thousand do', () => {
    const named = (interval: string) => icyInterval(new Headers({ 'icy-metaint': interval }));
    expect(['64', '8192', '1048576'].map(named)).toEqual([64, 8_192, 1_048_576]);
    expect(['1', '63', '1048577', '100.5', '0', '-8192', 'x'].map(named)).toEqual(new Array(7).fill(undefined));
    expect(icyInterval(new Headers())).toBeUndefined();
  });
});

describe('a push', () => {
  async function pushing(push: OpenPush): Promise<Call> {
    const call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: push, loop: 1, volume: 100 });
    return call;
  }

  test('is heard as its tone at any cut, odd bytes too, and ends when its body does', async () => {
    const bytes = wav(tone(1000, 1, 24_000), 24_000).slice(44);
    const push = new OpenPush({ encoding: 'pcm_s16le', sample_rate: 24_000 });
    await using call = await pushing(push);
    expect(push.accept()).toBe(true);
    expect(push.accept()).toBe(false);
    for (let at = 0, step = 1; at < bytes.length; at += step, step = (step * 7 + 3) % 4_001)
      expect(await push.write(bytes.slice(at, at + step))).toBe(true);
    push.end();
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    const heard = call.peer.heard.filter((packet) => !quiet(packet));
    expect(heard.length).toBeGreaterThanOrEqual(50);
    expect(heard.length).toBeLessThanOrEqual(51);
    expect(toneSnrDb(pcmOf(heard.slice(1, 49)), 1000, HZ)).toBeGreaterThan(30);
  });

  test('may be mu-law', async () => {
    const push = new OpenPush({ encoding: 'mulaw', sample_rate: 8000 });
    await using call = await pushing(push);
    push.accept();
    const bytes = Uint8Array.from({ length: 1600 }, (_, i) => (i * 37) & 0xff);
    await push.write(bytes);
    push.end();
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    const heard = Buffer.concat(call.peer.heard.map((packet) => packet.payload)).toString('hex');
    expect(heard).toContain(
      Buffer.from(bytes.filter((byte) => byte !== 0x7f))
        .toString('hex')
        .slice(8, 400),
    );
  });

  test('holds its writer back: no more than two seconds are taken ahead of what is heard', async () => {
    const push = new OpenPush({ encoding: 'pcm_s16le', sample_rate: 8000 });
    await using call = await pushing(push);
    push.accept();
    const bytes = samples(800, 0.1);
    let written = 0;
    const sending = (async () => {
      while (written < 40 && (await push.write(bytes))) written++;
    })();
    await call.peer.until(() => call.peer.heard.filter((packet) => !quiet(packet)).length >= 25);
    expect(written * 100).toBeLessThanOrEqual(2_000 + 700);
    await sending;
    push.end();
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    expect(call.peer.heard.filter((packet) => !quiet(packet)).length).toBeGreaterThanOrEqual(198);
  });

  test('that is held back is not taken for one that says nothing more', async () => {
    const format = { encoding: 'mulaw', sample_rate: 8000 } as const;
    const [held, idle] = [new OpenPush(format, { idleMs: 20 }), new OpenPush(format, { idleMs: 20 })];
    let isOver = false;
    void held.over.then(() => {
      isOver = true;
    });
    for (const each of [held, idle]) each.accept();
    const written = held.write(new Uint8Array(100_000));
    // The other one, which was accepted later, runs out of time.
    await idle.over;
    await new Promise(setImmediate);
    expect(isOver).toBe(false);
    held.release();
    expect(await written).toBe(false);
  });

  test('fails as ingest_timeout when no body comes, and when the body says nothing more', async () => {
    const never = new OpenPush({ encoding: 'mulaw', sample_rate: 8000 }, { startMs: 30 });
    await using first = await pushing(never);
    await first.notices.until(() => first.notices.of('playback.failed').length === 1);
    expect(first.notices.of('playback.failed')[0]).toEqual({
      type: 'playback.failed',
      operationUuid: 'op',
      reason: 'ingest_timeout',
    });
    expect(never.accept()).toBe(false);

    const mute = new OpenPush({ encoding: 'pcm_s16le', sample_rate: 8000 }, { idleMs: 50 });
    await using second = await pushing(mute);
    mute.accept();
    await mute.write(samples(800, 0.2));
    await mute.over;
    expect(await mute.write(samples(800, 0.2))).toBe(false);
    await second.notices.until(() => second.notices.of('playback.failed').length === 1);
    expect(second.notices.of('playback.failed')[0]?.reason).toBe('ingest_timeout');
    expect(second.peer.heard.filter((packet) => !quiet(packet)).length).toBeGreaterThanOrEqual(9);
  });

  test('fails as source_disconnected when its body breaks off, and lets its sender go when it is stopped', async () => {
    const torn = new OpenPush({ encoding: 'pcm_s16le', sample_rate: 8000 });
    await using first = await pushing(torn);
    torn.accept();
    await torn.write(samples(800, 0.2));
    torn.fail();
    await first.notices.until(() => first.notices.of('playback.failed').length === 1);
    expect(first.notices.of('playback.failed')[0]?.reason).toBe('source_disconnected');

    const stopped = new OpenPush({ encoding: 'pcm_s16le', sample_rate: 8000 });
    await using second = await pushing(stopped);
    stopped.accept();
    const held = stopped.write(samples(800, 5));
    await second.notices.until(() => second.notices.of('playback.started').length === 1);
    second.leg.stopPlayback('op');
    expect(await held).toBe(false);
    await stopped.over;
    await second.notices.until(() => second.notices.of('playback.stopped').length === 1);
  });
});
