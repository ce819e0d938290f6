/**
 * The composition root: it makes every part of the platform and connects them, from the bottom up.
 *
 *   engines (database, media, recordings' storage) → heart (Sessions, Rooms, recordings, charges, messages) → doors (carrier, WebSockets, webhooks, HTTP)
 */
import { ChargeDispatcher } from './call/charge/charge-dispatcher.ts';
import { MessageDispatcher } from './call/message/message-dispatcher.ts';
import type { PeerStreams } from './call/ports/peer-streams.ts';
import type { Peers } from './call/ports/peers.ts';
import { TokenBuckets } from './call/rate/token-buckets.ts';
import { RecordingRegistry } from './call/recording/recording-registry.ts';
import { RoomRegistry } from './call/room/room-registry.ts';
import { SessionRegistry } from './call/session/session-registry.ts';
import { type Carrier, createCarrier } from './carrier/carrier.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Cluster } from './cluster/cluster.ts';
import { clusterReadings, connectCluster, Drain, enter, operatorNodes, registerLease } from './compose-cluster.ts';
import type { Config } from './config.ts';
import { openStore, type Store } from './database/store.ts';
import type { TrunkRow } from './database/trunk/trunks.ts';
import { CallHistory } from './history/call-history.ts';
import { SipTrace } from './history/sip-trace.ts';
import { createHttpApp, type HttpApp } from './http/app.ts';
import { createHttpMetrics } from './http/metrics.ts';
import type { OperatorNodes } from './http/operator/hooks.ts';
import { sentMediaPath } from './http/route/recording-media.ts';
import { newUuid } from './id.ts';
import type { HttpListener } from './listen.ts';
import type { Log } from './log.ts';
import { createMediaEngine, type NativeMediaEngine } from './media/media-engine.ts';
import { type RecordingRings, recordingRings } from './media/recording/recording-rings.ts';
import { followRecording } from './media/recording/recordings.ts';
import { mediaReadings } from './media/worker/readings.ts';
import { trafficReadings } from './media/worker/traffic.ts';
import { createMetrics, type Reading } from './metrics.ts';
import { connector } from './outbound/connect.ts';
import { createOutbound, type ScreenedOutbound } from './outbound/safe-fetch.ts';
import { createChargeGateway } from './provider/charge.ts';
import { createSmsGateway } from './provider/sms.ts';
import { createStorage } from './recording-storage/create.ts';
import { createRecordingUrls } from './recording-storage/signed-url.ts';
import type { RecordingStorage } from './recording-storage/storage.ts';
import { volumeIdOf } from './settings/node-id.ts';
import { commandSpan, deliverySpan, entrySpan } from './tracing/spans.ts';
import type { Tracing } from './tracing/tracing.ts';
import { createRelay, type Relay } from './webhook/relay.ts';
import { WebSocketLeg } from './websocket/websocket-leg.ts';

/** Everything that was made, for `shutdown.ts` to stop. */
export interface Platform extends Engines, Heart, Doors {
  readonly drain: Drain;
  readonly app: HttpApp;
}

interface Base {
  /** The part of a cluster that this process is, or undefined where it owns its database alone. */
  readonly cluster: Cluster | undefined;
  readonly settings: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly publicUrl: string;
  readonly nodeId: string;
  /** The DATA_DIR, which outlives the process. */
  readonly volumeId: string;
  readonly outbound: ScreenedOutbound;
}

interface CallTraces {
  of(sessionUuid: string): string;
}

interface Engines extends Base {
  readonly store: Store;
  readonly media: NativeMediaEngine;
  /** The place where recordings are kept, or undefined when nothing is recorded. */
  readonly storage: RecordingStorage | undefined;
  readonly rings: RecordingRings | undefined;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** Finds the trace of the command that last changed a Session, once the Sessions are there. */
  readonly callTraces: CallTraces;
  /** The timelines of calls. Undefined when none are kept. */
  readonly history: CallHistory | undefined;
  readonly sipTrace: SipTrace | undefined;
}

interface Heart {
  /** The levels of the rate limits, of HTTP and of bots. */
  readonly tokens: TokenBuckets;
  readonly sessions: SessionRegistry;
  readonly rooms: RoomRegistry;
  readonly recordings: RecordingRegistry;
  readonly charges: ChargeDispatcher;
  readonly messages: MessageDispatcher;
  readonly urls: ReturnType<typeof createRecordingUrls>;
}

/** What the HTTP door needs of the cluster. */
interface ClusterDoors {
  readonly peers: Peers | undefined;
  readonly streams: PeerStreams | undefined;
  readonly nodes: OperatorNodes;
}

interface Doors {
  readonly carrier: Carrier;
  readonly relay: Relay;
  trunks(): readonly TrunkRow[];
  /** Reads the trunks again, and tells the carrier and the other nodes. */
  trunksChanged(): Promise<void>;
  /** The same without telling other nodes. */
  reloadTrunks(): Promise<void>;
}

/**
 * Makes the platform and takes up what an earlier process left. `draining` tells whether SIGTERM was heard. Throws in
 * one line when a part cannot start.
 */
export async function compose(settings: Config, log: Log, listener: HttpListener, draining: () => boolean): Promise<Platform> {
  const engines = await openEngines(settings, log, listener);
  const heart = makeHeart(engines);
  engines.callTraces.of = (sessionUuid) => heart.sessions.find(sessionUuid)?.traceparent ?? '';
  await recover(engines, heart);
  const doors = await openDoors(engines, heart);
  let app: HttpApp | undefined;
  const parts = { ...engines, ...heart, ...doors, drain: new Drain(doors.carrier, heart.sessions, engines) };
  const peers = await connectCluster(parts, async (operation, until) => (await app?.perform(operation, until)) ?? 'moved');
  const readings = readingsOf({ ...engines, ...heart, ...doors }, () => app?.listeners() ?? 0);
  app = openHttp(
    { ...engines, peers, streams: engines.cluster?.streams(), nodes: operatorNodes(parts) },
    heart,
    doors,
    listener,
    readings,
    draining,
  );
  return { ...parts, app };
}

async function openEngines(settings: Config, log: Log, { publicUrl, port }: HttpListener): Promise<Engines> {
  const clock = systemClock();
  const outbound = createOutbound(settings.outboundAllow);
  const nodeId = newUuid();
  const isNode = settings.natsUrl !== undefined;
  const store = await openStore(settings, log, clock, nodeId, isNode ? 'node' : 'one');
  const volumeId = volumeIdOf(settings.dataDir);
  const cluster = await enter({ settings, log, clock, store, volumeId, httpPort: port });
  const { rtp, mediaWorkers: workers, mediaTimeoutSec } = settings;
  const media = await createMediaEngine({ rtp, workers, mediaTimeoutSec, outbound, log });
  const storage = await createStorage(settings.recordings, { dataDir: settings.dataDir, clock, log });
  const callTraces: CallTraces = { of: () => '' };
  const tracing = await traces(settings, nodeId);
  const rings = storage && (await recordingRings(settings.dataDir, log));
  return {
    settings,
    clock,
    log,
    publicUrl,
    nodeId,
    volumeId,
    cluster,
    outbound,
    store,
    media,
    storage,
    rings,
    tracing,
    callTraces,
    ...makeHistory(settings, store, clock, log, tracing, callTraces),
  };
}

/** The library is loaded only where the variable is set. */
async function traces({ otlpEndpoint }: Config, nodeId: string): Promise<Tracing | undefined> {
  if (otlpEndpoint === undefined) return undefined;
  const { openTracing } = await import('./tracing/otlp.ts');
  return openTracing(otlpEndpoint, nodeId);
}

function makeHistory(
  settings: Config,
  store: Store,
  clock: Clock,
  log: Log,
  tracing: Tracing | undefined,
  callTraces: CallTraces,
): Pick<Engines, 'history' | 'sipTrace'> {
  if (settings.callHistoryDays === 0) return { history: undefined, sipTrace: undefined };
  const history = new CallHistory({
    clock,
    log,
    write: (parts) => store.calls.write(parts),
    onEntry:
      tracing &&
      ((sessionUuid, entry) => {
        const span = entrySpan(sessionUuid, entry, callTraces.of(sessionUuid));
        if (span !== undefined) tracing.record(span);
      }),
    onClosed: (sessionUuid) => sipTrace.forget(sessionUuid),
  });
  const sipTrace = new SipTrace({ history, clock, level: settings.sipTrace, hidden: settings.sipTraceHide });
  return { history, sipTrace };
}

function makeHeart(engines: Engines): Heart {
  const { settings, store, clock, log, publicUrl, outbound } = engines;
  const urls = createRecordingUrls({ masterKey: settings.masterKey, publicUrl, ttlSec: settings.recordingUrlTtlSec });
  const recordings: RecordingRegistry = new RecordingRegistry({
    storage: engines.storage,
    rings: engines.rings,
    rows: store.recordings,
    volumeId: engines.volumeId,
    sign: urls.sign,
    journal: store.journal,
    clock,
    log,
    livenessMs: settings.recordingLivenessSec * 1000,
    retentionMs: settings.recordingRetentionDays * 24 * 3600 * 1000,
    session: (sessionUuid) => sessions.find(sessionUuid)?.state,
  });
  const chargeGateway = createChargeGateway(settings.paymentProvider, outbound, clock);
  const tokens = new TokenBuckets();
  const sessions = makeSessions(engines, recordings, tokens, chargeGateway !== undefined);
  const rooms = makeRooms(engines, recordings, sessions);
  sessions.connectRooms(rooms);
  const charges = new ChargeDispatcher({
    store: store.payments,
    gateway: chargeGateway,
    clock,
    log,
    connected(sessionUuid) {
      const state = sessions.find(sessionUuid)?.state;
      return state?.phase === 'answered' && state.hasLeg && state.ending === undefined ? state : undefined;
    },
    mayUseTerminal: store.terminals.allowed,
  });
  const messages = new MessageDispatcher({
    store: store.messages,
    gateway: createSmsGateway(settings.smsProvider, clock, log),
    clock,
    log,
    mayCallFrom: store.callerIds.allowed,
    onWaiting: () => engines.cluster?.tellMessages(),
  });
  return { tokens, sessions, rooms, recordings, charges, messages, urls };
}

function makeSessions(
  engines: Engines,
  recordings: RecordingRegistry,
  tokens: TokenBuckets,
  hasPayments: boolean,
): SessionRegistry {
  const { settings, store, clock, log, nodeId, media, publicUrl } = engines;
  return new SessionRegistry({
    journal: store.journal,
    records: { find: store.sessions.get, list: store.sessions.list, adopt: store.sessions.adopt },
    clock,
    log,
    nodeId,
    media,
    publicUrl,
    elsewhere: engines.cluster,
    orphanTimeoutMs: settings.orphanTimeoutSec * 1000,
    tokens,
    recordings,
    history: engines.history,
    onSipCall: (callId, sessionUuid, side) => engines.sipTrace?.bind(callId, sessionUuid, side),
    payments: hasPayments
      ? {
          nodeId,
          vault: store.payments.vault,
          referenceTtlMs: settings.paymentReferenceTtlSec * 1000,
          cardBrand: (appUuid, sessionUuid, reference) => store.payments.cardBrand(appUuid, sessionUuid, reference, clock.now()),
        }
      : undefined,
    mayCallFrom: store.callerIds.allowed,
  });
}

function makeRooms(engines: Engines, recordings: RecordingRegistry, sessions: SessionRegistry): RoomRegistry {
  const { store, clock, log, nodeId, media, cluster } = engines;
  return new RoomRegistry({
    journal: store.journal,
    records: store.rooms,
    clock,
    log,
    nodeId,
    media,
    recordings,
    homes:
      cluster === undefined ? undefined : { ...store.rooms, askRelease: (homeId, roomId) => cluster.askRelease(homeId, roomId) },
    limits: async (appUuid) => (await store.apps.get(appUuid))?.roomLimits,
    session: (sessionUuid) => sessions.find(sessionUuid),
  });
}

/**
 * Takes up what an earlier process left: charges, recordings, Rooms, then Sessions, so that their ends come in order.
 */
async function recover({ log }: Engines, { charges, recordings, rooms, sessions }: Heart): Promise<void> {
  await charges.start();
  const mended = await recordings.recover();
  if (mended > 0) log.warn({ recordings: mended }, 'finished recordings that an earlier process left growing');
  recordings.keepRetention();
  await rooms.recover();
  const left = await sessions.recover();
  if (left > 0) log.warn({ sessions: left }, 'took over Sessions that an earlier process left without an end');
}

async function openDoors(
  { settings, store, media, clock, log, outbound, sipTrace, cluster, tracing }: Engines,
  { sessions }: Heart,
): Promise<Doors> {
  let trunks = await store.trunks.list();
  const carrier = await createCarrier({
    listen: settings.sip.listen,
    rtpHost: settings.rtp.host,
    labels: settings.node.labels,
    sharedChannels: cluster,
    registers: (trunk) => cluster === undefined || cluster.holds(registerLease(trunk)),
    ...(settings.sip.tls === undefined ? {} : { tls: settings.sip.tls }),
    ...(settings.sip.advertise === undefined ? {} : { advertise: settings.sip.advertise }),
    media,
    clock,
    log,
    trunks: () => trunks,
    onInvite: (call) => sessions.incoming(call),
    numberOwner: store.numbers.owner,
    ...(sipTrace === undefined ? {} : { trace: (direction, bytes, peer) => sipTrace.message(direction, bytes, peer) }),
  });
  sessions.connect(carrier);
  const connect = connector(settings.outboundAllow);
  sessions.connectWebSockets((options) => new WebSocketLeg({ ...options, connect, clock, media }));
  const relay = createRelay({
    outbox: store.outbox,
    apps: store.apps,
    credentials: store.credentials,
    outbound,
    clock,
    log,
    timeoutSec: settings.webhookTimeoutSec,
    retryScale: settings.webhookRetryScale,
    onAttempt: tracing && ((delivery) => tracing.record(deliverySpan(delivery))),
  });
  relay.start();
  const reloadTrunks = async () => {
    const known = JSON.stringify(trunks);
    trunks = await store.trunks.list();
    if (JSON.stringify(trunks) !== known) carrier.trunksChanged();
  };
  const trunksChanged = async () => {
    await reloadTrunks();
    cluster?.tellTrunks();
  };
  return { carrier, relay, trunks: () => trunks, trunksChanged, reloadTrunks };
}

function openHttp(
  { settings, store, clock, log, media, publicUrl, history, peers, streams, nodes, tracing }: Engines & ClusterDoors,
  { tokens, sessions, rooms, messages, charges, recordings, urls }: Heart,
  { carrier, trunksChanged }: Doors,
  listener: HttpListener,
  readings: readonly Reading[],
  draining: () => boolean,
): HttpApp {
  return createHttpApp({
    tokens,
    peers,
    streams,
    sessions,
    rooms,
    messages,
    charges,
    recordings,
    recordingUrls: urls,
    store,
    clock,
    log,
    operatorToken: settings.operatorToken,
    operatorReadToken: settings.operatorReadToken,
    metrics: createHttpMetrics(createMetrics(readings)),
    publicUrl,
    disableIdleTimeout: listener.disableIdleTimeout,
    setIdleTimeout: listener.setIdleTimeout,
    inFlight: listener.inFlight,
    peer: listener.peer,
    sentPath: sentMediaPath,
    followed: followRecording,
    draining,
    ready: async () => ({ database: await store.ready(), media: media.ready(), sip: carrier.ready() }),
    carrier,
    onTrunksChanged: trunksChanged,
    nodes,
    history,
    onCommand: tracing && ((command) => tracing.record(commandSpan(command))),
  });
}

/** The readings of `/metrics` that no part makes itself. */
function readingsOf(parts: Engines & Heart & Doors, listeners: () => number): readonly Reading[] {
  const { sessions, rooms, recordings, charges, messages, media, carrier, store, storage, cluster } = parts;
  const gauge = (name: string, help: string, read: () => number): Reading => ({ name, help, kind: 'gauge', read });
  const counter = (name: string, help: string, read: () => number): Reading => ({ name, help, kind: 'counter', read });
  return [
    gauge('sessions', 'Live Sessions', () => sessions.size),
    gauge('rooms', 'Live Rooms', () => rooms.size),
    gauge('recordings', 'Recordings being written', () => recordings.growing),
    gauge('recording_listeners', 'Recordings being listened to', listeners),
    gauge(
      'recordings_waiting_bytes',
      'Bytes of recordings that are still to be uploaded',
      () => storage?.load().waitingBytes ?? 0,
    ),
    gauge('media_legs', 'Open RTP legs', () => media.load().legs),
    gauge('rtp_port_pairs_free', 'RTP port pairs that could be opened', () => media.load().portsFree),
    ...clusterReadings(cluster),
    ...mediaReadings(media),
    ...trafficReadings(media.traffic),
    gauge('sip_dialogs', 'SIP dialogs', () => carrier.load().dialogs),
    gauge('sip_transactions', 'SIP transactions', () => carrier.load().transactions),
    gauge('charges_attempting', 'Charges with the provider', () => charges.attempting),
    gauge('messages_submitting', 'Short messages with the gateway', () => messages.submitting),
    gauge('journal_waiting', 'Changes waiting for the database', () => store.load().waiting),
    counter('journal_changes_total', 'Changes committed or refused', () => store.load().changes),
    counter('journal_flushes_total', 'Statements they were committed in', () => store.load().flushes),
  ];
}
