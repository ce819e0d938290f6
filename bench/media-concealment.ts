/**
 * How lost packets are concealed, by ITU-T P.862 (PESQ): the mean raw score of six synthetic voices (espeak-ng) over
 * G.711, each with four patterns of loss. 4.5 is the best score there is; speech through G.711 without loss has about
 * 4.1. First comes the time that a frame takes.
 *
 *   PESQ_DIR=… npm run bench -- media-concealment
 *
 * PESQ_DIR holds the C source of P.862 as the ITU gives it (pesqmain.c and its neighbours). Nothing of it is part of
 * this project; without it the bench is skipped.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { native } from '../src/media/native.ts';

const root = join(import.meta.dir, '..');

function run(command: string, args: readonly string[], cwd = root): Buffer {
  const done = spawnSync(command, args, { cwd, maxBuffer: 64 << 20 });
  if (done.error !== undefined || done.status !== 0)
    throw new Error(`${command} failed: ${done.stderr?.toString() ?? done.error}`);
  return done.stdout;
}

run('make', ['-s', '-C', 'native', '../build/concealment']);
console.log(run(join(root, 'build/concealment'), []).toString().trim());

const source = process.env.PESQ_DIR;
if (source === undefined || !existsSync(join(source, 'pesqmain.c'))) {
  console.log('its PESQ is skipped: PESQ_DIR names no folder with the C source of ITU-T P.862');
  process.exit(0);
}

const CONDITIONS = [
  { name: 'no loss', percent: 0, burst: 1, jitter: 0 },
  { name: '1 %', percent: 1, burst: 1, jitter: 0 },
  { name: '3 %', percent: 3, burst: 1, jitter: 0 },
  { name: '5 %', percent: 5, burst: 1, jitter: 0 },
  { name: '10 %', percent: 10, burst: 1, jitter: 0 },
  { name: '20 %', percent: 20, burst: 1, jitter: 0 },
  { name: '6 % in bursts of three', percent: 6, burst: 3, jitter: 0 },
  { name: '10 %, jitter of 40 ms', percent: 10, burst: 1, jitter: 40 },
] as const;
/** What goes before, so that the delay of the jitter buffer has come down to what a good network needs. */
const LEAD_IN_MS = 10_000;
const VOICES = ['en-us+m3', 'en-us+f2', 'en-gb-scotland+m1', 'en-gb-x-rp+f4', 'en-us+f5', 'en-us+m7'];
const TEXT =
  'The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. It is easy to tell the depth of a well. ' +
  'These days a chicken leg is a rare dish. Rice is often served in round bowls. The juice of lemons makes fine punch.';
const SEEDS = [7, 107, 207, 307];

/** Speech of a voice as 16-bit PCM of 8 kHz. */
function speech(voice: string): Int16Array {
  const wav = new Uint8Array(run('espeak-ng', ['-v', voice, '-s', '150', '--stdout', TEXT]));
  const reader = native.wavCreate(8_000);
  const pcm: number[] = [];
  const out = new Int16Array(65_536);
  const status = new Uint32Array(4);
  for (let at = 0; at < wav.length; at += status[0] ?? 0) {
    native.wavRead(reader, wav.subarray(at, at + 8_192), out, status);
    pcm.push(...out.subarray(0, status[1]));
    if (status[0] === 0 && status[1] === 0) break;
  }
  return Int16Array.from(pcm);
}

const folder = mkdtempSync(join(tmpdir(), 'concealment-'));
const pesq = join(folder, 'pesq');
const sources = readdirSync(source).filter((name) => name.endsWith('.c'));
run('cc', ['-O2', '-w', '-fcommon', '-o', pesq, ...sources.map((name) => join(source, name)), '-lm']);

const voices = VOICES.map((voice, index) => {
  const path = join(folder, `speech${index}.raw`);
  writeFileSync(path, speech(voice));
  return path;
});
console.log('PESQ (raw, mean of voices and patterns)');
for (const { name, percent, burst, jitter } of CONDITIONS) {
  const scores: number[] = [];
  for (const path of voices) {
    for (const seed of percent === 0 ? SEEDS.slice(0, 1) : SEEDS) {
      const heard = join(folder, 'heard.raw');
      run(join(root, 'build/concealment'), [path, heard, `${percent}`, `${burst}`, `${seed}`, `${jitter}`, `${LEAD_IN_MS}`]);
      const said = run(pesq, ['+8000', path, heard], folder).toString();
      scores.push(Number(/(?:Prediction[^=]*|PESQ_MOS)\s*=\s*([0-9.]+)/.exec(said)?.[1]));
    }
  }
  console.log(`${name.padEnd(24)} ${(scores.reduce((sum, score) => sum + score, 0) / scores.length).toFixed(2)}`);
}
rmSync(folder, { recursive: true });
