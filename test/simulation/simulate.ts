/**
 * `npm run simulate`: simulations one seed after the other.
 *
 *   --seeds 10000     so many seeds (1,000 unless told), from --from (1) on, on --jobs processes
 *   --seed 7          that one, with its story
 *   --nodes 1|3       a process alone, or a cluster; by default every third seed is a cluster
 *   --planted         plants bugs in copies of the tree, and tells in how many seeds each is found; --from is the first
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { numberOption } from '../support/number-option.ts';
import { planOf } from './plan.ts';
import { plantAll } from './planted.ts';
import { SITUATIONS, type Situation } from './reached.ts';
import { shrink } from './shrink.ts';
import { type Outcome, simulate } from './world.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    nodes: { type: 'string', default: 'mix' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    /** This process runs one seed in so many. Its tally so far is a line of JSON, the last of them the whole. */
    every: { type: 'string' },
    planted: { type: 'boolean', default: false },
    'until-found': { type: 'boolean', default: false },
  },
});

interface Tally {
  seeds: number;
  simulatedMs: number;
  events: number;
  failed: number[];
  /** The seeds that reached each situation. */
  reached: Partial<Record<Situation, number>>;
}

const TELL_EVERY_MS = 10_000;

const nothing = (): Tally => ({ seeds: 0, simulatedMs: 0, events: 0, failed: [], reached: {} });

/** Puts the tallies of several processes together. */
const sum = (parts: readonly Tally[]): Tally => ({
  seeds: parts.reduce((all, { seeds }) => all + seeds, 0),
  simulatedMs: parts.reduce((all, { simulatedMs }) => all + simulatedMs, 0),
  events: parts.reduce((all, { events }) => all + events, 0),
  failed: parts.flatMap(({ failed }) => failed).sort((a, b) => a - b),
  reached: Object.fromEntries(
    SITUATIONS.map((each) => [each, parts.reduce((all, { reached }) => all + (reached[each] ?? 0), 0)]),
  ),
});

/** The plan of a seed, with as many nodes as were asked for. */
const planned = (seed: number) => planOf(seed, values.nodes === 'mix' ? undefined : numberOption(values, 'nodes'));

/** Runs one seed in `every` of the range, and tells the tally so far now and then. */
function runSeeds(from: number, to: number, every: number, tell: (soFar: Tally) => void): Tally {
  const tally = nothing();
  let toldAt = performance.now();
  for (let seed = from; seed < to; seed += every) {
    const outcome = simulate(planned(seed));
    tally.seeds += 1;
    tally.simulatedMs += outcome.simulatedMs;
    tally.events += outcome.events;
    for (const each of outcome.reached) tally.reached[each] = (tally.reached[each] ?? 0) + 1;
    if (performance.now() - toldAt >= TELL_EVERY_MS) {
      toldAt = performance.now();
      tell(tally);
    }
    if (outcome.breaches.length === 0) continue;
    tally.failed.push(seed);
    process.stderr.write(`seed ${seed}: ${outcome.breaches[0]}\n`);
    if (values['until-found']) break;
  }
  return tally;
}

/** The same on several processes. */
async function runInParallel(from: number, to: number, jobs: number, tell: (soFar: Tally) => void): Promise<Tally> {
  const parts = Array.from({ length: jobs }, nothing);
  await Promise.all(
    parts.map(async (_, part) => {
      const args = ['--from', from + part, '--seeds', to - from - part, '--every', jobs, '--nodes', values.nodes].map(String);
      const child = spawn(process.execPath, [import.meta.path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
      const ended = new Promise<boolean>((resolve, reject) => {
        child.on('error', reject);
        child.on('close', (code) => resolve(code === 0));
      });
      for await (const line of createInterface({ input: child.stdout })) {
        parts[part] = JSON.parse(line);
        if (part === 0) tell(sum(parts));
      }
      if (!(await ended)) throw new Error('a process of the simulation was lost');
    }),
  );
  return sum(parts);
}

function tellStory(seed: number): void {
  const outcome = simulate(planned(seed), true);
  console.log(outcome.story.join('\n'));
  console.log(`seed ${seed}: ${outcome.steps} steps, ${outcome.events} events, story ${outcome.hash.slice(0, 16)}`);
  tellBreaches(outcome);
  if (outcome.breaches.length > 0) tellShortest(seed);
}

function tellBreaches({ breaches }: Outcome): void {
  for (const breach of breaches) console.log(`  breach: ${breach}`);
  process.exitCode = breaches.length === 0 ? 0 : 1;
}

/** Tells the shortest story that fails in the same way. */
function tellShortest(seed: number): void {
  const { plan, outcome } = shrink(planned(seed));
  console.log(`\nseed ${seed}, shrunk to ${plan.actions.length} actions:\n`);
  console.log(outcome.story.join('\n'));
  tellBreaches(outcome);
}

const minutesSince = (started: number) => ((performance.now() - started) / 60_000).toFixed(1);

const from = numberOption(values, 'from');
const to = from + numberOption(values, 'seeds');
if (values.seed !== undefined) tellStory(numberOption(values, 'seed'));
else if (values.planted) process.exitCode = plantAll(values.nodes, from) === 0 ? 0 : 1;
else if (values.every !== undefined) {
  const tell = (tally: Tally) => console.log(JSON.stringify(tally));
  tell(runSeeds(from, to, numberOption(values, 'every'), tell));
} else {
  const started = performance.now();
  const jobs = values['until-found'] ? 1 : numberOption(values, 'jobs');
  const tell = ({ seeds, failed }: Tally) =>
    process.stderr.write(`${seeds} of ${to - from} seeds, ${failed.length} failed, ${minutesSince(started)} min\n`);
  const { seeds, simulatedMs, events, failed, reached } =
    jobs === 1 ? runSeeds(from, to, 1, tell) : await runInParallel(from, to, Math.min(jobs, to - from), tell);
  const sec = (performance.now() - started) / 1000;
  const hours = simulatedMs / 3_600_000;
  console.log(
    `${seeds} seeds, ${failed.length} failed; ${hours.toFixed(1)} simulated hours in ${sec.toFixed(1)} s (${(hours / sec).toFixed(2)} hours a second), ${events} events delivered and checked; reached by seeds: ${SITUATIONS.map((each) => `${each} ${reached[each] ?? 0}`).join(', ')}`,
  );
  if (failed[0] !== undefined) {
    console.log(`failed: ${failed.slice(0, 50).join(' ')}`);
    tellShortest(failed[0]);
  }
}
