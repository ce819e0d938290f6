/** Events that are replayed, beside what else is done with them. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import type { OutboxEvent } from '../../src/database/event/outbox.ts';
import { newUuid } from '../../src/id.ts';
import { eventOf } from '../webhook/emit.ts';
import { untilWaiting } from './locks.ts';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';
import { ended, sessionRow } from './rows.ts';

const wall = systemClock();
let skew = 0;
let first: TestStore;
let sql: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore({ ...wall, now: () => wall.now() + skew });
  sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 4 });
});
afterAll(async () => {
  await sql.end();
  await first.close();
});

const attempt = { at: 1, status: 500, error: 'http_status', duration_ms: 3, retry_at: null };

/** Events of a call that has ended, each set aside. */
async function setAside(count: number) {
  const { journal, outbox } = first.store;
  const session = ended(sessionRow());
  const events = Array.from({ length: count }, (_, step) => eventOf(session.appUuid, session.sessionUuid, step));
  await journal.commit({ session, events });
  await outbox.lease('test', 60_000);
  await outbox.settle(
    'test',
    (await waiting(session.appUuid)).map(({ xid, eventId }) => ({ xid, eventId, status: 'dead' as const, attempt })),
  );
  const [one] = events;
  if (one === undefined) throw new Error('no event');
  return { session, events, one };
}

/** What the outbox has of an application. */
async function waiting(appUuid: string): Promise<readonly OutboxEvent[]> {
  return (await first.store.outbox.read({ xid: '0', eventId: 0 }, 1000)).events.filter((each) => each.appUuid === appUuid);
}

const statuses = async (appUuid: string) =>
  (await first.store.events.list({ appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 100 })).map(
    ({ status }) => status,
  );

/** A transaction that has replayed an event, or only locked its row, and is committed by `release`. */
async function held(webhookId: string, isReplay: boolean): Promise<{ release(): Promise<void> }> {
  const released = Promise.withResolvers<void>();
  const isDone = Promise.withResolvers<void>();
  const over = sql.begin(async (tx) => {
    const [event] = await tx`SELECT event_id, app_uuid FROM events WHERE webhook_id = ${webhookId} FOR UPDATE`;
    if (isReplay) {
      await tx`INSERT INTO outbox (event_id, app_uuid, attempts_before) VALUES (${event?.event_id}, ${event?.app_uuid}, 1)`;
      await tx`UPDATE events SET status = 'pending' WHERE webhook_id = ${webhookId}`;
    }
    isDone.resolve();
    await released.promise;
  });
  await isDone.promise;
  return {
    async release() {
      released.resolve();
      await over;
    },
  };
}

test('A replay queues its event, without the attempts before it, and no other one, and wakes the relay', async () => {
  const { events: log, outbox } = first.store;
  const { session, events, one } = await setAside(3);
  let wakes = 0;
  outbox.onEvents(() => {
    wakes += 1;
  });
  expect(await log.replay(`evt_${newUuid()}`)).toBe('unknown');
  expect(await log.replay(one.webhookId)).toBe('queued');
  expect(await log.replay(one.webhookId)).toBe('pending');
  expect(wakes).toBe(1);
  expect((await waiting(session.appUuid)).map(({ webhookId, attempts }) => [webhookId, attempts])).toEqual([[one.webhookId, []]]);
  expect(await statuses(session.appUuid)).toEqual(['pending', 'dead', 'dead']);
  expect(await log.owner(one.webhookId)).toBe(session.appUuid);
  expect(events).toHaveLength(3);
});

test('An event that two ask for at once is queued once', async () => {
  const { events: log } = first.store;
  const { session, one } = await setAside(1);
  const second = await openSecondStore(first);
  const row = await held(one.webhookId, false);
  const asked = [log.replay(one.webhookId), second.events.replay(one.webhookId)];
  await untilWaiting(sql, 2);
  await row.release();
  expect((await Promise.all(asked)).sort()).toEqual(['pending', 'queued']);
  expect(await waiting(session.appUuid)).toHaveLength(1);
  await second.close();
});

test('An event that is replayed while its retention is over is delivered before it is forgotten', async () => {
  const { session, one } = await setAside(2);
  skew = 31 * 24 * 3_600_000;
  const replay = await held(one.webhookId, true);
  const forgotten = first.store.forget();
  await untilWaiting(sql, 1);
  await replay.release();
  await forgotten;
  skew = 0;
  expect(await statuses(session.appUuid)).toEqual(['pending']);
  expect((await waiting(session.appUuid)).map(({ webhookId }) => webhookId)).toEqual([one.webhookId]);
});

test('A call is not erased while one of its events is being replayed', async () => {
  const { calls } = first.store;
  const { session, one } = await setAside(2);
  const replay = await held(one.webhookId, true);
  const erased = calls.erase(session.sessionUuid);
  await untilWaiting(sql, 1);
  await replay.release();
  expect(await erased).toBe('pending');
  expect(await statuses(session.appUuid)).toEqual(['pending', 'dead']);
  expect((await waiting(session.appUuid)).map(({ webhookId }) => webhookId)).toEqual([one.webhookId]);
});

test('An event of a call that is told while the call is erased is delivered', async () => {
  const { calls, journal } = first.store;
  const { session, one } = await setAside(1);
  const late = eventOf(session.appUuid, session.sessionUuid, 7, 'recording.ended');
  const row = await held(one.webhookId, false);
  const erased = calls.erase(session.sessionUuid);
  await untilWaiting(sql, 1);
  await journal.commit({ events: [late] });
  await row.release();
  expect(await erased).toBe('erased');
  expect((await waiting(session.appUuid)).map(({ webhookId }) => webhookId)).toEqual([late.webhookId]);
});
