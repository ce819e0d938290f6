/** The list of an application's Rooms, where it is read from the database: in a cluster. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test';
import type { Database } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { LIST_MATCHED_MAX_ITEMS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { openTestStore, type TestStore } from './open.ts';

const APP = 'app_rooms';
const ROOMS = `INSERT INTO rooms (room_id, app_uuid, node_id, epoch, voice_activity_events, hold_music_url, deleting, playback, created_at)
  SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, $1, 'node', 0, false, '', false, '', n
  FROM generate_series($2::int, $3::int) AS n`;
/** Session n is in Room n, or in none where there is no such Room: `$4` Rooms have one. */
const SESSIONS = `INSERT INTO sessions (session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, client_state, running, trunk,
    summary, answered, room_id, created_at)
  SELECT gen_random_uuid(), $1, 'node', 0, 'phone_in', 'answered', '', '', '', '', '', '', true,
    CASE WHEN n <= $4::int THEN '00000000-0000-4000-8000-' || lpad(n::text, 12, '0') ELSE '' END, n
  FROM generate_series($2::int, $3::int) AS n`;

let opened: TestStore;
let database: Database;
beforeAll(async () => {
  opened = await openTestStore();
  database = await openDatabase({ dataDir: opened.dataDir, databaseUrl: opened.url, databaseDriver: 'postgres' }, silentLog);
}, 60_000);
afterAll(async () => {
  await database?.close();
  await opened?.close();
});
beforeEach(async () => {
  await database.query('TRUNCATE rooms, sessions CASCADE', []);
});

/** Puts rows in, so many of them with a statement that a busy machine has the time for it. */
async function fill(statement: string, count: number, more: readonly number[] = []): Promise<void> {
  const most = 5_000;
  for (let from = 1; from <= count; from += most)
    await database.query(statement, [APP, from, Math.min(count, from + most - 1), ...more]);
}

/** Asks again, as a client does, where a busy machine does not list so many in the time that a statement has. */
async function patientList(): ReturnType<TestStore['store']['rooms']['list']> {
  for (let turn = 1; ; turn += 1) {
    try {
      return await opened.store.rooms.list(APP);
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || turn === 5) throw error;
    }
  }
}

test('An application with 50,000 Rooms and as many calls is told them all, newest first, with who is in each', async () => {
  await fill(ROOMS, LIST_MATCHED_MAX_ITEMS);
  await fill(SESSIONS, LIST_MATCHED_MAX_ITEMS, [3]);
  const rooms = await patientList();
  expect(rooms).toHaveLength(LIST_MATCHED_MAX_ITEMS);
  if (rooms === 'too_many') throw new Error('too many');
  expect(rooms.slice(-4).map(({ createdAt, members }) => ({ createdAt, members }))).toEqual([
    { createdAt: 4, members: 0 },
    { createdAt: 3, members: 1 },
    { createdAt: 2, members: 1 },
    { createdAt: 1, members: 1 },
  ]);
}, 60_000);

test('One Room more than 50,000 is too many', async () => {
  await fill(ROOMS, LIST_MATCHED_MAX_ITEMS + 1);
  expect(await patientList()).toBe('too_many');
}, 60_000);

test('Who is in a Room of another application, or has ended, is not counted', async () => {
  await database.query(ROOMS, [APP, 1, 2]);
  await database.query(SESSIONS, [APP, 1, 2, 2]);
  await database.query(SESSIONS, ['app_other', 1, 2, 2]);
  await database.query('UPDATE sessions SET ended_at = 9 WHERE app_uuid = $1 AND created_at = 1', [APP]);
  const rooms = await opened.store.rooms.list(APP);
  if (rooms === 'too_many') throw new Error('too many');
  expect(rooms.map(({ createdAt, members }) => [createdAt, members])).toEqual([
    [2, 1],
    [1, 0],
  ]);
});
