/** Threads that hang outside script, which nothing but the end of the process can end. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../src/log.ts';
import { DecoderThread } from '../../src/media/decode/decoder.ts';
import { MediaWorker } from '../../src/media/worker/media-worker.ts';
import { mediaReadings } from '../../src/media/worker/readings.ts';

const directory = mkdtempSync(join(tmpdir(), 'hung-thread-'));
const pipe = join(directory, 'pipe');
const fixture = (name: string) => new URL(`./fixture/${name}`, import.meta.url);

beforeAll(() => {
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
});
afterAll(() => rmSync(directory, { recursive: true }));

/** A thread of the lowest priority needs long for its own end where others keep both processors busy. */
const until = async (what: () => boolean) => {
  for (const began = performance.now(); !what(); ) {
    if (performance.now() - began > 60_000) throw new Error(`never came: ${what}`);
    await Bun.sleep(5);
  }
};

/**
 * Lets the thread go on that hangs in opening the pipe, and waits for its end. The pipe is opened both ways, because
 * that never waits (fifo(7)), and again and again: the runtime asks a thread to end by signals, after each of which it
 * opens anew, and may miss one.
 */
const released = () =>
  until(() => {
    closeSync(openSync(pipe, 'r+'));
    return stuck() === 0;
  });

/** Policy and niceness of all threads (proc_pid_stat(5), fields 41 and 19). */
function threads(): readonly { readonly policy: number; readonly nice: number }[] {
  return readdirSync('/proc/self/task').map((id) => {
    const fields = readFileSync(`/proc/self/task/${id}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return { policy: Number(fields[38]), nice: Number(fields[16]) };
  });
}

const stuck = () =>
  mediaReadings({ ticks: () => [] })
    .find(({ name }) => name === 'threads_stuck')
    ?.read();

describe('a thread that hangs outside script', () => {
  test('takes no time from the others once its media worker is given up, and is counted until it ends', async () => {
    const above = threads().filter(({ policy }) => policy !== 0).length;
    const worker = await MediaWorker.start({
      mediaTimeoutMs: 1000,
      log: silentLog,
      script: fixture('hung-worker.ts'),
      pulseMaxMs: 200,
    });
    let lost = 0;
    worker.attach(1, { opened() {}, notice() {}, closed() {}, stayed() {}, lost: () => void lost++ });
    const voices = { sensitivityPercent: 1, onsetMs: 1, releaseMs: 1 };
    worker.command({ type: 'record', leg: 1, recording: 2, path: pipe, ring: '', rateHz: 0, includeGaps: false, voices });
    await until(() => lost === 1);
    expect(threads().filter(({ nice }) => nice === 19)).toEqual([{ policy: 0, nice: 19 }]);
    expect(threads().filter(({ policy }) => policy !== 0).length).toBe(above);
    await until(() => stuck() === 1);
    await worker.close(); // It does not wait for what never ends.
    await released();
  }, 80_000);

  test('is replaced when it decodes: the stream it hung in fails, the next one gets a new thread', async () => {
    const decoders = new DecoderThread(silentLog, { script: fixture('hung-decoder.ts'), stepMaxMs: 300 });
    const stream = await decoders.open('mpeg', 8000);
    await expect(stream.push(new TextEncoder().encode(pipe))).rejects.toThrow('gone');
    const next = await decoders.open('wav', 8000);
    expect((await next.end()).pcm.length).toBe(0);
    await decoders.close();
    await released();
  }, 80_000);
});
