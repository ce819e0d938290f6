import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openTestStore, type TestStore } from './open.ts';

let opened: TestStore;
beforeAll(async () => {
  opened = await openTestStore();
});
afterAll(() => opened.close());

test('calls that are dialled together are each told whether their application may call from that number', async () => {
  const { apps, callerIds } = opened.store;
  const [one, other] = await Promise.all([
    apps.create({ name: 'one', webhookUrl: '' }),
    apps.create({ name: 'other', webhookUrl: '' }),
  ]);
  await callerIds.allow(one.appUuid, '+15550001');
  await callerIds.allow(other.appUuid, '+15550002');
  const asked = [
    [one.appUuid, '+15550001', true],
    [other.appUuid, '+15550001', false],
    [one.appUuid, '+15550002', false],
    [other.appUuid, '+15550002', true],
    [one.appUuid, '+15550001', true],
    ['app_unknown', '+15550001', false],
  ] as const;
  const told = await Promise.all(asked.map(([appUuid, number]) => callerIds.allowed(appUuid, number)));
  expect(told).toEqual(asked.map(([, , may]) => may));
});
