/**
 * Everything that has a goal, in under fifteen minutes: `npm run bench -- all [ROW …]`. Each bench interleaves its
 * rounds with its floor or peer. The table goes into bench/RESULTS.md, each figure into bench/history.jsonl, and the
 * plot of each row over the commits into bench/plots/. With names of rows only those are measured, and nothing is
 * written.
 *
 * A bench that lacks what it needs (SIPp, nats-server, lame, PESQ_DIR) leaves its rows as they were, and says so.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import { type Point, plot } from './support/plot.ts';
import { type Figure, ROWS, type Row } from './support/rows.ts';

const BENCH_MAX_MS = 240_000;
/** What a bench left behind has this long to end by itself, while it holds its output open, before it is killed. */
const STOP_MAX_MS = 10_000;
const [FROM, TO] = ['<!-- table: written by `npm run bench -- all` -->', '<!-- end of the table -->'];
const here = import.meta.dir;
const HISTORY = join(here, 'history.jsonl');
const RESULTS = join(here, 'RESULTS.md');
/** The bench under way. It has a process group of its own, which a signal to this one does not reach. */
let running: number | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    if (running !== undefined) signalGroup(running, 'SIGTERM');
    process.exit(1);
  });

interface Entry {
  readonly id: string;
  readonly commit: string;
  readonly at: string;
  readonly value: number;
  readonly beside: string;
}

/**
 * Signals a bench and what it started: a process of it that lives on would hold its output open, and load the next one.
 */
function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // Nothing of it is left.
  }
}

/** Runs one bench to its end and returns what it said, shortened to its last lines where it failed. */
async function run(bench: readonly string[]): Promise<string> {
  const [name = '', ...args] = bench;
  const child = Bun.spawn([process.execPath, join(here, `${name}.ts`), ...args], {
    cwd: join(here, '..'),
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  });
  running = child.pid;
  const timer = setTimeout(() => signalGroup(child.pid, 'SIGTERM'), BENCH_MAX_MS);
  const said = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const code = await child.exited;
  clearTimeout(timer);
  signalGroup(child.pid, 'SIGTERM');
  const deadline = setTimeout(() => signalGroup(child.pid, 'SIGKILL'), STOP_MAX_MS);
  const [output, errors] = await said;
  clearTimeout(deadline);
  running = undefined;
  if (code !== 0) console.log(`    it ended with ${code}: ${errors.trim().split('\n').slice(-3).join(' | ')}`);
  return output;
}

function history(): readonly Entry[] {
  if (!existsSync(HISTORY)) return [];
  return readFileSync(HISTORY, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const reached = ({ goal, better }: Row, { value }: { readonly value: number }): boolean =>
  better === 'less' ? value <= goal : value >= goal;
const shown = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(2));

function tableRow(row: Row, entry: Entry | undefined): string {
  const figure = entry === undefined ? 'not measured' : `${shown(entry.value)} ${row.unit}`.trim();
  const verdict = entry === undefined ? '' : reached(row, entry) ? 'yes' : 'no';
  const goal = `${row.better === 'less' ? 'at most' : 'at least'} ${row.goal} ${row.unit}`.trim();
  const name = entry === undefined ? row.name : `[${row.name}](plots/${row.id}.svg)`;
  return `| ${name} | ${figure} | ${goal} | ${verdict} | ${entry?.beside ?? ''} | ${entry?.commit ?? ''} |`;
}

function write(entries: readonly Entry[]): void {
  mkdirSync(join(here, 'plots'), { recursive: true });
  const newest = new Map(entries.map((entry) => [entry.id, entry]));
  for (const row of ROWS) {
    const points: Point[] = entries.filter(({ id }) => id === row.id);
    if (points.length > 0) writeFileSync(join(here, 'plots', `${row.id}.svg`), plot(row.name, row.unit, row.goal, points));
  }
  const table = [
    '| What | Measured | Goal | Reached | Beside it, in the same run | Commit |',
    '|---|---|---|---|---|---|',
    ...ROWS.map((row) => tableRow(row, newest.get(row.id))),
  ].join('\n');
  const text = readFileSync(RESULTS, 'utf8');
  const [from, to] = [text.indexOf(FROM), text.indexOf(TO)];
  if (from < 0 || to < from) throw new Error(`bench/RESULTS.md has no place for the table: expected ${FROM} and ${TO}`);
  writeFileSync(RESULTS, `${text.slice(0, from + FROM.length)}\n\n${table}\n\n${text.slice(to)}`);
}

const names = process.argv.slice(2);
const unknown = names.filter((name) => !ROWS.some(({ id }) => id === name));
if (unknown.length > 0) {
  console.error(`no row ${unknown.join(', ')}; there are: ${ROWS.map(({ id }) => id).join(' ')}`);
  process.exit(2);
}
const rows = names.length === 0 ? ROWS : ROWS.filter(({ id }) => names.includes(id));
const benches = [...new Map(rows.map(({ bench }) => [bench.join(' '), bench])).values()];
const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: here, encoding: 'utf8' }).stdout.trim();
const began = performance.now();
console.log(
  `${rows.length} rows by ${benches.length} benches on ${cpus().length} × ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(2)}`,
);
const found: Entry[] = [];
for (const [at, bench] of benches.entries()) {
  const from = performance.now();
  console.log(`[${at + 1}/${benches.length}] ${bench.join(' ')} …`);
  const output = await run(bench);
  for (const row of rows.filter((each) => each.bench.join(' ') === bench.join(' '))) {
    const figure: Figure | undefined = row.read(output);
    if (figure === undefined) console.log(`    ${row.name}: not measured`);
    else {
      console.log(`    ${row.name}: ${shown(figure.value)} ${row.unit} (goal ${row.goal}) ${figure.beside}`);
      found.push({
        id: row.id,
        commit,
        at: new Date().toISOString().slice(0, 10),
        value: Number(figure.value.toFixed(3)),
        beside: figure.beside,
      });
    }
  }
  console.log(`    ${((performance.now() - from) / 1_000).toFixed(0)} s`);
}
if (names.length === 0) {
  appendFileSync(HISTORY, found.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  write(history());
}
console.log(
  `${found.length} of ${rows.length} rows in ${((performance.now() - began) / 60_000).toFixed(1)} minutes; load ${loadavg()[0]?.toFixed(2)}`,
);
