import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createConnection, type Socket } from 'node:net';
import { neonConfig } from '@neondatabase/serverless';
import { systemClock } from '../../src/clock.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { newUuid } from '../../src/id.ts';
import { silentLog } from '../../src/log.ts';
import { eventOf } from '../webhook/emit.ts';
import { masterKey, openTestStore, type TestStore } from './open.ts';
import { ended, recordOf, sessionRow } from './rows.ts';

const HOST = 'db.example.com';

/**
 * What Neon's wsproxy does: each WebSocket is a connection to the server that its query names, `/v1?address=HOST:PORT`,
 * if that is one it may connect to; here to the Unix socket that stands for it.
 */
function tunnel(socketPath: string) {
  const sockets = new Map<unknown, Socket>();
  return Bun.serve<{ socket: Socket }>({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request, server) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname !== '/v1' || searchParams.get('address') !== `${HOST}:5432`) return new Response(null, { status: 403 });
      const socket = createConnection(socketPath);
      return server.upgrade(request, { data: { socket } }) ? undefined : new Response(null, { status: 400 });
    },
    websocket: {
      open(ws) {
        const { socket } = ws.data;
        sockets.set(ws, socket);
        socket.on('data', (bytes: Buffer) => void ws.sendBinary(new Uint8Array(bytes)));
        socket.on('close', () => ws.close());
        socket.on('error', () => ws.close());
      },
      message(ws, bytes) {
        ws.data.socket.write(bytes);
      },
      close(ws) {
        ws.data.socket.destroy();
        sockets.delete(ws);
      },
    },
  });
}

let server: TestStore;
let proxy: ReturnType<typeof tunnel>;
let neon: Store;
const configured = { ...neonConfig };

beforeAll(async () => {
  server = await openTestStore();
  proxy = tunnel(`${server.dataDir}/postgres-socket/.s.PGSQL.5432`);
  neonConfig.wsProxy = (host, port) => `127.0.0.1:${proxy.port}/v1?address=${host}:${port}`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.pipelineConnect = false;
  neonConfig.pipelineTLS = false;
  neonConfig.forceDisablePgSSL = true;
  const settings = { dataDir: server.dataDir, databaseUrl: `postgres://sidetone:none@${HOST}/postgres`, masterKey };
  neon = await openStore({ ...settings, databaseDriver: 'neon' }, silentLog, systemClock());
});
afterAll(async () => {
  await neon.close();
  await proxy.stop(true);
  await server.close();
  Object.assign(neonConfig, configured);
});

describe('the Neon driver, through a WebSocket tunnel to a real PostgreSQL', () => {
  test('commits, reads and lists as the other driver does, and each sees what the other wrote', async () => {
    const row = sessionRow({ clientState: 'ü' });
    expect(await neon.journal.commit({ session: row, events: [eventOf(row.appUuid, row.sessionUuid, 1)] })).toBe(true);
    expect(await server.store.sessions.get(row.appUuid, row.sessionUuid)).toEqual(recordOf(row));
    expect(await server.store.journal.commit({ session: ended(row, 5), events: [] })).toBe(true);
    expect(await neon.journal.commit({ session: ended(row, 6), events: [eventOf(row.appUuid, row.sessionUuid, 2)] })).toBe(false);
    const page = await neon.outbox.read({ xid: '0', eventId: 0 }, 10);
    expect(page.events.map((each) => [each.lanes, each.attempts])).toEqual([[[`session:${row.sessionUuid}`], []]]);
  });

  test('keeps applications, sealed secrets, trunks and keys', async () => {
    const made = await neon.apps.create({ name: 'n', blockedWebhookEvents: ['playback.*'] });
    expect(await server.store.apps.get(made.appUuid)).toEqual((await neon.apps.get(made.appUuid)) ?? (undefined as never));
    expect(await neon.credentials.signingSecrets(made.appUuid)).toEqual([made.webhookSecret]);
    expect((await neon.credentials.keyHashes(made.appUuid))[0]).toEqual(
      (await server.store.credentials.keyHashes(made.appUuid))[0] ?? new Uint8Array(),
    );
    const trunk = {
      name: 't',
      uri: 'sip:x',
      username: 'u',
      password: 'p',
      register: true,
      inboundCidrs: ['10.0.0.0/8'],
      maxChannels: 3,
      codecs: ['PCMU'],
      settings: { country_code: '972', tls: { ca: 'ca' } },
      tlsKey: 'key',
    };
    await neon.trunks.put(trunk);
    expect(await neon.trunks.list()).toEqual([trunk]);
    expect(await neon.callerIds.allow(made.appUuid, '+15550001')).toBe(true);
    expect(await neon.callerIds.allowed(made.appUuid, '+15550001')).toBe(true);
    const keyed = { appUuid: made.appUuid, key: newUuid(), fingerprint: 'f' };
    expect([(await neon.idempotency.begin(keyed)).state, (await server.store.idempotency.begin(keyed)).state]).toEqual([
      'fresh',
      'in_flight',
    ]);
  });

  test('hears of events that the other node commits', async () => {
    const heard = new Promise<void>((resolve) => server.store.outbox.onEvents(resolve));
    const woken = new Promise<void>((resolve) => neon.outbox.onEvents(resolve));
    const third = await openStore(
      { dataDir: server.dataDir, databaseUrl: server.url, databaseDriver: 'postgres', masterKey },
      silentLog,
      systemClock(),
    );
    await third.journal.commit({ events: [eventOf('app', newUuid(), 1)] });
    await woken;
    await server.store.journal.commit({ events: [eventOf('app', newUuid(), 2)] });
    await heard;
    await third.close();
  });
});
