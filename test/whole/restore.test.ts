/** What a platform does that is started on a backup, as the documentation says. */
import { expect, test } from 'bun:test';
import postgres from 'postgres';
import { openTestStore } from '../database/open.ts';
import { blocksOf } from '../docs/blocks.ts';
import { Platform } from '../support/platform.ts';
import { Receiver } from '../support/receiver.ts';
import { freePort } from '../support/sipp.ts';

test('Short messages that wait in a backup are sent by nobody after the statement of the documentation, and are told as failed', async () => {
  const database = await openTestStore();
  const receiver = new Receiver();
  const environment = { DATABASE_URL: database.url };
  let platform: Platform | undefined;
  try {
    platform = await Platform.start({ ...environment, SMS_PROVIDER: `smpp://u:p@127.0.0.1:${await freePort()}` });
    const app = await platform.application(receiver.url, '+15550002');
    receiver.secrets.set(app.appUuid, app.webhookSecret);
    const sent = await platform.api(app, 'POST', '/v1/messages', { from: '+15550002', to: '+15550100', text: 'once' });
    expect(sent.status).toBe(202);
    const { dataDir } = platform;
    await platform.kill();
    const [statement] = blocksOf('sql').filter(({ text }) => text.includes('UPDATE messages'));
    const sql = postgres({ path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres' });
    expect((await sql.unsafe(statement?.text ?? '')).count).toBe(1);
    await sql.end();

    const restored = await Platform.start({ ...environment, DATA_DIR: dataDir, SMS_PROVIDER: 'sandbox' });
    try {
      const { body } = await receiver.event('message.status_changed');
      expect(body).toMatchObject({ message_uuid: sent.body.message_uuid, status: 'failed', error_code: 'outcome_unknown' });
      expect(receiver.names()).toEqual(['message.status_changed']);
    } finally {
      await restored.stop();
    }
  } finally {
    await platform?.stop();
    await database.close();
    await receiver.stop();
  }
}, 60_000);
