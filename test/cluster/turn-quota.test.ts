import { describe, expect, test } from 'bun:test';
import { homeOf } from '../../src/cluster/placement/rendezvous.ts';
import { TurnQuota, type TurnQuotaOptions } from '../../src/cluster/placement/turn-quota.ts';
import { NODE_BEAT_MS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

type Answer = Parameters<TurnQuotaOptions['bus']['answer']>[1];
const NODES = ['a', 'b', 'c'];

/** Nodes that ask each other for the turns of a trunk. */
class Nodes {
  readonly clock = new VirtualClock();
  readonly quotas = new Map<string, TurnQuota>();
  /** The nodes that hear no question. */
  readonly deaf = new Set<string>();
  readonly members = { rows: NODES.map((nodeId) => nodeRow(nodeId)), changedAt: this.clock.now() - 60_000 };

  constructor() {
    const answers = new Map<string, Answer>();
    for (const nodeId of NODES) {
      const bus: TurnQuotaOptions['bus'] = {
        answer: (kind, answer) => void answers.set(`${nodeId} ${kind}`, answer),
        ask: async (to, kind, body) => {
          if (this.deaf.has(to)) return { outcome: 'not_delivered' };
          return { outcome: 'answered', body: await answers.get(`${to} ${kind}`)?.({ ...body }, nodeId) };
        },
      };
      this.quotas.set(nodeId, new TurnQuota({ bus, members: this.members, nodeId, clock: this.clock }));
    }
  }

  /** The times of the turns that the nodes get, one after the other, of a trunk with ten a second. */
  async turns(nodeIds: readonly string[]): Promise<(number | undefined)[]> {
    const times: (number | undefined)[] = [];
    for (const nodeId of nodeIds) {
      const waitMs = await this.quotas.get(nodeId)?.take('paced', 'app', 10);
      times.push(waitMs === undefined ? undefined : Math.round(waitMs));
    }
    return times;
  }
}

describe('the turns of a trunk with max_cps', () => {
  const home = homeOf('paced', NODES) ?? '';
  const [near = '', far = ''] = NODES.filter((nodeId) => nodeId !== home);

  test('follow each other evenly, whichever nodes ask, and end 2 s ahead', async () => {
    const nodes = new Nodes();
    const asking = Array.from({ length: 24 }, (_, at) => NODES[at % 3] ?? '');
    const times = await nodes.turns(asking);
    expect(times.slice(0, 21)).toEqual(Array.from({ length: 21 }, (_, at) => at * 100));
    expect(times.slice(21)).toEqual([undefined, undefined, undefined]);
  });

  test('are shared by applications that dial at different nodes', async () => {
    const nodes = new Nodes();
    const take = (nodeId: string, app: string) => nodes.quotas.get(nodeId)?.take('paced', app, 10);
    while ((await take(near, 'greedy')) !== undefined);
    expect(await take(far, 'quiet')).toBeUndefined();
    await nodes.clock.advance(1_000);
    expect([await take(near, 'greedy'), await take(near, 'greedy')]).toEqual([1_100, undefined]);
    expect(await take(far, 'quiet')).toBeDefined();
  });

  test('are those of its share for a node that does not reach their home', async () => {
    const nodes = new Nodes();
    nodes.deaf.add(home);
    expect(await nodes.turns([near, near, near, far, home])).toEqual([0, 300, 600, 0, 0]);
  });

  test('are half of them for each of two nodes that do not see the same home yet', async () => {
    const nodes = new Nodes();
    nodes.members.rows = [home, near].map((nodeId) => nodeRow(nodeId));
    nodes.members.changedAt = nodes.clock.now();
    expect(await nodes.turns([home, home, near, near])).toEqual([0, 200, 0, 200]);
    nodes.members.rows = [nodeRow(near)];
    expect(await nodes.turns([near, near])).toEqual([300, 400]);
  });

  test('that a node had of the home come before those of its share once the home says nothing', async () => {
    const nodes = new Nodes();
    expect(await nodes.turns([far, far, far, near])).toEqual([0, 100, 200, 300]);
    nodes.deaf.add(home);
    expect((await nodes.turns([near]))[0]).toBeGreaterThan(300);
  });

  test('are shared evenly while a node has just come or gone, and follow those that were given when that is over', async () => {
    const nodes = new Nodes();
    nodes.members.changedAt = nodes.clock.now();
    expect(await nodes.turns([near, near, far, home])).toEqual([0, 300, 0, 0]);
    await nodes.clock.advance(2 * NODE_BEAT_MS - 50);
    expect(await nodes.turns([near, near, near])).toEqual([0, 300, 600]);
    await nodes.clock.advance(50);
    // The home hears of the turn that lies 550 ms ahead, and gives the next one.
    expect(await nodes.turns([near, far])).toEqual([650, 750]);
  });

  test('of a trunk that still exists are kept in mind, and those of one that was deleted are not', async () => {
    const nodes = new Nodes();
    const keep = (names: readonly string[]) => nodes.quotas.get(home)?.keep(new Set(names));
    expect(await nodes.turns([home])).toEqual([0]);
    keep(['paced', 'other']);
    expect(await nodes.turns([home])).toEqual([100]);
    keep(['other']);
    expect(await nodes.turns([home])).toEqual([0]);
  });
});
