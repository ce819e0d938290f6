import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import { KeyMarks } from '../../src/database/idempotency/key-marks.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { Store } from '../../src/database/store.ts';
import { createSeal } from '../../src/database/vault/seal.ts';
import { newUuid, newWebhookId } from '../../src/id.ts';
import { RETENTION_BATCH_MAX_ROWS, RETENTION_FIRST_SEC } from '../../src/limits.ts';
import type { MessageState } from '../../src/machine/message/message.ts';
import { eventually } from '../cluster/harness.ts';
import { eventOf } from '../webhook/emit.ts';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';
import { ended, roomRow, sessionRow } from './rows.ts';

const HOUR_MS = 3_600_000;
const wall = systemClock();
let skew = 0;
const clock = { ...wall, now: () => wall.now() + skew };
let first: TestStore;
let sql: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore(clock);
  sql = postgres({ path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 });
});
afterAll(async () => {
  await sql.end();
  await first.close();
});
const later = async (ms: number, check: () => Promise<void>) => {
  skew = ms;
  await check().finally(() => {
    skew = 0;
  });
};

interface Opened {
  readonly store: Store;
  /** Has the check look at the keys when so many milliseconds have passed. */
  readonly later: typeof later;
  readonly close: () => Promise<void>;
}

/** Marks are in memory where a process has its database for itself, and rows where several share it. */
const STORES: readonly [string, () => Promise<Opened>][] = [
  ['of a process with a database of its own', async () => ({ store: first.store, later, close: async () => {} })],
  [
    'of processes that share a database',
    async () => {
      const store = await openSecondStore(first, clock);
      // The database's clock judges them: instead of it, the rows are moved.
      const age = (ms: number) =>
        sql`UPDATE idempotency SET created_at = created_at - ${ms}::bigint, lease_until = lease_until - ${ms}::bigint`;
      return {
        store,
        later: async (ms, check) => {
          await age(ms);
          await check();
          await age(-ms);
        },
        close: () => store.close(),
      };
    },
  ],
];

const message = (): MessageState => ({
  messageUuid: newUuid(),
  appUuid: 'app',
  operationUuid: newUuid(),
  from: '+15550001',
  to: '+15550002',
  text: 'hello',
  encoding: 'gsm7',
  segments: 1,
  status: 'queued',
  errorCode: '',
  errorMessage: '',
  createdAt: clock.now(),
  updatedAt: clock.now(),
  sentAt: undefined,
  deliveredAt: undefined,
  parts: [{ smscId: '', delivered: false }],
  stage: 'waiting',
  dueAt: clock.now(),
  attempts: 0,
  traceparent: '',
});

const keyed = () => ({ appUuid: 'app', key: newUuid(), fingerprint: 'f' });

describe.each(STORES)('an idempotency key %s', (_, open) => {
  let idempotency: Store['idempotency'];
  let close: () => Promise<void>;
  let later: Opened['later'];
  beforeAll(async () => {
    const opened = await open();
    idempotency = opened.store.idempotency;
    ({ close, later } = opened);
  });
  afterAll(() => close());

  test('in flight is a lease: after 60 s the same request may be tried again, another one not', async () => {
    const key = keyed();
    expect((await idempotency.begin(key)).state).toBe('fresh');
    expect((await idempotency.begin(key)).state).toBe('in_flight');
    expect((await idempotency.begin({ ...key, fingerprint: 'other' })).state).toBe('mismatch');
    idempotency.left(key);
    expect((await idempotency.begin(key)).state).toBe('in_flight');
    await later(61_000, async () => {
      expect((await idempotency.begin({ ...key, fingerprint: 'other' })).state).toBe('mismatch');
      expect((await idempotency.begin(key)).state).toBe('fresh');
      expect((await idempotency.begin(key)).state).toBe('in_flight');
    });
  });
  test('is forgotten after 24 h, and kept before', async () => {
    const key = keyed();
    await idempotency.begin(key);
    await idempotency.finish(key, 204, '');
    await later(23 * HOUR_MS, async () => expect((await idempotency.begin(key)).state).toBe('replay'));
    await later(25 * HOUR_MS, async () => {
      const other = { ...key, fingerprint: 'other' };
      expect((await idempotency.begin(other)).state).toBe('fresh');
      await idempotency.finish(other, 202, '{"a":1}');
      expect(await idempotency.begin(other)).toEqual({ state: 'replay', status: 202, body: '{"a":1}' });
      expect((await idempotency.begin(key)).state).toBe('mismatch');
    });
  });
  test('given back is as if it had never been used, unless it has an answer', async () => {
    const key = keyed();
    await idempotency.begin(key);
    await idempotency.release(key);
    expect((await idempotency.begin({ ...key, fingerprint: 'other' })).state).toBe('fresh');
    await idempotency.finish({ ...key, fingerprint: 'other' }, 202, '{}');
    await idempotency.release({ ...key, fingerprint: 'other' });
    expect((await idempotency.begin({ ...key, fingerprint: 'other' })).state).toBe('replay');
  });
  test('that was answered is replayed to all who ask at once', async () => {
    const key = keyed();
    await idempotency.begin(key);
    await idempotency.finish(key, 202, '{}');
    await idempotency.finish(key, 403, '{"later":1}');
    await later(23 * HOUR_MS, () => idempotency.finish(key, 403, '{"later":2}'));
    expect(await idempotency.begin(key)).toEqual({ state: 'replay', status: 202, body: '{}' });
    const states = await Promise.all(Array.from({ length: 5 }, () => idempotency.begin(key)));
    expect(states.map(({ state }) => state)).toEqual(Array.from({ length: 5 }, () => 'replay'));
  });
  test('is marked by one of those who ask at once', async () => {
    const key = keyed();
    const states = await Promise.all(Array.from({ length: 5 }, () => idempotency.begin(key)));
    expect(states.filter(({ state }) => state === 'fresh').length).toBe(1);
    expect(states.filter(({ state }) => state === 'in_flight').length).toBe(4);
  });
});

/** Has a key marked half a minute ago, and not now. */
const markedAgo = ({ key }: { readonly key: string }) =>
  sql`UPDATE idempotency SET created_at = created_at - 30000 WHERE key = ${key}`;

describe('an idempotency key', () => {
  test('that one node marked is in flight for another whose clock is two minutes ahead, too', async () => {
    const ahead = await openSecondStore(first, { ...wall, now: () => wall.now() + 120_000 }, 'node-ahead');
    const behind = await openSecondStore(first, undefined, 'node-behind');
    const key = keyed();
    expect((await behind.idempotency.begin(key)).state).toBe('fresh');
    expect((await ahead.idempotency.begin(key)).state).toBe('in_flight');
    await Promise.all([ahead.close(), behind.close()]);
  });
  test('that a process left in flight is its successor’s once no other node can be at work on it; an answered one is not', async () => {
    const crashed = await openSecondStore(first, undefined, 'node-before');
    const [left, passedOn, answered] = [keyed(), keyed(), keyed()];
    for (const key of [left, passedOn, answered]) await crashed.idempotency.begin(key);
    await crashed.idempotency.finish(answered, 202, '{}');
    await crashed.close();
    const { idempotency } = first.store;
    expect((await idempotency.begin(left)).state).toBe('in_flight');
    await markedAgo(left);
    expect(await idempotency.releaseLeft('node-before')).toBe(2);
    expect((await idempotency.begin(left)).state).toBe('fresh');
    // Another node, to which it was passed on a moment ago, may store its effect yet.
    expect((await idempotency.begin(passedOn)).state).toBe('in_flight');
    expect((await idempotency.begin(answered)).state).toBe('replay');
  });
  test('whose lease is over is another node’s, which answers under it and gives it back; the one before cannot', async () => {
    const [before, after] = [
      await openSecondStore(first, undefined, 'node-was'),
      await openSecondStore(first, undefined, 'node-is'),
    ];
    const [answered, given] = [keyed(), keyed()];
    for (const key of [answered, given]) {
      await before.idempotency.begin(key);
      await sql`UPDATE idempotency SET lease_until = 0 WHERE key = ${key.key}`;
      expect((await after.idempotency.begin(key)).state).toBe('fresh');
    }
    await before.idempotency.finish(answered, 403, '{}');
    await before.idempotency.release(given);
    for (const key of [answered, given]) expect((await before.idempotency.begin(key)).state).toBe('in_flight');
    await after.idempotency.finish(answered, 202, '{"a":1}');
    await after.idempotency.release(given);
    expect(await before.idempotency.begin(answered)).toEqual({ state: 'replay', status: 202, body: '{"a":1}' });
    expect((await before.idempotency.begin(given)).state).toBe('fresh');
    await Promise.all([before.close(), after.close()]);
  });
  test('that a process of a cluster left is a lone process’ to take when its lease is over, for the same request', async () => {
    const left = await openSecondStore(first, undefined, 'node-left');
    const key = keyed();
    await left.idempotency.begin(key);
    const { idempotency } = first.store;
    expect((await idempotency.begin(key)).state).toBe('in_flight');
    await later(61_000, async () => {
      expect((await idempotency.begin({ ...key, fingerprint: 'other' })).state).toBe('mismatch');
      expect((await idempotency.begin(key)).state).toBe('fresh');
      await idempotency.finish(key, 202, '{}');
      expect(await idempotency.begin(key)).toEqual({ state: 'replay', status: 202, body: '{}' });
    });
    await left.close();
  });
  test('of a node that was taken for dead has one effect, also when that node comes back and goes on', async () => {
    const paused = await openSecondStore(first, undefined, 'node-paused');
    const other = await openSecondStore(first, undefined, 'node-other');
    const key = keyed();
    const answer = { appUuid: key.appUuid, key: key.key, status: 202, body: {} };
    expect((await paused.idempotency.begin(key)).state).toBe('fresh');
    await markedAgo(key);
    expect(await other.idempotency.releaseLeft('node-paused')).toBe(1);
    const late = message();
    expect((await other.idempotency.begin(key)).state).toBe('fresh');
    const sent = message();
    expect(await other.messages.insert(sent, answer)).toBe(true);
    await expect(paused.messages.insert(late, answer)).rejects.toBeInstanceOf(StoreUnavailable);
    // The database has answered.
    expect(paused.awayMs()).toBe(0);
    expect(await other.messages.get('app', late.messageUuid)).toBeUndefined();
    expect((await other.messages.get('app', sent.messageUuid))?.status).toBe('queued');
    await paused.close();
    await other.close();
  });
  test('is marked by one of two nodes that ask at once', async () => {
    const [one, two] = [await openSecondStore(first), await openSecondStore(first)];
    for (let round = 0; round < 20; round += 1) {
      const key = keyed();
      const states = await Promise.all([one, two, one, two].map(({ idempotency }) => idempotency.begin(key)));
      expect(states.filter((each) => each.state === 'fresh').length).toBe(1);
      expect(states.filter((each) => each.state === 'in_flight').length).toBe(3);
    }
    await one.close();
    await two.close();
  });
});

describe('marks in memory', () => {
  const none = async () => undefined;
  test('are at most 100,000; one whose look-up fails is gone, and one that was left is forgotten in time', async () => {
    let now = 0;
    const marks = new KeyMarks(() => now);
    const key = keyed();
    const refused = marks.begin(key, () => Promise.reject(new StoreUnavailable('away')));
    await expect(refused).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await marks.begin(key, none)).toBeUndefined();
    for (let n = 1; n < 100_000; n += 1) await marks.begin(keyed(), none);
    marks.leave(key);
    await expect(marks.begin(keyed(), none)).rejects.toBeInstanceOf(StoreUnavailable);
    now = 61_000;
    expect(await marks.begin(keyed(), none)).toBeUndefined();
    expect(marks.of(key)).toBeUndefined();
  });

  test('stay while their request is worked on, also beyond the lease, as where the process stands still', async () => {
    let now = 0;
    const marks = new KeyMarks(() => now);
    const [worked, left] = [keyed(), keyed()];
    await marks.begin(worked, none);
    await marks.begin(left, none);
    now = 59_000;
    marks.leave(left);
    expect([await marks.begin(worked, none), await marks.begin(left, none)]).toEqual(['in_flight', 'in_flight']);
    now = 86_400_000;
    expect([await marks.begin(worked, none), await marks.begin(left, none)]).toEqual(['in_flight', undefined]);
    expect([marks.of(worked)?.markedAt, marks.of(left)?.markedAt]).toEqual([0, 86_400_000]);
    // What was marked anew is worked on, too.
    now *= 2;
    expect(await marks.begin(left, none)).toBe('in_flight');
  });

  test('end, and are left, by their own request only', async () => {
    let now = 0;
    const marks = new KeyMarks(() => now);
    const key = keyed();
    const other = { ...key, fingerprint: 'other' };
    await marks.begin(other, none);
    marks.end(key);
    marks.leave(key);
    now = 61_000;
    expect([await marks.begin(other, none), await marks.begin(key, none)]).toEqual(['in_flight', 'mismatch']);
    marks.leave(other);
    marks.end(key);
    expect(marks.of(key)?.fingerprint).toBe('other');
    marks.end(other);
    expect(marks.of(key)).toBeUndefined();
  });

  test('an answer that a process before this one was still storing is the answer of the key', async () => {
    const { idempotency, messages } = first.store;
    const key = keyed();
    await idempotency.begin(key);
    const before = await openSecondStore(first);
    await before.idempotency.begin(key);
    await before.idempotency.finish(key, 202, '{"first":1}');
    await before.close();
    const answer = { appUuid: key.appUuid, key: key.key, status: 202, body: { second: 1 } };
    const second = message();
    await expect(messages.insert(second, answer)).rejects.toBeInstanceOf(StoreUnavailable);
    expect(await messages.get('app', second.messageUuid)).toBeUndefined();
    await idempotency.release(key);
    expect(await idempotency.begin(key)).toEqual({ state: 'replay', status: 202, body: '{"first":1}' });
  });
});

describe('retention', () => {
  test('forgets ended Sessions and keys after 24 h, settled events after 30 days, and nothing that lives', async () => {
    const { journal, sessions, outbox, events, calls } = first.store;
    const live = sessionRow();
    const gone = ended(sessionRow());
    const sent = eventOf(live.appUuid, live.sessionUuid, 1);
    const unsent = eventOf(live.appUuid, live.sessionUuid, 2);
    await journal.commit({ session: live, events: [sent, unsent] });
    await journal.commit({ session: gone, events: [] });
    const entries = [{ at: 1, kind: 'media', what: 'started' } as const];
    await calls.write([live, gone].map(({ sessionUuid }) => ({ sessionUuid, since: 1, entries })));
    await outbox.lease('test', 60_000);
    const page = (await outbox.read({ xid: '0', eventId: 0 }, 100)).events;
    const one = page.find((each) => each.webhookId === sent.webhookId);
    await outbox.settle('test', [{ xid: one?.xid ?? '', eventId: one?.eventId ?? 0, status: 'delivered', attempt: undefined }]);
    await later(23 * HOUR_MS, async () => {
      expect((await first.store.forget()).sessions).toBe(0);
      expect((await sessions.get(gone.appUuid, gone.sessionUuid))?.state).toBe('ended');
    });
    await later(25 * HOUR_MS, async () => {
      expect(await sessions.get(gone.appUuid, gone.sessionUuid)).toBeUndefined();
      expect(await first.store.forget()).toMatchObject({ sessions: 1, events: 0 });
      expect(await calls.timeline(gone.sessionUuid)).toEqual([]);
      expect(await calls.timeline(live.sessionUuid)).toEqual(entries);
    });
    await later(31 * 24 * HOUR_MS, async () => {
      expect((await first.store.forget()).events).toBe(1);
      const left = await events.list({ appUuid: live.appUuid, sessionUuid: undefined, status: undefined, after: 0, limit: 10 });
      expect(left.map((each) => each.webhookId)).toEqual([unsent.webhookId]);
      expect((await sessions.get(live.appUuid, live.sessionUuid))?.state).toBe('new');
    });
  });
});

test('a process that lives for less than an hour sweeps too', async () => {
  const gone = ended(sessionRow(), Date.now() - 25 * HOUR_MS);
  await first.store.journal.commit({ session: gone, events: [] });
  const early: (() => void)[] = [];
  const startedAt = clock.now();
  const store = await openSecondStore(first, {
    ...clock,
    at: (time, run) => {
      if (time - startedAt >= (RETENTION_FIRST_SEC - 1) * 1000 && time - startedAt < HOUR_MS / 2) early.push(run);
      return clock.at(time, run);
    },
  });
  try {
    for (const run of early) run();
    const isGone = async () => (await first.store.sessions.get(gone.appUuid, gone.sessionUuid)) === undefined;
    await eventually(isGone, 'the ended call to be forgotten');
  } finally {
    await store.close();
  }
});

test('the oldest events go although many that are not delivered lie before them', async () => {
  const { journal, outbox, events } = first.store;
  const session = sessionRow();
  const [waiting, sent] = [eventOf(session.appUuid, session.sessionUuid, 1), eventOf(session.appUuid, session.sessionUuid, 2)];
  await journal.commit({
    session,
    events: [...Array.from({ length: RETENTION_BATCH_MAX_ROWS }, () => ({ ...waiting, webhookId: newWebhookId() })), sent],
  });
  await outbox.lease('test', 60_000);
  const one = (await outbox.read({ xid: '0', eventId: 0 }, 2 * RETENTION_BATCH_MAX_ROWS)).events.find(
    ({ webhookId }) => webhookId === sent.webhookId,
  );
  await outbox.settle('test', [{ xid: one?.xid ?? '', eventId: one?.eventId ?? 0, status: 'delivered', attempt: undefined }]);
  await later(31 * 24 * HOUR_MS, async () => {
    expect((await first.store.forget()).events).toBeGreaterThan(0);
    expect(await events.owner(sent.webhookId)).toBeUndefined();
  });
});

test('a batch that the database gives up is tried with fewer rows, down to one', async () => {
  const gone = Array.from({ length: 3 }, () => ended(sessionRow(), Date.now() - 25 * HOUR_MS));
  for (const session of gone) await first.store.journal.commit({ session, events: [] });
  // PostgreSQL ends a statement in this way that takes longer than its time.
  await sql.unsafe(`CREATE FUNCTION too_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM gone) > 1 THEN RAISE EXCEPTION 'too slow' USING ERRCODE = '57014'; END IF; RETURN NULL; END $$`);
  await sql.unsafe(`CREATE TRIGGER slow_disk AFTER DELETE ON sessions REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION too_many()`);
  try {
    expect((await first.store.forget()).sessions).toBe(3);
  } finally {
    await sql.unsafe('DROP TRIGGER slow_disk ON sessions; DROP FUNCTION too_many');
  }
  const left = await Promise.all(gone.map((row) => first.store.sessions.get(row.appUuid, row.sessionUuid)));
  expect(left).toEqual([undefined, undefined, undefined]);
});

test('a table that cannot be swept keeps no other one from being swept', async () => {
  const { consoleCookies, journal } = first.store;
  await journal.commit({ session: ended(sessionRow(), Date.now() - 25 * HOUR_MS), events: [] });
  await consoleCookies.revoke('o.old', Date.now() - HOUR_MS);
  await sql.unsafe(`CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'a broken page' USING ERRCODE = 'XX001'; END $$`);
  await sql.unsafe('CREATE TRIGGER broken BEFORE DELETE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION broken()');
  try {
    await expect(first.store.forget()).rejects.toThrow('a broken page');
    expect(await consoleCookies.isRevoked('o.old')).toBe(false);
  } finally {
    await sql.unsafe('DROP TRIGGER broken ON sessions; DROP FUNCTION broken');
  }
  expect((await first.store.forget()).sessions).toBeGreaterThan(0);
});

test('old events go although many lie before them that a clock which was ahead has dated', async () => {
  const { journal, events } = first.store;
  const session = sessionRow();
  const settled = (count: number) =>
    Array.from({ length: count }, (_, step) => eventOf(session.appUuid, session.sessionUuid, step));
  const [ahead, old] = [settled(RETENTION_BATCH_MAX_ROWS), settled(3)];
  const dated = ahead.map((event) => ({ ...event, at: Date.now() + 365 * 24 * HOUR_MS }));
  await journal.commit({ session, events: [...dated, ...old] });
  await sql`DELETE FROM outbox WHERE event_id IN (SELECT event_id FROM events WHERE session_uuid = ${session.sessionUuid})`;
  await sql`UPDATE events SET status = 'delivered' WHERE session_uuid = ${session.sessionUuid}`;
  await later(31 * 24 * HOUR_MS, async () => {
    await first.store.forget();
    const owners = await Promise.all(old.map(({ webhookId }) => events.owner(webhookId)));
    expect(owners).toEqual([undefined, undefined, undefined]);
    expect(await events.owner(ahead[0]?.webhookId ?? '')).toBeDefined();
  });
  await later(400 * 24 * HOUR_MS, async () => {
    await first.store.forget();
    expect(await events.owner(ahead[0]?.webhookId ?? '')).toBeUndefined();
  });
});

test('a deleted Room is forgotten after a day', async () => {
  const { journal } = first.store;
  const room = roomRow({ holdMusicUrl: 'https://media.example.com/hold.mp3?token=secret' });
  await journal.commit({ room, events: [] });
  await journal.commit({ room: { ...room, deleting: true, deletedAt: Date.now() }, events: [] });
  await later(23 * HOUR_MS, async () => expect((await first.store.forget()).rooms).toBe(0));
  await later(25 * HOUR_MS, async () => expect((await first.store.forget()).rooms).toBe(1));
});

test('a process that ended is forgotten after 30 days, and nothing that it sends after that is stored', async () => {
  const { nodes } = first.store;
  const nodeId = newUuid();
  const stopped = await openSecondStore(first, undefined, nodeId);
  await stopped.nodes.beat('{}');
  const beats = () => sql`SELECT 1 FROM node_beats WHERE node_id = ${nodeId}`;
  expect(await nodes.bury(nodeId, undefined)).toBe(true);
  expect(await beats()).toHaveLength(1);
  await later(29 * 24 * HOUR_MS, async () => expect((await first.store.forget()).nodes).toBe(0));
  await later(31 * 24 * HOUR_MS, async () => expect((await first.store.forget()).nodes).toBeGreaterThan(0));
  expect(await nodes.get(nodeId)).toBeUndefined();
  expect(await beats()).toHaveLength(0);
  expect((await nodes.get(nodes.nodeId))?.deadAt).toBeUndefined();
  await expect(stopped.journal.commit({ session: sessionRow({ nodeId }), events: [] })).rejects.toBeInstanceOf(StoreUnavailable);
  await stopped.close();
});

test('a cookie that was logged out is forgotten when it would be over anyway', async () => {
  const { consoleCookies } = first.store;
  await consoleCookies.revoke('o.cookie', Date.now() + 12 * HOUR_MS);
  await later(11 * HOUR_MS, async () => expect((await first.store.forget()).cookies).toBe(0));
  expect(await consoleCookies.isRevoked('o.cookie')).toBe(true);
  await later(13 * HOUR_MS, async () => expect((await first.store.forget()).cookies).toBe(1));
  expect(await consoleCookies.isRevoked('o.cookie')).toBe(false);
});

describe('the default application', () => {
  test('is made once, by one of the nodes that start together on an empty database', async () => {
    const second = await openSecondStore(first);
    const made = await Promise.all([first.store, second, first.store, second].map(({ apps }) => apps.ensureDefault()));
    expect(made.filter((each) => each !== undefined).length).toBe(1);
    expect((await first.store.apps.list()).map((app) => app.name)).toEqual(['default']);
    await second.close();
  });
});

describe('a sealed secret', () => {
  const seal = createSeal(new Uint8Array(32).fill(1));
  test('opens under its key and for its owner only, and never twice looks the same', () => {
    const sealed = seal.close('whsec_x', 'app_1');
    expect(seal.open(sealed, 'app_1')).toBe('whsec_x');
    expect(Buffer.from(sealed).includes('whsec_x')).toBe(false);
    expect(seal.close('whsec_x', 'app_1')).not.toEqual(sealed);
    expect(() => seal.open(sealed, 'app_2')).toThrow();
    expect(() => createSeal(new Uint8Array(32).fill(2)).open(sealed, 'app_1')).toThrow();
    for (const at of [0, 12, sealed.length - 1])
      expect(() => seal.open(sealed.with(at, (sealed[at] ?? 0) ^ 1), 'app_1')).toThrow();
  });
});
