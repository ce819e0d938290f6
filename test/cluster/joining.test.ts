/** How long a node that starts again leaves the calls of the process before it to the other nodes. */
import { expect, test } from 'bun:test';
import { joinCluster } from '../../src/cluster/membership/join.ts';
import { NODE_BEAT_MS, NODE_CALLS_LEFT_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

interface Case {
  /** Whether the process before has calls that others would take, after so long. Undefined: nobody takes any over. */
  readonly hasCalls?: (ms: number) => boolean;
  /** Whether the beat of the other node, or that of the process before, moves. */
  readonly otherLives?: boolean;
  readonly hasOther?: boolean;
  readonly formerLives?: boolean;
}

/** Starts a node on the DATA_DIR of one before. Gives how long that took, and what came of it. */
async function start({ hasCalls, otherLives = true, hasOther = true, formerLives = false }: Case) {
  const clock = new VirtualClock();
  const beats = () => Math.floor(clock.now() / NODE_BEAT_MS);
  const began = clock.now();
  const former = () => nodeRow('former', { volumeId: 'v', beat: formerLives ? beats() : 7 });
  const other = () => nodeRow('other', { beat: otherLives ? beats() : 7 });
  const done: string[] = [];
  const nodes = {
    onVolume: async () => [former()],
    list: async () => [former(), ...(hasOther ? [other()] : []), nodeRow('dead', { deadAt: 1, beat: beats() })],
    get: async () => former(),
    bury: async (_: string, beat: number | undefined) => former().beat === beat && done.push('buried') > 0,
    join: async () => void done.push('joined'),
  };
  const { labels, version, protocol, volumeId, host, httpPort, rtpHost, sipContact } = nodeRow('new', { volumeId: 'v' });
  const said: string[] = [];
  const log = { ...silentLog, warn: (_: unknown, text: string) => void said.push(text) };
  const asked = hasCalls && (async () => hasCalls(clock.now() - began));
  let outcome: string | undefined;
  joinCluster({
    ...{ nodes, before: 'former', hasCalls: asked, clock, log },
    about: { labels, version, protocol, volumeId, host, httpPort, rtpHost, sipContact },
  }).then(
    () => (outcome = done.join(', ')),
    (error: Error) => (outcome = error.message),
  );
  for (let step = 0; step < 200 && outcome === undefined; step++) {
    await settle();
    if (outcome === undefined) await clock.advance(NODE_BEAT_MS / 10);
  }
  const isLeft = said.some((text) => text.startsWith('the other nodes go on with the calls'));
  return { outcome, sec: (clock.now() - began) / 1000, isLeft };
}

const BEATS_SEC = (1.5 * NODE_BEAT_MS) / 1000;

test('It leaves them until none is left, and then the process before is declared dead.', async () => {
  const { outcome, sec, isLeft } = await start({ hasCalls: (ms) => ms < 5_000 });
  expect([outcome, isLeft]).toEqual(['buried, joined', true]);
  expect(sec).toBeGreaterThanOrEqual(5);
  expect(sec).toBeLessThan(5.5);
});

test('It waits for no more than its bound for calls that nobody takes.', async () => {
  const { outcome, sec } = await start({ hasCalls: () => true });
  expect(outcome).toBe('buried, joined');
  expect(sec).toBeGreaterThanOrEqual(BEATS_SEC + NODE_CALLS_LEFT_MS / 1000);
  expect(sec).toBeLessThan(BEATS_SEC + NODE_CALLS_LEFT_MS / 1000 + 0.5);
});

test('It does not wait where there are none, where nobody takes calls over, or where no other node lives.', async () => {
  for (const none of [{ hasCalls: () => false }, {}, { hasCalls: () => true, hasOther: false }])
    expect(await start(none)).toEqual({ outcome: 'buried, joined', sec: BEATS_SEC, isLeft: false });
  const alone = await start({ hasCalls: () => true, otherLives: false });
  expect(alone.outcome).toBe('buried, joined');
  expect(alone.sec).toBeLessThan(BEATS_SEC + 3.5);
});

test('It is refused at once where the process before lives, whatever calls that has.', async () => {
  const { outcome, sec, isLeft } = await start({ hasCalls: () => true, formerLives: true });
  expect(outcome).toStartWith('DATA_DIR: is in use by another node');
  expect([sec, isLeft]).toEqual([BEATS_SEC, false]);
});
