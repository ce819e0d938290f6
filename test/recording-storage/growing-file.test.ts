/** Whoever follows a growing recording makes it be written in short steps, and begins where it is by then. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GROWING_FILE_POLL_MS } from '../../src/limits.ts';
import { GrowingFiles } from '../../src/recording-storage/growing/growing-file.ts';
import { GrowingWav } from '../support/growing-wav.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'growing-'));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

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
