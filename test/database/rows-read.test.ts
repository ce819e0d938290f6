/**
 * The rows that a statement reads of a table that grows for as long as the platform runs: few, however many there are.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { webrtcTokenStore } from '../../src/database/app/webrtc-tokens.ts';
import { paymentStore } from '../../src/database/call/payments.ts';
import { recordingStore } from '../../src/database/call/recordings.ts';
import type { Database, Parameter, Row } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { eventLog } from '../../src/database/event/events.ts';
import { outboxStore } from '../../src/database/event/outbox.ts';
import { idempotencyStore } from '../../src/database/idempotency/idempotency.ts';
import { keptAnswers } from '../../src/database/journal/kept-answers.ts';
import { messageStore } from '../../src/database/messages.ts';
import { forget } from '../../src/database/retention.ts';
import { newUuid } from '../../src/id.ts';
import { DEVICE_BINDINGS_PAGE_ROWS, WEBRTC_TOKEN_KEPT_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { masterKey, openTestStore, type TestStore } from './open.ts';

const ROWS = 3_000;
const FEW = 100;

let own: TestStore;
let database: Database;
/** It plans each statement for any parameters, as the other one does with one that it has run a few times. */
let generic: Database;
/** It fills tables: a statement of the platform has its time, which a busy machine may not keep. */
let filling: postgres.Sql;
beforeAll(async () => {
  own = await openTestStore();
  const { url, dataDir } = own;
  const at = (databaseUrl: string) => openDatabase({ dataDir, databaseUrl, databaseDriver: 'postgres' }, silentLog);
  database = await at(url);
  generic = await at(`${url}&plan_cache_mode=force_generic_plan`);
  filling = postgres({ host: `${dataDir}/postgres-socket`, username: 'sidetone', database: 'postgres', max: 1 });
});
afterAll(async () => {
  await database.close();
  await generic.close();
  await filling.end();
  await own.close();
});

/** So many rows of the table were read on the connection that is asked. */
const COUNT = '(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int';
const VIEW = 'pg_stat_xact_user_tables';
const READ = `SELECT ${COUNT} AS read FROM ${VIEW} WHERE relname = $1`;

/** The database, and how many rows of a table its statements have read. */
function counting(table: string, database: Database) {
  const counted = { rows: 0 };
  const counting = async <T>(read: () => Promise<number>, work: () => PromiseLike<T>): Promise<T> => {
    const before = await read();
    const result = await work();
    counted.rows += (await read()) - before;
    return result;
  };
  const on: Database = {
    ...database,
    query: <R extends Row>(text: string, parameters?: readonly Parameter[]) =>
      database.transaction((within) =>
        counting(
          async () => Number((await within.query(READ, [table]))[0]?.read ?? 0),
          () => within.query<R>(text, parameters),
        ),
      ),
    run: (work) =>
      database.run((drizzle) =>
        drizzle.transaction((within) => {
          const asked = () =>
            within
              .select({ read: sql<number>`${sql.raw(COUNT)}` })
              .from(sql.raw(VIEW))
              .where(sql`relname = ${table}`);
          return counting(
            async () => (await asked())[0]?.read ?? 0,
            () => work(within),
          );
        }),
      ),
  };
  return { counted, on };
}

test('A start gives back the keys that the process before it left in flight, and reads none of those that are older', async () => {
  const answered = `INSERT INTO idempotency (app_uuid, key, fingerprint, status, body, lease_until, node_id, created_at)
    SELECT 'app', gen_random_uuid()::text, 'f', 202, '{}', 0, 'node-before', $2::bigint + nth FROM generate_series(1, $1::int) AS nth`;
  await database.query(answered, [ROWS, Date.now() - 3_600_000]);
  const before = idempotencyStore(database, 'node-before', Date.now, undefined);
  await database.query(`INSERT INTO nodes (node_id, volume_id, host, http_port, rtp_host, sip_contact, labels, version, protocol, started_at)
    VALUES ('node-before', '', '', 0, '', '', '{}', '', 0, 0)`);
  const left = { appUuid: 'app', key: newUuid(), fingerprint: 'f' };
  expect((await before.begin(left)).state).toBe('fresh');

  const { counted, on } = counting('idempotency', database);
  expect(await idempotencyStore(on, 'node-after', Date.now, undefined).releaseLeft('node-before')).toBe(1);
  expect(counted.rows).toBeLessThan(FEW);
});

test('A relay that begins finds the applications with a backlog, and reads few rows of one whose receiver is down for long', async () => {
  const waiting = `INSERT INTO outbox (xid, event_id, app_uuid) SELECT $1::text::xid8, nth, $2 FROM generate_series(1, $3::int) AS nth`;
  for (const [xid, app, rows] of [
    ['100', 'down', ROWS],
    ['101', 'up', 2],
    ['102', 'also-down', ROWS],
    ['300', 'new', ROWS],
  ] as const)
    await database.query(waiting, [xid, app, rows]);

  const { counted, on } = counting('outbox', database);
  const found = await outboxStore(on).backlog({ xid: '200', eventId: 0 });
  expect([...found].sort()).toEqual(['also-down', 'down', 'up']);
  expect(counted.rows).toBeLessThan(FEW);
  await database.query('DELETE FROM outbox');
  expect(await outboxStore(on).backlog({ xid: '200', eventId: 0 })).toEqual([]);
});

test('The look for messages that have waited for a day reads those that wait, and none of the many that are settled', async () => {
  const insert = `INSERT INTO messages (message_uuid, app_uuid, operation_uuid, from_number, to_number, body, encoding, segments, status,
      created_at, updated_at, parts, stage, due_at, traceparent)
    SELECT gen_random_uuid(), 'app', 'op', '+1', '+2', 'Hello', 'gsm7', 1, 'sent', $1::bigint + nth, 0, '[]', $2, $1::bigint + nth, ''
    FROM generate_series(1, $3::int) AS nth`;
  const waiting = 10_000;
  await filling.unsafe(insert, [1_000_000, 'settled', 3 * waiting]);
  await filling.unsafe(insert, [3_000_000, 'waiting', waiting]);
  // What the database knows of its tables decides which way it takes.
  await database.query('ANALYZE messages');

  const { counted, on } = counting('messages', database);
  const store = messageStore(on, false, keptAnswers(undefined), () => {});
  expect(await store.waitingSince(2_000_000)).toEqual([]);
  expect(counted.rows).toBeLessThanOrEqual(waiting);
  expect(await store.waitingSince(3_000_002)).toHaveLength(2);
});

test('The look for recordings without a length reads none of the many that have one', async () => {
  const insert = `INSERT INTO recordings (recording_uuid, app_uuid, volume_id, operation_uuid, client_state, traceparent, created_at,
      ended_at, duration_ms, bytes)
    SELECT 'rec_' || gen_random_uuid(), 'app', $1, 'op', '', '', nth, nth, $2::bigint, 1 FROM generate_series(1, $3::int) AS nth`;
  await database.query(insert, ['here', 1_000, ROWS]);
  await database.query(insert, ['here', null, 2]);
  await database.query(insert, ['elsewhere', null, 1]);

  const { counted, on } = counting('recordings', database);
  expect(await recordingStore(on, 'node', async () => true).unmended('here')).toHaveLength(2);
  expect(counted.rows).toBeLessThan(FEW);
});

test('The look for references to cards that have expired reads none of the many that charges have taken', async () => {
  const insert = `INSERT INTO payment_references (reference, app_uuid, session_uuid, sealed, brand, last4, expires_at)
    SELECT gen_random_uuid()::text, 'app', gen_random_uuid(), $1::bytea, '', '', $2::bigint FROM generate_series(1, $3::int)`;
  await database.query(insert, [null, -1_000, ROWS]);
  for (const expiresAt of [1_000, 2_000, 3_000]) await database.query(insert, [new Uint8Array(1), expiresAt, 1]);

  const { counted, on } = counting('payment_references', database);
  const more = { kept: keptAnswers(undefined), nodeId: 'node', shared: false, onEvents: () => {} };
  const store = paymentStore({ database: on, masterKey, ...more });
  expect(await store.destroyExpired(2_000)).toBe(3_000);
  expect(counted.rows).toBeLessThan(FEW);
  const kept = await database.query('SELECT expires_at FROM payment_references WHERE sealed IS NOT NULL');
  expect(kept.map((row) => Number(row.expires_at))).toEqual([3_000]);
});

test('A list of the latest messages of an application reads those, and none of the many before', async () => {
  const insert = `INSERT INTO messages (message_uuid, app_uuid, operation_uuid, from_number, to_number, body, encoding, segments, status,
      created_at, updated_at, parts, stage, due_at, traceparent)
    SELECT gen_random_uuid(), 'busy', 'op', '+1', '+2', 'Hello', 'gsm7', 1, 'sent', nth, 0, '[]', 'settled', 0, ''
    FROM generate_series(1, $1::int) AS nth`;
  await database.query(insert, [ROWS]);
  await database.query('ANALYZE messages');

  const { counted, on } = counting('messages', generic);
  const store = messageStore(on, false, keptAnswers(undefined), () => {});
  const any = { status: undefined, to: undefined, from: undefined, limit: 1_000 };
  expect(await store.list('busy', { ...any, createdAfter: ROWS - 9, createdBefore: undefined })).toHaveLength(10);
  expect(await store.list('busy', { ...any, createdAfter: undefined, createdBefore: 11 })).toHaveLength(10);
  expect(counted.rows).toBeLessThan(FEW);
  expect(await store.list('busy', { ...any, createdAfter: undefined, createdBefore: undefined })).toHaveLength(1_000);
});

test('A token is made, and forgotten, without a look at the many that have expired, of its application and of others', async () => {
  const { appUuid } = await own.store.apps.create({ name: 'busy' });
  const { appUuid: other } = await own.store.apps.create({ name: 'gone' });
  const insert = `INSERT INTO webrtc_tokens (token_id, app_uuid, hash, caller_id, did, client_state, created_at, expires_at)
    SELECT gen_random_uuid(), $1, sha256(($1 || nth)::bytea), '', '', '', 0, $2::bigint + nth FROM generate_series(1, $3::int) AS nth`;
  const now = Date.now();
  // Tokens of the last day are kept, and so are those of an application that makes no more of them.
  await filling.unsafe(insert, [appUuid, now - 3_600_000, 20 * ROWS]);
  await filling.unsafe(insert, [other, 0, 10 * ROWS]);
  await database.query('ANALYZE webrtc_tokens');

  const { counted, on } = counting('webrtc_tokens', database);
  const made = await webrtcTokenStore(on, () => now).create(appUuid, { ttlSec: 60, callerId: '', did: '', clientState: '' });
  expect(made).toHaveProperty('token');
  expect(counted.rows).toBeLessThan(FEW);

  // What is past its time is found without a look at what is kept.
  counted.rows = 0;
  expect((await forget(on, WEBRTC_TOKEN_KEPT_MS + 3, 1)).tokens).toBe(2);
  expect(counted.rows).toBeLessThan(FEW);
});

test('A start reads the contacts of devices page by page, each of them once', async () => {
  const { appUuid } = await own.store.apps.create({ name: 'phones' });
  const many = DEVICE_BINDINGS_PAGE_ROWS + FEW;
  await database.query(
    `INSERT INTO devices (username, app_uuid, secrets, created_at, changed_at)
      SELECT 'user' || nth, $1, ''::bytea, 0, 0 FROM generate_series(1, $2::int) AS nth`,
    [appUuid, many / 2],
  );
  await database.query(
    `INSERT INTO device_contacts (username, uri, call_id, cseq, expires_at, transport, host, port, user_agent)
      SELECT 'user' || nth, 'sip:' || host, 'id', 1, $1::bigint, 'udp', host, 5060, ''
      FROM generate_series(1, $2::int) AS nth, unnest(ARRAY['192.0.2.1', '192.0.2.2']) AS host`,
    [Date.now() + 60_000, many / 2],
  );
  const pages: number[] = [];
  const found = new Set<string>();
  for await (const page of own.store.devices.allBindings()) {
    pages.push(page.length);
    for (const { username, binding } of page) found.add(`${username} ${binding.host}`);
  }
  expect(pages).toEqual([DEVICE_BINDINGS_PAGE_ROWS, FEW]);
  expect(found.size).toBe(many);
});

test('The message of a receipt is found by the id of the SMSC also where the database knows nothing of its tables yet', async () => {
  await database.query('TRUNCATE messages CASCADE');
  for (const table of ['messages', 'message_parts'])
    await database.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  await filling.unsafe(
    `WITH stored AS (
      INSERT INTO messages (message_uuid, app_uuid, operation_uuid, from_number, to_number, body, encoding, segments, status,
        created_at, updated_at, parts, stage, due_at, traceparent)
      SELECT gen_random_uuid(), 'app', 'op', '+1', '+2', 'Hello', 'gsm7', 1, 'sent', nth, 0, '[]', 'settled', 0, ''
      FROM generate_series(1, $1::int) AS nth RETURNING message_uuid, created_at
    ) INSERT INTO message_parts (message_uuid, part, smsc_id) SELECT message_uuid, 0, 'id-' || created_at FROM stored`,
    [20 * ROWS],
  );

  const { counted, on } = counting('messages', generic);
  const store = messageStore(on, false, keptAnswers(undefined), () => {});
  expect(await store.findParts(['id-1'])).toHaveLength(1);
  expect(counted.rows).toBeLessThan(FEW);
});

test('What an application has of one Session is found by the Session where the database knows nothing of its tables yet', async () => {
  await database.query('TRUNCATE events, recordings');
  for (const table of ['events', 'recordings']) await database.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  const session = newUuid();
  // The oldest one of many is of the Session.
  const sessionOf = `CASE nth WHEN 1 THEN $1::uuid ELSE gen_random_uuid() END`;
  await filling.unsafe(
    `INSERT INTO events (webhook_id, app_uuid, name, session_uuid, lanes, body, traceparent, at, status)
      SELECT 'msg_' || nth, 'busy', 'session.ended', ${sessionOf}::text, '{}', '{}', '', nth, 'delivered' FROM generate_series(1, $2::int) AS nth`,
    [session, 20 * ROWS],
  );
  await filling.unsafe(
    `INSERT INTO recordings (recording_uuid, app_uuid, session_uuid, volume_id, operation_uuid, client_state, traceparent, created_at,
        ended_at, duration_ms, bytes)
      SELECT 'rec_' || nth, 'busy', ${sessionOf}, 'v', 'op', '', '', nth, nth, 1000, 1 FROM generate_series(1, $2::int) AS nth`,
    [session, 20 * ROWS],
  );

  const of = { appUuid: 'busy', sessionUuid: session, limit: 100 };
  const ofEvents = counting('events', database);
  const log = eventLog(ofEvents.on, () => {});
  expect(await log.list({ ...of, status: undefined, after: 0 })).toHaveLength(1);
  expect(await log.list({ ...of, status: undefined, after: 0, before: 1_000_000_000 })).toHaveLength(1);
  expect(ofEvents.counted.rows).toBeLessThan(FEW);
  const ofRecordings = counting('recordings', database);
  const recordings = recordingStore(ofRecordings.on, 'node', async () => true);
  const all = { ...of, roomId: undefined, createdAfter: undefined, createdBefore: undefined, after: undefined };
  expect(await recordings.list('busy', all)).toHaveLength(1);
  expect(ofRecordings.counted.rows).toBeLessThan(FEW);
});
