import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openTestStore, type TestStore } from './open.ts';

let test_: TestStore;
beforeAll(async () => {
  test_ = await openTestStore();
});
afterAll(() => test_.close());

test('an id that is no UUID names no Room and no Session, and is no fault of the database', async () => {
  const { apps, rooms, sessions } = test_.store;
  const { appUuid } = await apps.create({ name: 'ids', webhookUrl: '', blockedWebhookEvents: [] });
  for (const id of ['abc', '', 'AAAAAAAA-AAAA-4AAA-8AAA-AAAAAAAAAAAA']) {
    expect(await rooms.home(appUuid, id)).toBeUndefined();
    expect(await sessions.owner(appUuid, id)).toBeUndefined();
  }
});
