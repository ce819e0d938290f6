/** The message routes through the real app and database. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import { systemClock } from '../../src/clock.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { mayReach } from '../../src/destinations.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { noIncoming } from '../support/no-incoming.ts';
import { openPlatform, type Platform } from './platform.ts';

const FROM = '+15550100';
const TO = '+972500000001';
let platform: Platform;
let app: AppSecrets;
let other: AppSecrets;
let isDraining = false;

beforeAll(async () => {
  platform = await openPlatform({ draining: () => isDraining });
  const { apps, callerIds } = platform.testStore.store;
  app = await apps.create({ name: 'one' });
  other = await apps.create({ name: 'two' });
  await callerIds.allow(app.appUuid, FROM);
});
afterAll(() => platform.close());

const send = (body: object, headers: Record<string, string> = {}, as = app) =>
  platform.call(as, 'POST', '/v1/messages', body, headers);
const hello = { from: FROM, to: TO, text: 'hello' };

describe('messages', () => {
  test('are admitted as queued, and read back whole', async () => {
    const operation = newUuid();
    const sent = await send({ ...hello, text: 'שלום €' }, { 'operation-id': operation });
    expect(sent).toMatchObject({ status: 202, body: { operation_uuid: operation, status: 'queued' } });
    const read = await platform.call(app, 'GET', `/v1/messages/${sent.body.message_uuid}`);
    expect(read.body).toEqual({
      message_uuid: sent.body.message_uuid,
      direction: 'outbound',
      from: FROM,
      to: TO,
      text: 'שלום €',
      status: 'queued',
      segments: 1,
      encoding: 'ucs2',
      error_code: '',
      error_message: '',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: read.body.created_at,
      sent_at: '',
      delivered_at: '',
    });
    expect((await platform.call(other, 'GET', `/v1/messages/${sent.body.message_uuid}`)).status).toBe(404);
    expect((await platform.call(app, 'GET', '/v1/messages/nothing')).status).toBe(404);
  });

  test('under one key are one message', async () => {
    const first = await send(hello, { 'idempotency-key': 'one' });
    const again = await send(hello, { 'idempotency-key': 'one' });
    expect([again.body, again.headers.get('idempotent-replayed')]).toEqual([first.body, 'true']);
    expect((await send({ ...hello, text: 'other' }, { 'idempotency-key': 'one' })).status).toBe(422);
  });

  test('from a number that is not permitted are 403, of a wrong shape 400', async () => {
    expect(await send({ ...hello, from: '+15559999' })).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    const message = 'Sender is not permitted for this application; GET /api/v1/app lists its outbound_caller_ids';
    expect(await send(hello, {}, other)).toMatchObject({ status: 403, body: { message } });
    for (const wrong of [
      { to: '0501234567' },
      { text: '' },
      { text: 'x'.repeat(1601) },
      { from: 'Shop' },
      { udh: 1 },
      { text: 'a\0' },
    ])
      expect([wrong, (await send({ ...hello, ...wrong })).status]).toEqual([wrong, 400]);
    expect((await send({ ...hello, text: 'x'.repeat(1600) })).status).toBe(202);
  });

  test('are listed newest first and filtered', async () => {
    await platform.testStore.store.callerIds.allow(other.appUuid, FROM);
    const uuids: string[] = [];
    for (const to of ['+972500000002', '+972500000003', '+972500000002'])
      uuids.unshift((await send({ ...hello, to }, {}, other)).body.message_uuid);
    const list = async (query: string) => {
      const found = await platform.call(other, 'GET', `/v1/messages${query}`);
      return found.status === 200 ? found.body.messages.map((each: { message_uuid: string }) => each.message_uuid) : found.status;
    };
    expect(new Set(await list(''))).toEqual(new Set(uuids));
    expect(await list('?limit=1')).toHaveLength(1);
    expect(await list('?to=%2B972500000003')).toEqual([uuids[1]]);
    expect(await list('?to=+972500000003&status=queued')).toEqual([uuids[1]]);
    expect(await list('?status=sent')).toEqual([]);
    expect(await list('?from=%2B15550101')).toEqual([]);
    expect(await list('?created_before=2020-01-01T00:00:00Z')).toEqual([]);
    expect(await list('?created_after=2020-01-01T00:00:00Z')).toHaveLength(3);
    for (const bad of [
      '?status=lost',
      '?to=5',
      '?from=5',
      '?limit=0',
      '?limit=50001',
      '?created_after=today',
      '?page=2',
      '?to=%2B1234&to=%2B1235',
    ])
      expect([bad, await list(bad)]).toEqual([bad, 400]);
  });

  test('are refused while the platform drains, and read all the same', async () => {
    const { body } = await send(hello);
    isDraining = true;
    const refused = await send(hello);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[0-9]+$/)]);
    expect((await platform.call(app, 'GET', `/v1/messages/${body.message_uuid}`)).status).toBe(200);
    isDraining = false;
    expect((await send(hello)).status).toBe(202);
  });

  test('are 503 where no provider is configured', async () => {
    const { store } = platform.testStore;
    const options = {
      store: store.messages,
      gateway: undefined,
      clock: systemClock(),
      log: silentLog,
      incoming: noIncoming,
      reachOf: async () => mayReach(),
      mayCallFrom: async () => true,
    };
    const off = new MessageDispatcher(options);
    const context = { appUuid: app.appUuid, operationUuid: newUuid(), idempotencyKey: undefined, traceparent: '' };
    expect(await off.send(hello, context)).toMatchObject({ problem: 'unavailable', status: 503 });
  });
});
