/** The log has nowhere to go: its disk is full, or who read it has ended. */
import { afterEach, expect, test } from 'bun:test';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RtpRange } from '../support/rtp-range.ts';
import { freePort } from '../support/sipp.ts';

let running: { child: ChildProcess; dataDir: string; range: RtpRange } | undefined;
afterEach(async () => {
  if (running === undefined) return;
  const { child, dataDir, range } = running;
  running = undefined;
  child.kill();
  if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve));
  range.free();
  rmSync(dataDir, { recursive: true, force: true });
}, 30_000);

/** Starts a platform whose standard output is `stdout`, and waits until it is ready. */
async function start(stdout: number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-log-'));
  const range = await RtpRange.take();
  const port = await freePort();
  const child = spawn(process.execPath, ['--no-env-file', 'src/main.ts'], {
    cwd: join(import.meta.dir, '../..'),
    env: {
      PATH: process.env.PATH,
      DATA_DIR: dataDir,
      HTTP_PORT: String(port),
      SIP_LISTEN: 'udp:127.0.0.1:0',
      RTP_PORTS: range.ports,
      MEDIA_WORKERS: '1',
    },
    stdio: ['ignore', stdout, 'ignore'],
  });
  running = { child, dataDir, range };
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (child.exitCode === null && !(await isReady())) await Bun.sleep(50);
  return { child, isReady };
}

/** Has it write a line, and stops it. Returns the code that it ends with. */
async function hangUpAndStop(child: ChildProcess, isReady: () => Promise<boolean>): Promise<number | null> {
  child.kill('SIGHUP');
  expect(await isReady()).toBe(true);
  child.kill('SIGTERM');
  return await new Promise((resolve) => child.once('exit', resolve));
}

test('a log on a full disk keeps nobody from calling: the platform starts, goes on and stops as ever', async () => {
  const full = openSync('/dev/full', 'w');
  try {
    const { child, isReady } = await start(full);
    expect(child.exitCode).toBeNull();
    expect(await hangUpAndStop(child, isReady)).toBe(0);
  } finally {
    closeSync(full);
  }
}, 60_000);

test('a log whose reader has ended, as tee or rotatelogs, does not end the calls with it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-log-reader-'));
  const path = join(folder, 'log');
  spawnSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDWR);
  const writer = openSync(path, constants.O_WRONLY);
  const { child, isReady } = await start(writer).finally(() => {
    for (const file of [reader, writer]) closeSync(file);
    rmSync(folder, { recursive: true });
  });
  expect(await hangUpAndStop(child, isReady)).toBe(0);
}, 60_000);
