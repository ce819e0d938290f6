/** The composition root: makes everything, connects it, announces it, and stops it in the reverse order. */
import { ChargeDispatcher } from './call/charge/charge-dispatcher.ts';
import { MessageDispatcher } from './call/message/message-dispatcher.ts';
import { RecordingRegistry } from './call/recording/recording-registry.ts';
import { RoomRegistry } from './call/room/room-registry.ts';
import { SessionRegistry } from './call/session/session-registry.ts';
import { createCarrier } from './carrier/carrier.ts';
import { systemClock } from './clock.ts';
import type { Config } from './config.ts';
import { openStore } from './database/store.ts';
import { newTraceparent } from './http/admission/trace.ts';
import { createHttpApp, type HttpApp } from './http/app.ts';
import { createHttpMetrics } from './http/metrics.ts';
import { problemResponse } from './http/response.ts';
import { MEDIA_ROUTE, sentMediaPath } from './http/route/recording-media.ts';
import {
  HTTP_BODY_CEILING_BYTES,
  HTTP_IDLE_TIMEOUT_SEC,
  HTTP_WAIT_FOR_START_MAX,
  RECORDING_LAST_MS,
  RELAY_LAST_MS,
  SESSION_TEARDOWN_MS,
  UNAVAILABLE_RETRY_SEC,
} from './limits.ts';
import { createLog } from './log.ts';
import { createMediaEngine } from './media/media-engine.ts';
import { recordingRings } from './media/recording/recording-rings.ts';
import { followRecording } from './media/recording/recordings.ts';
import { mediaReadings } from './media/worker/readings.ts';
import { trafficReadings } from './media/worker/traffic.ts';
import { createMetrics } from './metrics.ts';
import { connector } from './outbound/connect.ts';
import { createOutbound } from './outbound/safe-fetch.ts';
import { problems } from './problem.ts';
import { createChargeGateway } from './provider/charge.ts';
import { createSmsGateway } from './provider/sms.ts';
import { createStorage } from './recording-storage/create.ts';
import { createRecordingUrls } from './recording-storage/signed-url.ts';
import { loadConfig, originAt } from './settings/load.ts';
import { takeNodeId } from './settings/node-id.ts';
import { createRelay } from './webhook/relay.ts';
import { WebSocketLeg } from './websocket/websocket-leg.ts';

const config = settingsOrExit();
const log = createLog(config.logLevel);
process.on('unhandledRejection', (error) => log.error({ reason: String(error) }, 'a promise nobody waited for was rejected'));
await run(config).catch((error: unknown) => exit(error instanceof Error ? error.message : String(error)));

async function run(settings: Config): Promise<void> {
  const clock = systemClock();
  // Bound first: URLs name its port, also one that the system picked. Who asks before all is up waits for it.
  let app: HttpApp | undefined;
  const up = Promise.withResolvers<HttpApp>();
  const answer = (request: Request): Response | Promise<Response> => {
    // An HTTP/1.0 request without Host has no origin in its URL (HAProxy's health check is one).
    if (request.url.startsWith('/')) return answer(new Request(new URL(request.url, publicUrl), request));
    if (app !== undefined) return app.fetch(request);
    return server.pendingRequests > HTTP_WAIT_FOR_START_MAX ? starting() : up.promise.then((each) => each.fetch(request));
  };
  const server = Bun.serve({
    hostname: settings.http.host,
    port: settings.http.port,
    idleTimeout: HTTP_IDLE_TIMEOUT_SEC,
    maxRequestBodySize: HTTP_BODY_CEILING_BYTES,
    fetch: answer,
    routes: { [MEDIA_ROUTE]: answer },
  });
  const publicUrl = settings.publicUrl ?? originAt(settings.http.host, server.port ?? settings.http.port);

  const outbound = createOutbound(settings.outboundAllow);
  const { nodeId, before } = takeNodeId(settings.dataDir);
  const store = await openStore(settings, log, clock, nodeId);
  const freed = before === undefined ? 0 : await store.idempotency.releaseLeft(before);
  if (freed > 0) log.warn({ keys: freed }, 'freed the idempotency keys that an earlier process left in flight');
  const { rtp, mediaWorkers: workers, mediaTimeoutSec } = settings;
  const media = await createMediaEngine({ rtp, workers, mediaTimeoutSec, outbound, log });

  const urls = createRecordingUrls({ masterKey: settings.masterKey, publicUrl, ttlSec: settings.recordingUrlTtlSec });
  const storage = await createStorage(settings.recordings, { dataDir: settings.dataDir, clock, log });
  const rings = storage && (await recordingRings(settings.dataDir, log));
  const recordings = new RecordingRegistry({
    storage,
    rings,
    rows: store.recordings,
    sign: urls.sign,
    journal: store.journal,
    clock,
    log,
    livenessMs: settings.recordingLivenessSec * 1000,
    retentionMs: settings.recordingRetentionDays * 24 * 3600 * 1000,
    session: (sessionUuid) => registry.find(sessionUuid)?.state,
  });
  const chargeGateway = createChargeGateway(settings.paymentProvider, outbound, clock);
  const registry = new SessionRegistry({
    journal: store.journal,
    records: { find: store.sessions.get, list: store.sessions.list, unfinished: () => store.sessions.unfinished() },
    clock,
    log,
    nodeId,
    media,
    publicUrl,
    orphanTimeoutMs: settings.orphanTimeoutSec * 1000,
    recordings,
    payments: chargeGateway && {
      vault: store.payments.vault,
      referenceTtlMs: settings.paymentReferenceTtlSec * 1000,
      cardBrand: (appUuid, sessionUuid, reference) => store.payments.cardBrand(appUuid, sessionUuid, reference, clock.now()),
    },
    mayCallFrom: store.callerIds.allowed,
  });
  const rooms = new RoomRegistry({
    journal: store.journal,
    records: store.rooms,
    clock,
    log,
    nodeId,
    media,
    recordings,
    limits: async (appUuid) => (await store.apps.get(appUuid))?.roomLimits,
    session: (sessionUuid) => registry.find(sessionUuid),
  });
  registry.connectRooms(rooms);
  const charges = new ChargeDispatcher({
    store: store.payments,
    gateway: chargeGateway,
    clock,
    log,
    connected(sessionUuid) {
      const state = registry.find(sessionUuid)?.state;
      return state?.phase === 'answered' && state.hasLeg && state.ending === undefined ? state : undefined;
    },
    mayUseTerminal: store.terminals.allowed,
  });
  await charges.start();
  const mended = await recordings.recover();
  if (mended > 0) log.warn({ recordings: mended }, 'finished recordings that an earlier process left growing');
  recordings.keepRetention();
  await rooms.recover();
  const left = await registry.recover();
  if (left > 0) log.warn({ sessions: left }, 'took over Sessions that an earlier process left without an end');

  let trunks = await store.trunks.list();
  const carrier = await createCarrier({
    listen: settings.sip.listen,
    rtpHost: settings.rtp.host,
    ...(settings.sip.tls === undefined ? {} : { tls: settings.sip.tls }),
    ...(settings.sip.advertise === undefined ? {} : { advertise: settings.sip.advertise }),
    media,
    clock,
    log,
    trunks: () => trunks,
    onInvite: (call) => registry.incoming(call),
    numberOwner: store.numbers.owner,
  });
  registry.connect(carrier);
  const connect = connector(settings.outboundAllow);
  registry.connectWebSockets((options) => new WebSocketLeg({ ...options, connect, clock, media }));

  const relay = createRelay({
    outbox: store.outbox,
    apps: store.apps,
    credentials: store.credentials,
    outbound,
    clock,
    log,
    timeoutSec: settings.webhookTimeoutSec,
    retryScale: settings.webhookRetryScale,
  });
  relay.start();

  const messages = new MessageDispatcher({
    store: store.messages,
    gateway: createSmsGateway(settings.smsProvider, clock, log),
    clock,
    log,
    mayCallFrom: store.callerIds.allowed,
  });
  await messages.start();

  let draining = false;
  const metrics = createMetrics([
    { name: 'sessions', help: 'Live Sessions', kind: 'gauge', read: () => registry.size },
    { name: 'rooms', help: 'Live Rooms', kind: 'gauge', read: () => rooms.size },
    { name: 'recordings', help: 'Recordings being written', kind: 'gauge', read: () => recordings.growing },
    { name: 'recording_listeners', help: 'Recordings being listened to', kind: 'gauge', read: () => app?.listeners() ?? 0 },
    {
      name: 'recordings_waiting_bytes',
      help: 'Bytes of recordings that are still to be uploaded',
      kind: 'gauge',
      read: () => storage?.load().waitingBytes ?? 0,
    },
    { name: 'media_legs', help: 'Open RTP legs', kind: 'gauge', read: () => media.load().legs },
    {
      name: 'rtp_port_pairs_free',
      help: 'RTP port pairs that could be opened',
      kind: 'gauge',
      read: () => media.load().portsFree,
    },
    ...mediaReadings(media),
    ...trafficReadings(media.traffic),
    { name: 'sip_dialogs', help: 'SIP dialogs', kind: 'gauge', read: () => carrier.load().dialogs },
    { name: 'sip_transactions', help: 'SIP transactions', kind: 'gauge', read: () => carrier.load().transactions },
    { name: 'charges_attempting', help: 'Charges with the provider', kind: 'gauge', read: () => charges.attempting },
    { name: 'messages_submitting', help: 'Short messages with the gateway', kind: 'gauge', read: () => messages.submitting },
    { name: 'journal_waiting', help: 'Changes waiting for the database', kind: 'gauge', read: () => store.load().waiting },
    { name: 'journal_changes_total', help: 'Changes committed or refused', kind: 'counter', read: () => store.load().changes },
    {
      name: 'journal_flushes_total',
      help: 'Statements they were committed in',
      kind: 'counter',
      read: () => store.load().flushes,
    },
  ]);
  app = createHttpApp({
    sessions: registry,
    rooms,
    messages,
    charges,
    recordings,
    recordingUrls: urls,
    store,
    clock,
    log,
    operatorToken: settings.operatorToken,
    metrics: createHttpMetrics(metrics),
    publicUrl,
    disableIdleTimeout: (request) => server.timeout(request, 0),
    setIdleTimeout: (request, seconds) => server.timeout(request, seconds),
    inFlight: () => server.pendingRequests,
    peer: (request) => server.requestIP(request) ?? undefined,
    sentPath: sentMediaPath,
    followed: followRecording,
    draining: () => draining,
    ready: async () => ({ database: await store.ready(), media: media.ready(), sip: carrier.ready() }),
    carrier,
    onTrunksChanged: async () => {
      trunks = await store.trunks.list();
      carrier.trunksChanged();
    },
  });
  up.resolve(app);
  const fresh = await store.apps.ensureDefault();
  if (fresh !== undefined) {
    const url = `${publicUrl}/api/v1/app`;
    process.stdout.write(`
A first application, "default", was made. This is shown once:

  app_uuid        ${fresh.appUuid}
  API key         ${fresh.apiKey}
  webhook secret  ${fresh.webhookSecret}

  curl -H 'Authorization: Bearer ${fresh.appUuid}:${fresh.apiKey}' ${url}

`);
  }
  const bound = (transport: string) => carrier.ports().find((port) => port.transport === transport)?.port;
  log.info(
    {
      url: publicUrl,
      http_port: server.port,
      sip_udp_port: bound('udp'),
      sip_tcp_port: bound('tcp'),
      sip_tls_port: bound('tls'),
      started_ms: Math.round(performance.now()),
    },
    'ready',
  );

  const stop = async (signal: string) => {
    if (draining) return;
    draining = true;
    log.info({ signal, sessions: registry.size, grace_sec: settings.shutdownGraceSec }, 'draining');
    carrier.drain();
    await registry.drain(settings.shutdownGraceSec * 1000, SESSION_TEARDOWN_MS);
    await rooms.stopRecordings(RECORDING_LAST_MS);
    await relay.deliverLast(RELAY_LAST_MS);
    await server.stop(true);
    await Promise.all([messages.close(), charges.close()]);
    await relay.stop();
    await carrier.close();
    await media.close();
    recordings.close();
    await rings?.close();
    await storage?.close();
    await store.close();
    log.info({}, 'stopped');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (draining && signal === 'SIGINT') process.exit(130);
      stop(signal).catch((error: unknown) => exit(String(error)));
    });
  }
}

function starting(): Response {
  const problem = problems.unavailable('Service is starting. See Retry-After header.', UNAVAILABLE_RETRY_SEC);
  return problemResponse(problem, newTraceparent());
}

function settingsOrExit(): Config {
  try {
    const settings = loadConfig(process.env);
    if (settings.natsUrl !== undefined) throw new Error('NATS_URL is set, but this release runs as one node: unset it');
    return settings;
  } catch (error) {
    return exit(error instanceof Error ? error.message : String(error));
  }
}

function exit(message: string): never {
  process.stderr.write(`sidetone: ${message}\n`);
  process.exit(1);
}
