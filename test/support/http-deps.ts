/** The HTTP app without calls behind it: its Sessions are the rows of a store, and nothing else is live. */
import { Registry } from 'prom-client';
import type { Sessions } from '../../src/call/ports/sessions.ts';
import { type Clock, timestampSeconds } from '../../src/clock.ts';
import type { Store } from '../../src/database/store.ts';
import type { HttpDeps } from '../../src/http/app.ts';
import { createHttpMetrics } from '../../src/http/metrics.ts';
import { silentLog } from '../../src/log.ts';
import { problems } from '../../src/problem.ts';
import { noCarrier } from './no-carrier.ts';
import { noRecordings } from './no-recordings.ts';
import { noRooms } from './no-rooms.ts';
import { sandboxProviders } from './providers.ts';

export const OPERATOR_TOKEN = 'operator-token-of-the-tests';

/** Sessions that can be read, as far as they have not ended. */
export const storedSessions = (store: Store): Sessions => ({
  dial: async () => problems.notConfigured('Trunk'),
  connectWebsocket: async () => problems.notConfigured('WebSocket'),
  owns: async () => false,
  command: async () => problems.notFound('Session'),
  isDraining: false,
  isHere: () => false,
  ingest: () => undefined,
  async get(appUuid, uuid) {
    const row = await store.sessions.get(appUuid, uuid);
    if (row === undefined || row.state === 'ended') return undefined;
    const { sessionUuid: session_uuid, callerId: caller_id, type, state, did, createdAt } = row;
    return { session_uuid, type, state, created_at: timestampSeconds(createdAt), caller_id, did };
  },
  list: async () => [],
});

/** What the app needs, on a store. */
export const httpDeps = (store: Store, clock: Clock): HttpDeps => ({
  sessions: storedSessions(store),
  rooms: noRooms,
  recordings: noRecordings,
  ...sandboxProviders(store, clock),
  store,
  clock,
  log: silentLog,
  metrics: createHttpMetrics(new Registry()),
  operatorToken: OPERATOR_TOKEN,
  publicUrl: 'http://127.0.0.1:8080',
  ready: async () => ({ database: await store.ready() }),
  draining: () => false,
  onTrunksChanged: () => {},
  onDeviceChanged: () => {},
  carrier: noCarrier,
});
