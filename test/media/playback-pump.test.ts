/** The pump of a playback against a player that is played here: how far ahead it feeds, and from which place. */
import { afterEach, describe, expect, spyOn, test } from 'bun:test';
import { LIVE_KEEP_MS, LIVE_OWED_MAX_MS } from '../../src/limits.ts';
import { PcmFailed, type PcmSource } from '../../src/media/playback/pcm-source.ts';
import { type FeedFailure, PlaybackPump } from '../../src/media/playback/playback-pump.ts';

const RATE_HZ = 8_000;
const samples = (ms: number) => (ms * RATE_HZ) / 1000;
const settled = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
};

interface Terms {
  readonly aheadMs?: number;
  readonly pieceMs?: number;
  readonly live?: boolean;
}

type Given = number | Int16Array<ArrayBuffer> | Error | 'end';

interface Reading {
  readonly pieces: Given[];
  more: PromiseWithResolvers<void>;
}

/** A pump, the pieces that its source has yet to give, and all that happened. */
class Pumped {
  readonly happened: string[] = [];
  readonly failures: (FeedFailure | undefined)[] = [];
  readonly pump: PlaybackPump;
  /** The samples of the pieces that were fed. */
  fed: number[] = [];
  /** All samples that were fed by a live source, one after the other. */
  sound: number[] = [];
  /** The first sample of each of them. */
  firsts: (number | undefined)[] = [];
  /** The readings of the source that are over. */
  over = 0;
  #interrupted = 0;
  readonly #readings: Reading[] = [];

  constructor({ aheadMs = 4_000, pieceMs = 0, live = false }: Terms = {}) {
    const source: PcmSource = {
      aheadMs,
      pieceMs,
      live,
      pcm: (from) => this.#pcm(from),
      interrupt: () => void this.#interrupted++,
    };
    this.pump = new PlaybackPump({
      source,
      rateHz: RATE_HZ,
      move: () => this.happened.push('move'),
      feed: (pcm) => {
        this.fed.push(pcm.length);
        if (live) for (const sample of pcm) this.sound.push(sample);
        this.firsts.push(pcm[0]);
      },
      done: (failure) => {
        this.happened.push('done');
        this.failures.push(failure);
      },
    });
  }

  get interrupted(): number {
    return this.#interrupted;
  }

  /** All that was fed since it was asked last. */
  take(): number {
    return this.fed.splice(0).reduce((sum, length) => sum + length, 0);
  }

  /** Gives pieces, or their milliseconds, to the reading that began last, or to the one of that number. */
  async give(...pieces: Given[]): Promise<void> {
    await this.giveTo(this.#readings.length - 1, ...pieces);
  }

  async giveTo(number: number, ...pieces: Given[]): Promise<void> {
    const reading = this.#readings[number];
    reading?.pieces.push(...pieces);
    reading?.more.resolve();
    await settled();
  }

  async *#pcm(from: number): AsyncGenerator<Int16Array<ArrayBuffer>> {
    this.happened.push(`from ${from}`);
    const reading: Reading = { pieces: [], more: Promise.withResolvers<void>() };
    this.#readings.push(reading);
    try {
      for (;;) {
        const piece = reading.pieces.shift();
        if (piece === undefined) {
          reading.more = Promise.withResolvers();
          await reading.more.promise;
        } else if (piece === 'end') return;
        else if (piece instanceof Error) throw piece;
        else yield typeof piece === 'number' ? new Int16Array(samples(piece)) : piece;
      }
    } finally {
      this.over++;
    }
  }
}

describe('a pump', () => {
  test('feeds so far ahead, cutting the last piece, and goes on when the player is hungry', async () => {
    const pumped = new Pumped({ aheadMs: 2_500 });
    await pumped.give(1_000, 1_000, 1_000, 1_000, 1_000, 'end');
    expect(pumped.fed).toEqual([8_000, 8_000, 4_000]);
    expect([pumped.take(), pumped.pump.fed]).toEqual([20_000, 20_000]);
    // The player had taken 12,000 samples when it asked, and had 500 ms of them queued; 8,000 were under way.
    pumped.pump.hungry(500, 12_000);
    await settled();
    expect([pumped.take(), pumped.pump.fed]).toEqual([20_000 - 4_000 - 8_000, 28_000]);
    expect(pumped.happened).toEqual(['from 0']);
    pumped.pump.hungry(0, 28_000);
    await settled();
    expect([pumped.take(), pumped.pump.fed, pumped.failures]).toEqual([12_000, 40_000, [undefined]]);
  });

  test('hands over every sample in its order, in pieces of whole samples', async () => {
    const pumped = new Pumped({ aheadMs: 1_000 });
    await pumped.give(
      Int16Array.from({ length: 8_000 }, (_, at) => at),
      Int16Array.from({ length: 16_000 }, (_, at) => 8_000 + at),
    );
    pumped.pump.hungry(0.0625, 8_000); // half a sample
    await settled();
    expect([pumped.fed, pumped.firsts]).toEqual([
      [8_000, 7_999],
      [0, 8_000],
    ]);
    pumped.pump.hungry(0, 15_999);
    await settled();
    expect([pumped.firsts.at(-1), pumped.pump.fed]).toEqual([15_999, 23_999]);
  });

  test('hands over little to begin with and then half of what the player has, up to the piece of its source', async () => {
    const pumped = new Pumped({ aheadMs: 10_000, pieceMs: 300 });
    const told: number[] = [];
    for (let at = 0; at < 100; at++) {
      await pumped.give(20);
      const now = pumped.take();
      if (now > 0) told.push(now / samples(1));
    }
    expect(told).toEqual([100, 100, 100, 160, 240, 300, 300, 300, 300]);
    expect(pumped.pump.fed).toBe(samples(1_900));
    await pumped.give('end');
    expect([pumped.take(), pumped.failures]).toEqual([samples(100), [undefined]]);
  });

  test('knows how much the player has after more samples than 32 bits count', async () => {
    const piece = new Int16Array(2 ** 24);
    const all = 300 * piece.length;
    const pumped = new Pumped({ aheadMs: (all * 1000) / RATE_HZ });
    await pumped.give(...Array.from({ length: 301 }, () => piece));
    while (pumped.pump.fed < all) await settled();
    expect(pumped.take()).toBe(all);
    pumped.pump.hungry(0, (all - 100) % 2 ** 32); // 100 samples are under way.
    await pumped.give(...Array.from({ length: 299 }, () => piece));
    while (pumped.pump.fed < 2 * all - 100) await settled();
    expect(pumped.take()).toBe(all - 100);
  });

  test('tells a failure once, when what came before it was fed, and in the words of the events', async () => {
    for (const [error, expected] of [
      [new PcmFailed('source_disconnected', 2), { reason: 'source_disconnected', sourceIndex: 2 }],
      [new Error('ours'), { reason: 'internal_error', sourceIndex: undefined }],
    ] as const) {
      const pumped = new Pumped({ aheadMs: 1_000, pieceMs: 1_000 });
      await pumped.give(50, error);
      expect([pumped.take(), pumped.failures]).toEqual([samples(50), [expected]]);
      const late = new Pumped({ aheadMs: 1_000 });
      await late.give(1_500, error);
      expect([late.take(), late.failures]).toEqual([samples(1_000), []]);
      late.pump.hungry(0, samples(1_000));
      await settled();
      expect([late.take(), late.failures]).toEqual([samples(500), [expected]]);
    }
  });

  test('that was stopped feeds nothing more, and tells and moves nothing', async () => {
    const pumped = new Pumped({ aheadMs: 1_000 });
    await pumped.give(1_500);
    expect(pumped.take()).toBe(samples(1_000));
    pumped.pump.stop();
    await settled();
    expect([pumped.interrupted, pumped.over]).toEqual([1, 1]); // It waits for nothing any more.
    pumped.pump.hungry(0, samples(1_000));
    pumped.pump.seek({ positionMs: 0 });
    pumped.pump.moved(0);
    await pumped.give(100, 'end');
    expect([pumped.take(), pumped.happened]).toEqual([0, ['from 0']]);
  });

  test('that is stopped while it moves does not begin at the other place', async () => {
    const pumped = new Pumped();
    pumped.pump.seek({ positionMs: 1_000 });
    pumped.pump.stop();
    pumped.pump.moved(0);
    await settled();
    expect(pumped.happened).toEqual(['from 0', 'move']);
  });
});

describe('a pump that is moved', () => {
  test('begins at the place once the player has said how far it had come, and has all to feed again', async () => {
    const pumped = new Pumped({ aheadMs: 1_000, pieceMs: 1_000 });
    await pumped.give(1_050);
    expect(pumped.take()).toBe(samples(1_000));
    pumped.pump.seek({ offsetMs: 500 });
    expect([pumped.interrupted, pumped.happened]).toEqual([1, ['from 0', 'move']]);
    pumped.pump.moved(samples(250));
    await pumped.give(20);
    expect([pumped.happened.at(-1), pumped.take(), pumped.pump.fed]).toEqual(['from 6000', 0, 0]);
    await pumped.give(2_000);
    expect([pumped.take() > 0, pumped.pump.fed]).toEqual([true, samples(1_000)]);
    // A later offset counts from the place and what was heard since.
    pumped.pump.seek({ offsetMs: -250 });
    pumped.pump.moved(samples(100));
    await settled();
    expect(pumped.happened.at(-1)).toBe('from 4800');
    pumped.pump.moved(samples(100)); // Nobody asked.
    await settled();
    expect(pumped.happened.length).toBe(5);
  });

  test('hears nothing of the place before, and loses nothing of the new one when that ends', async () => {
    for (const last of [new Int16Array(800).fill(7), new Error('late'), 'end'] as const) {
      const pumped = new Pumped({ pieceMs: 1_000 });
      pumped.pump.seek({ positionMs: 1_000 });
      pumped.pump.moved(0);
      await pumped.give(new Int16Array(400).fill(1));
      await pumped.giveTo(0, last);
      await pumped.give(new Int16Array(400).fill(2));
      expect([pumped.fed, pumped.firsts, pumped.failures]).toEqual([[400, 400], [1, 2], []]);
    }
  });

  test('forgets what it held of the place before, which was too little to be handed over', async () => {
    const pumped = new Pumped({ pieceMs: 1_000 });
    await pumped.give(new Int16Array(400).fill(1));
    pumped.pump.seek({ positionMs: 1_000 });
    pumped.pump.moved(0);
    await pumped.give(new Int16Array(400).fill(2), new Int16Array(400).fill(3));
    expect([pumped.fed, pumped.firsts]).toEqual([
      [400, 400],
      [2, 3],
    ]);
  });

  test('begins each time with as little, also where it was moved while it waited with sound for the player', async () => {
    const pumped = new Pumped({ aheadMs: 1_000, pieceMs: 400 });
    for (let moves = 0; moves < 3; moves++) {
      await pumped.give(900, 100, 100, 100, 100);
      expect(pumped.pump.fed).toBe(samples(1_000));
      pumped.pump.seek({ positionMs: 0 });
      pumped.pump.moved(0);
      pumped.take();
      await pumped.give(100);
      expect(pumped.take()).toBe(samples(100));
    }
  });

  test('does not begin before the beginning, and rounds to the nearest sample', async () => {
    const pumped = new Pumped();
    pumped.pump.seek({ offsetMs: -10_000 });
    pumped.pump.moved(100);
    pumped.pump.seek({ positionMs: 0.19 });
    pumped.pump.moved(0);
    await settled();
    expect(pumped.happened).toEqual(['from 0', 'move', 'from 0', 'move', 'from 2']);
  });

  test('adds up what is asked for while it moves: an offset to what came before, a position instead of it', async () => {
    for (const [places, expected] of [
      [[{ offsetMs: 100 }, { offsetMs: -40 }], 8_480],
      [[{ offsetMs: 100 }, { positionMs: 500 }], 4_000],
      [[{ positionMs: 500 }, { offsetMs: 100 }, { offsetMs: 100 }], 5_600],
      [[{ positionMs: 500 }, { offsetMs: -900 }, { offsetMs: 100 }], 800],
    ] as const) {
      const pumped = new Pumped();
      pumped.pump.seek({ positionMs: 1_000 });
      for (const place of places) pumped.pump.seek(place);
      expect(pumped.happened).toEqual(['from 0', 'move']);
      pumped.pump.moved(0);
      expect(pumped.happened).toEqual(['from 0', 'move', 'move']);
      pumped.pump.moved(0);
      await settled();
      expect(pumped.happened).toEqual(['from 0', 'move', 'move', `from ${expected}`]);
    }
  });
});

describe('a pump of a live source', () => {
  let nowMs = 0;
  afterEach(() => spyOn(performance, 'now').mockRestore());
  const live = () => {
    nowMs = 1_000;
    spyOn(performance, 'now').mockImplementation(() => nowMs);
    return new Pumped({ aheadMs: 60_000, live: true });
  };

  test('leaves out what a stall made late, but for what it needs to go on', async () => {
    const pumped = live();
    await pumped.give(1_000);
    nowMs += 3_000; // 2 s of silence were sent for want of audio.
    await pumped.give(200);
    expect(pumped.take()).toBe(samples(1_200)); // There is not more than is needed to go on.
    await pumped.give(1_000);
    expect(pumped.take()).toBe(samples(100)); // 200 ms are ahead, and 300 are to be.
    await pumped.give(2_000);
    expect(pumped.take()).toBe(samples(2_000 - 1_100));
    await pumped.give(1_000);
    expect(pumped.take()).toBe(samples(1_000));
  });

  test('keeps what goes on and what comes last of a piece', async () => {
    const pumped = live();
    await pumped.give(10);
    nowMs += 510; // 500 ms late
    await pumped.give(Int16Array.from({ length: samples(1_000) }, (_, at) => at));
    expect([pumped.fed, pumped.firsts]).toEqual([
      [samples(10), samples(LIVE_KEEP_MS), samples(1_000 - LIVE_KEEP_MS - 500)],
      // What follows begins where the sound before it would have gone on, and is itself after 5 ms.
      [0, 0, samples(LIVE_KEEP_MS)],
    ]);
    expect([...pumped.sound.slice(-samples(200) + samples(5))]).toEqual(
      Array.from({ length: samples(195) }, (_, at) => samples(805) + at),
    );
  });

  test('leads over to what follows from the sound before it, also where that piece has nothing more', async () => {
    const wave = (from: number, ms: number) =>
      Int16Array.from({ length: samples(ms) }, (_, at) => 8_000 * Math.sin((2 * Math.PI * 100 * (from + at)) / RATE_HZ));
    for (let late = 500; late < 510; late++) {
      const pumped = live();
      await pumped.give(10);
      nowMs += 10 + late;
      for (let ms = 0; ms < 2_000; ms += 100) await pumped.give(wave(samples(ms), 100));
      expect(pumped.sound.length).toBe(samples(10 + 2_000 - late));
      const steps = [...pumped.sound].map((sample, at) => Math.abs(sample - (pumped.sound[at - 1] ?? sample)));
      expect(Math.max(...steps)).toBeLessThan(1_100); // its own are 628
    }
  });

  test('makes up for ten minutes of silence, and no more', async () => {
    const pumped = live();
    await pumped.give(10);
    nowMs += 2 * LIVE_OWED_MAX_MS;
    await pumped.give(LIVE_OWED_MAX_MS + 1_000);
    expect(pumped.take()).toBe(samples(10 + 1_000));
  });

  test('leaves nothing out where it is not live', async () => {
    const pumped = new Pumped({ aheadMs: 60_000 });
    spyOn(performance, 'now').mockImplementation(() => nowMs);
    await pumped.give(10);
    nowMs += 5_000;
    await pumped.give(1_000);
    expect(pumped.take()).toBe(samples(1_010));
  });
});
