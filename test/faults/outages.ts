/**
 * Takes things away from the platform under load, and gives them back: its database, its disk, its object store, a
 * media worker, the right time, descriptors, memory. What was admitted is told, once and in order; every command is
 * answered in time and never with 500; and afterwards everything works.
 *
 *   npm run outages [-- NAME… [--seconds 30] [--seed N]]
 */
import { parseArgs } from 'node:util';
import { numberOption } from '../support/number-option.ts';
import { OUTAGES, type Outage, type Site } from './outage.ts';
import { Stage } from './stage.ts';

const STORIES_AT_ONCE = 6;
/** The load goes on for so long before the outage and after it, in milliseconds. */
const WHOLE_MS = 4_000;
const KNOCK_EVERY_MS = 250;
/**
 * Stories under way have so long to come to their end. What was refused throughout an outage, as with a wrong time, is
 * sent again up to half a minute after it.
 */
const FINISH_MS = 60_000;
const SETTLE_MS = 90_000;
/** Nobody waits longer for an answer to a command, in milliseconds. */
const ANSWER_MAX_MS = 30_000;
/** Ready again so soon after the outage, in milliseconds. */
const READY_MAX_MS = 30_000;

async function tryOne(outage: Outage, seconds: number, seed: number): Promise<boolean> {
  const site = await outage.open();
  const stage = await Stage.open(site.platform, seed);
  stage.witness.expectsWrongTimes = site.hasWrongClock === true;
  try {
    const { restarts, knocking } = await strike(stage, site, seconds);
    const readyMs = await readyAfter(stage);
    const toldBefore = stage.told;
    await Bun.sleep(WHOLE_MS);
    await stage.finish(FINISH_MS);
    await knocking;
    await stage.client.recover();
    await stage.clear();
    await stage.settle(SETTLE_MS);
    await stage.checkMessages();
    await stage.checkLog(SETTLE_MS);
    const breaches = [...stage.breaches(), ...stage.missing()];
    const { witness, ledger, client } = stage;
    if (client.slowestMs > ANSWER_MAX_MS) breaches.push(`a command was answered after ${Math.round(client.slowestMs)} ms`);
    if (readyMs > READY_MAX_MS) breaches.push(`not ready within ${READY_MAX_MS} ms after the outage`);
    if (stage.told === toldBefore) breaches.push('no story came to its end after the outage');
    if (site.hasWrongClock === true && witness.mistimed === 0) breaches.push('the wrong clock was not seen in any delivery');
    for (const breach of breaches.slice(0, 20)) console.log(`BREACH ${outage.name}: ${breach}`);
    for (const line of site.platform.output.split('\n').filter((each) => each.includes('support_id'))) console.log(line);
    const statuses = [...client.statuses].sort(([one], [other]) => one - other).map(([status, count]) => `${count}×${status}`);
    console.log(
      `${outage.name}: ${ledger.count} outcomes owed, ${witness.events} events in ${witness.deliveries} deliveries (${witness.mistimed} of a wrong time); ` +
        `${stage.told} stories told, ${stage.cutOff} cut off; answers ${statuses.join(' ')}, the slowest after ` +
        `${Math.round(client.slowestMs)} ms; ready ${Math.round(readyMs)} ms after it; ${restarts} restarts; ${breaches.length} breaches`,
    );
    return breaches.length === 0;
  } catch (error) {
    console.log(`BREACH ${outage.name}: ${String(error)}\n${site.platform.output.slice(-2_000)}`);
    return false;
  } finally {
    await stage.close();
    await site.close();
  }
}

/**
 * The outage, with the load before, under and after it. A process that dies of it is started again, as systemd would.
 */
async function strike(stage: Stage, site: Site, seconds: number) {
  stage.play(STORIES_AT_ONCE);
  const knocking = stage.knock(KNOCK_EVERY_MS);
  await Bun.sleep(WHOLE_MS);
  let restarts = 0;
  let isOver = false;
  const over = Promise.withResolvers<'over'>();
  const watched = (async () => {
    while (!isOver) {
      const code = await Promise.race([site.platform.ended(), over.promise]);
      if (code === 'over') return;
      restarts += 1;
      console.log(`the process ended with ${code}: ${site.platform.output.slice(-600)}`);
      while (!isOver && !(await starts(site))) await Bun.sleep(1_000);
    }
  })();
  await site.strike(seconds);
  isOver = true;
  over.resolve('over');
  await watched;
  if (site.platform.pid === 0) await site.platform.start();
  return { restarts, knocking };
}

const starts = (site: Site): Promise<boolean> =>
  site.platform.start().then(
    () => true,
    () => false,
  );

/** Milliseconds until the platform says that it is ready. */
async function readyAfter({ platform }: Stage): Promise<number> {
  const began = performance.now();
  while (performance.now() - began < 2 * READY_MAX_MS) {
    const answer = await fetch(`${platform.url}/readyz`).catch(() => undefined);
    if (answer?.status === 200) break;
    await Bun.sleep(50);
  }
  return performance.now() - began;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '30' }, seed: { type: 'string', default: '1' } },
});
const unknown = positionals.filter((name) => !OUTAGES.some((each) => each.name === name));
if (unknown.length > 0) {
  console.error(`unknown: ${unknown.join(', ')}; there are ${OUTAGES.map(({ name }) => name).join(', ')}`);
  process.exit(2);
}
const [seconds, seed] = [numberOption(values, 'seconds'), numberOption(values, 'seed')];
let failed = 0;
for (const outage of OUTAGES.filter(({ name }) => positionals.length === 0 || positionals.includes(name))) {
  const missing = outage.missing();
  if (missing !== undefined) console.log(`${outage.name}: skipped: ${missing}`);
  else if (!(await tryOne(outage, seconds, seed))) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);
