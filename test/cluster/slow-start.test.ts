/** A node that is declared dead while it starts, as one that takes up for longer than it may give no sign of life. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { newUuid } from '../../src/id.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { Platform } from '../support/platform.ts';
import { eventually } from './harness.ts';

let database: TestStore;
const dataDir = dataDirectory('sidetone-slow-start-');

beforeAll(async () => {
  database = await openTestStore();
}, 60_000);

afterAll(async () => {
  await database?.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test('A node that is declared dead while it takes up what an earlier process left ends', async () => {
  const volumeId = newUuid();
  mkdirSync(dataDir, { recursive: true });
  writeFileSync(join(dataDir, 'volume.id'), volumeId);
  const options = { path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 };
  const sql = postgres(options);
  const alive = () => sql`SELECT 1 FROM nodes WHERE volume_id = ${volumeId} AND dead_at IS NULL`;
  let ended: Promise<unknown> = Promise.resolve();
  await sql`INSERT INTO recordings (recording_uuid, app_uuid, session_uuid, volume_id, operation_uuid, client_state, traceparent, created_at)
    VALUES (${`rec_${newUuid()}`}, ${`app_${newUuid()}`}, ${newUuid()}, ${volumeId}, ${newUuid()}, '', '', 1)`;
  await sql.begin(async (held) => {
    // The start waits here for what was left, until it has been declared dead.
    await held`LOCK TABLE recordings IN ACCESS EXCLUSIVE MODE`;
    ended = Platform.start({
      DATABASE_URL: database.url,
      NATS_URL: 'nats://127.0.0.1:1',
      MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      OPERATOR_TOKEN: 'operator-token-of-the-node',
      DATA_DIR: dataDir,
    }).then(
      (platform) => platform.stop().then(() => 'it started'),
      (error: unknown) => String(error),
    );
    await eventually(async () => (await alive()).length === 1, 'the node to enter');
    await sql`UPDATE nodes SET dead_at = 1, dead_by = 'another' WHERE volume_id = ${volumeId}`;
  });
  expect(await ended).toContain('the platform ended with 1:');
  expect(await ended).toContain('this node was declared dead');
  await sql.end();
}, 90_000);
