/** What a query was given is in no error of it, since errors are logged. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import { sqlState } from '../../src/database/driver/database.ts';
import { stackOf } from '../../src/error-facts.ts';
import { openTestStore, type TestStore } from './open.ts';

let test_: TestStore;
beforeAll(async () => {
  test_ = await openTestStore();
});
afterAll(() => test_.close());

test('a query that the database refuses is told without its values, with its text and the reason', async () => {
  const path = `${test_.dataDir}/postgres-socket/.s.PGSQL.5432`;
  const admin = postgres({ path, user: 'sidetone', database: 'postgres', max: 1 });
  await admin.unsafe('ALTER TABLE apps RENAME COLUMN name TO other_name');
  await admin.end();
  const secret = 'https://user-4111111111111111.example.com/';
  const creating = test_.store.apps.create({ name: secret, webhookUrl: secret, blockedWebhookEvents: [] });
  const error: unknown = await creating.then(
    () => undefined,
    (refused: unknown) => refused,
  );
  expect(sqlState(error)).toBe('42703');
  const logged = stackOf(error);
  expect(logged).toContain('insert into "apps"');
  expect(logged).toContain('column "name" of relation "apps" does not exist');
  expect(logged).not.toContain('4111111111111111');
  expect(Bun.inspect(error)).not.toContain('4111111111111111');
});
