/** The log has nowhere to go: its disk is full, or who reads it has ended or stands still. */
import { afterEach, expect, test } from 'bun:test';
import { type ChildProcess, type StdioOptions, spawn, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LOG_WAITING_MAX_LINES } from '../../src/limits.ts';
import { boundedLines } from '../../src/log.ts';

let running: ChildProcess | undefined;
afterEach(() => {
  running?.kill('SIGKILL');
  running = undefined;
});

/** Starts a process that logs so many lines, and another one when its standard input ends, by which it ends. */
function start(lines: number, stdout: number | 'pipe') {
  const program = `
    import { createLog } from './src/log.ts';
    const log = createLog('info');
    for (let nth = 0; nth < ${lines}; nth++) log.info({ nth }, 'a line');
    process.stdin.once('end', () => log.info({}, 'the last line'));
    process.stdin.resume();
    setTimeout(() => process.stderr.write('goes on'), 100);`;
  const stdio: StdioOptions = ['pipe', stdout, 'pipe'];
  const child = spawn(process.execPath, ['-e', program], { cwd: join(import.meta.dir, '../..'), stdio });
  running = child;
  const goesOn = new Promise((resolve) => child.stderr?.once('data', resolve));
  const ended = new Promise((resolve) => child.once('close', resolve));
  return { child, ended, goesOn };
}

/** What a process that logs ends with, where it goes on beyond its first lines. */
async function endOf(stdout: number): Promise<unknown> {
  const { child, ended, goesOn } = start(10, stdout);
  const how = await Promise.race([goesOn.then(() => 'goes on'), ended]);
  child.stdin?.end();
  return [how, await ended].map(String);
}

test('a log on a full disk ends nothing', async () => {
  const full = openSync('/dev/full', 'w');
  try {
    expect(await endOf(full)).toEqual(['goes on', '0']);
  } finally {
    closeSync(full);
  }
});

test('a log whose reader has ended, as tee or rotatelogs, ends nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sidetone-log-reader-'));
  const path = join(folder, 'log');
  spawnSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDWR);
  const writer = openSync(path, constants.O_WRONLY);
  closeSync(reader);
  try {
    expect(await endOf(writer)).toEqual(['goes on', '0']);
  } finally {
    closeSync(writer);
    rmSync(folder, { recursive: true });
  }
});

test('of a log whose reader stands still so many lines are kept, and one tells how many were lost', () => {
  const written: string[] = [];
  const waiting: (() => void)[] = [];
  const sink = {
    write(line: string, taken: () => void) {
      written.push(line);
      waiting.push(taken);
    },
  };
  const log = boundedLines(sink, (lines) => log.write(`${lines} were lost`));
  for (let nth = 0; nth < LOG_WAITING_MAX_LINES + 3; nth++) log.write(`line ${nth}`);
  expect([written.length, written.at(-1)]).toEqual([LOG_WAITING_MAX_LINES, `line ${LOG_WAITING_MAX_LINES - 1}`]);
  for (const taken of waiting.splice(0, 3)) taken();
  for (const line of ['next', 'one more', 'too many']) log.write(line);
  expect(written.slice(LOG_WAITING_MAX_LINES)).toEqual(['3 were lost', 'next', 'one more']);
  for (const taken of waiting.splice(0)) taken();
  log.write('last');
  expect(written.slice(-2)).toEqual(['1 were lost', 'last']);
});

test('a log that was not read for a while is written on once it is', async () => {
  const all = LOG_WAITING_MAX_LINES + 5_000;
  const { child, ended, goesOn } = start(all, 'pipe');
  await goesOn;
  let said = '';
  const heard = new Promise<void>((resolve) => {
    child.stdout?.on('data', (data) => {
      said += data;
      if (said.split('\n').length > LOG_WAITING_MAX_LINES) resolve();
    });
  });
  await heard;
  child.stdin?.end();
  await ended;
  const lines: { readonly lines?: number; readonly msg: string }[] = said
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  // Beside those that wait there are those that the pipe itself has room for.
  expect(lines.length).toBeLessThan(all);
  expect(lines.slice(-2)).toMatchObject([
    { lines: all - (lines.length - 2), msg: 'the log was not read, and lines of it were lost' },
    { msg: 'the last line' },
  ]);
});
