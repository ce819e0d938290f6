/** The other nodes as one sees them by their beats: who is a suspect, who is buried, and when a node came or went. */
import { expect, test } from 'bun:test';
import { Members, type MembersOptions } from '../../src/cluster/membership/members.ts';
import type { NodeRow } from '../../src/database/node/nodes.ts';
import {
  NODE_BEAT_MS,
  NODE_LEFT_LOOK_MS,
  NODE_POLL_GAP_MAX_MS,
  NODE_STRANGERS_MAX,
  NODE_SUSPECT_MS,
  NODE_SWEEP_MS,
} from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import type { Reach } from '../../src/machine/room/home-watch.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

const [BURIAL_MS, ORPHAN_MS] = [15_000, 120_000];

/** Node `a` and others, whose beats go on until the test takes them from `beating`. */
async function watching(others: readonly string[], more: Partial<MembersOptions> = {}) {
  const clock = new VirtualClock();
  const rows = new Map<string, NodeRow>(['a', ...others].map((nodeId) => [nodeId, nodeRow(nodeId)]));
  const beating = new Set(rows.keys());
  const reach = new Map<string, Reach>();
  const [buried, forsaken, takenOver]: [string[], string[], number[]] = [[], [], []];
  const begun = clock.now();
  const members = new Members({
    nodes: {
      nodeId: 'a',
      beat: async () => {
        for (const [nodeId, row] of rows) if (beating.has(nodeId)) rows.set(nodeId, { ...row, beat: row.beat + 1 });
        return [...rows.values()];
      },
      bury: async (nodeId, beat) => {
        if (rows.get(nodeId)?.beat !== beat) return false;
        buried.push(nodeId);
        return rows.delete(nodeId);
      },
    },
    clock,
    log: silentLog,
    burialMs: BURIAL_MS,
    orphanMs: ORPHAN_MS,
    load: () => '',
    ping: async (nodeId) => reach.get(nodeId) ?? 'silent',
    takeOver: async (seenAt) => void takenOver.push(seenAt - begun),
    onForsaken: async (nodeId) => void forsaken.push(nodeId),
    ...{ onBack() {}, onOwn() {} },
    ...more,
  });
  await members.start();
  return { clock, rows, beating, reach, buried, forsaken, takenOver, members, sinceStart: () => clock.now() - begun };
}

test('A node whose beat stands still is a suspect after 3 s, and none once it moves again; so is one that is away for NATS.', async () => {
  const { clock, beating, members } = await watching(['b']);
  const isSuspect = () => members.isSuspect('b');
  expect([isSuspect(), members.isSuspect('unknown')]).toEqual([false, true]);
  beating.delete('b');
  await clock.advance(NODE_SUSPECT_MS - 1);
  expect(isSuspect()).toBe(false);
  await clock.advance(1);
  expect(isSuspect()).toBe(true);
  beating.add('b');
  await clock.advance(NODE_BEAT_MS);
  expect(isSuspect()).toBe(false);
  members.isAway('b');
  members.isAway('unknown');
  expect(isSuspect()).toBe(true);
  await clock.advance(NODE_BEAT_MS);
  expect(isSuspect()).toBe(false);
  // Its next beat tells that it is there again, and not another reading of the old one.
  members.isAway('b');
  beating.delete('b');
  await clock.advance(NODE_BEAT_MS);
  expect(isSuspect()).toBe(true);
  members.stop();
});

test('The calls of a suspect that does not answer are taken over, and those of one that does are not.', async () => {
  const { clock, beating, reach, forsaken, members } = await watching(['b', 'c', 'd', 'e']);
  for (const [nodeId, how] of [
    ['b', 'silent'],
    ['c', 'nobody'],
    ['d', 'answers'],
    ['e', 'unknown'],
  ] as const)
    reach.set(nodeId, how);
  await clock.advance(2 * NODE_SUSPECT_MS);
  expect(forsaken).toEqual([]);
  for (const nodeId of reach.keys()) beating.delete(nodeId);
  await clock.advance(NODE_SUSPECT_MS);
  expect(forsaken).toEqual(['b', 'c']);
  const before = members.rows.length;
  members.stop();
  await clock.advance(NODE_SUSPECT_MS);
  expect([forsaken, members.rows.length]).toEqual([['b', 'c'], before]);
});

test('The calls of a suspect of which NATS tells nothing are taken over once it is buried, before what else it left.', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const asked: string[] = [];
  const onForsaken = async (nodeId: string) => {
    asked.push(nodeId);
    await promise;
  };
  const { clock, beating, reach, buried, takenOver, members } = await watching(['b', 'c'], { onForsaken });
  reach.set('b', 'unknown');
  await clock.advance(2 * BURIAL_MS);
  beating.delete('b');
  await clock.advance(BURIAL_MS - 1);
  expect([buried, asked]).toEqual([[], []]);
  await clock.advance(1);
  expect([buried, asked, takenOver]).toEqual([['b'], ['b'], []]);
  resolve();
  await settle();
  expect(takenOver).toHaveLength(1);
  // One that answers for as long as its calls are no orphans has them until then, and they end with it.
  reach.set('c', 'answers');
  beating.delete('c');
  await clock.advance(ORPHAN_MS + NODE_BEAT_MS);
  expect([buried, asked]).toEqual([['b', 'c'], ['b']]);
  members.stop();
});

test('A node that ends takes no calls over that it has just asked about.', async () => {
  const { promise, resolve } = Promise.withResolvers<Reach>();
  const { clock, beating, forsaken, members } = await watching(['b'], { ping: () => promise });
  await clock.advance(2 * NODE_SUSPECT_MS);
  beating.delete('b');
  await clock.advance(NODE_SUSPECT_MS);
  members.stop();
  resolve('nobody');
  await settle();
  expect(forsaken).toEqual([]);
});

test('A node that is silent over NATS too is buried, and one that answers once its calls are orphans; each is looked after twice more.', async () => {
  const { clock, beating, reach, buried, takenOver, members, sinceStart } = await watching(['b', 'c']);
  reach.set('c', 'answers');
  await clock.advance(2 * BURIAL_MS);
  for (const nodeId of ['b', 'c']) beating.delete(nodeId);
  const seenAt = sinceStart();
  await clock.advance(BURIAL_MS - 1);
  expect([buried, takenOver]).toEqual([[], []]);
  await clock.advance(1);
  expect([buried, takenOver]).toEqual([['b'], [seenAt]]);
  await clock.advance(NODE_BEAT_MS);
  expect([members.get('b'), members.rows.length]).toEqual([undefined, 2]);
  await clock.advance(3 * NODE_LEFT_LOOK_MS);
  // Among them is what is looked for once a minute whoever has died.
  expect(takenOver.filter((at) => at === seenAt)).toEqual([seenAt, seenAt, seenAt]);
  expect(buried).toEqual(['b']);
  await clock.advance(ORPHAN_MS);
  expect(buried).toEqual(['b', 'c']);
  members.stop();
});

test('A node whose beat has moved since, or that another has buried, is not taken over for its silence.', async () => {
  const { clock, beating, takenOver, members } = await watching(['b'], {
    nodes: {
      nodeId: 'a',
      beat: async () => [nodeRow('a'), nodeRow('b', { beat: 1 })],
      bury: async () => false,
    },
  });
  beating.delete('b');
  await clock.advance(3 * BURIAL_MS);
  expect(takenOver).toEqual([]);
  await clock.advance(NODE_SWEEP_MS - 3 * BURIAL_MS);
  expect(takenOver).toEqual([NODE_SWEEP_MS]);
  await clock.advance(NODE_SWEEP_MS);
  expect(takenOver).toEqual([NODE_SWEEP_MS, 2 * NODE_SWEEP_MS]);
  members.stop();
});

test('A takeover that fails or takes long is begun again with a later beat, one at a time.', async () => {
  let failed = 0;
  const { clock, beating, members } = await watching(['b'], {
    takeOver: async () => {
      failed++;
      throw new Error('the database is away');
    },
  });
  await clock.advance(2 * BURIAL_MS);
  beating.delete('b');
  await clock.advance(BURIAL_MS + NODE_SWEEP_MS);
  expect(failed).toBe(4);
  members.stop();
});

test('What is looked for once a minute is looked for by one look at a time, and a node is buried once that is over.', async () => {
  const looks: (() => void)[] = [];
  const { clock, beating, buried, members } = await watching(['b'], {
    takeOver: () => new Promise<void>((resolve) => void looks.push(resolve)),
  });
  await clock.advance(NODE_SWEEP_MS);
  beating.delete('b');
  await clock.advance(2 * NODE_SWEEP_MS);
  expect([looks.length, buried]).toEqual([1, []]);
  looks[0]?.();
  await clock.advance(NODE_BEAT_MS);
  expect(buried).toEqual(['b']);
  members.stop();
});

test('A node that ends raises no beat any more, heeds none that is under way, and looks after no burial.', async () => {
  const beats: (() => void)[] = [];
  const told: string[] = [];
  let isSlow = false;
  const { clock, beating, buried, takenOver, members } = await watching(['b'], { onOwn: () => void told.push('own') });
  await clock.advance(2 * BURIAL_MS);
  beating.delete('b');
  await clock.advance(BURIAL_MS);
  members.stop();
  const [looks, readings] = [takenOver.length, told.length];
  await clock.advance(3 * NODE_LEFT_LOOK_MS);
  expect([buried, takenOver.length, told.length]).toEqual([['b'], looks, readings]);

  const other = await watching([], {
    nodes: {
      nodeId: 'a',
      beat: async () => {
        if (isSlow) await new Promise<void>((resolve) => void beats.push(resolve));
        return [nodeRow('a')];
      },
      bury: async () => false,
    },
    onOwn: () => void told.push('own'),
  });
  isSlow = true;
  await other.clock.advance(NODE_BEAT_MS);
  told.length = 0;
  other.members.stop();
  beats[0]?.();
  await settle();
  await other.clock.advance(2 * NODE_BEAT_MS);
  expect([beats.length, told, other.clock.armed]).toEqual([1, [], 0]);
});

test('A node that does not reach the database at its start does not begin.', async () => {
  const beat = () => Promise.reject(new Error('the database is away'));
  await expect(watching([], { nodes: { nodeId: 'a', beat, bury: async () => false } })).rejects.toThrow('the database is away');
});

test('The time at which a node last came or went is that of the beat that told it.', async () => {
  const { clock, rows, members, sinceStart } = await watching(['b']);
  const begun = clock.now() - sinceStart();
  const changed = () => members.changedAt - begun;
  await clock.advance(5 * NODE_BEAT_MS);
  expect(changed()).toBe(0);
  rows.set('c', nodeRow('c'));
  await clock.advance(NODE_BEAT_MS);
  await clock.advance(NODE_BEAT_MS);
  expect(changed()).toBe(6 * NODE_BEAT_MS);
  rows.delete('c');
  await clock.advance(NODE_BEAT_MS);
  expect(changed()).toBe(8 * NODE_BEAT_MS);
  members.stop();
});

test('A node is dead once a reading that began after it was asked for has no row of it, and one that was known at once.', async () => {
  const { clock, rows, members } = await watching(['b']);
  const isDead = (nodeId: string) => members.isDead(nodeId);
  expect([isDead('a'), isDead('b'), isDead('c'), isDead('d')]).toEqual([false, false, false, false]);
  // Whoever is asked for before its row was read has just come.
  rows.set('c', nodeRow('c'));
  rows.delete('b');
  await clock.advance(NODE_BEAT_MS);
  expect([isDead('b'), isDead('c'), isDead('d')]).toEqual([true, false, true]);
  rows.set('d', nodeRow('d'));
  rows.delete('c');
  await clock.advance(NODE_BEAT_MS);
  expect([isDead('b'), isDead('c'), isDead('d')]).toEqual([true, true, false]);
  // So many names are kept. Past it all are asked for anew, and told a reading later.
  for (let at = 2; at < NODE_STRANGERS_MAX; at++) isDead(`nobody ${at}`);
  expect(isDead('b')).toBe(true);
  isDead('one more');
  expect(isDead('b')).toBe(false);
  await clock.advance(NODE_BEAT_MS);
  expect(isDead('b')).toBe(true);
  members.stop();
});

test('A reading that had begun before a node was asked for does not tell that it is dead.', async () => {
  const readings: (() => void)[] = [];
  const { clock, members } = await watching([], {
    nodes: {
      nodeId: 'a',
      beat: async () => {
        if (readings.length > 0) await new Promise<void>((resolve) => readings.push(resolve));
        else readings.push(() => {});
        return [nodeRow('a')];
      },
      bury: async () => false,
    },
  });
  await clock.advance(NODE_BEAT_MS);
  expect(members.isDead('c')).toBe(false);
  readings.at(-1)?.();
  await settle();
  expect(members.isDead('c')).toBe(false);
  await clock.advance(NODE_BEAT_MS);
  readings.at(-1)?.();
  await settle();
  expect(members.isDead('c')).toBe(true);
  members.stop();
});

test('A node that could not read the others for a while is told so, with its own row at each reading.', async () => {
  let away = false;
  let own = 0;
  let back = 0;
  const { clock, members } = await watching(['b'], {
    nodes: {
      nodeId: 'a',
      beat: async () => {
        if (away) throw new Error('the database is away');
        return [nodeRow('a'), nodeRow('b')];
      },
      bury: async () => false,
    },
    onOwn: ({ nodeId }) => {
      own += nodeId === 'a' ? 1 : 0;
    },
    onBack: () => back++,
  });
  await clock.advance(NODE_POLL_GAP_MAX_MS);
  const before = own;
  expect([own > 1, back]).toEqual([true, 0]);
  away = true;
  await clock.advance(NODE_POLL_GAP_MAX_MS + NODE_BEAT_MS);
  expect([own, back]).toEqual([before, 0]);
  away = false;
  await clock.advance(2 * NODE_BEAT_MS);
  expect([own, back]).toEqual([before + 2, 1]);
  members.stop();
});
