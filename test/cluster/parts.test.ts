import { describe, expect, test } from 'bun:test';
import { Bus } from '../../src/cluster/bus/bus.ts';
import { Envelopes } from '../../src/cluster/bus/envelope.ts';
import { Offsets } from '../../src/cluster/bus/offset.ts';
import type { Transport, TransportMessage } from '../../src/cluster/bus/transport.ts';
import { LeaseKeeper } from '../../src/cluster/membership/lease-keeper.ts';
import { Members } from '../../src/cluster/membership/members.ts';
import { ReachWatch } from '../../src/cluster/membership/reach-watch.ts';
import { marksOf, settingsApart } from '../../src/cluster/membership/settings-marks.ts';
import { RoomMessages } from '../../src/cluster/peer/room-messages.ts';
import { choose } from '../../src/cluster/placement/placement.ts';
import { Places } from '../../src/cluster/placement/places.ts';
import { homeOf } from '../../src/cluster/placement/rendezvous.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import {
  NATS_FIRST_MS,
  NODE_BEAT_MS,
  NODE_LEASE_MS,
  NODE_LEASE_RENEW_MS,
  NODE_PLACES_MAX,
  NODE_REACH_LOOK_MS,
} from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import type { Reach } from '../../src/machine/room/home-watch.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { nodeRow } from './node-row.ts';

describe('a message between nodes', () => {
  const key = new Uint8Array(32).fill(1);
  const sender = new Envelopes(key, 'a');
  const receiver = new Envelopes(key, 'b');

  test('is opened by who has the MASTER_KEY, and tells its sender, its time and its body', () => {
    const { text, nonce } = sender.seal('s.cmd', { x: 1 }, 1000);
    expect(receiver.open('s.cmd', text)).toEqual({ subject: 's.cmd', from: 'a', nonce, time: 1000, answers: '', body: { x: 1 } });
  });

  test('is dropped under another key, altered in any place, cut short, or on another subject', () => {
    const { text } = sender.seal('s.cmd', { x: 1 }, 1000);
    expect(new Envelopes(new Uint8Array(32).fill(2), 'b').open('s.cmd', text)).toBeUndefined();
    expect(receiver.open('s.other', text)).toBeUndefined();
    for (let at = 0; at < text.length; at++) {
      const altered = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
      expect(receiver.open('s.cmd', altered)).toBeUndefined();
      expect(receiver.open('s.cmd', text.slice(0, at))).toBeUndefined();
    }
  });

  test('is taken once, and not long after it was sent', () => {
    const first = receiver.open('s.cmd', sender.seal('s.cmd', {}, 1000).text);
    const old = receiver.open('s.cmd', sender.seal('s.cmd', {}, 1000).text);
    if (first === undefined || old === undefined) throw new Error('not opened');
    expect([receiver.isFresh(first, 2000), receiver.isFresh(first, 2000)]).toEqual([true, false]);
    expect(receiver.isFresh(old, 40_000)).toBe(false);
  });
});

test('the clock of another node is known to half of the round trip of the fastest ping', () => {
  const offsets = new Offsets();
  expect(offsets.theirs('b', 0, 0)).toBeUndefined();
  // Its clock is 5,000 ms ahead: the ping took 40 ms there and 60 ms back.
  offsets.measured('b', 0, 5_040, 100);
  expect(offsets.theirs('b', 1_000, 100)).toEqual({ earliest: 5_940, latest: 6_040 });
  // A slower one tells nothing new, a faster one does.
  offsets.measured('b', 200, 5_300, 600);
  expect(offsets.theirs('b', 1_000, 600)).toEqual({ earliest: 5_940, latest: 6_040 });
  offsets.measured('b', 700, 5_701, 702);
  expect(offsets.theirs('b', 1_000, 702)).toEqual({ earliest: 5_999, latest: 6_001 });
  expect(offsets.theirs('b', 1_000, 40_000)).toBeUndefined();
  // A node that does not answer is pinged before it is asked again; how far its clock was ahead is still known.
  offsets.doubt('b');
  expect([offsets.theirs('b', 1_000, 702), offsets.lead('b')]).toEqual([undefined, 5_000]);
  offsets.measured('b', 800, 5_850, 900);
  expect(offsets.theirs('b', 1_000, 900)).toEqual({ earliest: 5_950, latest: 6_050 });
});

test('a home moves only with its node, and homes are spread over all nodes', () => {
  const nodes = ['a', 'b', 'c', 'd'].map((name) => `node-${name}`);
  const names = Array.from({ length: 4_000 }, (_, n) => `app_${n}`);
  const before = names.map((name) => homeOf(name, nodes));
  for (const node of nodes) {
    const share = before.filter((home) => home === node).length / names.length;
    expect(share).toBeGreaterThan(0.2);
    expect(share).toBeLessThan(0.3);
  }
  const left = nodes.slice(1);
  for (const [at, name] of names.entries()) if (before[at] !== nodes[0]) expect(homeOf(name, left)).toBe(before[at] ?? '');
  expect(homeOf('app', [])).toBeUndefined();
});

/** A keeper of one lease, and when it told which change. */
function keepingBy(takeAll: (names: readonly string[]) => Promise<readonly string[]>) {
  const clock = new VirtualClock();
  const start = clock.now();
  const changes: [atMs: number, isHeld: boolean][] = [];
  const keeper: LeaseKeeper = new LeaseKeeper({
    leases: { takeAll, give: async () => {} },
    clock,
    log: silentLog,
    wanted: () => ['messages'],
    onChange: () => changes.push([clock.now() - start, keeper.holds('messages')]),
  });
  keeper.start();
  return { clock, keeper, changes };
}

/** The same, whose questions are answered when the test says so. */
function keeping() {
  const answers: (() => void)[] = [];
  const kept = keepingBy((names) => new Promise((resolve) => answers.push(() => resolve(names))));
  const answer = async () => {
    answers.shift()?.();
    await settle();
  };
  return { ...kept, answer };
}

test('a lease whose answer took longer than the lease is told as held with the next answer', async () => {
  const { clock, keeper, changes, answer } = keeping();
  await clock.advance(NODE_LEASE_MS + 1);
  await answer();
  expect([changes, keeper.holds('messages')]).toEqual([[], false]);
  await clock.advance(NODE_LEASE_RENEW_MS);
  await answer();
  expect(changes).toEqual([[NODE_LEASE_MS + 1 + NODE_LEASE_RENEW_MS, true]]);
});

test('a lease that is not renewed is told as lost when its time is over, however long the database says nothing', async () => {
  const { clock, keeper, changes, answer } = keeping();
  await answer();
  await clock.advance(NODE_LEASE_MS - 1);
  expect(changes).toEqual([[0, true]]);
  await clock.advance(1);
  expect(changes).toEqual([
    [0, true],
    [NODE_LEASE_MS, false],
  ]);
  await clock.advance(60_000);
  // The answer is of a lease that is over; the next one counts again.
  await answer();
  await clock.advance(NODE_LEASE_RENEW_MS);
  await answer();
  expect(changes.slice(2)).toEqual([[NODE_LEASE_MS + 60_000 + NODE_LEASE_RENEW_MS, true]]);
  await keeper.stop();
  expect(clock.armed).toBe(0);
});

test('a lease that another node has by now is lost at once, and one that is not wanted any more, or at a stop, is given back', async () => {
  const clock = new VirtualClock();
  const given: string[] = [];
  let [wanted, held] = [
    ['messages', 'relay', 'trunk'],
    ['messages', 'relay', 'trunk'],
  ];
  const changes: string[] = [];
  const holds = () => ['messages', 'relay', 'trunk'].filter((name) => keeper.holds(name)).join();
  const keeper: LeaseKeeper = new LeaseKeeper({
    leases: { takeAll: async () => held, give: async (name) => void given.push(name) },
    clock,
    log: silentLog,
    wanted: () => wanted,
    onChange: () => changes.push(holds()),
  });
  keeper.start();
  await settle();
  held = ['messages', 'trunk'];
  await clock.advance(NODE_LEASE_RENEW_MS);
  expect(given).toEqual([]);
  [wanted, held] = [['messages', 'relay'], ['messages']];
  await clock.advance(NODE_LEASE_RENEW_MS);
  expect([changes, given]).toEqual([['messages,relay,trunk', 'messages,trunk', 'messages'], ['trunk']]);
  await keeper.stop();
  expect([given, holds(), clock.armed]).toEqual([['trunk', 'messages'], '', 0]);
});

test('a lease that the database refuses to renew is held for as long as its time lasts, and then told as lost', async () => {
  let isAway = false;
  const { clock, keeper, changes } = keepingBy(async (names) => (isAway ? Promise.reject(new StoreUnavailable('away')) : names));
  await settle();
  isAway = true;
  await clock.advance(NODE_LEASE_MS - 1);
  expect([changes, keeper.holds('messages')]).toEqual([[[0, true]], true]);
  await clock.advance(NODE_LEASE_RENEW_MS);
  expect([changes.length, changes[1]?.[1], keeper.holds('messages')]).toEqual([2, false, false]);
  await keeper.stop();
});

test('a lease that is being asked for at a stop is held no more, and given back once it is taken', async () => {
  const clock = new VirtualClock();
  const taken = Promise.withResolvers<readonly string[]>();
  const given: string[] = [];
  const keeper = new LeaseKeeper({
    leases: { takeAll: () => taken.promise, give: async (name) => void given.push(name) },
    clock,
    log: silentLog,
    wanted: () => ['messages'],
    onChange: () => {},
  });
  keeper.start();
  const stopped = keeper.stop();
  taken.resolve(['messages']);
  await settle();
  expect(keeper.holds('messages')).toBe(false);
  await stopped;
  expect([given, clock.armed]).toEqual([['messages'], 0]);
});

test('a node that could not read the beats of the others says so, once a minute', async () => {
  const clock = new VirtualClock();
  const said: unknown[] = [];
  let isAway = false;
  let gaps = 0;
  const members = new Members({
    nodes: {
      nodeId: 'a',
      beat: async () => (isAway ? Promise.reject(new Error('the database is away')) : []),
      bury: async () => false,
    },
    clock,
    log: { ...silentLog, warn: ({ gap_ms }) => void (gap_ms === undefined || said.push(gap_ms)) },
    burialMs: 15_000,
    orphanMs: 120_000,
    load: () => '',
    ping: async () => 'answers',
    takeOver: async () => {},
    onForsaken: async () => {},
    onBack: () => gaps++,
    onOwn: () => {},
  });
  await members.start();
  await clock.advance(NODE_BEAT_MS);
  expect(said).toEqual([]);
  for (const [seconds, counted] of [
    [3, 1],
    [3, 2],
    [60, 3],
  ] as const) {
    isAway = true;
    await clock.advance(seconds * 1_000);
    isAway = false;
    await clock.advance(NODE_BEAT_MS);
    expect(gaps).toBe(counted);
  }
  expect(said).toEqual([4_000, 61_000]);
  members.stop();
});

test('a node is dead once its row is gone, and is not while its row has yet to be read', async () => {
  const clock = new VirtualClock();
  const rows = [nodeRow('a'), nodeRow('b')];
  let slow = Promise.resolve();
  const members = new Members({
    nodes: {
      nodeId: 'a',
      beat: async () => {
        const read = [...rows];
        await slow;
        return read;
      },
      bury: async () => false,
    },
    clock,
    log: silentLog,
    ...{ burialMs: 15_000, orphanMs: 120_000 },
    load: () => '',
    ping: async () => 'answers',
    takeOver: async () => {},
    ...{ async onForsaken() {}, onBack() {}, onOwn() {} },
  });
  const open = () => new Promise<Transport>(() => {});
  const bus = new Bus({ open, masterKey: new Uint8Array(32), nodeId: 'a', cluster: 'c', clock, log: silentLog, onBack() {} });
  const rooms = new RoomMessages({ bus, members: () => members, pipeHost: '' });
  await members.start();
  const areDead = () => ['b', 'c', 'gone'].map((nodeId) => rooms.isDead(nodeId));
  const reading = Promise.withResolvers<void>();
  slow = reading.promise;
  await clock.advance(NODE_BEAT_MS);
  // The reading that is under way began before `c` came.
  rows.push(nodeRow('c'));
  expect(areDead()).toEqual([false, false, false]);
  reading.resolve();
  await settle();
  expect(areDead()).toEqual([false, false, false]);
  await clock.advance(NODE_BEAT_MS);
  expect(areDead()).toEqual([false, false, true]);
  rows.splice(1, 1);
  expect(areDead()).toEqual([false, false, true]);
  await clock.advance(NODE_BEAT_MS);
  expect(areDead()).toEqual([true, false, true]);
  members.stop();
});

describe('a new Session', () => {
  const node = (nodeId: string, load: number, labels: readonly string[] = []) =>
    nodeRow(nodeId, { labels, load: JSON.stringify({ load }) });

  test('stays where it was asked for within 10 % of the better of two nodes, and goes there otherwise', () => {
    const random = () => 0;
    expect(choose('a', [node('a', 0.35), node('b', 0.3)], random)).toBe('a');
    expect(choose('a', [node('a', 0.45), node('b', 0.3)], random)).toBe('b');
    expect(choose('a', [node('b', 0.9), node('c', 0.3)], random)).toBe('c');
    expect(choose('a', [node('b', 0.9)], random)).toBe('b');
    expect(choose('a', [], random)).toBeUndefined();
  });
});

test('the node of a call is read once, again when it is asked for again, and never from another application', async () => {
  const places = new Places('own');
  const looks: string[] = [];
  const find = (appUuid: string, id: string, node: string | null | undefined) =>
    places.of(appUuid, id, async () => {
      looks.push(id);
      return node;
    });
  expect([await find('app', 's1', 'b'), await find('app', 's1', 'c')]).toEqual(['b', 'b']);
  expect(await find('other', 's1', undefined)).toBeUndefined();
  places.forget('app', 's1');
  expect(await find('app', 's1', 'c')).toBe('c');
  expect(looks).toEqual(['s1', 's1', 's1']);
  // Neither a Room without a home nor one of this node is remembered: what comes next may be elsewhere.
  expect([await find('app', 'r1', null), await find('app', 'r1', 'own'), await find('app', 'r1', 'b')]).toEqual([
    null,
    'own',
    'b',
  ]);
});

test('as many places are remembered as there is room for, the ones that were used last', async () => {
  const places = new Places('own');
  for (let n = 0; n <= NODE_PLACES_MAX; n++) {
    await places.of('app', String(n), async () => 'b');
    await places.of('app', '0', async () => 'again');
  }
  expect(await places.of('app', '0', async () => 'again')).toBe('b');
  expect(await places.of('app', '1', async () => 'again')).toBe('again');
});

test('a node that lives and is connected to another NATS is told once, and again when it answers', async () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const say = (_: unknown, message: string) => void said.push(message);
  let reach: Reach = 'answers';
  const watch = new ReachWatch({
    clock,
    log: { ...silentLog, warn: say, info: say },
    ping: async () => reach,
    lead: () => 0,
    settingsApart: async () => [],
    peers: () => [{ nodeId: 'b', host: '10.0.0.2', httpPort: 8080 }],
  });
  const looks = async (answer: Reach, times: number) => {
    reach = answer;
    for (let look = 0; look < times; look++) await clock.advance(NODE_REACH_LOOK_MS);
    return [said.splice(0).length, watch.isUnreached('b'), watch.unreached];
  };
  expect(await looks('answers', 3)).toEqual([0, false, 0]);
  // A node that is busy misses one ping.
  expect(await looks('silent', 1)).toEqual([0, false, 0]);
  expect(await looks('nobody', 5)).toEqual([1, true, 1]);
  expect(await looks('answers', 2)).toEqual([1, false, 0]);
  await looks('nobody', 2);
  // NATS is away from here: that is told by itself, and says nothing of the others.
  expect(await looks('unknown', 1)).toEqual([0, false, 0]);
  watch.stop();
});

test('a node whose clock is set wrong is told once, and again when it is right', async () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const say = (_: unknown, message: string) => void said.push(message);
  let lead: number | undefined;
  let peers = [{ nodeId: 'b', host: '10.0.0.2', httpPort: 8080 }];
  const watch = new ReachWatch({
    clock,
    log: { ...silentLog, warn: say, info: say },
    ping: async () => 'answers',
    lead: () => lead,
    settingsApart: async () => [],
    peers: () => peers,
  });
  const looks = async (ahead: number | undefined) => {
    lead = ahead;
    for (let look = 0; look < 3; look++) await clock.advance(NODE_REACH_LOOK_MS);
    return [said.splice(0).length, watch.clocksApart];
  };
  expect(await looks(undefined)).toEqual([0, 0]);
  expect(await looks(4_000)).toEqual([0, 0]);
  expect(await looks(-6_000)).toEqual([1, 1]);
  expect(await looks(100)).toEqual([1, 0]);
  expect(await looks(3_600_000)).toEqual([1, 1]);
  peers = [];
  expect(await looks(undefined)).toEqual([0, 0]);
  watch.stop();
});

test('a node with other settings is told once, and one that does not tell them is asked three times', async () => {
  const clock = new VirtualClock();
  const said: unknown[] = [];
  const asked: string[] = [];
  const mine = { MASTER: 1, ORPHAN_TIMEOUT_SEC: 120, PUBLIC_URL: undefined, SMS_PROVIDER: { password: 'x' } };
  const key = new Uint8Array(32).fill(1);
  const theirs: Readonly<Record<string, object | undefined>> = {
    alike: marksOf({ ...mine, LATER: 1 }, key),
    other: marksOf({ ...mine, PUBLIC_URL: 'https://voice.example', SMS_PROVIDER: { password: 'y' } }, key),
    older: undefined,
  };
  let peers = Object.keys(theirs).map((nodeId) => ({ nodeId, host: '2001:db8::2', httpPort: 8080 }));
  const watch = new ReachWatch({
    clock,
    log: { ...silentLog, warn: (fields) => void said.push(fields) },
    ping: async () => 'answers',
    lead: () => 0,
    settingsApart: async (nodeId) => {
      asked.push(nodeId);
      const marks = theirs[nodeId];
      return marks === undefined ? undefined : settingsApart(marksOf(mine, key), marks);
    },
    peers: () => peers,
  });
  for (let look = 0; look < 5; look++) await clock.advance(NODE_REACH_LOOK_MS);
  expect(said).toEqual([{ node_id: 'other', node: '[2001:db8::2]:8080', settings: 'PUBLIC_URL, SMS_PROVIDER' }]);
  expect(asked.toSorted()).toEqual(['alike', 'older', 'older', 'older', 'other']);
  expect(['alike', 'other', 'older'].map((each) => watch.settingsApart(each))).toEqual([[], ['PUBLIC_URL', 'SMS_PROVIDER'], []]);
  // Nothing of a value can be read from its mark, nor guessed without the key.
  expect(JSON.stringify(theirs.other)).not.toContain('voice');
  expect(settingsApart(marksOf(mine, key), marksOf(mine, new Uint8Array(32)))).toEqual(Object.keys(mine));
  peers = [];
  await clock.advance(NODE_REACH_LOOK_MS);
  expect(watch.settingsApart('other')).toEqual([]);
  watch.stop();
});

test('a node that has not reached NATS since its start says so, once, and when it does', async () => {
  const clock = new VirtualClock();
  const said: string[] = [];
  const say = (_: unknown, message: string) => void said.push(message);
  const { promise: transport, resolve: connect } = Promise.withResolvers<Transport>();
  const bus = new Bus({
    open: () => transport,
    masterKey: new Uint8Array(32),
    nodeId: 'a',
    cluster: 'c',
    clock,
    log: { ...silentLog, warn: say, info: say },
    onBack() {},
  });
  void bus.start();
  await clock.advance(NATS_FIRST_MS);
  await clock.advance(60_000);
  expect(said).toEqual([expect.stringContaining('NATS_URL')]);
  connect({ subscribe() {}, publish() {}, request: async () => 'nobody', close: async () => {} });
  await settle();
  expect(said.slice(1)).toEqual(['NATS is reached']);
});

test('news that NATS brings back to the node which told them are no messages of other nodes', async () => {
  const clock = new VirtualClock();
  const heard: { readonly subject: string; hear(message: TransportMessage): void }[] = [];
  const transport: Transport = {
    subscribe: (subject, hear) => void heard.push({ subject, hear }),
    publish(subject, text) {
      for (const each of heard) if (each.subject === subject) each.hear({ subject, text, respond() {} });
    },
    request: async () => 'nobody',
    close: async () => {},
  };
  const [a, b] = ['a', 'b'].map(
    (nodeId) =>
      new Bus({
        open: async () => transport,
        masterKey: new Uint8Array(32),
        ...{ nodeId, cluster: 'c', clock, log: silentLog, onBack() {} },
      }),
  );
  const told: unknown[] = [];
  for (const bus of [a, b]) bus?.hear('news', (body) => void told.push(body));
  await Promise.all([a?.start(), b?.start()]);
  a?.tell('news', 1);
  expect([told, a?.load().received, b?.load().received]).toEqual([[1], 0, 1]);
});
