import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { MEDIA_RESTART_LEAST_MS, MEDIA_RESTARTS_A_MINUTE_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import type { RoomNotice } from '../../src/media/engine.ts';
import { RestartLimit } from '../../src/media/worker/restart-limit.ts';
import fc from '../support/fast-check.ts';
import { Harness } from './harness.ts';
import { holdsUdpPort } from './held-port.ts';
import { Notices } from './peer.ts';
import { mulawSample, tone, wav } from './sound.ts';

describe('the limit of restarts', () => {
  test('permits one start a second and five a minute, and always permits one in the end', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 60 }), (waits) => {
        const limit = new RestartLimit();
        const starts: number[] = [];
        let now = 0;
        for (const wait of waits) {
          now += wait;
          if (limit.waitMs(now) > 0) continue;
          limit.started(now);
          starts.push(now);
        }
        for (const [i, at] of starts.entries()) {
          if (i > 0) expect(at - (starts[i - 1] ?? 0)).toBeGreaterThanOrEqual(MEDIA_RESTART_LEAST_MS);
          expect(starts.filter((other) => other > at - 60_000 && other <= at).length).toBeLessThanOrEqual(
            MEDIA_RESTARTS_A_MINUTE_MAX,
          );
        }
        expect(limit.waitMs(now)).toBeLessThanOrEqual(60_000);
        expect(limit.waitMs(now + limit.waitMs(now))).toBe(0);
      }),
    );
  });
});

describe('a media worker that is lost', () => {
  const Real = globalThis.Worker;
  const threads: Worker[] = [];
  beforeEach(() => {
    globalThis.Worker = class extends Real {
      constructor(...given: ConstructorParameters<typeof Real>) {
        super(...given);
        threads.push(this);
      }
    };
  });
  afterEach(() => {
    globalThis.Worker = Real;
    threads.length = 0;
  });

  const descriptors = () => readdirSync('/proc/self/fd').length;
  const until = async (what: () => boolean) => {
    for (const began = performance.now(); !what(); ) {
      if (performance.now() - began > 15_000) throw new Error(`never came: ${what}`);
      await new Promise(setImmediate);
    }
  };

  test('is replaced: its calls are told, its ports and descriptors are free again, and the node is ready by itself', async () => {
    const harness = await Harness.open({ workers: 2, portRestMs: 50 });
    const before = descriptors();
    const workers = threads.filter((_, i) => i < 2); // the decoding thread is the third
    for (let round = 0; round < 2; round++) {
      const calls = await Promise.all(Array.from({ length: 6 }, () => harness.call()));
      for (const call of calls) call.leg.negotiate(call.peer.parameters());
      for (const call of calls) expect(holdsUdpPort(call.leg.port)).toBe(true);
      // What each of them has counted is more than the other counts until it tells the next time.
      await until(() => harness.engine.ticks().every(({ ticks }) => ticks > 60));
      const ticksBefore = harness.engine.ticks().reduce((sum, load) => sum + load.ticks, 0);
      workers[round]?.terminate();
      await until(() => !harness.engine.ready());
      expect(harness.engine.ticks().reduce((sum, load) => sum + load.ticks, 0)).toBeGreaterThanOrEqual(ticksBefore);
      await until(() => harness.engine.ready());
      const lost = calls.filter((call) => call.notices.of('media.lost').length === 1);
      expect(lost.length).toBe(3);
      expect(harness.engine.load().legs).toBe(3);
      for (const call of lost) await until(() => !holdsUdpPort(call.leg.port)); // The thread may still be ending.
      for (const call of calls) await call[Symbol.asyncDispose]();
      const again = await Promise.all(Array.from({ length: 6 }, () => harness.call()));
      expect(harness.engine.load().legs).toBe(6);
      for (const call of again) await call[Symbol.asyncDispose]();
    }
    await until(() => descriptors() <= before + 2);
    await harness.close();
  }, 30_000);

  test('tells the log of itself, and not that its legs could not be opened, which they were', async () => {
    const said = spyOn(silentLog, 'error');
    const harness = await Harness.open({ workers: 1 });
    const notices = new Notices();
    const format = { encoding: 'mulaw', rateHz: 8000 } as const;
    const leg = await harness.engine.openStreamLeg(
      { fromSession: format, toSession: format, onFrame() {}, onRoom() {}, onPlayed() {}, onMark() {} },
      notices.hear,
    );
    expect(leg).toBeDefined();
    threads[0]?.terminate();
    await notices.until(() => notices.of('media.lost').length === 1);
    await harness.close();
    expect(said.mock.calls.map(([, message]) => message)).toEqual(['a media worker is gone']);
    said.mockRestore();
  }, 30_000);

  test('leaves the calls that come in at that moment to the others, and none of them is told of it', async () => {
    const harness = await Harness.open({ workers: 2 });
    const notices = new Notices();
    const format = { encoding: 'mulaw', rateHz: 8000 } as const;
    const stream = { fromSession: format, toSession: format, onFrame() {}, onRoom() {}, onPlayed() {}, onMark() {} };
    threads[0]?.terminate();
    const opening = Array.from({ length: 3 }, () => [
      harness.engine.openRtpLeg(notices.hear),
      harness.engine.openStreamLeg(stream, notices.hear),
    ]);
    const legs = await Promise.all(opening.flat());
    expect(legs.filter((leg) => leg !== undefined)).toHaveLength(6);
    expect(harness.engine.load().legs).toBe(6);
    expect(notices.of('media.lost')).toEqual([]);
    await harness.close();
  }, 30_000);

  test('leaves a room of its own empty: whoever joins after it hears what is played there', async () => {
    const harness = await Harness.open({ workers: 1 });
    harness.files.set('/tone.wav', wav(tone(440, 3, 8000), 8000));
    const told: RoomNotice[] = [];
    const room = await harness.engine.openRoom((notice) => told.push(notice));
    if (room === undefined) throw new Error('no room');
    const [one, two] = [await harness.call(), await harness.call()];
    for (const { leg, peer } of [one, two]) leg.negotiate(peer.parameters());
    room.setVoiceActivity(true);
    one.leg.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
    await one.notices.until(() => one.notices.of('room.joined').length === 1);
    threads[0]?.terminate();
    await until(() => told.some(({ type }) => type === 'room.lost'));
    // While no worker ticks there is no place to be in.
    expect(harness.engine.ready()).toBe(false);
    await until(() => harness.engine.ready());
    const three = await harness.call();
    three.leg.negotiate(three.peer.parameters());
    three.leg.join(room, { muted: false, fromVolumePercent: 100, toVolumePercent: 100 });
    await three.notices.until(() => three.notices.of('room.joined').length === 1);
    room.play({ operationUuid: 'later', playlist: await harness.admitted('/tone.wav'), loop: 1, volume: 100 });
    await until(() => told.some((notice) => notice.type === 'playback.started' && notice.operationUuid === 'later'));
    await three.peer.until(() =>
      three.peer.heard.some(({ payload }) => payload.some((octet) => Math.abs(mulawSample(octet)) > 8_000)),
    );
    const talking = setInterval(
      () => three.peer.send(three.leg, 0, three.peer.sequence * 160, new Uint8Array(160).fill(0x10)),
      20,
    );
    await three.notices.until(() => three.notices.of('voice').length > 0);
    clearInterval(talking);
    await room.close();
    for (const call of [one, two, three]) await call[Symbol.asyncDispose]();
    await harness.close();
  }, 30_000);
});
