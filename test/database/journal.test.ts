import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import type { Parameter, Queryable } from '../../src/database/driver/database.ts';
import type { OutboxEvent } from '../../src/database/event/outbox.ts';
import { groupCommit } from '../../src/database/journal/group-commit.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { keptAnswers } from '../../src/database/journal/kept-answers.ts';
import type { Store } from '../../src/database/store.ts';
import { newUuid } from '../../src/id.ts';
import { JOURNAL_TURN_CHANGES } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { settle } from '../support/virtual-clock.ts';
import { eventOf } from '../webhook/emit.ts';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';
import { ended, recordOf, sessionRow } from './rows.ts';

let first: TestStore;
beforeAll(async () => {
  first = await openTestStore();
});
afterAll(() => first.close());

const eventsOf = async (sessionUuid: string) =>
  (await first.store.events.list({ appUuid: undefined, sessionUuid, status: undefined, after: 0, limit: 1000 })).map(
    (each) => each.name,
  );

test('A journal is closed while changes are tried again and again on a database that is away', async () => {
  const away: Queryable = {
    query: () => new Promise((_, reject) => setTimeout(() => reject(new StoreUnavailable('away')), 5)),
  };
  const journal = groupCommit({
    database: away,
    log: silentLog,
    nodeId: newUuid(),
    keptAnswers: keptAnswers(undefined),
    readTo: () => undefined,
    onEvents() {},
    onDead() {},
  });
  let closed = false;
  const actor = async () => {
    for (;;) {
      const error = await journal.commit({ events: [eventOf('app', newUuid(), 0)] }).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(StoreUnavailable);
      if (closed) return;
    }
  };
  const actors = [actor(), actor(), actor()];
  await journal.commit({ events: [eventOf('app', newUuid(), 0)] }).catch(() => {});
  await journal.close();
  closed = true;
  await Promise.all(actors);
}, 5_000);

test('A journal that is closed takes nothing more', async () => {
  let asked = 0;
  const options = { log: silentLog, nodeId: 'node', keptAnswers: keptAnswers(undefined), readTo: () => undefined };
  const database: Queryable = {
    async query() {
      asked += 1;
      return [];
    },
  };
  const journal = groupCommit({ ...options, database, onEvents() {}, onDead() {} });
  await journal.close();
  await expect(journal.commit({ events: [] })).rejects.toBeInstanceOf(StoreUnavailable);
  expect([asked, journal.load()]).toEqual([0, { waiting: 0, flushes: 0, changes: 0 }]);
});

test('One flush is under way at a time, what comes meanwhile is the next one, and the end waits for it', async () => {
  const answers: (() => void)[] = [];
  const options = { log: silentLog, nodeId: 'node', keptAnswers: keptAnswers(undefined), readTo: () => undefined };
  const database: Queryable = {
    async query<R>(): Promise<readonly R[]> {
      await new Promise<void>((resolve) => answers.push(resolve));
      return [{ written: 'alive' }].map((row) => row as R);
    },
  };
  const journal = groupCommit({ ...options, database, onEvents() {}, onDead() {} });
  const stored = [journal.commit({ events: [] })];
  await settle();
  stored.push(journal.commit({ events: [] }), journal.commit({ events: [] }));
  await settle();
  expect([answers.length, journal.load()]).toEqual([1, { waiting: 2, flushes: 1, changes: 1 }]);
  let isClosed = false;
  const closed = journal.close().then(() => {
    isClosed = true;
  });
  answers[0]?.();
  await settle();
  expect([answers.length, isClosed, journal.load()]).toEqual([2, false, { waiting: 0, flushes: 2, changes: 3 }]);
  answers[1]?.();
  await closed;
  expect(await Promise.all(stored)).toEqual([true, true, true]);
});

test('The changes of a batch that is refused are tried by themselves, one after the other in their order', async () => {
  const asked: { readonly written: number; readonly answer: (error?: Error) => void }[] = [];
  const options = { log: silentLog, nodeId: 'node', keptAnswers: keptAnswers(undefined), readTo: () => undefined };
  const database: Queryable = {
    async query<R>(_text: string, parameters: readonly Parameter[] = []): Promise<readonly R[]> {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const answer = (error?: Error) => (error === undefined ? resolve() : reject(error));
      asked.push({ written: JSON.parse(String(parameters[1])).length, answer });
      await promise;
      return [{ written: 'alive' }].map((row) => row as R);
    },
  };
  const journal = groupCommit({ ...options, database, onEvents() {}, onDead() {} });
  const stored = [1, 2].map((step) => journal.commit({ events: [eventOf('app', newUuid(), step)] }));
  await settle();
  asked[0]?.answer(new Error('refused'));
  await settle();
  const later = journal.commit({ events: [eventOf('app', newUuid(), 3)] });
  await settle();
  expect(asked.map(({ written }) => written)).toEqual([2, 1]);
  for (const at of [1, 2, 3]) {
    asked[at]?.answer();
    await settle();
  }
  expect(asked.map(({ written }) => written)).toEqual([2, 1, 1, 1]);
  expect(await Promise.all([...stored, later])).toEqual([true, true, true]);
});

test('The ends of changes that were stored together are told so many in a turn of the event loop, in their order', async () => {
  const turns: (() => void)[] = [];
  const options = { log: silentLog, nodeId: 'node', keptAnswers: keptAnswers(undefined), readTo: () => undefined };
  const database: Queryable = {
    query: async <R>() => [{ written: 'alive' }].map((row) => row as R),
  };
  const turn = () => new Promise<void>((resolve) => turns.push(resolve));
  const journal = groupCommit({ ...options, database, onEvents() {}, onDead() {}, turn });
  const told: number[] = [];
  const count = JOURNAL_TURN_CHANGES * 2 + 1;
  for (let change = 0; change < count; change++) void journal.commit({ events: [] }).then(() => told.push(change));
  await settle();
  const after = [told.length];
  for (let next = turns.shift(); next !== undefined; next = turns.shift()) {
    next();
    await settle();
    after.push(told.length);
  }
  expect(after).toEqual([JOURNAL_TURN_CHANGES, JOURNAL_TURN_CHANGES * 2, count]);
  expect(told).toEqual(Array.from({ length: count }, (_, change) => change));
});

test('Events of a change that is found stored after a lost answer wake the relay; those of one that is not wake nobody', async () => {
  let woken = 0;
  let isThere = true;
  const options = { log: silentLog, nodeId: 'node', keptAnswers: keptAnswers(undefined), readTo: () => undefined };
  const database: Queryable = {
    async query<R>(): Promise<readonly R[]> {
      const rows: readonly object[] = isThere ? [{ one: 1 }] : [];
      return rows.map((row) => row as R);
    },
  };
  const journal = groupCommit({
    ...options,
    database,
    onDead() {},
    onEvents(next) {
      expect(next).toEqual([]);
      woken += 1;
    },
  });
  expect([await journal.wasStored({ events: [eventOf('app', newUuid(), 0)] }), woken]).toEqual([true, 1]);
  const answer = { appUuid: 'app', key: 'k', status: 202, body: {} };
  expect([await journal.wasStored({ events: [], answer }), woken]).toEqual([true, 1]);
  isThere = false;
  expect([await journal.wasStored({ events: [eventOf('app', newUuid(), 0)] }), woken]).toEqual([false, 1]);
});

describe('a commit', () => {
  test('stores the row, its events and the answer together', async () => {
    const { journal, sessions, idempotency } = first.store;
    const row = sessionRow({ nodeId: first.store.nodes.nodeId, clientState: 'käse "quoted" \\ \u2028' });
    const keyed = { appUuid: row.appUuid, key: 'k', fingerprint: 'f' };
    expect((await idempotency.begin(keyed)).state).toBe('fresh');
    const answer = { appUuid: row.appUuid, key: 'k', status: 202, body: { a: [1, null, 'é'] } };
    expect(
      await journal.commit({ session: row, events: [eventOf(row.appUuid, row.sessionUuid, 0, 'session.created')], answer }),
    ).toBe(true);
    expect(await sessions.mine()).toContainEqual(row);
    expect(await sessions.get(row.appUuid, row.sessionUuid)).toEqual(recordOf(row));
    expect(await eventsOf(row.sessionUuid)).toEqual(['session.created']);
    idempotency.stored(keyed);
    expect(await idempotency.begin(keyed)).toEqual({ state: 'replay', status: 202, body: JSON.stringify(answer.body) });
  });

  test('of many changes at once shares statements and keeps the order in which they came', async () => {
    const { journal } = first.store;
    const before = first.store.load().flushes;
    const rows = Array.from({ length: 50 }, () => sessionRow());
    await Promise.all(
      Array.from({ length: 10 }, (_, step) =>
        rows.map((row) =>
          journal.commit({ session: row, events: [eventOf(row.appUuid, row.sessionUuid, step, `step.${step}`)] }),
        ),
      ).flat(),
    );
    expect(first.store.load().flushes - before).toBeLessThanOrEqual(4);
    for (const row of rows.slice(0, 5))
      expect(await eventsOf(row.sessionUuid)).toEqual(Array.from({ length: 10 }, (_, step) => `step.${step}`));
  });

  test('ends a Session once, whatever ends it at once, on one node or two', async () => {
    const second = await openSecondStore(first);
    for (let round = 0; round < 20; round += 1) {
      const row = sessionRow();
      await first.store.journal.commit({ session: row, events: [] });
      const outcomes = await Promise.all(
        [first.store, first.store, second, second, first.store].map(({ journal }) =>
          journal.commit({ session: ended(row), events: [eventOf(row.appUuid, row.sessionUuid, 1, 'session.ended')] }),
        ),
      );
      expect(outcomes.filter(Boolean).length).toBe(1);
      expect(await eventsOf(row.sessionUuid)).toEqual(['session.ended']);
    }
    await second.close();
  });

  test('after the end stores nothing of a late change, not even its answer', async () => {
    const { journal, idempotency } = first.store;
    const row = sessionRow();
    const keyed = { appUuid: row.appUuid, key: 'late', fingerprint: 'f' };
    await idempotency.begin(keyed);
    const late = {
      session: row,
      events: [eventOf(row.appUuid, row.sessionUuid, 2, 'session.held')],
      answer: { appUuid: row.appUuid, key: 'late', status: 202, body: {} },
    };
    const outcome = await Promise.all([journal.commit({ session: ended(row), events: [] }), journal.commit(late)]);
    expect([...outcome, await journal.commit(late)]).toEqual([true, false, false]);
    expect(await eventsOf(row.sessionUuid)).toEqual([]);
    expect((await idempotency.begin(keyed)).state).toBe('in_flight');
  });

  test('that is tried again after a lost answer is stored once and is true again', async () => {
    const row = sessionRow();
    const end = { session: ended(row), events: [eventOf(row.appUuid, row.sessionUuid, 1, 'session.ended')] };
    expect([await first.store.journal.commit(end), await first.store.journal.commit(end)]).toEqual([true, true]);
    expect(await eventsOf(row.sessionUuid)).toEqual(['session.ended']);
  });

  test('that the database refuses does not sink those beside it', async () => {
    const good = Array.from({ length: 5 }, () => sessionRow());
    const bad = sessionRow({ sessionUuid: 'not a uuid' });
    const outcomes = await Promise.allSettled(
      [...good.slice(0, 3), bad, ...good.slice(3)].map((row) => first.store.journal.commit({ session: row, events: [] })),
    );
    expect(outcomes.map((each) => each.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    const refusal = outcomes[3];
    expect(refusal?.status === 'rejected' && refusal.reason instanceof StoreUnavailable).toBe(true);
    for (const row of good) expect(await first.store.sessions.get(row.appUuid, row.sessionUuid)).toEqual(recordOf(row));
  });

  test('is refused at once when too many wait', async () => {
    const stuck: Queryable = { query: () => new Promise(() => {}) };
    const journal = groupCommit({
      database: stuck,
      log: silentLog,
      nodeId: 'node',
      keptAnswers: keptAnswers(undefined),
      readTo: () => undefined,
      onEvents: () => {},
      onDead: () => {},
    });
    const waiting = Array.from({ length: 20_600 }, () => journal.commit({ events: [] }).catch((error: unknown) => error));
    expect(await waiting.at(-1)).toBeInstanceOf(StoreUnavailable);
    expect(journal.load().waiting).toBeLessThanOrEqual(20_000);
  });
});

describe('the events of a flush', () => {
  /** Follows the outbox from the end of it, as a relay would that has read all. */
  async function follower(store: Store) {
    const { xid } = await store.outbox.horizon();
    const state = { readTo: { xid, eventId: 0 }, taken: [] as OutboxEvent[] };
    store.outbox.follow({
      readTo: () => state.readTo,
      take(events) {
        state.taken.push(...events);
        state.readTo = events.at(-1) ?? state.readTo;
        return true;
      },
    });
    return state;
  }
  const emitted = async (store: Store, step: number) => {
    const row = sessionRow();
    await store.journal.commit({ session: row, events: [0, 1].map((n) => eventOf(row.appUuid, row.sessionUuid, step + n)) });
  };

  test('are handed to a relay that has read all before them, as it would read them', async () => {
    const { outbox } = first.store;
    // Any other transaction of the server, such as a vacuum's, leaves the events to be read: that moment is passed
    // over.
    for (let round = 0; round < 20; round++) {
      const follows = await follower(first.store);
      const from = follows.readTo;
      await emitted(first.store, 0);
      await emitted(first.store, 2);
      if (follows.taken.length < 4 && round < 19) continue;
      const { events } = await outbox.read(from, 10);
      expect(follows.taken).toEqual([...events]);
      expect(follows.taken.map(({ body }) => JSON.parse(body).step)).toEqual([0, 1, 2, 3]);
      break;
    }
  });

  test('are left to be read while an earlier transaction runs, and while an earlier event is not read', async () => {
    const follows = await follower(first.store);
    const other = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres' });
    await other.begin(async (within) => {
      await within`SELECT pg_current_xact_id()`;
      await emitted(first.store, 0);
    });
    expect(follows.taken).toEqual([]);
    // The events of that flush are not read yet.
    await emitted(first.store, 2);
    expect(follows.taken).toEqual([]);
    for (let round = 0; round < 20 && follows.taken.length === 0; round++) {
      follows.readTo = (await first.store.outbox.read(follows.readTo, 10)).events.at(-1) ?? follows.readTo;
      await emitted(first.store, 4);
    }
    expect(follows.taken.map(({ body }) => JSON.parse(body).step)).toEqual([4, 5]);
    await other.end();
  });

  test('of another process are read before those that come after them are taken', async () => {
    const second = await openSecondStore(first);
    const follows = await follower(first.store);
    await emitted(second, 0);
    await emitted(first.store, 2);
    expect(follows.taken).toEqual([]);
    const { events } = await first.store.outbox.read(follows.readTo, 10);
    expect(events.map(({ body }) => JSON.parse(body).step)).toEqual([0, 1, 2, 3]);
    await second.close();
  });
});

describe('reading Sessions', () => {
  test('lists live ones of one application, newest first, by state and time, and counts before the limit', async () => {
    const { appUuid } = sessionRow();
    const rows = Array.from({ length: 6 }, (_, n) =>
      sessionRow({ appUuid, createdAt: 1_000 * n, state: n % 2 === 0 ? 'ringing' : 'answered', type: 'phone_out' }),
    );
    for (const row of rows) await first.store.journal.commit({ session: row, events: [] });
    await first.store.journal.commit({ session: sessionRow(), events: [] });
    await first.store.journal.commit({ session: ended(sessionRow({ appUuid })), events: [] });
    const list = async (more: object) => {
      const found = await first.store.sessions.list(appUuid, {
        states: [],
        createdAfter: undefined,
        createdBefore: undefined,
        limit: 100,
        ...more,
      });
      return found === 'too_many' ? found : found.map((row) => row.createdAt / 1_000);
    };
    expect(await list({})).toEqual([5, 4, 3, 2, 1, 0]);
    expect(await list({ states: ['ringing'] })).toEqual([4, 2, 0]);
    expect(await list({ states: ['ringing', 'answered'], limit: 2 })).toEqual([5, 4]);
    expect(await list({ createdAfter: 2_000, createdBefore: 4_000 })).toEqual([3, 2]);
    expect(await list({ states: ['ended'] })).toEqual([]);
  });

  test('refuses over 50,000 matches, whatever the limit', async () => {
    const { appUuid } = sessionRow();
    const changes = Array.from({ length: 50_001 }, (_, n) => ({ session: sessionRow({ appUuid, createdAt: n }), events: [] }));
    for (let at = 0; at < changes.length; at += 10_000)
      await Promise.all(changes.slice(at, at + 10_000).map((change) => first.store.journal.commit(change)));
    const query = { states: [], createdAfter: undefined, createdBefore: undefined, limit: 1 };
    expect(await first.store.sessions.list(appUuid, query)).toBe('too_many');
    const fewer = await first.store.sessions.list(appUuid, { ...query, createdAfter: 1 });
    expect(fewer === 'too_many' ? fewer : fewer.length).toBe(1);
  });
});

describe('the calls of a node that is lost', () => {
  test('are taken by a node that may use their trunks, as many as it asks for, and no others', async () => {
    const nodeId = newUuid();
    const lost = await openSecondStore(first, undefined, nodeId);
    const running = JSON.stringify({ call: '{}' });
    const call = (trunk: string, createdAt: number) =>
      sessionRow({ nodeId, trunk, createdAt, state: 'answered', answered: true, running });
    const [east, west, other] = [call('east', 1), call('west', 2), call('other', 3)];
    for (const session of [east, west, other, call('east', 4)]) await lost.journal.commit({ session, events: [] });
    const take = async (most: number, ...trunks: string[]) =>
      (await first.store.sessions.takeCalls(nodeId, most, trunks)).map(({ sessionUuid }) => sessionUuid);
    expect(await take(50)).toEqual([]);
    expect(await take(1, 'east')).toEqual([east.sessionUuid]);
    expect(await take(50, 'west', 'north')).toEqual([west.sessionUuid]);
    expect(await first.store.sessions.owner(other.appUuid, other.sessionUuid)).toBe(nodeId);
    await lost.close();
  });
});

describe('a node that was declared dead', () => {
  test('leaves its Sessions to another, and stores nothing of them any more', async () => {
    const nodeId = newUuid();
    const second = await openSecondStore(first, undefined, nodeId);
    const rows = [sessionRow({ nodeId }), sessionRow({ nodeId })];
    for (const row of rows) await second.journal.commit({ session: row, events: [] });
    await second.journal.commit({ session: ended(sessionRow({ nodeId })), events: [] });
    await first.store.sessions.adopt();
    expect((await first.store.sessions.get(rows[0]?.appUuid ?? '', rows[0]?.sessionUuid ?? ''))?.nodeId).toBe(nodeId);
    const told = Promise.withResolvers<string>();
    second.nodes.onDead(told.resolve);

    expect(await first.store.nodes.bury(nodeId, 7)).toBe(false);
    expect(await first.store.nodes.bury(nodeId, 0)).toBe(true);
    expect(await first.store.nodes.bury(nodeId, 0)).toBe(false);
    const adopted = await first.store.sessions.adopt();
    expect(adopted.map(({ sessionUuid }) => sessionUuid).sort()).toEqual(rows.map(({ sessionUuid }) => sessionUuid).sort());
    expect(adopted.map(({ nodeId: owner, epoch }) => [owner, epoch])).toEqual([
      [first.store.nodes.nodeId, 1],
      [first.store.nodes.nodeId, 1],
    ]);
    expect(await first.store.sessions.adopt()).toEqual([]);
    for (const row of rows) {
      const late = { session: ended(row), events: [eventOf(row.appUuid, row.sessionUuid, 1, 'session.ended')] };
      await expect(second.journal.commit(late)).rejects.toBeInstanceOf(StoreUnavailable);
    }
    await told.promise;
    const keyed = { appUuid: 'app', key: 'of-the-dead', fingerprint: 'f' };
    await expect(second.idempotency.begin(keyed)).rejects.toBeInstanceOf(StoreUnavailable);
    const late = { events: [eventOf('app', rows[0]?.sessionUuid ?? '', 2, 'session.held')] };
    await expect(second.journal.commit(late)).rejects.toBeInstanceOf(StoreUnavailable);
    for (const { sessionUuid } of rows) expect(await eventsOf(sessionUuid)).toEqual([]);
    await second.close();
  });

  test('by itself, as it stops, is not told so', async () => {
    const nodeId = newUuid();
    const second = await openSecondStore(first, undefined, nodeId);
    const told: string[] = [];
    second.nodes.onDead((by) => told.push(by));
    await second.nodes.leave();
    expect((await second.nodes.beat('{}')).find((row) => row.nodeId === nodeId)?.deadBy).toBe(nodeId);
    await expect(second.journal.commit({ session: sessionRow({ nodeId }), events: [] })).rejects.toBeInstanceOf(StoreUnavailable);
    expect(told).toEqual([]);
    await second.close();
  });

  test('loses every race of an end against a takeover, or wins it, and never both', async () => {
    for (let round = 0; round < 30; round++) {
      const nodeId = newUuid();
      const second = await openSecondStore(first, undefined, nodeId);
      const row = sessionRow({ nodeId });
      await second.journal.commit({ session: row, events: [] });
      const end = (at: number) => ({ events: [eventOf(row.appUuid, row.sessionUuid, at, 'session.ended')] });
      const [won, adopted] = await Promise.all([
        second.journal.commit({ session: ended(row), ...end(1) }).catch(() => false),
        first.store.nodes.bury(nodeId, undefined).then(() => first.store.sessions.adopt()),
      ]);
      const taken = adopted.find(({ sessionUuid }) => sessionUuid === row.sessionUuid);
      if (taken !== undefined) expect(await first.store.journal.commit({ session: ended(taken), ...end(2) })).toBe(true);
      expect(won).toBe(taken === undefined);
      expect(await eventsOf(row.sessionUuid)).toEqual(['session.ended']);
      await second.close();
    }
  });

  test('writes to a Session of an earlier epoch store nothing, although the node lives', async () => {
    const { nodes, sessions, journal } = first.store;
    const row = sessionRow({ nodeId: 'unknown' });
    await journal.commit({ session: row, events: [] });
    const taken = (await sessions.adopt()).find(({ sessionUuid }) => sessionUuid === row.sessionUuid);
    expect(taken).toMatchObject({ nodeId: nodes.nodeId, epoch: 1 });
    expect(await journal.commit({ session: { ...row, state: 'answered' }, events: [] })).toBe(false);
    expect(await journal.commit({ session: { ...row, nodeId: nodes.nodeId, state: 'answered' }, events: [] })).toBe(false);
    expect(await journal.commit({ session: { ...row, epoch: 1, state: 'answered' }, events: [] })).toBe(false);
    expect(await journal.commit({ session: { ...row, nodeId: nodes.nodeId, epoch: 1, state: 'answered' }, events: [] })).toBe(
      true,
    );
  });
});
