/** Devices as several machines store them, whose clocks differ. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Store } from '../../src/database/store.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openSecondStore, openTestStore, type TestStore } from './open.ts';

let ahead: TestStore;
let behind: Store;
let appUuid: string;
beforeAll(async () => {
  ahead = await openTestStore(new VirtualClock(Date.parse('2026-01-01T00:10:00Z')));
  behind = await openSecondStore(ahead, new VirtualClock(Date.parse('2026-01-01T00:00:00Z')));
  appUuid = (await ahead.store.apps.ensureDefault())?.appUuid ?? '';
}, 60_000);
afterAll(async () => {
  await behind?.close();
  await ahead?.close();
});

const device = (username: string, md5: string) => ({ username, appUuid, secrets: { md5, sha256: md5 } });

test('Each change of a device is another version, also by a machine whose clock is behind', async () => {
  const versions: string[] = [];
  const look = async () => versions.push(await behind.devices.version());
  await look();
  await ahead.store.devices.put(device('alice', 'a'));
  await look();
  await behind.devices.put(device('bob', 'b'));
  await look();
  for (const md5 of ['c', 'd']) {
    await behind.devices.put(device('bob', md5));
    await look();
    await behind.devices.put(device('alice', md5));
    await look();
  }
  await behind.devices.remove(appUuid, 'alice');
  await look();
  await behind.devices.put(device('carol', 'e'));
  await look();
  expect(new Set(versions).size).toBe(versions.length);
  expect((await ahead.store.devices.all()).find(({ username }) => username === 'bob')?.secrets.md5).toBe('d');
});
