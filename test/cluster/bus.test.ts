/** Messages between nodes whose carrier is calls, so that it loses, delays and repeats what the test says. */
import { expect, test } from 'bun:test';
import { Bus } from '../../src/cluster/bus/bus.ts';
import { Envelopes } from '../../src/cluster/bus/envelope.ts';
import type { Transport, TransportMessage } from '../../src/cluster/bus/transport.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { NODE_MESSAGE_AGE_MAX_MS, NODE_NONCES_MAX, NODE_OFFSET_KEPT_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const TIMEOUT_MS = 400;

/** A carrier, and nodes that are connected to it, each with its own clock. */
function carrier() {
  const clock = new VirtualClock();
  const heard = new Map<string, Set<(message: TransportMessage) => void>>();
  /** What was sent; and the nodes whose answers, or whose requests, are lost. */
  const [sent, mute, deaf, closed]: [[string, string][], Set<string>, Set<string>, string[]] = [[], new Set(), new Set(), []];
  const deliver = (subject: string, text: string, respond: (text: string) => void): boolean => {
    sent.push([subject, text]);
    const found = [...heard].filter(([name]) => (name.endsWith('>') ? subject.startsWith(name.slice(0, -1)) : name === subject));
    for (const [, all] of found) for (const each of all) each({ subject, text, respond });
    return found.length > 0;
  };
  const transport = (nodeId: string): Transport => ({
    subscribe: (subject, each) => void heard.set(subject, (heard.get(subject) ?? new Set()).add(each)),
    publish: (subject, text) => void deliver(subject, text, () => {}),
    request: (subject, text, timeoutMs) =>
      new Promise((resolve) => {
        const [, , , to = ''] = subject.split('.');
        clock.at(clock.now() + timeoutMs, () => resolve('unknown'));
        const respond = (answer: string) => void (mute.has(to) || resolve({ text: answer }));
        if (deaf.has(to)) sent.push([subject, text]);
        else if (!deliver(subject, text, respond)) resolve('nobody');
      }),
    close: async () => void closed.push(nodeId),
  });
  const node = async (nodeId: string, aheadMs = 0) => {
    const said: string[] = [];
    let back = 0;
    let change: (isUp: boolean) => void = () => {};
    const bus = new Bus({
      open: async (_, onChange) => {
        change = onChange;
        return transport(nodeId);
      },
      masterKey: new Uint8Array(32),
      nodeId,
      cluster: 'c',
      clock: { now: () => clock.now() + aheadMs, wall: () => clock.now(), at: (time, fire) => clock.at(time - aheadMs, fire) },
      log: {
        ...silentLog,
        warn: (_, text) => void said.push(`warn ${text}`),
        error: (_, text) => void said.push(`error ${text}`),
      },
      onBack: () => back++,
    });
    await bus.start();
    return { bus, said, back: () => back, change: (isUp: boolean) => change(isUp) };
  };
  return { clock, sent, mute, deaf, closed, node, deliver };
}

test('A request is answered by the node that it is for, which is told the deadline in its own clock.', async () => {
  const { clock, node, sent } = carrier();
  const [a, b] = [await node('a'), await node('b', 7_000)];
  const took: unknown[] = [];
  b.bus.answer('cmd', (body, from) => {
    took.push(body, from);
    return { done: true };
  });
  expect(await a.bus.ask('b', 'cmd', { call: 1 }, TIMEOUT_MS, 300)).toEqual({ outcome: 'answered', body: { done: true } });
  expect(took).toEqual([{ call: 1, until: clock.now() + 7_000 + 300 }, 'a']);
  expect(sent.map(([subject]) => subject)).toEqual(['sidetone.c.node.b.ping', 'sidetone.c.node.b.cmd']);
  expect(a.bus.lead('b')).toBe(7_000);
  expect([a.bus.load(), b.bus.load()]).toEqual([
    { sent: 2, received: 0, dropped: 0, unknown: 0 },
    { sent: 0, received: 2, dropped: 0, unknown: 0 },
  ]);
  await a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
  expect(sent).toHaveLength(3);
  // What is known of a clock grows old.
  await clock.advance(NODE_OFFSET_KEPT_MS);
  await a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
  expect(sent).toHaveLength(5);
});

test('A request that nobody gets is not delivered, and one that is not answered may have been taken.', async () => {
  const { clock, node, mute, deaf } = carrier();
  const [a, b] = [await node('a'), await node('b')];
  b.bus.answer('cmd', () => ({}));
  expect(await a.bus.ask('c', 'cmd', {}, TIMEOUT_MS, 300)).toEqual({ outcome: 'not_delivered' });
  expect(await a.bus.ping('c')).toBe('nobody');
  expect(await a.bus.ping('b')).toBe('answers');
  mute.add('b');
  const lost = a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
  await clock.advance(TIMEOUT_MS);
  expect(await lost).toEqual({ outcome: 'unknown' });
  expect(a.bus.load().unknown).toBe(1);
  // Its clock may have been set meanwhile: it is pinged first, and does not answer.
  deaf.add('b');
  const again = a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
  const ping = a.bus.ping('b');
  await clock.advance(1_000);
  expect([await again, await ping]).toEqual([{ outcome: 'not_delivered' }, 'silent']);
  expect(a.bus.load().unknown).toBe(1);
});

/** A message with another first character. */
const tampered = (text: string): string => `${text.startsWith('x') ? 'y' : 'x'}${text.slice(1)}`;

test('A request that comes twice, too late, or from who has another key does nothing.', async () => {
  const { clock, node, sent, deaf, deliver } = carrier();
  const [a, b] = [await node('a'), await node('b')];
  let done = 0;
  b.bus.answer('cmd', () => ++done);
  await a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
  const [subject, text] = sent.at(-1) ?? ['', ''];
  const answers: string[] = [];
  deliver(subject, text, (answer) => void answers.push(answer));
  await settle();
  expect([done, b.bus.load().dropped, answers]).toEqual([1, 1, []]);
  // Another key has made it.
  deliver(subject, tampered(text), (answer) => void answers.push(answer));
  await settle();
  expect([done, b.bus.load().dropped, answers]).toEqual([1, 2, []]);
  // It was under way for too long.
  deaf.add('b');
  const lost = a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
  await settle();
  const [, late] = sent.at(-1) ?? ['', ''];
  await clock.advance(NODE_MESSAGE_AGE_MAX_MS + 1);
  deliver(subject, late, (answer) => void answers.push(answer));
  await settle();
  expect([await lost, done, b.bus.load().dropped, answers]).toEqual([{ outcome: 'unknown' }, 1, 3, []]);
});

test('A message that came before is known for as long as so many others have not come, whose oldest is forgotten first.', () => {
  const envelopes = new Envelopes(new Uint8Array(32), 'a');
  const isFresh = (nonce: number) =>
    envelopes.isFresh({ subject: 's', from: 'a', nonce: `${nonce}`, time: 0, answers: '', body: {} }, NODE_MESSAGE_AGE_MAX_MS);
  for (let nonce = 0; nonce < NODE_NONCES_MAX; nonce++) isFresh(nonce);
  expect([isFresh(0), isFresh(NODE_NONCES_MAX - 1)]).toEqual([false, false]);
  expect([isFresh(NODE_NONCES_MAX), isFresh(1), isFresh(NODE_NONCES_MAX)]).toEqual([true, false, false]);
  expect([isFresh(0), isFresh(1), isFresh(2)]).toEqual([true, true, true]);
  expect(isFresh(4)).toBe(false);
});

test('News reach all other nodes, those that listen since the start and later ones, once each.', async () => {
  const { node, sent, deliver } = carrier();
  const [a, b, c] = [await node('a'), await node('b'), await node('c')];
  const told: unknown[] = [];
  for (const { bus } of [a, b, c]) bus.hear('room', (body) => told.push(body));
  a.bus.tell('room', { home: 'a' });
  expect(told).toEqual([{ home: 'a' }, { home: 'a' }]);
  const [subject, text] = sent.at(-1) ?? ['', ''];
  expect(subject).toBe('sidetone.c.changed.room');
  deliver(subject, text, () => {});
  deliver(subject, tampered(text), () => {});
  expect(told).toHaveLength(2);
  expect([a, b, c].map(({ bus }) => bus.load().dropped)).toEqual([1, 2, 2]);
});

test('While NATS is away nothing is sent and nobody is asked, which is said once; its return is told.', async () => {
  const { node, sent, closed } = carrier();
  const [a, b] = [await node('a'), await node('b')];
  b.bus.answer('cmd', () => ({}));
  expect([a.bus.connected, a.back(), a.said]).toEqual([true, 0, []]);
  for (const isUp of [true, false, false]) a.change(isUp);
  expect([a.bus.connected, a.back(), a.said.length]).toEqual([false, 0, 1]);
  a.bus.tell('room', {});
  expect(await a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300)).toEqual({ outcome: 'not_delivered' });
  expect([await a.bus.ping('b'), sent]).toEqual(['unknown', []]);
  a.change(true);
  expect([a.bus.connected, a.back(), a.said.length]).toEqual([true, 1, 1]);
  expect(await a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300)).toEqual({ outcome: 'answered', body: {} });
  await a.bus.close();
  expect(a.bus.connected).toBe(false);
  a.change(true);
  expect([a.bus.connected, closed]).toEqual([false, ['a']]);
});

test('A node that ends before it has reached NATS leaves no connection, and hears nothing.', async () => {
  const { promise, resolve } = Promise.withResolvers<Transport>();
  const [done, subscribed]: [string[], string[]] = [[], []];
  const clock = new VirtualClock();
  const log = { ...silentLog, warn: () => void done.push('warned') };
  const bus = new Bus({
    ...{ open: () => promise, masterKey: new Uint8Array(32), nodeId: 'a', cluster: 'c' },
    clock,
    log,
    onBack() {},
  });
  const started = bus.start();
  await bus.close();
  await clock.advance(60_000);
  const subscribe = (subject: string) => void subscribed.push(subject);
  resolve({ subscribe, publish() {}, request: async () => 'nobody', close: async () => void done.push('closed') });
  await started;
  expect([bus.connected, done, subscribed]).toEqual([false, ['closed'], []]);
});

test('An answer that fails is none; that the database is away is no bug.', async () => {
  const { clock, node } = carrier();
  const [a, b] = [await node('a'), await node('b')];
  await a.bus.ping('b');
  for (const error of [new StoreUnavailable('away'), new Error('a bug')]) {
    b.bus.answer('cmd', () => Promise.reject(error));
    const asked = a.bus.ask('b', 'cmd', {}, TIMEOUT_MS, 300);
    await settle();
    await clock.advance(TIMEOUT_MS);
    expect(await asked).toEqual({ outcome: 'unknown' });
  }
  expect(b.said).toEqual([expect.stringContaining('warn another node'), expect.stringContaining('error a bug')]);
});

test('Subjects that NATS denies are told once, with what its user needs.', async () => {
  const told: unknown[] = [];
  const transport: Transport = { subscribe() {}, publish() {}, request: async () => 'nobody', close: async () => {} };
  const bus = new Bus({
    async open(_name, _onChange, onDenied) {
      for (const subject of ['sidetone.c.node.a.>', 'sidetone.c.changed.room']) onDenied?.(subject);
      return transport;
    },
    ...{ masterKey: new Uint8Array(32), nodeId: 'a', cluster: 'c' },
    clock: new VirtualClock(),
    log: { ...silentLog, error: (fields, text) => void told.push(fields, text) },
    onBack() {},
  });
  await bus.start();
  expect(told).toEqual([
    { subject: 'sidetone.c.node.a.>' },
    expect.stringMatching(/publish and subscribe to sidetone\.> and _INBOX/),
  ]);
  await bus.close();
});
