/**
 * Three nodes on one machine against one: commands through the node that has the call, beside the same commands through
 * another one, and how long it takes until so many calls that come at once are answered. Needs nats-server and SIPp.
 */
import { callsTo } from '../test/cluster/calls.ts';
import { natsInstalled, TestCluster } from '../test/cluster/harness.ts';
import { Platform } from '../test/support/platform.ts';
import { Receiver } from '../test/support/receiver.ts';

const CALLS = 60;
const ROUNDS = 8;

if (!natsInstalled) throw new Error('nats-server is not installed');

const quantile = (sorted: readonly number[], of: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * of))] ?? 0).toFixed(2);
const report = (what: string, took: readonly number[]) => {
  const sorted = [...took].sort((a, b) => a - b);
  console.log(
    `${what.padEnd(44)} p50 ${quantile(sorted, 0.5)} ms   p99 ${quantile(sorted, 0.99)} ms   ${sorted.length} commands`,
  );
};

async function prepared(platform: Platform, receiver: Receiver) {
  const app = await platform.application(receiver.url, '+15550002');
  receiver.secrets.set(app.appUuid, app.webhookSecret);
  await platform.trunk('127.0.0.1:9');
  return app;
}

/** Seconds from the first INVITE until every call is answered and told. */
async function answered(
  platforms: readonly Platform[],
  receiver: Receiver,
  app: Awaited<ReturnType<typeof prepared>>,
  calls: number,
) {
  const started = performance.now();
  const each = Math.ceil(calls / platforms.length);
  const made = [];
  for (const platform of platforms) made.push(await callsTo(platform, app, receiver, each));
  return { seconds: (performance.now() - started) / 1000, made };
}

/** The callers say nothing, and on a busy machine the commands take longer than a call may be silent. */
const SILENT = { MEDIA_TIMEOUT_SEC: '600' };
const alone = await Platform.start(SILENT);
// A bench that fails leaves nothing running.
const stops: (() => Promise<unknown>)[] = [() => alone.stop()];
process.on('uncaughtException', (error) => {
  console.error(error);
  void Promise.all(stops.map((stop) => stop())).then(() => process.exit(1));
});
const aloneReceiver = new Receiver();
const aloneApp = await prepared(alone, aloneReceiver);
const one = await answered([alone], aloneReceiver, aloneApp, CALLS);

const cluster = await TestCluster.start(3, SILENT, true);
stops.push(() => cluster.stop());
const receiver = new Receiver();
const [a, b, c] = cluster.nodes;
if (a === undefined || b === undefined || c === undefined) throw new Error('no nodes');
const app = await prepared(a.platform, receiver);
await Bun.sleep(6_000);
const { made } = await answered([a.platform], receiver, app, CALLS);
const sessions = made.flatMap((each) => each.sessions);

const timed = async (platform: Platform, as: typeof app, method: string, path: string, body: unknown, wanted: number) => {
  const started = performance.now();
  const { status } = await platform.api(as, method, path, body);
  if (status !== wanted) throw new Error(`${path}: ${status}`);
  return performance.now() - started;
};

/** Runs the commands of all calls, one after the other, in turns on one process, directly and through another node. */
async function commands(path: string, body: unknown, status: number, undo?: string) {
  const took: Record<'alone' | 'direct' | 'through', number[]> = { alone: [], direct: [], through: [] };
  const ways = [
    ['alone', alone, aloneApp, one.made[0]?.sessions ?? []],
    ['direct', a?.platform, app, sessions],
    ['through', b?.platform, app, sessions],
  ] as const;
  for (let round = 0; round < ROUNDS; round++)
    for (let n = round % 4; n < CALLS; n += 4)
      for (const [way, platform, as, of] of ways) {
        if (platform === undefined) continue;
        const call = `/v1/sessions/${of[n]}`;
        took[way].push(await timed(platform, as, 'POST', call + path, body, status));
        if (undo !== undefined) await platform.api(as, 'POST', call + undo, {});
      }
  return took;
}

for (let warm = 0; warm < 2; warm++) await commands('/room/mute', {}, 409);
await Bun.sleep(3_000);
const refused = await commands('/room/mute', {}, 409);
const stored = await commands('/playback/play', { type: 'silence' }, 202, '/playback/stop');
report('refused by the machine, one process', refused.alone);
report('refused by the machine, through its node', refused.direct);
report('refused by the machine, through another node', refused.through);
report('committed, one process', stored.alone);
report('committed, through its node', stored.direct);
report('committed, through another node', stored.through);
for (const { sipp } of [...made, ...one.made]) sipp.stop();
console.log(`${CALLS} calls until all are answered and told, one process: ${one.seconds.toFixed(2)} s`);
const split = await answered([a.platform, b.platform, c.platform], receiver, app, CALLS);
console.log(`${CALLS} calls over three nodes, one after the other: ${split.seconds.toFixed(2)} s`);
for (const { sipp } of split.made) sipp.stop();
await cluster.stop();
await alone.stop();
await Promise.all([receiver.stop(), aloneReceiver.stop()]);
