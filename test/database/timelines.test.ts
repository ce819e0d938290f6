/** Timelines of calls as they are stored: how much of them goes into one statement. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { callStore } from '../../src/database/call/calls.ts';
import type { Database } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { HISTORY_BATCH_MAX_CHARS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { masterKey, openTestStore, type TestStore } from './open.ts';
import { sessionRow } from './rows.ts';

let opened: TestStore;
let database: Database;
beforeAll(async () => {
  opened = await openTestStore();
  const settings = { dataDir: opened.dataDir, databaseUrl: opened.url, databaseDriver: 'postgres', masterKey } as const;
  database = await openDatabase(settings, silentLog);
}, 60_000);
afterAll(async () => {
  await database?.close();
  await opened?.close();
});

test('Long timelines go into statements that hold the event loop for a moment each, and all of them are stored', async () => {
  const rows = Array.from({ length: 40 }, () => sessionRow());
  for (const session of rows) await opened.store.journal.commit({ session, events: [] });
  const lengths: number[] = [];
  const calls = callStore(
    {
      ...database,
      query: (text, parameters) => {
        lengths.push(String(parameters?.[0]).length);
        return database.query(text, parameters);
      },
    },
    true,
  );
  const entries = Array.from({ length: 10 }, () => ({ at: 1, kind: 'media', what: 'x'.repeat(4_000) }) as const);
  await calls.write(rows.map(({ sessionUuid }) => ({ sessionUuid, since: 1, entries })));
  expect(Math.max(...lengths)).toBeLessThan(HISTORY_BATCH_MAX_CHARS * 1.2);
  expect(lengths.length).toBeLessThan(10);
  for (const { sessionUuid } of rows) expect(await calls.timeline(sessionUuid)).toHaveLength(10);
});

test('One part that is longer than a statement is meant to be goes by itself', async () => {
  const session = sessionRow();
  await opened.store.journal.commit({ session, events: [] });
  const calls = callStore(database, true);
  const entries = Array.from({ length: 50 }, () => ({ at: 1, kind: 'media', what: 'x'.repeat(8_000) }) as const);
  await calls.write([{ sessionUuid: session.sessionUuid, since: 1, entries }]);
  expect(await calls.timeline(session.sessionUuid)).toHaveLength(50);
});
