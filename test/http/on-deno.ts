/**
 * Runs under Deno: opens the store on the database of the first argument, boots the app, and serves it. Prints the
 * port, then stays until its input closes. Only the calls behind the app are left out: there is no media on Deno.
 */
import process from 'node:process';
import { Registry } from 'prom-client';
import type { Sessions } from '../../src/call/ports/sessions.ts';
import { systemClock, timestampSeconds } from '../../src/clock.ts';
import { openStore } from '../../src/database/store.ts';
import { createHttpApp } from '../../src/http/app.ts';
import { createHttpMetrics } from '../../src/http/metrics.ts';
import { silentLog } from '../../src/log.ts';
import { problems } from '../../src/problem.ts';
import { noCarrier } from '../support/no-carrier.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { noRooms } from '../support/no-rooms.ts';
import { sandboxProviders } from '../support/providers.ts';

declare const Deno: {
  serve(
    options: { hostname: string; port: number; onListen: (address: { port: number }) => void },
    handler: (request: Request) => Promise<Response>,
  ): { shutdown(): Promise<void> };
};

const clock = systemClock();
const databaseUrl = process.argv[2];
const settings = { dataDir: '/nowhere', databaseUrl, databaseDriver: 'postgres', masterKey: new Uint8Array(32).fill(7) } as const;
const store = await openStore(settings, silentLog, clock);

/** Sessions as rows only. */
const sessions: Sessions = {
  dial: async () => problems.notConfigured('Trunk'),
  connectWebsocket: async () => problems.notConfigured('WebSocket'),
  owns: async () => false,
  command: async () => problems.notFound('Session'),
  isHere: () => false,
  ingest: () => undefined,
  async get(appUuid, uuid) {
    const row = await store.sessions.get(appUuid, uuid);
    if (row === undefined || row.state === 'ended') return undefined;
    const { sessionUuid: session_uuid, callerId: caller_id, type, state, did, createdAt } = row;
    return { session_uuid, type, state, created_at: timestampSeconds(createdAt), caller_id, did };
  },
  list: async () => [],
};

const app = createHttpApp({
  sessions,
  rooms: noRooms,
  recordings: noRecordings,
  ...sandboxProviders(store, clock),
  store,
  clock,
  log: silentLog,
  metrics: createHttpMetrics(new Registry()),
  operatorToken: 'operator-token-of-the-tests',
  publicUrl: 'http://127.0.0.1:8080',
  ready: async () => ({ database: await store.ready() }),
  draining: () => false,
  onTrunksChanged: () => {},
  onDevicesChanged: () => {},
  carrier: noCarrier,
});
const server = Deno.serve({ hostname: '127.0.0.1', port: 0, onListen: ({ port }) => console.log(port) }, app.fetch);
process.stdin.on('end', async () => {
  await server.shutdown();
  await store.close();
  process.exit(0);
});
process.stdin.resume();
