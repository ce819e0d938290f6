/** Whoever follows a growing recording makes it be written in short steps, and begins where it is by then. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GROWING_FILE_POLL_MS, GROWING_FILE_WAIT_MS } from '../../src/limits.ts';
import { GrowingFiles } from '../../src/recording-storage/growing/growing-file.ts';
import fc from '../support/fast-check.ts';
import { GrowingWav } from '../support/growing-wav.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'growing-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

/** Moves the clock on, look by look, until the promise has settled. */
async function looked<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = promise.finally(() => {
    isSettled = true;
  });
  settled.catch(() => {});
  while (!isSettled) {
    await clock.advance(GROWING_FILE_POLL_MS);
    await new Promise(setImmediate);
  }
  return settled;
}

test('the first reader of a file is told of, and the last; who listens live hears nothing of what was recorded before', async () => {
  const clock = new VirtualClock();
  const wav = new GrowingWav(join(folder, 'a.wav')).begin();
  wav.append(new Uint8Array(1_600).fill(1));
  const told: boolean[] = [];
  const files = new GrowingFiles(clock, (path, followed) => {
    expect(path).toBe(wav.path);
    told.push(followed);
    // The writing thread does so in its next round.
    if (followed) clock.at(clock.now() + 64, () => wav.append(new Uint8Array(16_000).fill(2)));
  });
  const opening = [files.follow(wav, 'live'), files.follow(wav, 'pull')] as const;
  const pull = await opening[1];
  expect(told).toEqual([true]);
  let begun = false;
  void opening[0].then(() => {
    begun = true;
  });
  await pull?.next();
  expect(begun).toBe(false);
  await clock.advance(GROWING_FILE_POLL_MS);
  const live = await opening[0];
  wav.append(new Uint8Array(320).fill(3));
  const next = live?.next();
  await clock.advance(GROWING_FILE_POLL_MS);
  expect(Buffer.from((await next) ?? [])).toEqual(Buffer.alloc(320, 3));
  pull?.close();
  expect(told).toEqual([true]);
  live?.close();
  live?.close();
  expect(told).toEqual([true, false]);
  expect(files.size).toBe(0);
  // One that is followed already is where it is.
  const first = await files.follow(wav, 'pull');
  await clock.advance(GROWING_FILE_POLL_MS);
  const second = await files.follow(wav, 'live');
  expect(told).toEqual([true, false, true]);
  first?.close();
  second?.close();
  expect(told).toEqual([true, false, true, false]);
  wav.finish();
});

test('each reader has every byte from its place on, once, however the file grows and whoever reads beside it', async () => {
  const step = fc.oneof(
    fc.record({ append: fc.nat(3_000) }),
    fc.record({ join: fc.constantFrom('pull', 'live') }),
    fc.record({ read: fc.nat(3) }),
  );
  let number = 0;
  const law = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
    const clock = new VirtualClock();
    const wav = new GrowingWav(join(folder, `${number++}.wav`)).begin();
    const files = new GrowingFiles(clock);
    let written = Buffer.alloc(0);
    const readers: { from: number; heard: Uint8Array[]; next(): Promise<Uint8Array | undefined>; close(): void }[] = [];
    for (const each of steps) {
      if ('append' in each) {
        const samples = Buffer.alloc(each.append, written.length % 251);
        wav.append(samples);
        written = Buffer.concat([written, samples]);
      } else if ('join' in each) {
        const reader = await files.follow(wav, each.join);
        if (reader === undefined) throw new Error('no reader');
        expect(Buffer.from(reader.header).toString('hex', 0, 8)).toBe('52494646ffffffff');
        expect(Buffer.from(reader.header).toString('hex', 36)).toBe('64617461ffffffff');
        // All of them have one look.
        expect(clock.armed).toBe(1);
        readers.push({ ...reader, from: each.join === 'live' ? written.length & ~1 : 0, heard: [] });
      } else {
        const reader = readers[each.read];
        if (reader === undefined) continue;
        const next = reader.next();
        const isThere = Buffer.concat(reader.heard).length + reader.from < written.length;
        if (isThere) reader.heard.push((await looked(clock, next)) ?? Buffer.alloc(0));
        else {
          readers.splice(each.read, 1);
          reader.close();
          expect(await next).toBeUndefined();
        }
      }
    }
    wav.finish();
    for (const { from, heard, next, close } of readers) {
      const more = () => looked(clock, next());
      for (let bytes = await more(); bytes !== undefined; bytes = await more()) heard.push(bytes);
      expect(Buffer.compare(Buffer.concat(heard), written.subarray(from))).toBe(0);
      close();
    }
    expect(files.size).toBe(0);
    await clock.advance(GROWING_FILE_POLL_MS);
    expect(clock.armed).toBe(0);
  });
  await fc.assert(law, { numRuns: 60 });
});

test('a file that never begins is waited for, not for ever; one that is over without audio is none', async () => {
  const clock = new VirtualClock();
  const files = new GrowingFiles(clock);
  const began = clock.now();
  const never = { path: join(folder, 'none.wav'), over: () => false };
  await expect(looked(clock, files.follow(never, 'pull'))).rejects.toThrow('has not begun');
  expect(clock.now() - began).toBeGreaterThanOrEqual(GROWING_FILE_WAIT_MS);
  expect(await files.follow({ path: join(folder, 'none.wav'), over: () => true }, 'pull')).toBeUndefined();
  // The file of a recording that was cut off in its header.
  const short = join(folder, 'short.wav');
  await writeFile(short, 'RIFF');
  await expect(looked(clock, files.follow({ path: short, over: () => false }, 'live'))).rejects.toThrow('has not begun');
  expect(await looked(clock, files.follow({ path: short, over: () => true }, 'pull'))).toBeUndefined();
  // A descriptor is closed a moment later. One that is not keeps the test from its end.
  const opened = async () => {
    const descriptors = await readdir('/proc/self/fd');
    return await Promise.all(descriptors.map((each) => readlink(`/proc/self/fd/${each}`).catch(() => '')));
  };
  while ((await opened()).includes(short)) await new Promise(setImmediate);
  expect([files.size, clock.armed]).toEqual([0, 0]);
});
