/**
 * A mixed load on one platform for as long as is asked, in periods of their own applications. After each period nothing
 * runs, and what the process holds is read: it has to be flat. Each period is held to account like the crash test's
 * load.
 *
 *   npm run soak -- 2h                   hours, minutes or seconds
 *   npm run soak -- 30m --at-once 8      so many stories at a time; 4 unless told
 *   npm run soak -- cluster              the long tests of a cluster, 20 minutes
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { DATABASE_CONNECTIONS_MAX } from '../../src/limits.ts';
import { Platform } from '../support/platform.ts';
import { QUICK, Stage } from './stage.ts';

const PERIODS = 12;
const PERIOD_MAX_MS = 10 * 60_000;
const FINISH_MS = 30_000;
const SETTLE_MS = 60_000;
/** The first share of the samples is not judged: caches fill, and the heap takes its size. */
const WARM_UP = 0.25;
/** How much memory may grow between the first and the last third of what is judged. */
const MEMORY_GROWTH_MAX = 0.1;
/**
 * The heap takes its size in the first ten minutes: it fell from 260 to 243 MB and rose to 275 in each of three such
 * runs, and one beside other work grew from 211 to 279. A shorter run tells no trend, and is held to the maximum below
 * only.
 */
const MEMORY_WARM_UP_MS = 12 * 60_000;
/** What no run may use. In 33 minutes it was 317 MB. */
const MEMORY_MAX_MB = 450;
const DESCRIPTOR_GROWTH_MAX = 5;
/** What is over goes away within this: a BYE that nobody answers is given up after 32 s (RFC 3261 Timer F). */
const QUIET_MAX_MS = 40_000;
/** Ports rest for 60 s after a call. */
const REST_MAX_MS = 90_000;

/** What the process holds while nothing runs. */
interface Sample {
  /** Milliseconds since the begin of the run. */
  readonly atMs: number;
  readonly residentMb: number;
  /** The open descriptors, without those of `connections`. */
  readonly descriptors: number;
  /** Connections to the database: as many as were needed at once, until each has had its time. */
  readonly connections: number;
  /** Sessions, Rooms, dialogs, transactions, legs, recordings and changes that wait: all should be 0. */
  readonly left: Readonly<Record<string, number>>;
  readonly openRows: number;
  readonly databaseMb: number;
}

const IDLE_METRICS = ['sessions', 'rooms', 'sip_dialogs', 'media_legs', 'recordings', 'journal_waiting', 'messages_submitting'];
/** Rows that are worked on. Those that are kept as history grow until their retention. */
const OPEN_ROWS = `SELECT (SELECT count(*) FROM sessions WHERE state <> 'ended')
  + (SELECT count(*) FROM rooms WHERE deleted_at IS NULL)
  + (SELECT count(*) FROM events WHERE status = 'pending') AS open, pg_database_size(current_database()) AS bytes,
  (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'sidetone %') AS connections`;
/** The pool's, the one that listens, and one that holds the lock of a database that is not embedded. */
const CONNECTIONS_MAX = DATABASE_CONNECTIONS_MAX + 2;

async function metrics({ url }: Platform): Promise<(name: string) => number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return (name) => Number(new RegExp(`^sidetone_${name}(?:\\{[^}]*\\})? ([0-9.e+-]+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
}

/** Waits until nothing is left of what ran, or for so long that it is left for good. */
async function quiet(platform: Platform): Promise<void> {
  const until = performance.now() + QUIET_MAX_MS;
  while (performance.now() < until) {
    const read = await metrics(platform);
    if (IDLE_METRICS.every((name) => read(name) === 0)) return;
    await Bun.sleep(500);
  }
}

async function sampleOf(platform: Platform, atMs: number): Promise<Sample> {
  const read = await metrics(platform);
  const sql = postgres({ host: join(platform.dataDir, 'postgres-socket'), user: 'sidetone', database: 'postgres', max: 1 });
  try {
    const [row] = await sql.unsafe<{ open: string; bytes: string; connections: string }[]>(OPEN_ROWS);
    const connections = Number(row?.connections);
    const status = readFileSync(`/proc/${platform.pid}/status`, 'utf8');
    return {
      atMs,
      residentMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024,
      descriptors: readdirSync(`/proc/${platform.pid}/fd`).length - connections,
      connections,
      left: Object.fromEntries(IDLE_METRICS.map((name) => [name, read(name)])),
      openRows: Number(row?.open),
      databaseMb: Number(row?.bytes) / 2 ** 20,
    };
  } finally {
    await sql.end();
  }
}

interface Totals {
  events: number;
  told: number;
  owed: number;
  readonly breaches: string[];
}

async function period(platform: Platform, number: number, ms: number, atOnce: number, totals: Totals): Promise<void> {
  const stage = await Stage.open(platform, number, number);
  stage.play(atOnce);
  await Bun.sleep(ms);
  await stage.finish(FINISH_MS);
  await stage.clear();
  await stage.settle(SETTLE_MS);
  await stage.checkLog(SETTLE_MS);
  totals.breaches.push(...stage.breaches(), ...stage.missing());
  totals.events += stage.witness.events;
  totals.told += stage.told;
  totals.owed += stage.ledger.count;
  await stage.leave();
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** What is not flat, in words. */
function verdict(samples: readonly Sample[]): string[] {
  const judged = samples.slice(Math.floor(samples.length * WARM_UP));
  const third = Math.max(1, Math.floor(judged.length / 3));
  const [first, last] = [judged.slice(0, third), judged.slice(-third)];
  const grown = (of: (sample: Sample) => number) => median(last.map(of)) - median(first.map(of));
  const descriptors = grown((sample) => sample.descriptors);
  const connections = Math.max(...samples.map((sample) => sample.connections));
  const left = samples.flatMap((sample, at) =>
    Object.entries({ ...sample.left, open_rows: sample.openRows })
      .filter(([, count]) => count !== 0)
      .map(([name, count]) => `after period ${at + 1} there were ${count} ${name}, and nothing ran`),
  );
  return [
    ...memoryVerdict(judged),
    ...(descriptors > DESCRIPTOR_GROWTH_MAX ? [`descriptors grew by ${descriptors}`] : []),
    ...(connections > CONNECTIONS_MAX ? [`there were ${connections} connections to the database`] : []),
    ...left,
  ];
}

function memoryVerdict(samples: readonly Sample[]): string[] {
  const most = Math.max(...samples.map(({ residentMb }) => residentMb));
  if (most > MEMORY_MAX_MB) return [`${most.toFixed(1)} MB of memory were used`];
  const warm = samples.filter(({ atMs }) => atMs >= MEMORY_WARM_UP_MS).map(({ residentMb }) => residentMb);
  const third = Math.floor(warm.length / 3);
  if (third === 0) return [];
  const before = median(warm.slice(0, third));
  const grown = median(warm.slice(-third)) - before;
  return grown > MEMORY_GROWTH_MAX * before ? [`memory grew by ${grown.toFixed(1)} MB`] : [];
}

async function soak(ms: number, atOnce: number): Promise<boolean> {
  const platform = await Platform.start(QUICK);
  const totals: Totals = { events: 0, told: 0, owed: 0, breaches: [] };
  const samples: Sample[] = [];
  const began = performance.now();
  try {
    const portsAtFirst = (await metrics(platform))('rtp_port_pairs_free');
    const periodMs = Math.min(ms / PERIODS, PERIOD_MAX_MS);
    while (performance.now() - began < ms) {
      await period(platform, samples.length, periodMs, atOnce, totals);
      await quiet(platform);
      const sample = await sampleOf(platform, performance.now() - began);
      samples.push(sample);
      console.log(
        `${((performance.now() - began) / 60_000).toFixed(1)} min: ${sample.residentMb.toFixed(1)} MB, ` +
          `${sample.descriptors} descriptors and ${sample.connections} to the database, ${sample.openRows} open rows, ` +
          `database ${sample.databaseMb.toFixed(1)} MB, ` +
          `${totals.events} events, ${totals.breaches.length} breaches`,
      );
    }
    const rested = performance.now() + REST_MAX_MS;
    while ((await metrics(platform))('rtp_port_pairs_free') !== portsAtFirst && performance.now() < rested) await Bun.sleep(500);
    const read = await metrics(platform);
    const ports = read('rtp_port_pairs_free');
    const wrong = [
      ...totals.breaches,
      ...verdict(samples),
      ...(ports === portsAtFirst ? [] : [`${portsAtFirst - ports} pairs of ports are not free again`]),
    ];
    for (const each of wrong.slice(0, 30)) console.log(`BREACH ${each}`);
    const ticks = `${read('media_ticks_late_total')} of ${read('media_ticks_total')} ticks late`;
    console.log(
      `${((performance.now() - began) / 60_000).toFixed(1)} min: ${totals.told} stories, ${totals.owed} outcomes told once, ` +
        `${totals.events} events in order; ${ticks}; ${wrong.length} breaches`,
    );
    return wrong.length === 0;
  } finally {
    await platform.stop();
  }
}

const UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { 'at-once': { type: 'string', default: '4' } },
});
const [length = ''] = positionals;
if (length === 'cluster') {
  const bun = spawnSync(process.execPath, ['test', '--timeout=3600000', './test/cluster/soak.ts'], { stdio: 'inherit' });
  process.exit(bun.status ?? 1);
}
const [, count = '', unit = ''] = /^([0-9]+)([smh])$/.exec(length) ?? [];
const ms = Number(count) * (UNITS[unit] ?? Number.NaN);
if (!(ms > 0)) {
  console.error('npm run soak -- LENGTH, where LENGTH is 2h, 30m, 90s, or cluster');
  process.exit(2);
}
process.exit((await soak(ms, Number(values['at-once']))) ? 0 : 1);
