/** A release that changes tables starts while others work on the database. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import postgres from 'postgres';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';

let first: TestStore;
let backup: postgres.Sql;
let caller: postgres.Sql;
beforeAll(async () => {
  first = await openTestStore();
  const options = { path: `${first.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 1 };
  backup = postgres(options);
  caller = postgres(options);
});
afterAll(async () => {
  await Promise.all([backup.end(), caller.end()]);
  await first.close();
});

/** Takes back the migration that changed `apps`, and those behind it: the database is of a release before. */
async function undoLast(): Promise<void> {
  const all = readMigrationFiles({ migrationsFolder: 'drizzle' });
  const changes = all.findLastIndex(({ sql }) => sql.some((each) => each.includes('ALTER TABLE "apps"')));
  for (const { sql, hash } of all.slice(changes)) {
    for (const made of sql) await caller.unsafe(inverse(made));
    await caller.unsafe('DELETE FROM sidetone_migrations WHERE hash = $1', [hash]);
  }
}

/** What takes a statement back. The indexes of a new table go with it, and a dropped one is there again by its name. */
const inverse = (made: string): string =>
  made
    .trim()
    .replace(/^ALTER TABLE ("\w+") ADD COLUMN ("\w+") .*$/s, 'ALTER TABLE $1 DROP COLUMN $2')
    .replace(/^CREATE TABLE ("\w+") .*$/s, 'DROP TABLE $1')
    .replace(/^CREATE INDEX ("\w+") .*$/s, 'DROP INDEX IF EXISTS $1')
    .replace(/^DROP INDEX ("webrtc_\w+");$/, 'CREATE INDEX $1 ON webrtc_tokens (app_uuid)');

const isWaitedFor = async (table = 'apps'): Promise<boolean> =>
  (await caller.unsafe('SELECT 1 FROM pg_locks WHERE relation = $1::regclass AND NOT granted', [table])).length > 0;

test('An upgrade during a backup holds up nobody who works, and is over when the backup is', async () => {
  await undoLast();
  let store: ReturnType<typeof openSecondStore> | undefined;
  // pg_dump locks every table in this way until it is done.
  await backup.begin(async (dump) => {
    await dump.unsafe('LOCK TABLE apps IN ACCESS SHARE MODE');
    store = openSecondStore(first);
    while (!(await isWaitedFor()));
    // It comes behind the migration, which gives up its place.
    expect(await caller.unsafe('SELECT name FROM apps')).toHaveLength(0);
  });
  const second = await store;
  expect(await caller.unsafe('SELECT allowed_destinations FROM apps')).toHaveLength(0);
  await second?.close();
}, 20_000);

test('An upgrade that a backup and it keep waiting for each other gives up its place, and is tried again', async () => {
  await undoLast();
  await caller.unsafe("ALTER ROLE sidetone SET deadlock_timeout = '200ms'");
  let store: ReturnType<typeof openSecondStore> | undefined;
  await backup.begin(async (dump) => {
    await dump.unsafe("SET LOCAL deadlock_timeout = '1min'");
    await dump.unsafe('LOCK TABLE webrtc_tokens IN ACCESS SHARE MODE');
    store = openSecondStore(first);
    while (!(await isWaitedFor('webrtc_tokens')));
    // The migration has this one, and waits for the other.
    await dump.unsafe('LOCK TABLE apps IN ACCESS SHARE MODE');
  });
  const second = await store;
  expect(await caller.unsafe('SELECT allowed_destinations FROM apps')).toHaveLength(0);
  await second?.close();
}, 20_000);
