import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import type { Cursor } from '../../src/database/event/outbox.ts';
import { openStore } from '../../src/database/store.ts';
import { newUuid } from '../../src/id.ts';
import { RELAY_COUNTED_BYTES } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { eventOf } from '../webhook/emit.ts';
import { untilWaiting } from './locks.ts';
import { masterKey, openSecondStore, openTestStore, type TestStore } from './open.ts';

let first: TestStore;
let sql: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore();
  sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 });
});
afterAll(async () => {
  await sql.end();
  await first.close();
});

const start: Cursor = { xid: '0', eventId: 0 };
const commit = (step: number) => first.store.journal.commit({ events: [eventOf('app', newUuid(), step)] });
/** Takes the lease of another that has run out, as a relay does that asks again and again. */
async function takeOver(outbox: TestStore['store']['outbox'], holder: string): Promise<void> {
  for (let turn = 0; !(await outbox.lease(holder, 60_000)); turn += 1) {
    if (turn === 100) throw new Error('the lease is not free');
    await sql`SELECT pg_sleep(0.05)`;
  }
}
const stepsOf = (events: readonly { body: string }[]) => events.map((each) => JSON.parse(each.body).step);

describe('the outbox', () => {
  test('never steps over an event whose transaction commits late', async () => {
    const { outbox } = first.store;
    const late = eventOf('app', newUuid(), 1);
    let release = () => {};
    const mayCommit = new Promise<void>((resolve) => {
      release = resolve;
    });
    let written = () => {};
    const isWritten = new Promise<void>((resolve) => {
      written = resolve;
    });
    const slow = sql.begin(async (tx) => {
      await tx`WITH e AS (
        INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at)
        VALUES (${late.webhookId}, 'app', 'x', ${late.sessionUuid ?? ''}, '{}', ${late.body}, '', ${late.at}) RETURNING event_id)
        INSERT INTO outbox (event_id, app_uuid) SELECT event_id, 'app' FROM e`;
      written();
      await mayCommit;
    });
    await isWritten;
    await commit(2);
    expect(await outbox.read(start, 10)).toEqual({ events: [], more: false, heldBack: true, wentBack: false });
    release();
    await slow;
    const page = await outbox.read(start, 10);
    expect(stepsOf(page.events)).toEqual([1, 2]);
    const last = page.events[1];
    expect(await outbox.read(last ?? start, 10)).toEqual({ events: [], more: false, heldBack: false, wentBack: false });
  });

  test('tells a reader that the database has not come as far, as after a restore, and hands it nothing then', async () => {
    const { outbox } = first.store;
    const horizon = await outbox.horizon();
    expect((await outbox.read(horizon, 10)).wentBack).toBe(false);
    const ahead: Cursor = { xid: String(Number(horizon.xid) + 1_000), eventId: 1 };
    expect(await outbox.read(ahead, 10)).toEqual({ events: [], more: false, heldBack: false, wentBack: true });
    expect((await outbox.read({ ...horizon, eventId: 1 }, 10)).wentBack).toBe(true);
    const calls: string[] = [];
    outbox.follow({
      readTo: () => ahead,
      take() {
        calls.push('take');
        return true;
      },
    });
    outbox.onEvents(() => calls.push('wake'));
    await commit(1);
    expect(calls).toEqual(['wake']);
  });

  test('is read by pages, each event once, also within one transaction', async () => {
    const { outbox } = first.store;
    const before = (await outbox.read(start, 100)).events.at(-1) ?? start;
    const app = 'app paged';
    await first.store.journal.commit({ events: Array.from({ length: 25 }, (_, step) => eventOf(app, newUuid(), step)) });
    const seen: number[] = [];
    for (let cursor: Cursor = before; ; ) {
      const { events } = await outbox.read(cursor, 10);
      seen.push(...stepsOf(events));
      const last = events.at(-1);
      if (last === undefined) break;
      cursor = last;
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, step) => step));
    const horizon = await outbox.horizon();
    expect(await outbox.backlog(horizon)).toContain(app);
    const part = await outbox.readApp(app, before, horizon, 5);
    expect([stepsOf(part.events), part.more]).toEqual([[0, 1, 2, 3, 4], true]);
    expect(await outbox.readApp(app, horizon, horizon, 5)).toEqual({ events: [], more: false });
  });

  test('is read by shorter pages where its events are large, one event at least', async () => {
    const { outbox, journal } = first.store;
    const before = (await outbox.read(start, 1000)).events.at(-1) ?? start;
    const large = (step: number) => {
      const event = eventOf('app large', newUuid(), step);
      const pad = randomBytes(RELAY_COUNTED_BYTES * 3).toString('hex');
      return { ...event, body: JSON.stringify({ ...JSON.parse(event.body), pad }) };
    };
    await journal.commit({ events: [0, 1, 2, 3, 4].map(large) });
    const page = await outbox.read(before, 10);
    expect([stepsOf(page.events), page.more]).toEqual([[0, 1], true]);
    const horizon = await outbox.horizon();
    const one = await outbox.readApp('app large', before, horizon, 5);
    expect([stepsOf(one.events), one.more]).toEqual([[0], true]);
    const rest = await outbox.readApp('app large', page.events[1] ?? start, horizon, 100);
    expect([stepsOf(rest.events), rest.more]).toEqual([[2, 3, 4], false]);
  });

  test('takes no outcome of an event that is settled, so that none delivered is pending for ever', async () => {
    const { outbox, journal, events } = first.store;
    const before = (await outbox.read(start, 1000)).events.at(-1) ?? start;
    await journal.commit({ events: [eventOf('app late', newUuid(), 1)] });
    const [event] = (await outbox.read(before, 1)).events;
    if (event === undefined) throw new Error('nothing in the outbox');
    const attempt = { at: 1, status: 200, error: '', duration_ms: 3, retry_at: null };
    const place = { xid: event.xid, eventId: event.eventId };
    const late = { ...place, status: 'pending' as const, attempt: { ...attempt, status: null, error: 'timeout', retry_at: 9 } };
    expect(await outbox.lease('a', 60_000)).toBe(true);
    expect(await outbox.settle('a', [{ ...place, status: 'delivered', attempt }])).toBe(true);
    // The attempt began while the lease was held before, and ended after it had been lost and taken again.
    expect(await outbox.settle('a', [late])).toBe(true);
    const query = { appUuid: 'app late', sessionUuid: undefined, status: undefined, after: 0, limit: 10 };
    expect((await events.list(query))[0]).toMatchObject({ status: 'delivered', attempts: [attempt] });
    expect(await events.replay(event.webhookId)).toBe('queued');
    expect(await outbox.settle('a', [{ ...place, status: 'dead', attempt }])).toBe(true);
    expect((await events.list(query))[0]?.status).toBe('pending');
    const [again] = (await outbox.read(event, 1000)).events.filter(({ eventId }) => eventId === event.eventId);
    expect(again?.attempts).toEqual([]);
    await outbox.release('a');
  });

  test('is one relay’s at a time, and takes settlements from the holder of the lease only', async () => {
    const { outbox } = first.store;
    expect([await outbox.lease('a', 60_000), await outbox.lease('b', 60_000), await outbox.lease('a', 60_000)]).toEqual([
      true,
      false,
      true,
    ]);
    const [event] = (await outbox.read(start, 1)).events;
    if (event === undefined) throw new Error('nothing in the outbox');
    const attempt = { at: 1, status: 200, error: '', duration_ms: 3, retry_at: null };
    const delivered = { xid: event.xid, eventId: event.eventId, status: 'delivered' as const, attempt };
    expect(await outbox.settle('b', [delivered])).toBe(false);
    expect((await outbox.read(start, 1)).events[0]?.eventId).toBe(event.eventId);
    const failed = {
      ...delivered,
      status: 'pending' as const,
      attempt: { ...attempt, status: 500, error: 'http_status', response: 'Internal Server Error', retry_at: 9 },
    };
    expect(await outbox.settle('a', [failed])).toBe(true);
    // The next attempt needs the times of those before it, and nothing of what the receiver has answered.
    const times = [{ at: failed.attempt.at, retry_at: failed.attempt.retry_at }];
    expect((await outbox.read(start, 1)).events[0]?.attempts).toEqual(times);
    // Its answer may be lost, and it comes again.
    expect(await outbox.settle('a', [failed], true)).toBe(true);
    expect((await outbox.read(start, 1)).events[0]?.attempts).toEqual(times);
    expect(await outbox.settle('a', [delivered], true)).toBe(true);
    expect((await outbox.read(start, 1)).events[0]?.eventId).not.toBe(event.eventId);
    const { store } = first;
    const logged = (
      await store.events.list({ appUuid: 'app', sessionUuid: undefined, status: 'delivered', after: 0, limit: 10 })
    )[0];
    expect(logged?.attempts).toEqual([failed.attempt, attempt]);
    await outbox.release('a');
    expect(await outbox.lease('b', 1)).toBe(true);
    await takeOver(outbox, 'a');
  });

  test('whose lease has run out is another’s only when that has seen it so before, so that its holder comes first', async () => {
    const { outbox } = first.store;
    const second = await openSecondStore(first);
    const takes = async (holder: string) => await (holder === 'b' ? second.outbox : outbox).lease(holder, 1);
    const pass = (ms: number) => sql`UPDATE leases SET expires_at = expires_at - ${ms} WHERE name = 'webhook-relay'`;
    await sql`DELETE FROM leases`;
    expect(await takes('a')).toBe(true);
    await pass(10);
    expect(await takes('b')).toBe(false);
    // The database stood still, and both ask as soon as it goes on.
    expect([await takes('a'), await takes('b')]).toEqual([true, false]);
    await pass(10);
    expect([await takes('b'), await takes('b')]).toEqual([false, false]);
    await sql`SELECT pg_sleep(0.4)`;
    expect(await takes('a')).toBe(true);
    await pass(10);
    expect([await takes('b'), await takes('b')]).toEqual([false, false]);
    await takeOver(second.outbox, 'b');
    await second.outbox.release('b');
    await second.close();
  });

  test('has a fence number that rises with each new holder of the lease, and with no renewal', async () => {
    const { outbox } = first.store;
    const fence = async () => Number((await sql`SELECT fence FROM leases WHERE name = 'webhook-relay'`)[0]?.fence);
    await sql`DELETE FROM leases`;
    expect(await outbox.lease('fenced', -1)).toBe(true);
    const from = await fence();
    expect(await outbox.lease('fenced', -1)).toBe(true);
    expect(await fence()).toBe(from);
    await takeOver(outbox, 'another');
    expect(await fence()).toBe(from + 1);
    await outbox.release('another');
  });

  test('stays with the relay that renews the lease, and whoever does not hold it cannot give it away', async () => {
    const { outbox } = first.store;
    expect([await outbox.lease('a', 1), await outbox.lease('a', 60_000)]).toEqual([true, true]);
    await sql`SELECT pg_sleep(0.01)`;
    await outbox.release('b');
    expect(await outbox.lease('b', 60_000)).toBe(false);
    await outbox.release('a');
    expect(await outbox.lease('b', 60_000)).toBe(true);
    await outbox.release('b');
  });

  test('keeps of one transaction what is not settled, and an application’s part ends with the position it is read to', async () => {
    const { outbox, journal, events } = first.store;
    const before = (await outbox.read(start, 1000)).events.at(-1) ?? start;
    await journal.commit({ events: [1, 2, 3].map((step) => eventOf('app of one', newUuid(), step)) });
    const [one, two, three] = (await outbox.read(before, 10)).events;
    if (one === undefined || two === undefined || three === undefined) throw new Error('not all are in the outbox');
    expect(one.xid).toBe(three.xid);
    expect(stepsOf((await outbox.readApp('app of one', one, two, 10)).events)).toEqual([2]);
    const attempt = { at: 1, status: 200, error: '', duration_ms: 3, retry_at: null };
    expect(await outbox.lease('a', 60_000)).toBe(true);
    await outbox.settle('a', [{ xid: two.xid, eventId: two.eventId, status: 'delivered', attempt }]);
    await outbox.settle('a', [{ xid: two.xid, eventId: two.eventId, status: 'pending', attempt: { ...attempt, at: 2 } }]);
    expect(stepsOf((await outbox.read(before, 10)).events)).toEqual([1, 3]);
    const listed = await events.list({ appUuid: 'app of one', sessionUuid: undefined, status: undefined, after: 0, limit: 10 });
    expect(listed.map(({ status, attempts }) => [status, attempts.length])).toEqual([
      ['pending', 0],
      ['delivered', 1],
      ['pending', 0],
    ]);
    await outbox.release('a');
  });

  test('takes the last of several outcomes of an event, with all of its attempts', async () => {
    const { outbox, journal, events } = first.store;
    const before = (await outbox.read(start, 1000)).events.at(-1) ?? start;
    await journal.commit({ events: [1, 2].map((step) => eventOf('app of several', newUuid(), step)) });
    const [one, two] = (await outbox.read(before, 10)).events.map(({ xid, eventId }) => ({ xid, eventId }));
    if (one === undefined || two === undefined) throw new Error('not both are in the outbox');
    const failed = { at: 1, status: 500, error: 'http_status', duration_ms: 3, retry_at: 9 };
    const delivered = { ...failed, at: 9, status: 200, error: '', retry_at: null };
    await outbox.lease('a', 60_000);
    await outbox.settle('a', [
      { ...one, status: 'pending', attempt: failed },
      { ...two, status: 'blocked', attempt: undefined },
      { ...one, status: 'delivered', attempt: delivered },
    ]);
    await outbox.release('a');
    const query = { appUuid: 'app of several', sessionUuid: undefined, status: undefined, after: 0, limit: 10 };
    expect((await events.list(query)).map(({ status, attempts }) => [status, attempts])).toEqual([
      ['delivered', [failed, delivered]],
      ['blocked', []],
    ]);
    expect((await outbox.read(before, 10)).events).toEqual([]);
  });

  test('wakes the relay for what that does not take, and does not for what it takes', async () => {
    const own = await openTestStore();
    try {
      const { outbox, journal } = own.store;
      const calls: string[] = [];
      let takes = false;
      const { xid } = await outbox.horizon();
      let readTo: Cursor = { xid, eventId: 0 };
      outbox.onEvents(() => calls.push('wake'));
      outbox.follow({
        readTo: () => readTo,
        take(events) {
          calls.push('take');
          if (takes) readTo = events.at(-1) ?? readTo;
          return takes;
        },
      });
      const told = async () => {
        calls.length = 0;
        await journal.commit({ events: [eventOf('app', newUuid(), 1)] });
        return calls.join(' ');
      };
      // Any other transaction of the server leaves the events to be read: that moment is passed over.
      const toldTaken = async () => {
        for (let round = 0; round < 20; round++) {
          readTo = (await outbox.read(readTo, 10)).events.at(-1) ?? readTo;
          const each = await told();
          if (each.startsWith('take')) return each;
        }
        return '';
      };
      expect(await toldTaken()).toBe('take wake');
      takes = true;
      expect(await toldTaken()).toBe('take');
    } finally {
      await own.close();
    }
  });

  test('of a process that has its database for itself is free at its next start, however the one before ended', async () => {
    const own = await openTestStore();
    expect(await own.store.outbox.lease('killed', 3_600_000)).toBe(true);
    await own.store.close();
    const settings = { dataDir: own.dataDir, databaseUrl: undefined, databaseDriver: 'postgres', masterKey } as const;
    const next = await openStore(settings, silentLog, systemClock());
    try {
      expect(await next.outbox.lease('next', 60_000)).toBe(true);
    } finally {
      await next.close();
      rmSync(own.dataDir, { recursive: true, force: true });
    }
  });

  test('is handed on only when the settlement of its holder is over, which makes no delivered event pending again', async () => {
    const { outbox, journal, events } = first.store;
    const before = (await outbox.read(start, 1000)).events.at(-1) ?? start;
    await journal.commit({ events: [1, 2].map((step) => eventOf('app handed on', newUuid(), step)) });
    const [one, two] = (await outbox.read(before, 10)).events.map(({ xid, eventId }) => ({ xid, eventId }));
    if (one === undefined || two === undefined) throw new Error('not both are in the outbox');
    const failed = { at: 1, status: 500, error: 'http_status', duration_ms: 3, retry_at: 9 };
    const delivered = { ...failed, at: 2, status: 200, error: '', retry_at: null };
    expect(await outbox.lease('a', 1)).toBe(true);
    const release = Promise.withResolvers<void>();
    const isLocked = Promise.withResolvers<void>();
    // The disk is slow, say: the statement of `a` has begun, and comes to the second event after `b` is done.
    const locks = sql.begin(async (tx) => {
      await tx`SELECT 1 FROM events WHERE event_id = ${one.eventId} FOR UPDATE`;
      isLocked.resolve();
      await release.promise;
    });
    await isLocked.promise;
    const late = outbox.settle(
      'a',
      [one, two].map((place) => ({ ...place, status: 'pending' as const, attempt: failed })),
    );
    await untilWaiting(sql, 1);
    const second = await openSecondStore(first);
    const handedOn = (async () => {
      await takeOver(second.outbox, 'b');
      await second.outbox.settle('b', [{ ...two, status: 'delivered', attempt: delivered }]);
    })();
    await Promise.race([handedOn, untilWaiting(sql, 2)]);
    release.resolve();
    await Promise.all([locks, late, handedOn]);
    const query = { appUuid: 'app handed on', sessionUuid: undefined, status: undefined, after: 0, limit: 10 };
    expect((await events.list(query)).map(({ status }) => status)).toEqual(['pending', 'delivered']);
    await second.outbox.release('b');
    await second.close();
  });

  test('tells whether an event waits for its first attempt since it was queued, or replayed', async () => {
    const own = await openTestStore();
    try {
      const { outbox, journal, events } = own.store;
      expect(await outbox.isEmpty(await outbox.nextTransaction())).toBe(true);
      await journal.commit({ events: [eventOf('app', newUuid(), 1)] });
      expect(await outbox.isEmpty(await outbox.nextTransaction())).toBe(false);
      const [event] = (await outbox.read(start, 1)).events;
      const place = { xid: event?.xid ?? '', eventId: event?.eventId ?? 0 };
      const attempt = { at: 1, status: 500, error: 'http_status', duration_ms: 3, retry_at: 9 };
      expect(await outbox.lease('a', 60_000)).toBe(true);
      await outbox.settle('a', [{ ...place, status: 'pending', attempt }]);
      expect(await outbox.isEmpty(await outbox.nextTransaction())).toBe(true);
      await outbox.settle('a', [{ ...place, status: 'dead', attempt: { ...attempt, at: 2, retry_at: null } }]);
      const before = await outbox.nextTransaction();
      expect(await events.replay(event?.webhookId ?? '')).toBe('queued');
      expect(await outbox.isEmpty(before)).toBe(true);
      expect(await outbox.isEmpty(await outbox.nextTransaction())).toBe(false);
    } finally {
      await own.close();
    }
  });

  test('is taken from a node that was declared dead, although the clock of the database was set back since', async () => {
    const { outbox, nodes } = first.store;
    await outbox.release('a');
    const second = await openSecondStore(first);
    // The end of the lease lies as far ahead as if that clock had been set back by an hour.
    expect(await second.outbox.lease(second.nodes.nodeId, 3_600_000)).toBe(true);
    expect(await outbox.lease(nodes.nodeId, 1_000)).toBe(false);
    expect(await nodes.bury(second.nodes.nodeId, undefined)).toBe(true);
    expect(await outbox.lease(nodes.nodeId, 1_000)).toBe(true);
    expect(await second.outbox.lease(second.nodes.nodeId, 1_000)).toBe(false);
    await second.close();
    await outbox.release(nodes.nodeId);
  });

  test('of a dump that was restored on another server is delivered at once, before what is new', async () => {
    const source = await openTestStore();
    const at = postgres({
      path: `${source.dataDir}/postgres-socket/.s.PGSQL.5432`,
      user: 'sidetone',
      database: 'postgres',
      max: 1,
    });
    try {
      for (const step of [1, 2, 3]) await source.store.journal.commit({ events: [eventOf('app', newUuid(), step)] });
      // The numbers of a server that has had a million transactions more, all but one.
      await at`UPDATE outbox SET xid = (xid::text::bigint + 1000000)::text::xid8 WHERE event_id > (SELECT min(event_id) FROM outbox)`;
      const restored = await openSecondStore(source);
      await restored.journal.commit({ events: [eventOf('app', newUuid(), 4)] });
      const page = await restored.outbox.read(start, 10);
      expect([stepsOf(page.events), page.heldBack]).toEqual([[1, 2, 3, 4], false]);
      await restored.close();
    } finally {
      await at.end();
      await source.close();
    }
  });
});
