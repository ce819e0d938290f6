import { afterAll, beforeAll, expect, test } from 'bun:test';
import { cpSync, renameSync, rmSync } from 'node:fs';
import postgres from 'postgres';
import { untilStored } from '../../src/call/until-stored.ts';
import { systemClock } from '../../src/clock.ts';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import type { PlatformEvent } from '../../src/event/event.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { masterKey } from '../database/open.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { fillDataDir } from '../support/postgres-template.ts';
import { eventOf, script } from './emit.ts';
import { hastyRelay } from './hasty-relay.ts';
import { firstAccepted, startReceiver } from './receiver.ts';

let dataDir: string;
let server: EmbeddedServer;
let store: Store;
beforeAll(async () => {
  dataDir = dataDirectory('sidetone-outage-');
  await fillDataDir(dataDir);
  server = await startEmbedded(dataDir, silentLog);
  const databaseUrl = `postgres://sidetone@localhost/postgres?host=${server.socketDir}`;
  store = await openStore({ dataDir, databaseUrl, databaseDriver: 'postgres', masterKey }, silentLog, systemClock());
});
afterAll(async () => {
  await store.close();
  await server.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Commits an event as the platform does: again, until the database takes it. A server that starts may refuse it. */
const stored = (event: PlatformEvent) => untilStored(systemClock(), () => store.journal.commit({ events: [event] }));

/** Waits until the store has its database again. */
async function backAgain(): Promise<void> {
  const deadline = performance.now() + 10_000;
  while (!(await store.ready()) && performance.now() < deadline) await new Promise((wake) => setTimeout(wake, 20));
}

test('a relay outlives its database: when it is back, what was committed arrives, in order, and nothing is lost', async () => {
  const receiver = startReceiver();
  const { apps, journal } = store;
  const relay = hastyRelay(store, systemClock());
  const { appUuid } = await apps.create({ name: 'outage', webhookUrl: receiver.url });
  const events = script(appUuid, 10, 10);
  const commitAll = (some: typeof events) => Promise.all(some.map((event) => journal.commit({ events: [event] })));
  relay.start();
  await commitAll(events.slice(0, 50));
  await receiver.until(() => receiver.accepted.size >= 10);
  await server.stop();
  const [first, ...more] = events.slice(50);
  if (first === undefined) throw new Error('no event is left');
  await expect(journal.commit({ events: [first] })).rejects.toThrow();
  server = await startEmbedded(dataDir, silentLog);
  await backAgain();
  await stored(first);
  await commitAll(more);
  await receiver.until(() => receiver.accepted.size === events.length, 20_000);
  const inOrder = Array.from({ length: 10 }, (_, step) => step);
  for (const steps of firstAccepted(receiver.received).values()) expect(steps).toEqual(inOrder);
  await relay.stop();
  expect(relay.load().leading).toBe(false);
  receiver.stop();
}, 45_000);

test('a relay whose database is an earlier state of it when it is back delivers what is committed from then on', async () => {
  const receiver = startReceiver();
  const { apps } = store;
  const relay = hastyRelay(store, systemClock(), { leaseMs: 400 });
  const { appUuid } = await apps.create({ name: 'restored', webhookUrl: receiver.url });
  const backup = `${dataDir}-backup`;
  await server.stop();
  cpSync(dataDir, backup, { recursive: true });
  server = await startEmbedded(dataDir, silentLog);
  await backAgain();
  relay.start();
  const sql = postgres({ host: server.socketDir, user: 'sidetone', database: 'postgres', max: 1 });
  for (let nth = 0; nth < 200; nth++) await sql`SELECT pg_current_xact_id()`;
  await sql.end();
  await stored(eventOf(appUuid, newUuid(), 1));
  await receiver.until(() => receiver.accepted.size === 1);
  await server.stop();
  rmSync(dataDir, { recursive: true });
  renameSync(backup, dataDir);
  server = await startEmbedded(dataDir, silentLog);
  await backAgain();
  await stored(eventOf(appUuid, newUuid(), 2));
  await receiver.until((received) => received.some(({ step }) => step === 2));
  await relay.stop();
  receiver.stop();
}, 45_000);

test('a relay can be stopped while its database is away', async () => {
  const { apps, journal } = store;
  const relay = hastyRelay(store, systemClock());
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const receiver = startReceiver(async () => {
    await answered;
    return new Response(null, { status: 200 });
  });
  const { appUuid } = await apps.create({ name: 'stopped', webhookUrl: receiver.url });
  await Promise.all(script(appUuid, 5, 1).map((event) => journal.commit({ events: [event] })));
  relay.start();
  while (relay.load().inFlight < 5) await new Promise((wake) => setTimeout(wake, 5));
  await server.stop();
  answer();
  const started = performance.now();
  await relay.stop();
  expect(performance.now() - started).toBeLessThan(20_000);
  receiver.stop();
  server = await startEmbedded(dataDir, silentLog);
}, 45_000);
