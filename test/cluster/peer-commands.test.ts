/** Requests from node to node, with no bus between them but calls. */
import { expect, test } from 'bun:test';
import type { Operation, Whose } from '../../src/call/ports/peers.ts';
import { accepted } from '../../src/call/ports/sessions.ts';
import { type BucketName, buckets } from '../../src/call/rate/buckets.ts';
import { bucketOf, TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { PeerCommands, type PeerCommandsOptions } from '../../src/cluster/peer/commands.ts';
import { homeOf } from '../../src/cluster/placement/rendezvous.ts';
import { newUuid } from '../../src/id.ts';
import { NODE_COMMAND_TIMEOUT_MS } from '../../src/limits.ts';
import { problems } from '../../src/problem.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

type Answer = Parameters<PeerCommandsOptions['bus']['answer']>[1];

/** Node `a`, which asks, and nodes `b` and `c`, which serve as the test says. */
function nodes(
  served: Partial<PeerCommandsOptions> = {},
  { load = 0, connected = true, isDraining = false, isLate = false } = {},
  own: Partial<PeerCommandsOptions> = {},
) {
  const clock = new VirtualClock();
  const answers = new Map<string, Answer>();
  const rows = ['a', 'b', 'c'].map((nodeId) => nodeRow(nodeId, { load: JSON.stringify({ load: nodeId === 'a' ? load : 1 }) }));
  const owner: { now: string | undefined } = { now: 'b' };
  /** The home of each Room, and nodes that are suspect. */
  const home: { now: string | null | undefined } = { now: undefined };
  const suspects: string[] = [];
  const tokens = new Map(['a', 'b', 'c'].map((nodeId) => [nodeId, new TokenBuckets()]));
  const released: string[] = [];
  /** Nodes that NATS knows nobody of, those that were found so, and the Rooms that were given a home. */
  const [unknown, away, settled]: [string[], string[], string[]] = [[], [], []];
  const node = (nodeId: string) =>
    new PeerCommands({
      bus: {
        connected,
        answer: (kind, answer) => void answers.set(`${nodeId} ${kind}`, answer),
        ask: async (to, kind, body, _timeoutMs, deadlineMs) => {
          const until = clock.now() + (isLate ? 0 : deadlineMs);
          if (!connected || unknown.includes(to)) return { outcome: 'not_delivered' };
          return { outcome: 'answered', body: await answers.get(`${to} ${kind}`)?.({ ...body, until }, nodeId) };
        },
      },
      members: { rows, isSuspect: (id) => suspects.includes(id), isAway: (id) => void away.push(id) },
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
      rooms: {
        isHere: () => home.now === nodeId,
        home: async () => home.now,
        settle: async (_, roomId) => void settled.push(roomId),
      },
      tokens: tokens.get(nodeId) ?? new TokenBuckets(),
      trunks: () => [],
      flows: async () => [],
      release: async ({ key }, marker) => void released.push(`${marker} ${key}`),
      perform: async () => problems.nodeAway('this call'),
      ...(nodeId === 'b' ? served : {}),
      ...(nodeId === 'a' ? own : {}),
    });
  const [a] = [node('a'), node('b'), node('c')];
  /** Takes tokens of one bucket until there is none left, and gives their number. */
  const takeAll = async (name: BucketName, appUuid: string, roomId?: string) => {
    for (let taken = 0; ; taken++) if (typeof (await a.take(appUuid, [name], roomId)) === 'number') return taken;
  };
  const isEmpty = (nodeId: string, name: BucketName, whose: string) =>
    typeof tokens.get(nodeId)?.take([bucketOf(name, whose)], clock.now()) === 'number';
  return { clock, a, owner, home, suspects, released, unknown, away, settled, takeAll, isEmpty };
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

test('An order of a bot is obeyed where its Session is, unless it comes too late, and a refusal comes back with its reason.', async () => {
  const obeyed: string[] = [];
  const leftMs: number[] = [];
  const sessions: PeerCommandsOptions['sessions'] = {
    ...{ isDraining: false, isHere: () => true, owner: async () => 'b' },
    obey: async (_appUuid, sessionUuid, _order, _traceparent, until = 0) => {
      obeyed.push(sessionUuid);
      leftMs.push(until - on.clock.now());
      return sessionUuid === 'ended' ? 'no such Session' : undefined;
    },
    ...{ replacement: () => ({ referTo: '<sip:far>', trunk: 'trunk' }), named: () => 'named' },
  };
  const order = async ({ a }: ReturnType<typeof nodes>, sessionUuid = 'live') =>
    await a.order('app', sessionUuid, { type: 'hangup', sessionUuid: undefined }, '');
  const on = nodes({ sessions });
  expect([await order(on), await order(on, 'ended'), obeyed]).toEqual([undefined, 'no such Session', ['live', 'ended']]);
  // It is refused before whoever gave it has given it up.
  expect(leftMs.every((left) => left > 0 && left < NODE_COMMAND_TIMEOUT_MS)).toBe(true);
  expect(await order(nodes({ sessions }, { isLate: true }))).toBe('the order came too late');
  expect(await order(nodes({ sessions }, { connected: false }))).toBe('the node of the Session cannot be reached');
  expect(obeyed).toHaveLength(2);
  // So is a question about a call, for a transfer.
  expect(await on.a.replacement('app', 'live')).toEqual({ referTo: '<sip:far>', trunk: 'trunk' });
  expect(await nodes({ sessions }, { connected: false }).a.replacement('app', 'live')).toBe('unreachable');
  const replaces = { callId: 'x', toTag: '1', fromTag: '2', earlyOnly: false };
  expect(await on.a.named('app', replaces)).toBe('named');
  expect(await nodes().a.named('app', replaces)).toBeUndefined();
  on.owner.now = undefined;
  expect([await order(on), await on.a.replacement('app', 'live')]).toEqual(['the Session has ended', undefined]);
});

test('Tokens of a Room are those of its home, also where that has moved, and are given back there.', async () => {
  const { a, home, takeAll, isEmpty } = nodes();
  const { capacity } = buckets.room_play;
  for (const nodeId of ['b', 'c']) {
    home.now = nodeId;
    const giveBack = await a.take('app', ['room_play'], 'room');
    expect(await takeAll('room_play', 'app', 'room')).toBe(capacity - 1);
    expect(isEmpty(nodeId, 'room_play', 'room')).toBe(true);
    if (typeof giveBack === 'function') giveBack();
    expect(isEmpty(nodeId, 'room_play', 'room')).toBe(false);
  }
  expect(isEmpty('a', 'room_play', 'room')).toBe(false);
});

test('Tokens of an application are those of one node for all, and of this one where that cannot be asked.', async () => {
  const appUuid = Array.from({ length: 100 }, (_, at) => `app${at}`).find((each) => homeOf(each, ['a', 'b', 'c']) === 'b') ?? '';
  const { capacity } = buckets.session_list;
  for (const [terms, home] of [
    [{}, 'b'],
    [{ connected: false }, 'a'],
  ] as const) {
    const { takeAll, isEmpty } = nodes({}, terms);
    expect(await takeAll('session_list', appUuid)).toBe(capacity);
    expect(['a', 'b', 'c'].filter((nodeId) => isEmpty(nodeId, 'session_list', appUuid))).toEqual([home]);
  }
  // A Room whose home is suspect, or that has none, is counted here.
  for (const where of ['b', undefined]) {
    const { home, suspects, takeAll, isEmpty } = nodes();
    home.now = where;
    suspects.push('b');
    await takeAll('room_play', appUuid, 'room');
    expect(isEmpty('a', 'room_play', 'room')).toBe(true);
  }
});

test('A command that the other node has no more is to be asked for elsewhere, and a suspect node is asked nothing.', async () => {
  const { a, suspects } = nodes({ perform: async () => 'moved' });
  expect(await a.forward('b', operation, false)).toEqual({ outcome: 'moved' });
  suspects.push('b');
  expect(await a.forward('b', operation, false)).toEqual({ outcome: 'not_delivered' });
});

test('A node that NATS knows nobody of takes nothing new until its next beat, unless it is this one that NATS is away for.', async () => {
  const { a, unknown, away } = nodes();
  await a.forward('b', operation, false);
  unknown.push('b');
  expect([await a.forward('b', operation, false), away]).toEqual([{ outcome: 'not_delivered' }, ['b']]);
  const cut = nodes({}, { connected: false });
  expect([await cut.a.forward('b', operation, false), cut.away]).toEqual([{ outcome: 'not_delivered' }, []]);
});

test('A Room that has no home gets this node for one, and one that is not there gets none.', async () => {
  const { a, home, settled } = nodes();
  for (const now of [undefined, null]) {
    home.now = now;
    expect(await a.nodeOf({ kind: 'room', roomId: `${now}` }, 'app', [])).toBeUndefined();
  }
  expect(settled).toEqual(['null']);
});

test('What another node says that it has no more is looked up anew, and a member of no call is asked for at its Room.', async () => {
  const { a, owner, home } = nodes();
  const sessionUuid = newUuid();
  const [member, room] = [{ kind: 'member', sessionUuid, roomId: 'room' } as const, { kind: 'room', roomId: 'room' } as const];
  home.now = 'c';
  expect([await a.nodeOf(member, 'app', []), await a.nodeOf(room, 'app', [])]).toEqual(['b', 'c']);
  [owner.now, home.now] = [undefined, 'b'];
  expect([await a.nodeOf(member, 'app', []), await a.nodeOf(room, 'app', [])]).toEqual(['b', 'c']);
  expect(await a.nodeOf(room, 'app', ['c'])).toBe('b');
  home.now = 'c';
  // The Session and the Room are both looked for again.
  expect(await a.nodeOf(member, 'app', ['b'])).toBe('c');
  home.now = 'a';
  expect(await a.nodeOf(room, 'app', ['c'])).toBeUndefined();
});

test('A call to a device is made on the node that has its connection, and needs no trunk; another phone call needs one.', async () => {
  const binding = {
    ...{ key: 'k', uri: 'sip:desk@192.0.2.1;transport=tcp', transport: 'tcp' as const, host: '192.0.2.1', port: 5060, path: '' },
    ...{ callId: 'c', cseq: 1, expiresAt: 1, userAgent: '', instance: '', regId: 0 },
  } as const;
  const trunks: PeerCommandsOptions['trunks'] = () => [{ name: 'pinned', nodes: ['edge'], maxChannels: undefined }];
  const { a } = nodes({}, {}, { trunks, flows: async () => [{ nodeId: 'c', binding }] });
  const call = { kind: 'new', near: [], trunk: undefined, isPhone: true } as const;
  expect(await a.nodeOf({ ...call, device: 'desk' }, 'app', [])).toBe('c');
  const elsewhere = nodes({}, { load: 5 }, { trunks });
  expect(await elsewhere.a.nodeOf({ ...call, device: 'desk' }, 'app', [])).toMatch(/^[bc]$/);
  // No node has the label of the trunk, which this one says.
  expect(await elsewhere.a.nodeOf(call, 'app', [])).toBeUndefined();
});

test('A call of this node goes to the node of the Room that it is to be near, unless that may take none.', async () => {
  const { a, owner, home, suspects } = nodes({}, { load: 5 });
  [owner.now, home.now] = [undefined, 'c'];
  const other = () => a.otherFor('app', 'trunk', ['room']);
  expect([await other(), await other(), await other(), await other()]).toEqual(['c', 'c', 'c', 'c']);
  suspects.push('c');
  expect(await other()).toBe('b');
  suspects.push('b');
  expect(await other()).toBeUndefined();
});
