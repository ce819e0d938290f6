import { describe, expect, test } from 'bun:test';
import { sleep } from '../../src/clock.ts';
import { ChannelQuota, type ChannelQuotaOptions } from '../../src/cluster/placement/channel-quota.ts';
import { homeOf } from '../../src/cluster/placement/rendezvous.ts';
import { NODE_BEAT_MS } from '../../src/limits.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

type Answer = Parameters<ChannelQuotaOptions['bus']['answer']>[1];

const IDS = ['a', 'b', 'c'];

/** Three nodes that have seen each other long ago, and the messages between them. */
class Nodes {
  readonly clock = new VirtualClock();
  readonly quotas = new Map<string, ChannelQuota>();
  readonly held = new Map<string, number>();
  /** What becomes of a question: it is not heard, or only its answer is lost. */
  lost: 'nothing' | 'questions' | 'answers' = 'nothing';
  /** How long a question that is asked now, and its answer, are under way, in milliseconds. */
  slow = { question: 0, answer: 0 };
  /** A node that was just killed: it is up by its row, and says nothing. */
  killed: string | undefined;
  /** The nodes that are up, as all of them see it, and when one has come or gone. */
  readonly members = { rows: IDS.map((nodeId) => nodeRow(nodeId)), changedAt: this.clock.now() - 60_000 };

  /** What a node sees that has not read of the last change yet. */
  readonly late = new Map<string, Nodes['members']>();

  constructor() {
    const seenBy = (nodeId: string) => this.late.get(nodeId) ?? this.members;
    const answers = new Map<string, Answer>();
    for (const nodeId of IDS) {
      const quota = new ChannelQuota({
        bus: {
          answer: (kind, answer) => void answers.set(`${nodeId} ${kind}`, answer),
          ask: async (to, kind, body, timeoutMs) => {
            if (this.lost === 'questions') return { outcome: 'not_delivered' };
            const late = Promise.withResolvers<{ readonly outcome: 'unknown' }>();
            const cancel = this.clock.at(this.clock.now() + timeoutMs, () => late.resolve({ outcome: 'unknown' }));
            const { slow } = this;
            const answer = async () => {
              if (slow.question > 0) await sleep(this.clock, slow.question);
              if (to === this.killed) return await late.promise;
              const said = { outcome: 'answered', body: await answers.get(`${to} ${kind}`)?.({ ...body }, nodeId) } as const;
              if (slow.answer > 0) await sleep(this.clock, slow.answer);
              return said;
            };
            const result = await Promise.race([answer(), late.promise]);
            cancel();
            return this.lost === 'answers' ? { outcome: 'unknown' } : result;
          },
        },
        members: {
          get rows() {
            return seenBy(nodeId).rows;
          },
          get changedAt() {
            return seenBy(nodeId).changedAt;
          },
          get: (id) => seenBy(nodeId).rows.find((each) => each.nodeId === id),
        },
        nodeId,
        clock: this.clock,
        held: () => this.held.get(nodeId) ?? 0,
      });
      this.quotas.set(nodeId, quota);
    }
  }

  /** The node asks to hold so many of one channel, and holds what it gets. */
  async hold(nodeId: string, channels: number): Promise<number> {
    const granted = (await this.quotas.get(nodeId)?.hold('narrow', 1, channels, Math.min(channels, this.heldBy(nodeId)))) ?? 0;
    this.held.set(nodeId, granted);
    return granted;
  }

  /** All nodes see that these are up, and have asked for nothing until others know it as well. */
  async change(nodeIds: readonly string[]): Promise<void> {
    this.members.rows = nodeIds.map((nodeId) => nodeRow(nodeId));
    this.members.changedAt = this.clock.now();
    await this.clock.advance(2 * NODE_BEAT_MS);
  }

  heldBy(nodeId: string): number {
    return this.held.get(nodeId) ?? 0;
  }
}

describe('a channel of a trunk that the nodes share', () => {
  const [home = '', ...ids] = IDS.toSorted((a) => (a === homeOf('narrow', IDS) ? -1 : 1));
  const [near = '', far = ''] = ids;

  test('is not taken by a question that a later one has overtaken', async () => {
    const nodes = new Nodes();
    expect(await nodes.hold(far, 0)).toBe(0);
    nodes.slow = { question: 100, answer: 0 };
    const overtaken = nodes.hold(near, 1);
    nodes.slow = { question: 0, answer: 0 };
    expect(await nodes.hold(near, 0)).toBe(0);
    await nodes.clock.advance(100);
    expect([await overtaken, await nodes.hold(far, 1)]).toEqual([0, 1]);
  });

  test('is granted once all nodes have read of the last change, and not before', async () => {
    const nodes = new Nodes();
    nodes.members.changedAt = nodes.clock.now();
    const granted: number[] = [];
    for (const nodeId of [near, home]) void nodes.hold(nodeId, 1).then((channels) => granted.push(channels));
    await nodes.clock.advance(2 * NODE_BEAT_MS - 1);
    expect(granted).toEqual([]);
    await nodes.clock.advance(1);
    expect(granted.toSorted()).toEqual([0, 1]);
  });

  test('that a node is being granted is not told as free by the same node, which is to tell what it holds', async () => {
    const nodes = new Nodes();
    nodes.lost = 'answers';
    expect(await nodes.hold(near, 0)).toBe(0);
    nodes.lost = 'nothing';
    await nodes.clock.advance(NODE_BEAT_MS - 100);
    nodes.slow = { question: 0, answer: 200 };
    const granted = nodes.hold(near, 1);
    await settle();
    nodes.slow = { question: 0, answer: 0 };
    await nodes.clock.advance(150);
    expect(await nodes.hold(far, 1)).toBe(0);
    await nodes.clock.advance(50);
    expect(await granted).toBe(1);
  });

  test('that was given back is told for as long as its trunk exists', async () => {
    for (const [names, free] of [
      [['narrow'], 1],
      [[], 0],
    ] as const) {
      const nodes = new Nodes();
      expect(await nodes.hold(near, 1)).toBe(1);
      nodes.lost = 'questions';
      await nodes.hold(near, 0);
      nodes.lost = 'nothing';
      nodes.quotas.get(near)?.keep(new Set(names));
      await nodes.clock.advance(2 * NODE_BEAT_MS);
      expect(await nodes.hold(far, 1)).toBe(free);
    }
  });

  test('that was given back while NATS was away is free for the other nodes when it is back', async () => {
    const nodes = new Nodes();
    expect([await nodes.hold(near, 1), await nodes.hold(far, 1), await nodes.hold(home, 1)]).toEqual([1, 0, 0]);
    nodes.lost = 'questions';
    expect(await nodes.hold(near, 0)).toBe(0);
    await nodes.clock.advance(5 * NODE_BEAT_MS);
    nodes.lost = 'nothing';
    await nodes.clock.advance(NODE_BEAT_MS);
    await settle();
    expect([await nodes.hold(far, 1), await nodes.hold(home, 1)]).toEqual([1, 0]);
  });

  test('that was granted by an answer which was lost is free for the other nodes', async () => {
    const nodes = new Nodes();
    nodes.lost = 'answers';
    expect(await nodes.hold(near, 1)).toBe(0);
    nodes.lost = 'nothing';
    expect(await nodes.hold(far, 1)).toBe(0);
    await nodes.clock.advance(NODE_BEAT_MS);
    await settle();
    expect(await nodes.hold(far, 1)).toBe(1);
  });

  test('that another home has granted, while it was up, is not granted again by the one before it', async () => {
    const nodes = new Nodes();
    const [before = '', after = ''] = [near, far].toSorted((a) => (a === homeOf('narrow', [near, far]) ? -1 : 1));
    await nodes.change([near, far]);
    expect([await nodes.hold(before, 1), await nodes.hold(before, 0)]).toEqual([1, 0]);
    await nodes.change(IDS);
    expect(await nodes.hold(after, 1)).toBe(1);
    await nodes.change([near, far]);
    expect(await nodes.hold(before, 1)).toBe(0);
    expect(await nodes.hold(after, 0)).toBe(0);
    expect(await nodes.hold(before, 1)).toBe(1);
  });

  test('is told until it is known, and no longer, each time that its home is away', async () => {
    const nodes = new Nodes();
    for (let time = 0; time < 2; time++) {
      nodes.lost = 'questions';
      await nodes.hold(near, 0);
      expect(nodes.clock.armed).toBe(1);
      nodes.lost = 'nothing';
      await nodes.clock.advance(NODE_BEAT_MS);
      await settle();
      expect(nodes.clock.armed).toBe(0);
    }
    nodes.lost = 'questions';
    await nodes.hold(near, 0);
    nodes.quotas.get(near)?.stop();
    await nodes.clock.advance(NODE_BEAT_MS);
    await settle();
    expect(nodes.clock.armed).toBe(0);
  });

  test('is waited for just after a node has come or gone, until its home has asked all what they hold', async () => {
    const nodes = new Nodes();
    nodes.members.changedAt = nodes.clock.now();
    const [first, second] = [nodes.hold(near, 1), nodes.hold(far, 1)];
    await nodes.clock.advance(2 * NODE_BEAT_MS);
    expect([await first, await second]).toEqual([1, 0]);
  });

  test('is waited for by a node that has not read yet which node is its home now', async () => {
    const nodes = new Nodes();
    const [before = '', after = ''] = [near, far].toSorted((a) => (a === homeOf('narrow', [near, far]) ? -1 : 1));
    await nodes.change([near, far]);
    nodes.late.set(after, { ...nodes.members });
    await nodes.clock.advance(60_000);
    nodes.members.rows = IDS.map((nodeId) => nodeRow(nodeId));
    nodes.members.changedAt = nodes.clock.now();
    const wanted = nodes.hold(after, 1);
    await settle();
    await nodes.clock.advance(NODE_BEAT_MS - 1);
    nodes.late.delete(after);
    await nodes.clock.advance(3 * NODE_BEAT_MS);
    expect([await wanted, await nodes.hold(before, 1)]).toEqual([1, 0]);
  });

  test('is waited for while its home, which has just come, does not serve yet', async () => {
    const nodes = new Nodes();
    nodes.members.changedAt = nodes.clock.now();
    nodes.lost = 'questions';
    const wanted = nodes.hold(near, 1);
    await nodes.clock.advance(2 * NODE_BEAT_MS);
    nodes.lost = 'nothing';
    await nodes.clock.advance(NODE_BEAT_MS);
    expect(await wanted).toBe(1);
  });

  test('is refused three beats after a node has come or gone where its home does not answer, and is given back at once', async () => {
    const nodes = new Nodes();
    expect(await nodes.hold(near, 1)).toBe(1);
    nodes.members.changedAt = nodes.clock.now();
    nodes.lost = 'questions';
    const began = nodes.clock.now();
    expect(await nodes.hold(near, 0)).toBe(0);
    expect(nodes.clock.now()).toBe(began);
    let refused = false;
    const wanted = nodes.hold(far, 1).then((granted) => {
      refused = granted === 0;
    });
    await nodes.clock.advance(3 * NODE_BEAT_MS - 1);
    expect(refused).toBe(false);
    await nodes.clock.advance(1);
    await wanted;
    expect(refused).toBe(true);
  });

  test('has one holder where another node comes or goes while all are asked what they hold, and one of them says nothing', async () => {
    const nodes = new Nodes();
    nodes.killed = ['d', 'e', 'f', 'g'].find((each) => homeOf('narrow', [...IDS, each]) === home) ?? '';
    nodes.members.rows = [...IDS, nodes.killed].map((nodeId) => nodeRow(nodeId));
    nodes.members.changedAt = nodes.clock.now();
    const first = nodes.hold(near, 1);
    await nodes.clock.advance(200);
    nodes.members.changedAt = nodes.clock.now();
    const second = nodes.hold(far, 1);
    await nodes.clock.advance(6 * NODE_BEAT_MS);
    expect([await first, await second].toSorted()).toEqual([0, 1]);
  });

  test('has one holder where another node becomes its home while the one before asks all what they hold', async () => {
    const nodes = new Nodes();
    const [before = '', after = ''] = [near, far].toSorted((a) => (a === homeOf('narrow', [near, far]) ? -1 : 1));
    const isOfNone = (each: string) =>
      homeOf('narrow', [...IDS, each]) === home && homeOf('narrow', [near, far, each]) === before;
    nodes.killed = ['d', 'e', 'f', 'g', 'h', 'i'].find(isOfNone) ?? '';
    nodes.members.rows = [near, far, nodes.killed].map((nodeId) => nodeRow(nodeId));
    nodes.members.changedAt = nodes.clock.now();
    const first = nodes.hold(before, 1);
    await nodes.clock.advance(200);
    nodes.members.rows = [...IDS, nodes.killed].map((nodeId) => nodeRow(nodeId));
    nodes.members.changedAt = nodes.clock.now();
    const second = nodes.hold(after, 1);
    await nodes.clock.advance(6 * NODE_BEAT_MS);
    expect([await first, await second].toSorted()).toEqual([0, 1]);
  });
});
