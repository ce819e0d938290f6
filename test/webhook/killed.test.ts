import { afterAll, beforeAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { openTestStore, type TestStore } from '../database/open.ts';
import { script } from './emit.ts';
import { firstAccepted, startReceiver } from './receiver.ts';

let testStore: TestStore;
beforeAll(async () => {
  testStore = await openTestStore();
});
afterAll(() => testStore.close());

async function startRelay() {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'relay-process.ts'), testStore.url], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  await child.stdout.getReader().read();
  return child;
}

test('relays killed with -9 in the middle of delivering, again and again, lose nothing and reorder nothing', async () => {
  const SESSIONS = 60;
  const STEPS = 25;
  let accepted = 0;
  const killAt = [300, 800];
  // Two nodes: one delivers, the other stands by for its lease.
  const relays = [await startRelay(), await startRelay()];
  const kill = () => {
    // The one that delivers is not known from outside: kill the older of the two, and put a new one beside the other.
    relays.shift()?.kill('SIGKILL');
    void startRelay().then((each) => relays.push(each));
  };
  const receiver = startReceiver(() => {
    if (Math.random() < 0.2) return new Response(null, { status: 500 });
    accepted += 1;
    if (accepted >= (killAt[0] ?? Number.POSITIVE_INFINITY)) {
      killAt.shift();
      kill();
    }
    return new Response(null, { status: 200 });
  });
  const { appUuid } = await testStore.store.apps.create({ name: 'killed', webhookUrl: receiver.url });
  const emitting = (async () => {
    const events = script(appUuid, SESSIONS, STEPS);
    for (let at = 0; at < events.length; at += 100)
      await Promise.all(events.slice(at, at + 100).map((event) => testStore.store.journal.commit({ events: [event] })));
  })();

  await emitting;
  await receiver.until(() => receiver.accepted.size === SESSIONS * STEPS, 40_000);
  const inOrder = Array.from({ length: STEPS }, (_, step) => step);
  const order = firstAccepted(receiver.received);
  expect(killAt).toEqual([]);
  expect(order.size).toBe(SESSIONS);
  for (const steps of order.values()) expect(steps).toEqual(inOrder);
  for (const each of relays) {
    each.kill('SIGKILL');
    await each.exited;
  }
  receiver.stop();
}, 60_000);
