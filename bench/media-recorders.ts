/**
 * CPU of recording, and of nothing else: so many recordings of 8 kHz, fed a frame each at every tick by a thread that
 * is as real-time as a plane's, with their two writing threads. Interleaved rounds: with a ring in memory that outlives
 * the process (two writes a second), and without (a write in every round), as it is where there is no such memory.
 *
 *   npm run bench -- media-recorders [RECORDINGS] [ROUNDS] [SECONDS]
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [recordings = 2_000, rounds = 5, seconds = 8] = process.argv.slice(2).map(Number);
const root = join(import.meta.dir, '..');
const make = ['-s', '-C', 'native', '../build/recorders'];
if (spawnSync('make', make, { cwd: root, stdio: 'inherit' }).status !== 0) process.exit(1);

// The files stay until the end: a file system is slow to give away again what was just removed, which is no affair of a
// recording.
const folder = mkdtempSync(join(tmpdir(), 'recorders-'));
const memory = mkdtempSync('/dev/shm/recorders-');
const sides = { 'ring in memory': [] as string[], 'without one': [] as string[] };
for (let round = 0; round < rounds; round++) {
  for (const [name, told] of Object.entries(sides)) {
    const own = mkdtempSync(join(folder, 'round-'));
    const run = spawnSync(
      join(root, 'build/recorders'),
      [`${recordings}`, `${seconds}`, own, ...(name === 'without one' ? [] : [memory])],
      {
        encoding: 'utf8',
      },
    );
    told.push(run.stdout.trim());
    console.log(`${name.padEnd(14)}  ${run.stdout.trim()}`);
  }
}

for (const each of [folder, memory]) rmSync(each, { recursive: true });

/** The middle one of the numbers before a word, and the largest. */
const of = (told: readonly string[], before: RegExp) => {
  const numbers = told.map((line) => Number(before.exec(line)?.[1])).sort((a, b) => a - b);
  return { median: numbers[numbers.length >> 1], most: numbers.at(-1) };
};
for (const [name, told] of Object.entries(sides)) {
  const worst = of(told, /worst ([\d.]+) ms/);
  console.log(
    `${recordings} recordings, ${name}: ${of(told, /^([\d.]+) us/).median} us a leg and tick (${of(told, /([\d.]+) in the tick/).median} in the tick, ` +
      `${of(told, /([\d.]+) written/).median} written, ${of(told, /([\d.]+) made durable/).median} made durable); worst tick median ${worst.median}, most ${worst.most} ms`,
  );
}
