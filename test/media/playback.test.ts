import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { join } from 'node:path';
import { test } from '../support/real-time.ts';
import { Harness } from './harness.ts';
import type { Heard, Peer } from './peer.ts';
import { alawSample, mulawSample, tone, toneSnrDb, wav } from './sound.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open();
});
afterAll(() => harness.close());

/** Packets in which there is anything but the silence of mu-law. */
const voiced = (peer: Peer): Heard[] => peer.heard.filter((packet) => packet.payload.some((octet) => octet !== 0xff));
const samples = (packets: readonly Heard[]): number[] => packets.flatMap((packet) => [...packet.payload].map(mulawSample));

function expectContiguous(packets: readonly Heard[]): void {
  packets.forEach((packet, i) => {
    const before = packets[i - 1];
    if (before === undefined) return;
    expect((packet.sequence - before.sequence) & 0xffff).toBe(1);
    expect((packet.timestamp - before.timestamp) >>> 0).toBe(160);
    expect(packet.ssrc).toBe(before.ssrc);
  });
}

describe('a file played on a leg', () => {
  for (const codec of ['PCMU', 'PCMA'] as const) {
    test(`is its tone at the far end of a ${codec} leg, in contiguous packets 20 ms apart`, async () => {
      harness.files.set('/tone.wav', wav(tone(1000, 1, 8000), 8000));
      await using call = await harness.call();
      const { peer, notices, leg } = call;
      leg.negotiate(peer.parameters({ codec }));
      leg.play({ operationUuid: 'op', playlist: await harness.admitted('/tone.wav'), loop: 1, volume: 100 });
      await notices.until(() => notices.of('playback.completed').length === 1);
      const count = peer.heard.length;
      await peer.until(() => peer.heard.length > count + 2);

      expect(notices.types()).toEqual(['playback.started', 'playback.completed']);
      expectContiguous(peer.heard);
      const [decode, silence] = codec === 'PCMU' ? [mulawSample, 0xff] : [alawSample, 0xd5];
      const heard = peer.heard.filter((packet) => packet.payload.some((octet) => octet !== silence));
      expect(heard.length).toBe(50);
      expect(heard.every((packet, i) => packet.marker === (i === 0))).toBe(true);
      const pcm = heard.flatMap((packet) => [...packet.payload].map(decode));
      expect(toneSnrDb(pcm, 1000, 8000)).toBeGreaterThan(33);
      expect(Math.max(...pcm)).toBeGreaterThan(15_800);
      const [first, last] = [peer.heard[0], peer.heard.at(-1)];
      const spacing = ((last?.at ?? 0) - (first?.at ?? 0)) / (peer.heard.length - 1);
      expect(spacing).toBeGreaterThan(18);
      // A machine that is busy with other tests wakes us late.
      expect(spacing).toBeLessThan(40);
    });
  }

  test('at 44.1 kHz in stereo is converted, and volume is percent', async () => {
    harness.files.set('/wide.wav', wav(tone(1000, 0.5, 44_100), 44_100, 2));
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    leg.play({ operationUuid: 'op', playlist: await harness.admitted('/wide.wav'), loop: 1, volume: 50 });
    await notices.until(() => notices.of('playback.completed').length === 1);
    await peer.until(() => voiced(peer).length >= 25);
    const pcm = samples(voiced(peer).slice(1, 24));
    expect(toneSnrDb(pcm, 1000, 8000)).toBeGreaterThan(33);
    expect(Math.max(...pcm)).toBeGreaterThan(7_900);
    expect(Math.max(...pcm)).toBeLessThan(8_600);
  });

  test('replaced by one of the same Operation-Id is told of no more, so that its end is not taken for the other one’s', async () => {
    harness.files.set('/long.wav', wav(tone(1000, 5, 8000), 8000));
    harness.files.set('/short.wav', wav(tone(500, 0.5, 8000), 8000));
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    const play = async (path: string) =>
      leg.play({ operationUuid: 'op', playlist: await harness.admitted(path), loop: 1, volume: 100 });
    await play('/long.wav');
    await notices.until(() => notices.of('playback.started').length === 1);
    await play('/long.wav');
    await play('/short.wav');
    await notices.until(() => notices.of('playback.completed').length === 1);
    // The second one may have started before the third took its place.
    const started = notices.of('playback.started').length;
    expect(notices.types()).toEqual([...Array(started).fill('playback.started'), 'playback.completed']);
    await play('/long.wav');
    await notices.until(() => notices.of('playback.started').length === started + 1);
    leg.stopPlayback('op');
    await notices.until(() => notices.of('playback.stopped').length === 1);
  });

  for (const [fixture, seconds] of [
    ['tone-22k-mono.mp3', 1],
    ['tone-44k-stereo-vbr-id3.mp3', 1.5],
  ] as const) {
    test(`may be MP3: ${fixture}`, async () => {
      harness.files.set('/tone', new Uint8Array(await Bun.file(join(import.meta.dir, 'fixture', fixture)).arrayBuffer()));
      await using call = await harness.call();
      const { peer, notices, leg } = call;
      leg.negotiate(peer.parameters());
      leg.play({ operationUuid: 'op', playlist: await harness.admitted('/tone'), loop: 1, volume: 100 });
      await notices.until(() => notices.of('playback.completed').length === 1);
      await peer.until(() => voiced(peer).length >= seconds * 50 - 4);
      expect(Math.abs(voiced(peer).length - seconds * 50)).toBeLessThanOrEqual(6);
      expect(toneSnrDb(samples(voiced(peer).slice(5, 40)), 1000, 8000)).toBeGreaterThan(30);
      expect(notices.types()).toEqual(['playback.started', 'playback.completed']);
    });
  }

  test('follows the one before it without a gap, and the list loops', async () => {
    // Five periods of 40 samples each and one of 4,000: any gap or repetition breaks the phase of the tone.
    harness.files.set('/a.wav', wav(tone(200, 0.505, 8000), 8000));
    harness.files.set('/b.wav', wav(tone(200, 0.215, 8000), 8000));
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    leg.play({ operationUuid: 'op', playlist: await harness.admitted('/a.wav', '/b.wav'), loop: 2, volume: 100 });
    await notices.until(() => notices.of('playback.completed').length === 1);
    await peer.until(() => voiced(peer).length >= 72);
    const packets = voiced(peer);
    expect(packets.length).toBe(72);
    expect(packets.every((packet, i) => packet.marker === (i === 0))).toBe(true);
    expectContiguous(peer.heard);
    expect(toneSnrDb(samples(packets), 200, 8000)).toBeGreaterThan(33);
  });

  test('longer than what is fed ahead arrives whole', async () => {
    harness.files.set('/long.wav', wav(tone(500, 4.5, 16_000), 16_000));
    const played = async () => {
      await using call = await harness.call();
      const { peer, notices, leg } = call;
      leg.negotiate(peer.parameters());
      leg.play({ operationUuid: 'op', playlist: await harness.admitted('/long.wav'), loop: 1, volume: 100 });
      await notices.until(() => notices.of('playback.completed').length === 1);
      await peer.until(() => voiced(peer).length >= 225);
      const packets = voiced(peer);
      expect(packets.length).toBe(225); // the conversion adds nothing
      return packets;
    };
    const spurts = (packets: readonly Heard[]) => packets.filter(({ marker }) => marker).length;
    // A machine that keeps this process from feeding for longer than it feeds ahead makes a pause, and a marker after
    // it.
    let packets = await played();
    for (let again = 0; again < 3 && spurts(packets) > 1; again++) packets = await played();
    expect(spurts(packets)).toBe(1);
    expect(toneSnrDb(samples(packets.slice(1, 220)), 500, 8000)).toBeGreaterThan(33);
  }, 30_000);

  test('is replaced by a new one, which ends it as stopped; stop ends that one, and only that', async () => {
    harness.files.set('/tone.wav', wav(tone(1000, 1, 8000), 8000));
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    leg.play({ operationUuid: 'first', playlist: await harness.admitted('/tone.wav'), loop: 0, volume: 100 });
    await notices.until(() => notices.of('playback.started').length === 1);
    leg.play({ operationUuid: 'second', playlist: await harness.admitted('/tone.wav'), loop: 0, volume: 100 });
    await notices.until(() => notices.of('playback.started').length === 2);
    leg.stopPlayback('first');
    leg.stopPlayback('second');
    leg.stopPlayback('second');
    await notices.until(() => notices.of('playback.stopped').length === 2);
    expect(notices.all).toEqual([
      { type: 'playback.started', operationUuid: 'first' },
      { type: 'playback.stopped', operationUuid: 'first' },
      { type: 'playback.started', operationUuid: 'second' },
      { type: 'playback.stopped', operationUuid: 'second' },
    ]);
    const count = peer.heard.length;
    await peer.until(() => peer.heard.length > count + 5);
    expect(peer.heard.at(-1)?.payload.every((octet) => octet === 0xff)).toBe(true);
  });

  test('ends as stopped when its leg is closed, before the close is done', async () => {
    harness.files.set('/tone.wav', wav(tone(1000, 1, 8000), 8000));
    const call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: await harness.admitted('/tone.wav'), loop: 0, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.started').length === 1);
    const counters = await call.leg.close();
    expect(call.notices.types()).toEqual(['playback.started', 'playback.stopped']);
    expect(counters.packetsSent).toBeGreaterThan(0);
    call.leg.play({ operationUuid: 'late', playlist: await harness.admitted('/tone.wav'), loop: 1, volume: 100 });
    expect(call.notices.all.at(-1)).toEqual({ type: 'playback.failed', operationUuid: 'late', reason: 'media_unavailable' });
    await call.peer.close();
  });

  test('is heard while it still comes, however slowly', async () => {
    const whole = wav(tone(1000, 1, 8000), 8000);
    let release: () => void = () => {};
    const later = new Promise<void>((resolve) => {
      release = resolve;
    });
    harness.files.set(
      '/slow.wav',
      () =>
        new Response(
          new ReadableStream({
            async start(controller) {
              controller.enqueue(whole.subarray(0, 8044));
              await later;
              controller.enqueue(whole.subarray(8044));
              controller.close();
            },
          }),
        ),
    );
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    leg.play({ operationUuid: 'op', playlist: await harness.admitted('/slow.wav'), loop: 1, volume: 100 });
    await notices.until(() => notices.of('playback.started').length === 1); // a quarter of it is here
    expect(notices.of('playback.completed')).toEqual([]);
    release();
    await notices.until(() => notices.of('playback.completed').length === 1);
    await peer.until(() => voiced(peer).length >= 50);
    expect(toneSnrDb(samples(voiced(peer)), 1000, 8000)).toBeGreaterThan(33);
  });

  test('gives its connection back when it is stopped, also one that says nothing more', async () => {
    let closed: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      closed = resolve;
    });
    const whole = wav(tone(1000, 5, 8000), 8000);
    const mute = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n`);
          socket.write(whole.subarray(0, 8_000));
        },
        close: () => closed(),
      },
    });
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    const playlist = await harness.engine.openPlaylist([`http://127.0.0.1:${mute.port}/`], 'app');
    if ('refused' in playlist) throw new Error(playlist.refused.reason);
    call.leg.play({ operationUuid: 'op', playlist, loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.started').length === 1);
    call.leg.stopPlayback('op');
    await gone;
    await call.notices.until(() => call.notices.of('playback.stopped').length === 1);
    expect(call.notices.types()).toEqual(['playback.started', 'playback.stopped']);
    mute.stop(true);
  });

  test('that is empty starts and completes', async () => {
    harness.files.set('/empty.wav', wav(new Float64Array(0), 8000));
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: await harness.admitted('/empty.wav'), loop: 0, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    expect(call.notices.types()).toEqual(['playback.started', 'playback.completed']);
  });
});

describe('a source that breaks after it was admitted', () => {
  test('is heard to its end where its content is cut short, and the playlist goes on', async () => {
    const whole = wav(tone(1000, 1, 8000), 8000);
    harness.files.set('/whole.wav', wav(tone(1000, 0.2, 8000), 8000));
    harness.files.set('/cut.wav', whole.slice(0, 44 + 8000));
    await using call = await harness.call();
    const { peer, notices, leg } = call;
    leg.negotiate(peer.parameters());
    const playlist = await harness.admitted('/whole.wav', '/cut.wav', '/whole.wav');
    leg.play({ operationUuid: 'op', playlist, loop: 1, volume: 100 });
    await notices.until(() => notices.of('playback.completed').length === 1);
    expect(notices.all).toEqual([
      { type: 'playback.started', operationUuid: 'op' },
      { type: 'playback.completed', operationUuid: 'op' },
    ]);
    await peer.until(() => voiced(peer).length >= 45);
    expect(voiced(peer).length).toBe(45);
  });

  test('fails as source_disconnected when its connection is lost midway', async () => {
    const whole = wav(tone(1000, 40, 8000), 8000);
    const connections: Bun.Socket<undefined>[] = [];
    const cutter = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        data(socket) {
          connections.push(socket);
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${whole.length}\r\n\r\n`);
          socket.write(whole.subarray(0, 20_000));
        },
      },
    });
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    const playlist = await harness.engine.openPlaylist([`http://127.0.0.1:${cutter.port}/x.wav`], 'app');
    if ('refused' in playlist) throw new Error(playlist.refused.reason);
    call.leg.play({ operationUuid: 'op', playlist, loop: 1, volume: 100 });
    connections[0]?.terminate();
    await call.notices.until(() => {
      if (call.notices.of('playback.started').length > 0) connections[1]?.terminate(); // it was fetched again, and now breaks for good
      return call.notices.of('playback.failed').length === 1;
    });
    expect(call.notices.of('playback.failed')[0]).toEqual({
      type: 'playback.failed',
      operationUuid: 'op',
      reason: 'source_disconnected',
      sourceIndex: 0,
    });
    cutter.stop(true);
  });

  test('fails as decode_error with its index where it gives nothing; what follows is heard first', async () => {
    const noise = Uint8Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 251);
    const good = wav(tone(1000, 0.2, 8000), 8000);
    const head = good.slice(0, 44);
    new DataView(head.buffer).setUint16(20, 0x55, true); // MPEG audio inside a WAV
    harness.files.set('/noise.wav', new Uint8Array(Buffer.concat([head, noise])));
    harness.files.set('/good.wav', good);
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: await harness.admitted('/noise.wav', '/good.wav'), loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.failed').length === 1);
    expect(call.notices.all).toEqual([
      { type: 'playback.started', operationUuid: 'op' },
      { type: 'playback.failed', operationUuid: 'op', reason: 'decode_error', sourceIndex: 0 },
    ]);
    await call.peer.until(() => voiced(call.peer).length >= 10);
  });

  test('is heard where MP3 turns to rubbish, and completes', async () => {
    const good = new Uint8Array(await Bun.file(join(import.meta.dir, 'fixture', 'tone-22k-mono.mp3')).arrayBuffer());
    const bad = new Uint8Array(good.length + 300_000);
    bad.set(good);
    for (let i = good.length; i < bad.length; i++) bad[i] = (i * 7919) % 251;
    harness.files.set('/garbage.mp3', bad);
    await using call = await harness.call();
    call.leg.negotiate(call.peer.parameters());
    call.leg.play({ operationUuid: 'op', playlist: await harness.admitted('/garbage.mp3'), loop: 1, volume: 100 });
    await call.notices.until(() => call.notices.of('playback.completed').length === 1);
    expect(voiced(call.peer).length).toBeGreaterThan(10);
  });
});
