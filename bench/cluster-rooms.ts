/**
 * How late a member of a Room is heard: with all members on one node, and with each on a node of its own. Needs
 * nats-server and SIPp.
 */
import { spawnSync } from 'node:child_process';
import { natsInstalled, TestCluster } from '../test/cluster/harness.ts';
import { roomDelays } from '../test/cluster/room-delay.ts';
import { Receiver } from '../test/support/receiver.ts';
import { type Caller, call, createRoom, hangUp, join } from '../test/support/room-call.ts';

/** Each run has another place between the ticks of the planes; together they take all places alike. */
const RUNS = 8;
const CLICKS = 6;

if (!natsInstalled) throw new Error('nats-server is not installed');

const quantile = (sorted: readonly number[], of: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * of))] ?? Number.NaN).toFixed(2);

const cluster = await TestCluster.start(3);
const receiver = new Receiver();
// A bench that fails leaves nothing running.
process.on('uncaughtException', (error) => {
  console.error(error);
  void Promise.all([cluster.stop(), receiver.stop()]).then(() => process.exit(1));
});
// The callers are in this process. What comes late from it is jitter, for which every node waits: so it is real-time.
const ranked = spawnSync('chrt', ['--all-tasks', '--rr', '--reset-on-fork', '--pid', '1', String(process.pid)]);
if (ranked.status !== 0) console.log('chrt is not permitted here: on a busy machine the callers have jitter');
const platforms = cluster.nodes.map(({ platform }) => platform);
const [first] = platforms;
if (first === undefined) throw new Error('no nodes');
const home = first;
const app = await cluster.application(receiver, '+15550002');
const stage = { platform: home, receiver, app };

/** A Room of so many members, all on one node or each on a node of its own. */
async function roomOf(members: number, isSpread: boolean): Promise<readonly Caller[]> {
  const stages = Array.from({ length: members }, (_, n) => ({ platform: (isSpread && platforms[n]) || home, receiver, app }));
  const callers: Caller[] = [];
  for (const stage of stages) callers.push(await call(stage, 440));
  const roomId = await createRoom(stage);
  for (const { sessionUuid, speaker } of callers) {
    speaker.amplitude = 0;
    await join(stage, roomId, sessionUuid);
  }
  return callers;
}

for (const members of [2, 3]) {
  const rooms = [
    { where: 'one node', callers: await roomOf(members, false), took: [] as number[] },
    { where: `${members} nodes`, callers: await roomOf(members, true), took: [] as number[] },
  ];
  // One after the other in turns, so that both meet the same load.
  for (let run = 0; run < RUNS; run++)
    for (const { callers, took } of rooms) {
      const [first, second] = callers;
      if (first === undefined || second === undefined) throw new Error('no callers');
      took.push(...(await roomDelays(second, first, CLICKS, (run * 20) / RUNS)));
    }
  for (const { where, callers, took } of rooms) {
    took.sort((one, other) => one - other);
    console.log(
      `a Room of ${members} on ${where}, one way: p10 ${quantile(took, 0.1)} ms   p50 ${quantile(took, 0.5)} ms   p90 ${quantile(took, 0.9)} ms   ${took.length} clicks`,
    );
    await hangUp(stage, ...callers);
  }
}
await cluster.stop();
await receiver.stop();
