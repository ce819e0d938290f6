import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { Webhook } from 'standardwebhooks';
import { systemClock } from '../../src/clock.ts';
import { newUuid } from '../../src/id.ts';
import { RELAY_APP_MAX_EVENTS, RELAY_COUNTED_BYTES } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { createRelay, type Relay, type RelayOptions } from '../../src/webhook/relay.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { eventOf, script } from './emit.ts';
import { plainOutbound } from './plain-outbound.ts';
import { firstAccepted, startReceiver } from './receiver.ts';

let test_: TestStore;
let relay: Relay;
const RETRY_SCALE = 0.01;

beforeAll(async () => {
  test_ = await openTestStore();
  relay = createRelay(options());
  relay.start();
});

const options = (): RelayOptions => {
  const { outbox, apps, credentials } = test_.store;
  return {
    outbox,
    apps,
    credentials,
    outbound: plainOutbound,
    clock: systemClock(),
    log: silentLog,
    timeoutSec: 0.5,
    retryScale: RETRY_SCALE,
  };
};
afterAll(async () => {
  await relay.stop();
  await test_.close();
});

const makeApp = (webhookUrl: string, blockedWebhookEvents: string[] = []) =>
  test_.store.apps.create({ name: 'receiver test', webhookUrl, blockedWebhookEvents });
const emit = (events: readonly ReturnType<typeof eventOf>[]) =>
  Promise.all(events.map((event) => test_.store.journal.commit({ events: [event] })));

/** The log's entry of an event, once it has the status. */
async function settled(webhookId: string, appUuid: string, status: string) {
  for (let look = 0; look < 400; look += 1) {
    const found = (
      await test_.store.events.list({ appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 1000 })
    ).find((each) => each.webhookId === webhookId);
    if (found?.status === status) return found;
    await new Promise((wake) => setTimeout(wake, 10));
  }
  throw new Error(`never became ${status}`);
}

/** Resolves once `met` is; the test's own limit ends the wait. */
async function until(met: () => Promise<boolean>): Promise<void> {
  while (!(await met())) await new Promise((wake) => setTimeout(wake, 5));
}

describe('a webhook', () => {
  test('is signed as Standard Webhooks says, and by both secrets while one is rotated', async () => {
    const receiver = startReceiver();
    const { appUuid, webhookSecret } = await makeApp(receiver.url);
    await emit([eventOf(appUuid, newUuid(), 1)]);
    await receiver.until((received) => received.length === 1);
    const next = await test_.store.credentials.rotateSecret(appUuid);
    await emit([eventOf(appUuid, newUuid(), 2)]);
    await receiver.until((received) => received.length === 2);
    const [first, second] = receiver.received;
    const verify = (secret: string, each: typeof first) =>
      new Webhook(secret).verify(each?.body ?? '', Object.fromEntries(each?.headers ?? []));
    expect(verify(webhookSecret, first)).toMatchObject({ step: 1 });
    expect(verify(webhookSecret, second)).toMatchObject({ step: 2 });
    expect(verify(next ?? '', second)).toMatchObject({ step: 2 });
    expect(() => verify(next ?? '', first)).toThrow();
    expect(first?.headers.get('webhook-id')).toMatch(/^evt_[0-9a-f-]{36}$/);
    expect(first?.headers.get('content-type')).toBe('application/json');
    receiver.stop();
  });

  test('is signed with the time that the clock of the machine has now, also where that was set since the start', async () => {
    const receiver = startReceiver();
    const { appUuid, webhookSecret } = await makeApp(receiver.url);
    await relay.stop();
    // The machine slept for an hour, or began with a wrong clock: what counts up from the start is an hour behind.
    const { now, wall, at } = systemClock();
    const behind = 3_600_000;
    const clock = { now: () => now() - behind, wall, at: (due: number, run: () => void) => at(due + behind, run) };
    const successor = createRelay({ ...options(), clock });
    successor.start();
    await emit([eventOf(appUuid, newUuid(), 1)]);
    await receiver.until((received) => received.length === 1);
    const [first] = receiver.received;
    // The library refuses what is more than five minutes old.
    const verified = new Webhook(webhookSecret).verify(first?.body ?? '', Object.fromEntries(first?.headers ?? []));
    expect(verified).toMatchObject({ step: 1 });
    await successor.stop();
    receiver.stop();
    relay.start();
  });

  test('continues the trace of the request that caused it, with a span of its own for each attempt', async () => {
    const receiver = startReceiver(({ nth }) => new Response(null, { status: nth === 1 ? 500 : 200 }));
    const { appUuid } = await makeApp(receiver.url);
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await emit([{ ...eventOf(appUuid, newUuid(), 1), traceparent: `00-${trace}-00f067aa0ba902b7-01` }]);
    await receiver.until((received) => received.length === 2);
    const spans = receiver.received.map((each) => each.headers.get('traceparent') ?? '');
    for (const span of spans) expect(span).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
    expect(new Set([...spans, '00f067aa0ba902b7']).size).toBe(3);
    expect(new Set(receiver.received.map((each) => each.body)).size).toBe(1);
    receiver.stop();
  });

  test('of a receiver that fails 30 % of requests arrives in emission order in each Session, none lost', async () => {
    // Ten failures in a row, of one event in 170,000, would last for longer than this test.
    const fails = (nth: number) => nth <= 5 && Math.random() < 0.3;
    const receiver = startReceiver(({ nth }) => new Response(null, { status: fails(nth) ? 503 : 200 }));
    const { appUuid } = await makeApp(receiver.url);
    await emit(script(appUuid, 30, 20));
    await receiver.until(() => receiver.accepted.size === 600, 30_000);
    const inOrder = Array.from({ length: 20 }, (_, step) => step);
    for (const steps of firstAccepted(receiver.received).values()) expect(steps).toEqual(inOrder);
    receiver.stop();
  });

  test('that hangs, or is redirected, holds up neither other Sessions nor other applications', async () => {
    const stuck = newUuid();
    const receiver = startReceiver(async ({ session, nth, signal }) => {
      if (session !== stuck || nth > 2) return new Response(null, { status: 200 });
      if (nth === 1) return new Response(null, { status: 302, headers: { location: '/elsewhere' } });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return new Response(null, { status: 408 });
    });
    const dead = startReceiver(
      ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(new Response()))),
    );
    const { appUuid } = await makeApp(receiver.url);
    const { appUuid: hanging } = await makeApp(dead.url);
    await emit(script(hanging, 200, 1));
    await emit([eventOf(appUuid, stuck, 1), eventOf(appUuid, stuck, 2), ...script(appUuid, 20, 3)]);
    await receiver.until(
      (received) => received.filter((each) => each.session !== stuck && each.status === 200).length === 60,
      3_000,
    );
    await receiver.until((received) => firstAccepted(received).get(stuck)?.length === 2);
    expect(firstAccepted(receiver.received).get(stuck)).toEqual([1, 2]);
    expect(receiver.received.filter((each) => each.session === stuck).map((each) => each.status)).toContain(302);
    await test_.store.apps.patch(hanging, { webhookUrl: '' });
    dead.stop();
    receiver.stop();
  });

  test('waits as long as Retry-After asks', async () => {
    const receiver = startReceiver(({ nth }) =>
      nth === 1 ? new Response(null, { status: 429, headers: { 'retry-after': '1' } }) : new Response(null, { status: 200 }),
    );
    const { appUuid } = await makeApp(receiver.url);
    const started = performance.now();
    await emit([eventOf(appUuid, newUuid(), 1)]);
    await receiver.until((received) => received.length === 2);
    expect(performance.now() - started).toBeGreaterThanOrEqual(990);
    receiver.stop();
  });

  test('to an endpoint that is replaced before it answers 410 goes to the new one, which stays on', async () => {
    const asked = Promise.withResolvers<void>();
    const replaced = Promise.withResolvers<void>();
    const old = startReceiver(async () => {
      asked.resolve();
      await replaced.promise;
      return new Response(null, { status: 410 });
    });
    const next = startReceiver();
    const { appUuid } = await makeApp(old.url);
    await emit([eventOf(appUuid, newUuid(), 1)]);
    await asked.promise;
    await test_.store.apps.patch(appUuid, { webhookUrl: next.url });
    replaced.resolve();
    await next.until((received) => received.length === 1);
    expect((await test_.store.apps.get(appUuid))?.webhookDisabled).toBe(false);
    old.stop();
    next.stop();
  });

  test('that is answered 410 after the application was patched because of another 410 leaves the endpoint on', async () => {
    const asked = Promise.withResolvers<void>();
    const patched = Promise.withResolvers<void>();
    const receiver = startReceiver(async ({ step, nth }) => {
      if (nth > 1) return new Response(null, { status: 200 });
      if (step === 2) {
        asked.resolve();
        await patched.promise;
      } else await asked.promise;
      return new Response(null, { status: 410 });
    });
    const { appUuid } = await makeApp(receiver.url);
    const isDisabled = async () => (await test_.store.apps.get(appUuid))?.webhookDisabled;
    const events = [1, 2].map((step) => eventOf(appUuid, newUuid(), step));
    await emit(events);
    await until(async () => (await isDisabled()) === true);
    await test_.store.apps.patch(appUuid, { webhookUrl: receiver.url });
    patched.resolve();
    for (const each of events) await settled(each.webhookId, appUuid, 'delivered');
    expect(await isDisabled()).toBe(false);
    receiver.stop();
  });

  test('to an endpoint that answers 410 makes its lanes wait until the application is patched, and loses nothing', async () => {
    const receiver = startReceiver(({ step, nth }) => new Response(null, { status: step === 1 && nth === 1 ? 410 : 200 }));
    const { appUuid } = await makeApp(receiver.url);
    const [session, other] = [newUuid(), newUuid()];
    await emit([eventOf(appUuid, session, 1)]);
    await receiver.until((received) => received.length === 1);
    await until(async () => (await test_.store.apps.get(appUuid))?.webhookDisabled === true);
    const events = [eventOf(appUuid, session, 2), eventOf(appUuid, session, 3), eventOf(appUuid, other, 4)];
    await emit(events);
    // The scaled retries of the refused event pass; nothing may be sent meanwhile.
    await new Promise((wake) => setTimeout(wake, 300));
    expect(receiver.received.map((each) => each.step)).toEqual([1]);
    for (const each of events) await settled(each.webhookId, appUuid, 'pending');
    await test_.store.apps.patch(appUuid, { webhookUrl: receiver.url });
    await receiver.until((received) => received.length === 5, 5_000);
    const sent = (of: string) => receiver.received.filter((each) => each.session === of).map((each) => each.step);
    expect(sent(session)).toEqual([1, 1, 2, 3]);
    expect(sent(other)).toEqual([4]);
    receiver.stop();
  });

  test('is one of many that are answered 410, of which the first alone changes the application', async () => {
    const { appUuid } = await makeApp('http://127.0.0.1:1/');
    const changed: string[] = [];
    test_.store.apps.onChange((each) => void changed.push(each));
    const { webhookSince = 0 } = (await test_.store.apps.settings(appUuid)) ?? {};
    const disable = (url: string) => test_.store.apps.disableWebhook(appUuid, url, webhookSince);
    expect(await disable('http://127.0.0.1:2/')).toBe(false);
    expect([await disable('http://127.0.0.1:1/'), await disable('http://127.0.0.1:1/')]).toEqual([true, false]);
    expect(changed).toEqual([appUuid]);
  });

  test('of an application whose endpoint stays disabled is set aside when its retries would be over', async () => {
    const hasty = createRelay({ ...options(), retryScale: 1e-6 });
    await relay.stop();
    const receiver = startReceiver(() => new Response(null, { status: 410 }));
    const { appUuid } = await makeApp(receiver.url);
    hasty.start();
    const events = [1, 2].map((step) => eventOf(appUuid, newUuid(), step));
    await emit(events);
    for (const each of events) await settled(each.webhookId, appUuid, 'dead');
    await hasty.stop();
    receiver.stop();
    relay.start();
  });

  test('waits no longer for a disabled endpoint because the relay is another one by now', async () => {
    const receiver = startReceiver();
    const { appUuid } = await makeApp(receiver.url);
    const { webhookSince = 0 } = (await test_.store.apps.settings(appUuid)) ?? {};
    await test_.store.apps.disableWebhook(appUuid, receiver.url, webhookSince);
    const event = eventOf(appUuid, newUuid(), 1);
    await emit([event]);
    await relay.stop();
    const wall = systemClock();
    const ahead = 27 * 3_600_000;
    const clock = { ...wall, now: () => wall.now() + ahead, at: (due: number, run: () => void) => wall.at(due - ahead, run) };
    const successor = createRelay({ ...options(), clock, retryScale: 1 });
    successor.start();
    await settled(event.webhookId, appUuid, 'dead');
    expect(receiver.received).toEqual([]);
    await successor.stop();
    receiver.stop();
    relay.start();
  });

  test('that is blocked is logged, never sent, and leaves no hole in the order', async () => {
    const receiver = startReceiver();
    const { appUuid } = await makeApp(receiver.url, ['playback.*', 'session.held']);
    const session = newUuid();
    const names = ['session.created', 'session.held', 'playback.started', 'session.ended'];
    const events = names.map((name, step) => eventOf(appUuid, session, step, name));
    await emit(events);
    await receiver.until((received) => received.length === 2);
    expect(receiver.received.map((each) => each.event)).toEqual(['session.created', 'session.ended']);
    await settled(events[1]?.webhookId ?? '', appUuid, 'blocked');
    await settled(events[2]?.webhookId ?? '', appUuid, 'blocked');
    receiver.stop();
  });

  test('of an application without a URL is logged as undeliverable', async () => {
    const { appUuid } = await makeApp('');
    const event = eventOf(appUuid, newUuid(), 1);
    await emit([event]);
    expect((await settled(event.webhookId, appUuid, 'undeliverable')).attempts).toEqual([]);
  });

  test('that belongs to two lanes is sent when it is the head of both', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const receiver = startReceiver(async ({ step }) => {
      if (step === 1) await Promise.race([held, new Promise((wake) => setTimeout(wake, 400))]);
      return new Response(null, { status: 200 });
    });
    const { appUuid } = await makeApp(receiver.url);
    const [a, b] = [newUuid(), newUuid()];
    const both = { ...eventOf(appUuid, b, 2), lanes: [`session:${b}`, 'room:r'] };
    await emit([
      { ...eventOf(appUuid, a, 1), lanes: [`session:${a}`, 'room:r'] },
      both,
      eventOf(appUuid, b, 3),
      eventOf(appUuid, newUuid(), 4),
    ]);
    await receiver.until((received) => received.some((each) => each.step === 4));
    expect(receiver.received.map((each) => each.step)).toEqual([4]);
    release();
    await receiver.until((received) => received.length === 4);
    expect(receiver.received.map((each) => each.step)).toEqual([4, 1, 2, 3]);
    receiver.stop();
  });

  test('waits in the database when an application has more of them than memory keeps, and all arrive in order', async () => {
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slow = startReceiver(async ({ signal }) => {
      await Promise.race([opened, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
      return new Response(null, { status: signal.aborted ? 408 : 200 });
    });
    const quick = startReceiver();
    const { appUuid: behind } = await makeApp(slow.url);
    const { appUuid: ahead } = await makeApp(quick.url);
    const SESSIONS = 400;
    const STEPS = 30;
    const events = script(behind, SESSIONS, STEPS);
    for (let at = 0; at < events.length; at += 3000) await emit(events.slice(at, at + 3000));
    await emit(script(ahead, 5, 5));
    await quick.until((received) => received.length === 25, 5_000);
    expect(relay.load().queued).toBeLessThanOrEqual(RELAY_APP_MAX_EVENTS + 25);
    expect(relay.load().queued).toBeGreaterThan(RELAY_APP_MAX_EVENTS / 2);
    open();
    await slow.until(() => slow.accepted.size === SESSIONS * STEPS, 30_000);
    const inOrder = Array.from({ length: STEPS }, (_, step) => step);
    for (const steps of firstAccepted(slow.received).values()) expect(steps).toEqual(inOrder);
    slow.stop();
    quick.stop();
  }, 60_000);

  test('waits in the database when its events are so large that few of them fill memory, and all arrive in order', async () => {
    let isOpen = false;
    const receiver = startReceiver(async () => new Response(null, { status: isOpen ? 200 : 503 }));
    const { appUuid } = await makeApp(receiver.url);
    const before = relay.load().queued;
    const pad = 'x'.repeat(RELAY_COUNTED_BYTES * 40);
    const events = script(appUuid, 5, 60).map((event) => ({
      ...event,
      body: JSON.stringify({ ...JSON.parse(event.body), pad }),
    }));
    // A flush of all of them would be too large for a busy machine to take in time.
    for (let at = 0; at < events.length; at += 10) await emit(events.slice(at, at + 10));
    await receiver.until((received) => received.length >= 5);
    expect(relay.load().queued - before).toBeLessThanOrEqual(RELAY_APP_MAX_EVENTS / 40);
    isOpen = true;
    await receiver.until(() => receiver.accepted.size === events.length, 30_000);
    const inOrder = Array.from({ length: 60 }, (_, step) => step);
    for (const steps of firstAccepted(receiver.received).values()) expect(steps).toEqual(inOrder);
    receiver.stop();
  }, 60_000);
});
