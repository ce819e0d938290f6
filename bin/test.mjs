#!/usr/bin/env node
/**
 * The whole suite: the native tests under the sanitizers (of addresses, undefined behaviour and threads), then every
 * test file on Bun, in parallel. Ends with one line that counts them all. Arguments are passed to `bun test` (a path,
 * `-t NAME`); with arguments the native tests are left out.
 *
 * With TEST_FAILED_AGAIN=1, as CI sets it, up to six files that failed are run once more, one after the other and with
 * nothing beside them. Files are counted and not tests, as one failure may cause others within its file. A test that
 * passes only then is named: it depends on how busy the machine is, which is a bug of the test or of what it tests.
 *
 * Suites that run on one machine at the same time know of each other, and each takes fewer files at once: together they
 * would else ask for so much more than the processors have that calls and databases miss their deadlines.
 */
import { spawn, spawnSync } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { removeLeftovers } from './test-leftovers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const bun = join(root, 'node_modules/.bin/bun');
/** A fast machine starts Bun in less than this, in milliseconds: 10 at rest. */
const FAST_START_MS = 20;
const args = process.argv.slice(2);
const total = { passed: 0, failed: 0, skipped: 0 };
/** What the names of the data directories of these tests begin with. */
const prefix = `suite-${process.pid}-`;
process.env.TEST_DATA_PREFIX = prefix;
/** The commands that are under way. A suite that is interrupted ends them, and removes what they leave behind. */
const running = new Set();
let isInterrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => {
    isInterrupted = true;
    for (const child of running) child.kill(signal);
  });
}

// Packages and addon are brought up to date first, so that no test runs against an old one.
const prepared = spawnSync(process.execPath, [join(root, 'bin/prepare.mjs')], { stdio: 'inherit' });
if (prepared.status !== 0) process.exit(1);

if (args.length === 0) {
  for (const peer of ['sipp', 'baresip', 'linphonec', 'kamailio', 'icecast2', 'ffmpeg', 'nats-server']) {
    if (spawnSync(peer, ['-v'], { stdio: 'ignore' }).error !== undefined) {
      console.log(
        `sidetone: ${peer} is not installed; the tests against it are skipped (Debian: apt-get install sip-tester baresip-core linphone-cli kamailio kamailio-tls-modules icecast2 ffmpeg nats-server)`,
      );
    }
  }
}
// Much of a test is waiting: for audio at its own pace, for a process to start. Compilers work in the pauses. One file
// more than there are processors is as soon done, compilers included, as two more, and is half as long overloaded.
// Where processes start fast, a test waits for twice as long as it works, and three more find their time.
const beside = args.length === 0 ? await suitesBeside() : 0;
const most = Math.max(3, availableParallelism() + (args.length === 0 && startMs() < FAST_START_MS ? 3 : 1));
const files = beside === 0 ? most : Math.max(2, Math.ceil(most / (beside + 1)));
if (beside > 0) console.log(`sidetone: ${beside} more running on this machine: ${files} files at once instead of ${most}`);
const native = args.length === 0 ? nativeTests() : Promise.resolve(true);
const workers = `--parallel=${files}`;
const failedFiles = new Set();
/** The limit of a test does not come up where it leaves no turn to the clock. The longest one takes ten minutes. */
const SILENT_MAX_MS = 1_200_000;
let file;
let isSummary = false;
let passed = await watch(
  bun,
  ['test', workers, '--no-orphans', '--timeout=90000', ...args],
  print,
  (line) => {
    file = /^(test\/\S+\.test\.ts):$/.exec(line)?.[1] ?? file;
    isSummary ||= /^\d+ tests (failed|skipped):$/.test(line);
    if (line.startsWith('(fail)') && !isSummary && file !== undefined) failedFiles.add(file);
    const counted = /^\s*(\d+) (pass|fail|skip)$/.exec(line);
    if (counted === null) return;
    const count = Number(counted[1]);
    add(counted[2] === 'pass' ? count : 0, counted[2] === 'fail' ? count : 0, counted[2] === 'skip' ? count : 0);
  },
  SILENT_MAX_MS,
);
const nativePassed = await native;
if (!isInterrupted && process.env.TEST_FAILED_AGAIN === '1' && failedFiles.size > 0 && failedFiles.size <= 6)
  passed = await again();
for (const directory of await removeLeftovers(prefix)) console.log(`sidetone: a test left ${directory} behind; it is removed`);
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : '';
console.log(`${total.passed} passed, ${total.failed} failed${skipped}`);
if (!passed || !nativePassed) process.exitCode = 1;

/**
 * Announces this suite, and counts those beside it: each holds a socket of the system's abstract names, which goes with
 * its process. Two that start together have time to see each other. 0 where there are no such names.
 */
async function suitesBeside() {
  if (process.platform !== 'linux') return 0;
  const names = Array.from({ length: 8 }, (_, at) => `\0sidetone-suite-${at}`);
  const own = await firstFree(names);
  await sleep(500);
  const there = await Promise.all(names.filter((name) => name !== own).map(isThere));
  return there.filter(Boolean).length;
}

/** Takes the first name that nobody has; undefined where all are taken. */
async function firstFree(names) {
  for (const path of names) {
    const server = createServer((socket) => socket.destroy());
    const isTaken = await new Promise((resolve) => {
      server.once('error', () => resolve(true));
      server.listen({ path }, () => resolve(false));
    });
    if (isTaken) continue;
    server.unref();
    return path;
  }
  return undefined;
}

/** Tells whether somebody has the name. */
function isThere(path) {
  return new Promise((resolve) => {
    const socket = connect({ path }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** The milliseconds that a start of Bun takes here and now: the median of five. */
function startMs() {
  const took = Array.from({ length: 5 }, () => {
    const from = performance.now();
    spawnSync(bun, ['-e', '0']);
    return performance.now() - from;
  });
  return took.sort((a, b) => a - b)[2];
}

/** The tests in C++, of a lower priority than those beside them. What they say is printed at their end. */
async function nativeTests() {
  const said = [];
  const args = ['-n', '10', 'make', '-s', beside === 0 ? '-j2' : '-j1', '-C', 'native', 'test', 'tsan'];
  const passed = await watch(
    'nice',
    args,
    (chunk) => said.push(chunk),
    (line) => {
      const counted = /^(\d+) passed, (\d+) failed$/.exec(line);
      if (counted !== null) add(Number(counted[1]), Number(counted[2]), 0);
    },
  );
  for (const chunk of said) process.stdout.write(chunk);
  return passed;
}

/** Runs the failed files once more, alone. True when all passed. */
async function again() {
  const files = [...failedFiles];
  console.log(`sidetone: running again, alone: ${files.join(' ')}`);
  const before = { ...total };
  let failed = 0;
  const passed = await watch(
    bun,
    ['test', '--no-orphans', '--timeout=90000', ...files],
    print,
    (line) => {
      failed += Number(/^\s*(\d+) fail$/.exec(line)?.[1] ?? 0);
    },
    SILENT_MAX_MS,
  );
  Object.assign(total, before, { passed: before.passed + before.failed - failed, failed });
  if (passed) console.log(`sidetone: failed beside other tests, and passed alone (to be mended): ${files.join(' ')}`);
  return passed;
}

function add(passed, failed, skippedCount) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skippedCount;
}

function print(chunk, sink) {
  sink.write(chunk);
}

/**
 * Runs a command, hands its output to `show` and each line of it to `read`. True when it ended well. One that says
 * nothing for `silentMs` milliseconds is ended.
 */
function watch(command, commandArgs, show, read, silentMs = undefined) {
  return new Promise((resolve) => {
    if (isInterrupted) return resolve(false);
    const child = spawn(command, commandArgs, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let silence;
    const speaks = () => {
      clearTimeout(silence);
      if (silentMs === undefined) return;
      silence = setTimeout(() => {
        console.error(
          `sidetone: no test has ended for ${silentMs / 60_000} minutes: one never comes to its end, and all are ended`,
        );
        child.kill();
      }, silentMs);
    };
    speaks();
    for (const [source, sink] of [
      [child.stdout, process.stdout],
      [child.stderr, process.stderr],
    ]) {
      let rest = '';
      source.on('data', (chunk) => {
        speaks();
        show(chunk, sink);
        const lines = (rest + chunk).split('\n');
        rest = (lines.pop() ?? '').slice(-10_000);
        for (const line of lines) read(line);
      });
    }
    child.on('error', () => {
      console.error(`sidetone: ${command} could not be started`);
      resolve(false);
    });
    running.add(child);
    child.on('close', (code) => {
      running.delete(child);
      clearTimeout(silence);
      resolve(code === 0);
    });
  });
}
