/** A node that starts on the DATA_DIR of a process before it, or on a copy of another node's. */
import { expect, test } from 'bun:test';
import { joinCluster } from '../../src/cluster/membership/join.ts';
import { NODE_BEAT_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

interface Case {
  /** Whether the beat of the process before moves. */
  readonly formerLives?: boolean;
  /** Another node has declared the process before dead meanwhile. */
  readonly isBuried?: boolean;
  /** The process that used this DATA_DIR last. */
  readonly before?: string;
}

/** Starts a node where a node `former` is on its volume. Gives how long that took, and what came of it. */
async function start({ formerLives = false, isBuried = false, before = 'former' }: Case) {
  const clock = new VirtualClock();
  const began = clock.now();
  const beat = () => (formerLives ? Math.floor(clock.now() / NODE_BEAT_MS) : 7);
  const former = () => nodeRow('former', { volumeId: 'v', host: '2001:db8::7', httpPort: 8080, beat: beat() });
  const done: string[] = [];
  const nodes = {
    onVolume: async () => [former()],
    get: async () => ({ ...former(), deadAt: isBuried ? 1 : undefined }),
    bury: async (_: string, seen: number | undefined) => !isBuried && beat() === seen && done.push('buried') > 0,
    join: async () => void done.push('joined'),
  };
  const { labels, version, protocol, volumeId, host, httpPort, rtpHost, sipContact } = nodeRow('new', { volumeId: 'v' });
  const about = { labels, version, protocol, volumeId, host, httpPort, rtpHost, sipContact };
  let outcome: string | undefined;
  joinCluster({ nodes, about, before, clock, log: silentLog }).then(
    () => (outcome = done.join(', ')),
    (error: Error) => (outcome = error.message),
  );
  for (let step = 0; step < 100 && outcome === undefined; step++) {
    await settle();
    if (outcome === undefined) await clock.advance(NODE_BEAT_MS / 10);
  }
  return { outcome, sec: (clock.now() - began) / 1000 };
}

/** A process that lives has raised its beat by then. */
const SEC = (1.5 * NODE_BEAT_MS) / 1000;

test('It declares the process before dead, unless another node has, and joins.', async () => {
  expect(await start({})).toEqual({ outcome: 'buried, joined', sec: SEC });
  expect(await start({ isBuried: true })).toEqual({ outcome: 'joined', sec: SEC });
});

test('It is refused where that lives: as a second process, or as a copy of a node, whose address is told.', async () => {
  expect(await start({ formerLives: true })).toEqual({
    outcome: 'DATA_DIR: is in use by another node, give each its own',
    sec: SEC,
  });
  expect((await start({ formerLives: true, before: 'own' })).outcome).toStartWith(
    'DATA_DIR: is a copy of that of the node at [2001:db8::7]:8080: give each its own',
  );
});
