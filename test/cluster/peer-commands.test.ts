/** Requests from node to node, with no bus between them but calls. */
import { expect, test } from 'bun:test';
import type { Operation, Whose } from '../../src/call/ports/peers.ts';
import { accepted } from '../../src/call/ports/sessions.ts';
import { TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { PeerCommands, type PeerCommandsOptions } from '../../src/cluster/peer/commands.ts';
import { newUuid } from '../../src/id.ts';
import { NODE_COMMAND_TIMEOUT_MS } from '../../src/limits.ts';
import { problems } from '../../src/problem.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

type Answer = Parameters<PeerCommandsOptions['bus']['answer']>[1];

/** Node `a`, which asks, and nodes `b` and `c`, which serve as the test says. */
function nodes(served: Partial<PeerCommandsOptions> = {}, { load = 0, connected = true, isDraining = false } = {}) {
  const clock = new VirtualClock();
  const answers = new Map<string, Answer>();
  const rows = ['a', 'b', 'c'].map((nodeId) => nodeRow(nodeId, { load: JSON.stringify({ load: nodeId === 'a' ? load : 1 }) }));
  const owner = { now: 'b' };
  const released: string[] = [];
  const node = (nodeId: string) =>
    new PeerCommands({
      bus: {
        connected,
        answer: (kind, answer) => void answers.set(`${nodeId} ${kind}`, answer),
        ask: async (to, kind, body, _timeoutMs, deadlineMs) => {
          const until = clock.now() + deadlineMs;
          return { outcome: 'answered', body: await answers.get(`${to} ${kind}`)?.({ ...body, until }, nodeId) };
        },
      },
      members: { rows, isSuspect: () => false, isAway() {} },
      nodeId,
      clock,
      sessions: {
        isDraining: nodeId === 'a' && isDraining,
        isHere: () => false,
        owner: async () => owner.now,
        obey: async () => undefined,
        replacement: () => undefined,
        named: () => undefined,
      },
      rooms: { isHere: () => false, home: async () => undefined, settle: async () => {} },
      tokens: new TokenBuckets(),
      trunks: () => [],
      flows: async () => [],
      release: async ({ key }, marker) => void released.push(`${marker} ${key}`),
      perform: async () => problems.nodeAway('this call'),
      ...(nodeId === 'b' ? served : {}),
    });
  const [a] = [node('a'), node('b'), node('c')];
  return { clock, a, owner, released };
}

const operation: Operation = {
  ...{ method: 'POST', route: '/v1/sessions/:uuid/answer', params: {}, path: '/', query: '', body: {} },
  ...{ appUuid: 'app', operationUuid: 'operation', traceparent: '', key: { key: 'key', fingerprint: 'print' } },
};

test('A command that another node refuses too late frees its Idempotency-Key there, unless it may be stored all the same.', async () => {
  const away = problems.unavailable('The Session could not take the command; try again.', 2);
  for (const [outcome, isLate, freed] of [
    [away, true, ['a key']],
    [{ ...away, isInDoubt: true }, true, []],
    // Whoever asked hears of it in time, and does that itself.
    [away, false, []],
    [accepted('operation'), true, []],
  ] as const) {
    const { clock, a, released } = nodes({
      perform: async () => {
        if (isLate) await clock.advance(NODE_COMMAND_TIMEOUT_MS);
        return outcome;
      },
    });
    await a.forward('b', operation, false);
    expect(released).toEqual([...freed]);
  }
});

test('A new Session is made on the node where the one that it names is now, not where that was.', async () => {
  const { a, owner } = nodes();
  const sessionUuid = newUuid();
  const node = (whose: Whose) => a.nodeOf(whose, 'app', []);
  expect(await node({ kind: 'session', sessionUuid })).toBe('b');
  owner.now = 'c';
  expect(await node({ kind: 'new', near: [sessionUuid], trunk: undefined, isPhone: false })).toBe('c');
});

test('A new Session goes to another node that has not refused it, and is made here where no other gets it.', async () => {
  const whose: Whose = { kind: 'new', near: [], trunk: undefined, isPhone: false };
  const placed = (tried: readonly string[], terms: { readonly connected?: boolean; readonly isDraining?: boolean } = {}) =>
    nodes({}, { load: 5, ...terms }).a.nodeOf(whose, 'app', tried);
  expect(await placed([])).toMatch(/^[bc]$/);
  expect(await placed([], { connected: false })).toBeUndefined();
  expect(await placed(['b'])).toBeUndefined();
  expect(await placed(['b'], { isDraining: true })).toBe('c');
  expect(await placed(['b', 'c'], { isDraining: true })).toBeUndefined();
});

test('A node whose drain has just begun makes no new Session itself, before it has read its own row.', async () => {
  const { a } = nodes({}, { isDraining: true });
  expect(await a.nodeOf({ kind: 'new', near: [], trunk: undefined, isPhone: false }, 'app', [])).toMatch(/^[bc]$/);
});

test('A call that is on its way to this node is away for a bot or a transfer, and not unknown.', async () => {
  const { a, owner } = nodes();
  const ask = async () => [
    await a.order('app', 'session', { type: 'hangup', sessionUuid: undefined }, ''),
    await a.replacement('app', 'session'),
  ];
  owner.now = 'a';
  expect(await ask()).toEqual(['the node of the Session cannot be reached', 'unreachable']);
});
