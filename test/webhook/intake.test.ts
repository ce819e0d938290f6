/** Events that come into the lanes by being read, by being taken from a flush, or by both at once. */
import { expect, test } from 'bun:test';
import type { Cursor, OutboxEvent, OutboxStore } from '../../src/database/event/outbox.ts';
import {
  RELAY_APP_FULL_EVENTS,
  RELAY_APP_LEAST_EVENTS,
  RELAY_APP_MAX_EVENTS,
  RELAY_HELD_BACK_MS,
  RELAY_MEMORY_MAX_EVENTS,
  RELAY_OUTAGE_PAUSE_MS,
  RELAY_POLL_MS,
} from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { Intake } from '../../src/webhook/intake.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const event = (xid: number, eventId: number, appUuid = 'app_1'): OutboxEvent => ({
  ...{ xid: String(xid), eventId, webhookId: `evt_${eventId}`, appUuid, name: 'session.held', lanes: ['session:1'] },
  ...{ body: '{}', traceparent: '', at: 0, attempts: [] },
});

type Page = Awaited<ReturnType<OutboxStore['read']>>;
type Part = Awaited<ReturnType<OutboxStore['readApp']>>;

/** An intake whose readings end when the test says so. */
function begun(stock = { weight: 0, weightOf: (_appUuid: string) => 0 }, backlog: readonly string[] = []) {
  const clock = new VirtualClock();
  const added: number[] = [];
  const readings: { readonly answer: (page: Page) => void; readonly fail: (error: Error) => void }[] = [];
  const ofApps: {
    readonly after: Cursor;
    readonly until: Cursor;
    readonly limit: number;
    readonly answer: (part: Part) => void;
  }[] = [];
  let told = 0;
  const outbox: OutboxStore = {
    lease: async () => true,
    release: async () => {},
    horizon: async () => ({ xid: '10', eventId: 0 }),
    backlog: async () => backlog,
    read: () => new Promise((answer, fail) => readings.push({ answer, fail })),
    readApp: (_app, after, until, limit) => new Promise((answer) => ofApps.push({ after, until, limit, answer })),
    nextTransaction: async () => '10',
    isEmpty: async () => false,
    settle: async () => true,
    onEvents: () => {},
    follow: () => {},
  };
  const add = ({ eventId }: OutboxEvent) => void added.push(eventId);
  const onRead = () => {
    told += 1;
  };
  const intake = new Intake({ outbox, stock, clock, log: silentLog, add, onRead, onWentBack() {}, pollMs: RELAY_POLL_MS });
  return { intake, running: intake.run(), clock, added, readings, ofApps, told: () => told };
}

const page = (...events: readonly OutboxEvent[]): Page => ({ events, more: false, heldBack: false, wentBack: false });

test('What a flush hands over is not read, and the next reading begins behind it', async () => {
  const { intake, clock, added, readings } = begun();
  await settle();
  readings[0]?.answer(page());
  await settle();
  expect(intake.readTo).toEqual({ xid: '10', eventId: 0 });
  expect(intake.take([event(12, 3), event(12, 4)])).toBe(true);
  expect(intake.readTo).toMatchObject({ xid: '12', eventId: 4 });
  await settle();
  expect({ added, readings: readings.length }).toEqual({ added: [3, 4], readings: 1 });
  await clock.advance(RELAY_POLL_MS);
  expect(readings.length).toBe(2);
});

test('What was taken while a page was read comes once, and what the page has behind it comes after it', async () => {
  const { intake, added, readings } = begun();
  await settle();
  expect(intake.take([event(12, 3)])).toBe(true);
  readings[0]?.answer(page(event(12, 3), event(13, 5), event(13, 6)));
  await settle();
  expect(added).toEqual([3, 5, 6]);
});

test('What a page had already is not taken again', async () => {
  const { intake, added, readings } = begun();
  await settle();
  readings[0]?.answer(page(event(12, 3), event(13, 5)));
  await settle();
  expect(intake.take([event(12, 3), event(12, 4)])).toBe(true);
  expect(intake.take([event(13, 5), event(13, 6)])).toBe(true);
  expect(added).toEqual([3, 5, 6]);
});

test('Transactions are compared as numbers', async () => {
  const { intake, added, readings } = begun();
  await settle();
  readings[0]?.answer(page(event(99, 3)));
  await settle();
  expect(intake.take([event(100, 4)])).toBe(true);
  expect(added).toEqual([3, 4]);
});

test('Nothing is taken before the first position is known, and after the end', async () => {
  const { intake, running, added, readings } = begun();
  expect([intake.readTo, intake.take([event(12, 3)])]).toEqual([undefined, false]);
  await settle();
  readings[0]?.answer(page());
  await settle();
  intake.stop();
  await running;
  expect([intake.readTo, intake.take([event(12, 3)])]).toEqual([undefined, false]);
  expect(added).toEqual([]);
});

test('While an application catches up nothing is taken, and it misses nothing', async () => {
  const { intake, added, readings, ofApps } = begun({ weight: 0, weightOf: () => 0 }, ['app_1']);
  await settle();
  readings[0]?.answer(page());
  await settle();
  expect(ofApps.length).toBe(1);
  expect(intake.take([event(12, 3)])).toBe(false);
  ofApps[0]?.answer({ events: [event(9, 1), event(9, 2)], more: false });
  await settle();
  readings[1]?.answer(page(event(12, 3)));
  await settle();
  expect(added).toEqual([1, 2, 3]);
});

test('An application that has more than memory keeps falls behind by what is handed over, too', async () => {
  const held = { app_1: RELAY_APP_MAX_EVENTS, app_2: 0 };
  const stock = { weight: 0, weightOf: (appUuid: string) => (appUuid === 'app_1' ? held.app_1 : held.app_2) };
  const { intake, added, readings, ofApps } = begun(stock);
  await settle();
  readings[0]?.answer(page());
  await settle();
  expect(intake.take([event(12, 3, 'app_1'), event(12, 4, 'app_2')])).toBe(true);
  expect(added).toEqual([4]);
  held.app_1 = 0;
  intake.made('app_1');
  await settle();
  readings[1]?.answer(page());
  await settle();
  ofApps[0]?.answer({ events: [event(12, 3, 'app_1')], more: false });
  await settle();
  expect(added).toEqual([4, 3]);
});

test('Where memory is full of the events of others, an application with one that waits is read on, little by little', async () => {
  const stock = { weight: RELAY_MEMORY_MAX_EVENTS, weightOf: () => 1 };
  const { added, readings, ofApps } = begun(stock, ['app_1']);
  await settle();
  readings[0]?.answer(page());
  await settle();
  expect(ofApps.map(({ limit }) => limit)).toEqual([RELAY_APP_LEAST_EVENTS / 2]);
  ofApps[0]?.answer({ events: [event(9, 1), event(9, 2)], more: true });
  await settle();
  readings[1]?.answer(page());
  await settle();
  expect({ added, reads: ofApps.length }).toEqual({ added: [1, 2], reads: 2 });
});

test('However much others have in memory, an application whose receiver answers is read and handed over', async () => {
  const held = new Map<string, number>();
  const stock = { weight: RELAY_MEMORY_MAX_EVENTS * 2, weightOf: (appUuid: string) => held.get(appUuid) ?? 0 };
  const { intake, added, readings, ofApps } = begun(stock);
  await settle();
  held.set('away', RELAY_APP_FULL_EVENTS);
  readings[0]?.answer(page(event(11, 1, 'away'), event(11, 2, 'quiet')));
  await settle();
  // What is behind has no room, and is not asked for.
  expect([added, ofApps.length]).toEqual([[2], 0]);
  held.set('away', RELAY_APP_FULL_EVENTS / 2);
  intake.made('away');
  await settle();
  readings[1]?.answer(page());
  await settle();
  expect(ofApps.map(({ limit }) => limit)).toEqual([RELAY_APP_FULL_EVENTS / 2]);
  ofApps[0]?.answer({ events: [event(11, 1, 'away')], more: false });
  await settle();
  readings[2]?.answer(page());
  await settle();
  expect(intake.take([event(12, 3, 'quiet')])).toBe(true);
  expect(added).toEqual([2, 1, 3]);
});

test('Whoever sends is told at once of what was read and of what was handed over', async () => {
  const { intake, readings, told } = begun();
  await settle();
  readings[0]?.answer(page(event(12, 3)));
  await settle();
  expect(told()).toBe(1);
  intake.take([event(12, 4)]);
  expect(told()).toBe(2);
});

test('An application falls behind just before its first event that finds no room, and reads on behind each part', async () => {
  const held = { app: RELAY_APP_MAX_EVENTS };
  const { intake, readings, ofApps } = begun({ weight: 0, weightOf: () => held.app });
  await settle();
  readings[0]?.answer(page(event(12, 7), event(12, 8)));
  await settle();
  expect(ofApps.length).toBe(0);
  held.app = 0;
  intake.made('app_1');
  await settle();
  readings[1]?.answer(page());
  await settle();
  // Neither the event before it, which may be in the lanes, nor any behind it.
  expect(ofApps.map(({ after }) => [after.xid, after.eventId])).toEqual([['12', 6]]);
  expect(ofApps[0]?.until).toMatchObject({ xid: '12', eventId: 8 });
  ofApps[0]?.answer({ events: [event(12, 7), event(12, 8)], more: true });
  await settle();
  readings[2]?.answer(page());
  await settle();
  expect(ofApps.map(({ after }) => [after.xid, after.eventId])).toEqual([
    ['12', 6],
    ['12', 8],
  ]);
});

test('An application that is behind and still has its part in memory is not read on', async () => {
  const { clock, readings, ofApps } = begun({ weight: 0, weightOf: () => RELAY_APP_MAX_EVENTS / 2 + 1 }, ['app_1']);
  await settle();
  readings[0]?.answer(page());
  await clock.advance(RELAY_POLL_MS);
  readings[1]?.answer(page());
  await settle();
  expect(ofApps.length).toBe(0);
});

test('What comes from the database after the end is not added', async () => {
  const reading = begun();
  await settle();
  reading.intake.stop();
  reading.readings[0]?.answer(page(event(12, 3)));
  await reading.running;
  const behind = begun(undefined, ['app_1']);
  await settle();
  behind.readings[0]?.answer(page());
  await settle();
  behind.intake.stop();
  behind.ofApps[0]?.answer({ events: [event(9, 1)], more: true });
  await behind.running;
  expect([reading.added, behind.added]).toEqual([[], []]);
});

test('What wakes the intake while it reads makes it read again at once', async () => {
  const { intake, readings } = begun();
  await settle();
  intake.wake();
  readings[0]?.answer(page());
  await settle();
  expect(readings.length).toBe(2);
});

test('What woke the intake once makes it read once', async () => {
  const { clock, intake, readings } = begun();
  await settle();
  intake.wake();
  readings[0]?.answer(page());
  await settle();
  readings[1]?.answer(page());
  await settle();
  expect(readings.length).toBe(2);
  await clock.advance(RELAY_POLL_MS - 1);
  expect(readings.length).toBe(2);
  await clock.advance(1);
  expect(readings.length).toBe(3);
});

test('A database that is away is asked again after a pause', async () => {
  const { clock, readings } = begun();
  await settle();
  readings[0]?.fail(new Error('away'));
  await settle();
  await clock.advance(RELAY_OUTAGE_PAUSE_MS - 1);
  expect(readings.length).toBe(1);
  await clock.advance(1);
  expect(readings.length).toBe(2);
});

test('Where a transaction that runs holds events back, they are asked for again in a moment', async () => {
  const { clock, readings } = begun();
  await settle();
  readings[0]?.answer({ ...page(), heldBack: true });
  await settle();
  await clock.advance(RELAY_HELD_BACK_MS);
  expect(readings.length).toBe(2);
});

test('Behind a page that ends at its limit the next one is read at once', async () => {
  const { readings } = begun();
  await settle();
  readings[0]?.answer({ ...page(event(12, 3)), more: true });
  await settle();
  expect(readings.length).toBe(2);
});

test('What an application has in the database is read on when half of what it may have in memory is done', async () => {
  const held = { app_1: RELAY_APP_MAX_EVENTS };
  const { intake, readings, ofApps } = begun({ weight: 0, weightOf: () => held.app_1 }, ['app_1']);
  await settle();
  readings[0]?.answer(page());
  await settle();
  held.app_1 = RELAY_APP_MAX_EVENTS / 2 + 1;
  intake.made('app_1');
  intake.made('app_2');
  await settle();
  expect(readings.length).toBe(1);
  held.app_1 = RELAY_APP_MAX_EVENTS / 2;
  intake.made('app_1');
  await settle();
  readings[1]?.answer(page());
  await settle();
  expect(ofApps.length).toBe(1);
});
