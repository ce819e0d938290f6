import { afterAll, beforeAll, describe, expect } from 'bun:test';
import type { MediaNotice } from '../../src/media/engine.ts';
import type { StreamFormat, StreamLeg } from '../../src/media/leg/stream.ts';
import { test } from '../support/real-time.ts';
import { Harness } from './harness.ts';
import { levelDb, mulawOctet, mulawSample, presentDb, tone } from './sound.ts';
import { Talker } from './talker.ts';

let harness: Harness;
beforeAll(async () => {
  harness = await Harness.open({ workers: 2 });
});
afterAll(() => harness.close());

const FREE = { muted: false, fromVolumePercent: 100, toVolumePercent: 100 };
const pcm = (rateHz: number): StreamFormat => ({ encoding: 'pcm_s16le', rateHz });
const samples = (bytes: Uint8Array): number[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 2 }, (_, i) => view.getInt16(2 * i, true));
};
const bytesOf = (sound: Float64Array): Uint8Array => new Uint8Array(Int16Array.from(sound, (value) => value * 32_767).buffer);

/** A stream leg, what came of it, and a way to wait for it. */
class Bot {
  readonly frames: { readonly at: number; readonly bytes: Uint8Array }[] = [];
  readonly notices: MediaNotice[] = [];
  readonly played: number[] = [];
  readonly marks: string[] = [];
  rooms = 0;
  leg!: StreamLeg;
  #watchers = new Set<() => void>();

  static async open(fromSession: StreamFormat, toSession: StreamFormat): Promise<Bot> {
    const bot = new Bot();
    const leg = await harness.engine.openStreamLeg(
      {
        fromSession,
        toSession,
        onFrame: (frame) => {
          bot.frames.push({ at: performance.now(), bytes: frame.slice() });
          for (const watcher of bot.#watchers) watcher();
        },
        onRoom: () => bot.rooms++,
        onPlayed: (durationMs) => bot.played.push(durationMs),
        onMark: (name) => bot.marks.push(name),
      },
      (notice) => bot.notices.push(notice),
    );
    if (leg === undefined) throw new Error('no leg');
    bot.leg = leg;
    return bot;
  }

  /** Looked at with each frame. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!condition()) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
    });
  }

  hears(frames: number): Promise<void> {
    const wanted = this.frames.length + frames;
    return this.until(() => this.frames.length >= wanted);
  }

  last(frames: number): number[] {
    return this.frames.slice(-frames).flatMap(({ bytes }) => samples(bytes));
  }
}

describe('a stream leg', () => {
  test('alone is given a frame of silence every 20 ms, at its own rate and encoding', async () => {
    const bots = await Promise.all(
      ([pcm(8000), pcm(16_000), pcm(24_000), pcm(48_000), { encoding: 'mulaw', rateHz: 8000 }] as const).map((format) =>
        Bot.open(format, pcm(16_000)),
      ),
    );
    await Promise.all(bots.map((bot) => bot.hears(50)));
    expect(bots.map((bot) => bot.frames[0]?.bytes.length)).toEqual([320, 640, 960, 1_920, 160]);
    for (const bot of bots) {
      const [first, last] = [bot.frames[0], bot.frames[49]];
      expect(Math.abs((last?.at ?? 0) - (first?.at ?? 0) - 980)).toBeLessThan(150);
      const silence = bot.frames[0]?.bytes.length === 160 ? 0xff : 0;
      for (const { bytes } of bot.frames) expect(bytes.every((octet) => octet === silence)).toBe(true);
      await bot.leg.close();
    }
  });

  test('and a phone in one room hear each other, resampled both ways', async () => {
    const room = await harness.engine.openRoom(() => {});
    if (room === undefined) throw new Error('no room');
    const bot = await Bot.open(pcm(24_000), pcm(48_000));
    const call = await harness.call();
    const phone = new Talker(call, 440, 'PCMU');
    call.leg.negotiate(call.peer.parameters());
    await call.leg.counters();
    phone.start();
    call.leg.join(room, FREE);
    bot.leg.join(room, FREE);
    await bot.until(() => bot.notices.some(({ type }) => type === 'room.joined'));
    await call.notices.until(() => call.notices.of('room.joined').length === 1);
    expect(bot.leg.write(bytesOf(tone(1000, 2, 48_000, 0.25)))).toBe(true);
    const heard = await phone.listen(600, 300);
    expect(Math.abs(presentDb(heard, 1000, 8000) - 20 * Math.log10(0.25))).toBeLessThan(0.5);
    expect(levelDb(heard, 440, 8000)).toBeLessThan(-55);
    const given = bot.last(30);
    expect(Math.abs(presentDb(given, 440, 24_000) - phone.level)).toBeLessThan(0.5);
    expect(levelDb(given, 1000, 24_000)).toBeLessThan(-55);
    await bot.leg.close();
    await phone.end();
    await room.close();
  });

  test('plays a burst at real time to the sample, whatever the size of its pieces, and then tells how long it was', async () => {
    const room = await harness.engine.openRoom(() => {});
    if (room === undefined) throw new Error('no room');
    const [bot, ear] = await Promise.all([Bot.open(pcm(8000), pcm(8000)), Bot.open(pcm(8000), pcm(8000))]);
    for (const each of [bot, ear]) {
      each.leg.join(room, FREE);
      await each.until(() => each.notices.some(({ type }) => type === 'room.joined'));
    }
    const sound = bytesOf(tone(500, 0.81, 8000, 0.3).map((value) => value + 0.01)); // never silent, half a frame over
    for (let at = 0, size = 1; at < sound.length; at += size, size = (size * 7) % 1_001 || 1)
      bot.leg.write(sound.subarray(at, at + size));
    bot.leg.mark('end');
    await ear.until(() => bot.played.length === 1);
    expect(bot.played).toEqual([810]);
    expect(bot.marks).toEqual(['end']);
    const heard = ear.frames.flatMap(({ bytes }) => samples(bytes));
    const begins = heard.findIndex((sample) => sample !== 0);
    expect(heard.slice(begins, begins + sound.length / 2)).toEqual(samples(sound));
    await Promise.all([bot.leg.close(), ear.leg.close()]);
    await room.close();
  });

  test('takes a minute ahead and no more, says when there is room, and forgets all of it when cleared', async () => {
    const bot = await Bot.open(pcm(8000), { encoding: 'mulaw', rateHz: 8000 });
    const second = new Uint8Array(8000).fill(mulawOctet(4_000));
    let taken = 0;
    const began = performance.now();
    while (bot.leg.write(second) && taken < 100) taken++;
    // A frame may have been played in between, which makes room for one more.
    expect([60, 61]).toContain(taken);
    bot.leg.mark('never heard');
    expect(bot.leg.write(second)).toBe(false);
    await bot.until(() => bot.rooms === 1);
    expect(bot.leg.write(second)).toBe(true);
    expect(bot.marks).toEqual([]);
    bot.leg.clear();
    expect(bot.marks).toEqual(['never heard']);
    await bot.until(() => bot.played.length === 1);
    // What was heard is what there was time for, not the minute that was written.
    expect(bot.played[0]).toBeLessThan(performance.now() - began + 20);
    expect(bot.leg.write(second)).toBe(true);
    await bot.leg.close();
    expect(bot.leg.write(second)).toBe(true);
  });

  test('falls silent within a frame when cleared', async () => {
    const room = await harness.engine.openRoom(() => {});
    if (room === undefined) throw new Error('no room');
    const [bot, ear] = await Promise.all([Bot.open(pcm(16_000), pcm(16_000)), Bot.open(pcm(16_000), pcm(16_000))]);
    for (const each of [bot, ear]) {
      each.leg.join(room, FREE);
      await each.until(() => each.notices.some(({ type }) => type === 'room.joined'));
    }
    bot.leg.write(bytesOf(tone(500, 10, 16_000, 0.3)));
    await ear.until(() => ear.last(1).some((sample) => sample !== 0));
    await ear.hears(10);
    bot.leg.clear();
    const cleared = ear.frames.length;
    await ear.hears(6);
    // One frame may be under way to us, and one fades.
    for (const { bytes } of ear.frames.slice(cleared + 2)) expect(samples(bytes).every((sample) => sample === 0)).toBe(true);
    await Promise.all([bot.leg.close(), ear.leg.close()]);
    await room.close();
  });
});

test('a mu-law stream is given what was said, octet for octet', async () => {
  const room = await harness.engine.openRoom(() => {});
  if (room === undefined) throw new Error('no room');
  const mulaw: StreamFormat = { encoding: 'mulaw', rateHz: 8000 };
  const [bot, ear] = await Promise.all([Bot.open(mulaw, mulaw), Bot.open(mulaw, mulaw)]);
  for (const each of [bot, ear]) {
    each.leg.join(room, FREE);
    await each.until(() => each.notices.some(({ type }) => type === 'room.joined'));
  }
  const said = Uint8Array.from({ length: 1_600 }, (_, i) => mulawOctet(mulawSample((i * 7) % 256)) & 0xfe);
  bot.leg.write(said);
  await ear.until(() => bot.played.length === 1);
  const heard = ear.frames.flatMap(({ bytes }) => [...bytes]);
  const begins = heard.findIndex((octet) => octet !== 0xff);
  expect(heard.slice(begins, begins + 1_600)).toEqual([...said]);
  await Promise.all([bot.leg.close(), ear.leg.close()]);
  await room.close();
});
