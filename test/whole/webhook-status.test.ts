/** What an application is told of its own webhook while nothing gets through. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { type Credentials, Platform } from '../support/platform.ts';

let platform: Platform;
let app: Credentials;
let answer = 503;
const receiver = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(null, { status: answer }) });
const url = `http://127.0.0.1:${receiver.port}/`;

beforeAll(async () => {
  platform = await Platform.start({ WEBHOOK_RETRY_SCALE: '0.2' });
  app = await platform.application(url, '+15550091');
}, 60_000);
afterAll(async () => {
  await platform?.stop();
  await receiver.stop(true);
});

/** Resolves when the application is told this; a test that waits in vain runs out of its time. */
async function told(lastError: string): Promise<void> {
  for (;;) {
    // The operator's view is the same, and is not limited in its rate.
    const { webhook_status: status } = (await platform.operator('GET', `/apps/${app.appUuid}`)).body;
    if (JSON.stringify(status).includes(`"last_error":"${lastError}"`)) return expect(status).toMatchObject({ state: 'enabled' });
  }
}

test('an application whose webhook fails is told why, and no longer once its events are delivered', async () => {
  await told('');
  await platform.operator('POST', `/apps/${app.appUuid}/events`, { event: 'session.created' });
  await told('http_503');
  await platform.api(app, 'PATCH', '/api/v1/app', { webhook_url: 'http://10.255.255.1/' });
  await told('rejected');
  answer = 204;
  await platform.api(app, 'PATCH', '/api/v1/app', { webhook_url: url });
  await told('');
  expect((await platform.api(app, 'GET', '/api/v1/app')).body).toMatchObject({ webhook_status: { last_error: '' } });
}, 60_000);
