/** Devices as several machines store them, whose clocks differ. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { DeviceUsers } from '../../src/compose/device-users.ts';
import type { Store } from '../../src/database/store.ts';
import { DEVICE_CONTACTS_MAX } from '../../src/limits.ts';
import type { Binding, HeldBinding } from '../../src/sip/registrar.ts';
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

describe('The users that a process keeps', () => {
  /** The users, and how often all of them were read. */
  async function kept() {
    const reads = { all: 0 };
    const all = () => {
      reads.all += 1;
      return behind.devices.all();
    };
    const users = new DeviceUsers({ ...behind.devices, all });
    await users.reload();
    return { users, reads };
  }

  test('are read one by one where they change, and all only where another one has changed as well', async () => {
    for (const name of ['erin', 'frank']) await behind.devices.put(device(name, 'a'));
    const { users, reads } = await kept();
    const { size } = users;
    await ahead.store.devices.put(device('erin', 'b'));
    expect(await users.refresh('erin')).toEqual(['erin']);
    expect(users.find('erin')?.secrets.md5).toBe('b');
    await ahead.store.devices.put(device('grace', 'c'));
    expect(await users.refresh('grace')).toEqual([]);
    expect([users.find('grace')?.appUuid, users.size]).toEqual([appUuid, size + 1]);
    await ahead.store.devices.remove(appUuid, 'frank');
    expect(await users.refresh('frank')).toEqual(['frank']);
    expect([users.find('frank'), users.size]).toEqual([undefined, size]);
    expect([await users.reload(), reads.all]).toEqual([[], 1]);
    await ahead.store.devices.put(device('erin', 'd'));
    expect(await users.refresh('nobody')).toEqual([]);
    expect([await users.reload(), reads.all]).toEqual([['erin'], 2]);
  });

  test('keep their contacts where they are given the password that they have', async () => {
    await behind.devices.put(device('heidi', 'a'));
    const { users, reads } = await kept();
    await ahead.store.devices.put(device('heidi', 'a'));
    expect(await users.refresh('heidi')).toEqual([]);
    expect([await users.reload(), reads.all]).toEqual([[], 1]);
  });

  test('that change together are each told once, and are as the database has them', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `many${n}`);
    for (const name of names) await behind.devices.put(device(name, 'a'));
    const { users, reads } = await kept();
    const told = await Promise.all(
      names.map(async (name, n) => {
        await (n % 2 === 0 ? ahead.store : behind).devices.put(device(name, 'b'));
        return await (n === 7 ? users.reload() : users.refresh(name));
      }),
    );
    await users.reload();
    expect(told.flat().sort()).toEqual([...names].sort());
    expect(names.map((name) => users.find(name)?.secrets.md5)).toEqual(names.map(() => 'b'));
    expect(reads.all).toBeLessThanOrEqual(3);
  });
});

describe('The contacts of a device', () => {
  const contact = (number: number): Binding => ({
    key: `sip:c${number}@10.0.0.5`,
    uri: `sip:c${number}@10.0.0.5`,
    callId: 'one',
    cseq: number,
    expiresAt: Date.parse('2026-01-01T01:00:00Z'),
    transport: 'udp',
    host: '203.0.113.5',
    port: 5070,
    userAgent: '',
    instance: `<urn:uuid:${number}>`,
    regId: number,
    path: `<sip:token${number}@edge.example;lr;ob>, <sip:[2001:db8::1];lr>`,
  });
  /** Stores contacts, however many are bound. */
  const store = (where: Store, stored: readonly Binding[]) =>
    where.devices.change(device('dora', 'a'), (bound) => ({ status: 200, bound: [...bound, ...stored], stored, removed: [] }));

  test('never pass the limit, however many come at once to two nodes', async () => {
    await ahead.store.devices.put(device('dora', 'a'));
    await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        (i % 2 === 0 ? ahead.store : behind).devices.change(device('dora', 'a'), (before) => {
          const bound = [...before, contact(i)];
          return bound.length > DEVICE_CONTACTS_MAX ? { status: 403 } : { status: 200, bound, stored: [contact(i)], removed: [] };
        }),
      ),
    );
    const [dora] = (await behind.devices.list({ appUuid, username: 'dora', limit: 1 })) ?? [];
    expect(dora?.contacts).toHaveLength(DEVICE_CONTACTS_MAX);
  });

  test('all go where nothing stays bound, also those beyond the limit of an earlier release', async () => {
    await store(behind, [contact(30), contact(31), contact(32)]);
    await ahead.store.devices.change(device('dora', 'a'), (bound) => ({
      status: 200,
      bound: [],
      stored: [],
      removed: bound.map(({ key }) => key),
    }));
    expect(await behind.devices.bindings('dora')).toEqual([]);
  });

  test('are read with what the device calls itself, and tell whether the process that has its connection lives', async () => {
    const third = await openSecondStore(ahead, new VirtualClock(Date.parse('2026-01-01T00:00:00Z')));
    await ahead.store.devices.put(device('dora', 'a'));
    await store(ahead.store, [contact(50)]);
    await store(behind, [contact(51)]);
    await store(third, [{ ...contact(52), instance: '', regId: 0 }]);
    await third.nodes.leave();
    await third.close();
    let held: readonly HeldBinding[] = [];
    await behind.devices.change(device('dora', 'a'), (bound) => {
      held = bound;
      return { status: 200, bound: [], stored: [], removed: bound.map(({ key }) => key) };
    });
    expect(held.map(({ instance, regId, holder }) => [instance, regId, holder])).toEqual([
      ['<urn:uuid:50>', 50, 'elsewhere'],
      ['<urn:uuid:51>', 51, 'here'],
      ['', 0, 'nobody'],
    ]);
  });

  test('of many users who register at once are stored, but for one that the database refuses and one with another password', async () => {
    const names = Array.from({ length: 30 }, (_, n) => `crowd${n}`);
    for (const name of names) await behind.devices.put(device(name, 'a'));
    const registered = await Promise.allSettled(
      names.map((name, n) =>
        behind.devices.change(device(name, n === 3 ? 'b' : 'a'), (bound) => {
          // No port is that large, and no column for one.
          const stored = [{ ...contact(n), port: n === 5 ? 2 ** 40 : 5070 }];
          return { status: 200, bound: [...bound, ...stored], stored, removed: [] };
        }),
      ),
    );
    expect(registered.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([3, 5]);
    const bound = await Promise.all(names.map((name) => ahead.store.devices.bindings(name)));
    expect(bound).toEqual(names.map((_, n) => (n === 3 || n === 5 ? [] : [contact(n)])));
    for (const name of names) await behind.devices.remove(appUuid, name);
  });

  test('that have one URI are kept beside each other, and each is removed by its key', async () => {
    await ahead.store.devices.put(device('dora', 'a'));
    const one = { ...contact(60), instance: '', regId: 0 };
    const other = { ...one, key: `${one.uri};sidetone-contact=2`, host: '198.51.100.7' };
    await store(ahead.store, [one]);
    await store(behind, [other]);
    expect(await behind.devices.bindings('dora')).toEqual([one, other]);
    await store(behind, [{ ...other, cseq: 61 }]);
    await ahead.store.devices.change(device('dora', 'a'), () => ({
      status: 200,
      bound: [other],
      stored: [],
      removed: [one.key],
    }));
    expect(await behind.devices.bindings('dora')).toEqual([{ ...other, cseq: 61 }]);
    await behind.devices.change(device('dora', 'a'), () => ({ status: 200, bound: [], stored: [], removed: [other.key] }));
  });

  test('go when its password changes, and no REGISTER that the old one let in binds another', async () => {
    await store(behind, [contact(40)]);
    await ahead.store.devices.put(device('dora', 'a'));
    expect(await behind.devices.bindings('dora')).toHaveLength(1);
    const here = new DeviceUsers(behind.devices);
    expect(await here.reload()).toEqual([]);
    await ahead.store.devices.put(device('dora', 'b'));
    expect(await behind.devices.bindings('dora')).toEqual([]);
    await expect(store(behind, [contact(41)])).rejects.toThrow('the device has changed');
    expect(await behind.devices.bindings('dora')).toEqual([]);
    expect(await here.reload()).toEqual(['dora']);
    await ahead.store.devices.remove(appUuid, 'dora');
    expect(await here.reload()).toEqual(['dora']);
  });
});
