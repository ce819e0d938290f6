/**
 * The composition root: it makes every part of the platform and connects them, from the bottom up.
 *
 *   engines (database, media, recordings' storage) → heart (Sessions, Rooms, recordings, charges, messages) → doors
 *   (carrier, WebSockets, webhooks, HTTP)
 */
import { TurnBudget } from '../bounds/turn-budget.ts';
import type { PeerStreams } from '../call/ports/peer-streams.ts';
import type { Peers } from '../call/ports/peers.ts';
import { type Carrier, createCarrier } from '../carrier/carrier.ts';
import { loadNumberPlans } from '../carrier/trunk/number-plan.ts';
import type { Clock } from '../clock.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { Config } from '../config.ts';
import type { Store } from '../database/store.ts';
import type { TrunkRow } from '../database/trunk/trunks.ts';
import { createSeal } from '../database/vault/seal.ts';
import { examining } from '../doctor/examine.ts';
import { CallHistory } from '../history/call-history.ts';
import { SipTrace } from '../history/sip-trace.ts';
import { createHttpApp, type HttpApp } from '../http/app.ts';
import { createHttpMetrics } from '../http/metrics.ts';
import type { OperatorNodes } from '../http/operator/hooks.ts';
import { newUuid } from '../id.ts';
import { STREAM_TURN_MARKS } from '../limits.ts';
import type { Log } from '../log.ts';
import { createMediaEngine, type NativeMediaEngine } from '../media/media-engine.ts';
import { type RecordingRings, recordingRings } from '../media/recording/recording-rings.ts';
import { followRecording } from '../media/recording/recordings.ts';
import { mediaReadings, webrtcReadings } from '../media/worker/readings.ts';
import { trafficReadings } from '../media/worker/traffic.ts';
import { counter, createMetrics, gauge, type Reading } from '../metrics.ts';
import { connector } from '../outbound/connect.ts';
import { createOutbound, type ScreenedOutbound } from '../outbound/safe-fetch.ts';
import { isProblem } from '../problem.ts';
import { createChargeGateway } from '../provider/charge.ts';
import { createSmsGateway } from '../provider/sms.ts';
import { createStorage } from '../recording-storage/create.ts';
import type { RecordingStorage } from '../recording-storage/storage.ts';
import { volumeIdOf } from '../settings/node-id.ts';
import { commandSpan, deliverySpan, entrySpan, operationBehind } from '../tracing/spans.ts';
import { newTraceparent, type Tracing } from '../tracing/tracing.ts';
import { createRelay, type Relay } from '../webhook/relay.ts';
import { WebrtcDoor } from '../webrtc/browser-calls.ts';
import { WebSocketLeg } from '../websocket/websocket-leg.ts';
import { clusterReadings, connectCluster, endWhenDead, enter, goOnWithOwnCalls, registerLease, takeOwnCalls } from './cluster.ts';
import { DeviceUsers } from './device-users.ts';
import { Drain, operatorNodes } from './drain.ts';
import { type Heart, type HeartEngines, makeHeart, recover } from './heart.ts';
import type { HttpListener } from './listen.ts';
import { memoryLimit } from './memory-limit.ts';
import type { Opening } from './opening.ts';
import { TrunkList } from './trunk-list.ts';

/** Everything that was made, for `shutdown.ts` to stop. */
export interface Platform extends Engines, Heart, Doors {
  readonly drain: Drain;
  readonly app: HttpApp;
}

interface Base {
  /** The process that used this DATA_DIR last. */
  readonly before: string | undefined;
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
  of(sessionUuid: string, operationUuid: string | undefined): string;
}

interface Engines extends Base, Pick<HeartEngines, 'chargeGateway' | 'smsGateway'> {
  readonly store: Store;
  readonly media: NativeMediaEngine;
  /** The place where recordings are kept, or undefined when nothing is recorded. */
  readonly storage: RecordingStorage | undefined;
  readonly rings: RecordingRings | undefined;
  /** The exporter of traces, or undefined when nothing is traced. */
  readonly tracing: Tracing | undefined;
  /** Finds the trace of an operation of a Session, or of its latest command, once the Sessions are there. */
  readonly callTraces: CallTraces;
  /** The timelines of calls. Undefined when none are kept. */
  readonly history: CallHistory | undefined;
  readonly sipTrace: SipTrace | undefined;
}

/** What the HTTP door needs of the cluster. */
interface ClusterDoors {
  readonly peers: Peers | undefined;
  readonly streams: PeerStreams | undefined;
  readonly nodes: OperatorNodes;
}

interface Doors {
  readonly carrier: Carrier;
  readonly browsers: WebrtcDoor;
  readonly relay: Relay;
  trunks(): readonly TrunkRow[];
  /** The trunk of that name was set up or taken down: reads all again, and tells the carrier and the other nodes. */
  trunksChanged(name: string): Promise<void>;
  /** The same without telling other nodes. `set`: the trunk that the operator set up, also as it was. */
  reloadTrunks(set?: string): Promise<void>;
  /** Reads a device again, and tells the carrier and the other nodes. */
  deviceChanged(username: string): Promise<void>;
  /** The same without telling other nodes. */
  refreshDevice(username: string): Promise<void>;
}

/**
 * Makes the platform on the database that is being opened, and takes up what an earlier process left. `draining` tells
 * whether SIGTERM was heard. Throws in one line when a part cannot start.
 */
export async function compose(
  settings: Config,
  log: Log,
  listener: HttpListener,
  opening: Opening,
  draining: () => boolean,
): Promise<Platform> {
  const engines = await openEngines(settings, log, listener, opening);
  const heart = makeHeart(engines);
  engines.callTraces.of = (sessionUuid, operationUuid) => heart.sessions.find(sessionUuid)?.traces.of(operationUuid) ?? '';
  endWhenDead({ ...engines, ...heart, exit: () => process.exit(1) });
  const ownCalls = await takeOwnCalls(engines, heart.sessions, engines.before);
  await recover(engines, heart);
  const doors = await openDoors(engines, heart);
  let app: HttpApp | undefined;
  const drain = new Drain(doors.carrier, heart.sessions, engines);
  const parts = { ...engines, ...heart, ...doors, drain };
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
  if (ownCalls !== undefined) await goOnWithOwnCalls(ownCalls, parts);
  return { ...parts, app };
}

async function openEngines(settings: Config, log: Log, { publicUrl, port }: HttpListener, opening: Opening): Promise<Engines> {
  const { clock, nodeId } = opening;
  const outbound = createOutbound(settings.outboundAllow);
  const { rtp, webrtc, mediaWorkers: workers, mediaTimeoutSec } = settings;
  // The media workers start beside the database; whatever keeps that from opening is told first.
  const starting = createMediaEngine({ rtp, webrtc, workers, mediaTimeoutSec, outbound, log }, opening.store);
  starting.catch(() => undefined);
  const store = await opening.store;
  const volumeId = volumeIdOf(settings.dataDir);
  const { cluster, before } = await enter({ settings, log, clock, store, volumeId, httpPort: port });
  const media = await starting;
  const appOf = async (recordingUuid: string) => (await store.recordings.get(recordingUuid))?.appUuid;
  const storage = await createStorage(settings.recordings, { dataDir: settings.dataDir, clock, log, appOf });
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
    before,
    outbound,
    store,
    media,
    storage,
    rings,
    tracing,
    callTraces,
    chargeGateway: createChargeGateway(settings.paymentProvider, outbound, clock),
    smsGateway: await createSmsGateway(settings.smsProvider, clock, log),
    ...makeHistory(settings, store, clock, log, tracing, callTraces),
  };
}

/** The library is loaded only where the variable is set. */
async function traces({ otlpEndpoint }: Config, nodeId: string): Promise<Tracing | undefined> {
  if (otlpEndpoint === undefined) return undefined;
  const { openTracing } = await import('../tracing/otlp.ts');
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
        const span = entrySpan(sessionUuid, entry, callTraces.of(sessionUuid, operationBehind(entry)));
        if (span !== undefined) tracing.record(span);
      }),
    onClosed: (sessionUuid) => sipTrace.forget(sessionUuid),
  });
  const sipTrace = new SipTrace({ history, clock, level: settings.sipTrace, hidden: settings.sipTraceHide });
  return { history, sipTrace };
}

/** Opens the doors to carriers, browsers and webhook endpoints. Rejects when a socket cannot be bound. */
async function openDoors(engines: Engines, { sessions }: Heart): Promise<Doors> {
  const { settings, store, media, clock, log, sipTrace, cluster } = engines;
  const trunks = new TrunkList(async () => {
    const listed = await store.trunks.list();
    await loadNumberPlans(listed);
    return listed;
  });
  await trunks.reload();
  const devices = new DeviceUsers(store.devices);
  await devices.reload();
  const carrier = await createCarrier({
    listen: settings.sip.listen,
    rtpHost: settings.rtp.host,
    labels: cluster && settings.node.labels,
    sharedChannels: cluster,
    sharedTurns: cluster,
    otherDialogs: cluster?.dialogs,
    registeredElsewhere: (trunk) => cluster?.registrationOf(trunk),
    registers: (trunk) => cluster === undefined || cluster.holds(registerLease(trunk)),
    ...(settings.sip.tls === undefined ? {} : { tls: settings.sip.tls }),
    advertise: settings.sip.advertise,
    media,
    seal: createSeal(settings.masterKey),
    clock,
    log,
    trunks: () => trunks.rows,
    devices,
    deviceProxies: settings.sipDeviceProxies,
    ban: settings.sipBan,
    onInvite: (call) => sessions.incoming(call),
    numberOwner: store.numbers.owner,
    ...(sipTrace === undefined ? {} : { trace: (direction, bytes, peer) => sipTrace.message(direction, bytes, peer) }),
  });
  sessions.connect(carrier);
  for await (const page of store.devices.allBindings()) carrier.devicesBound(page);
  const connect = connector(settings.outboundAllow);
  const markTurns = new TurnBudget(STREAM_TURN_MARKS);
  sessions.connectWebSockets((options) => new WebSocketLeg({ ...options, connect, clock, media, markTurns }));
  const browsers = browserDoor(engines, sessions);
  const relay = relayOf(engines);
  relay.start();
  const reloadTrunks = async (set?: string) => {
    carrier.devicesGone(await devices.reload());
    const told = await trunks.reload(set);
    if (told !== undefined) carrier.trunksChanged(...told);
  };
  const trunksChanged = async (name: string) => {
    await reloadTrunks(name);
    cluster?.tellTrunks(name);
  };
  const refreshDevice = async (username: string) => carrier.devicesGone(await devices.refresh(username));
  const deviceChanged = async (username: string) => {
    await refreshDevice(username);
    cluster?.tellDevice(username);
  };
  const changes = { trunksChanged, reloadTrunks, deviceChanged, refreshDevice };
  return { carrier, browsers, relay, trunks: () => trunks.rows, ...changes };
}

/** Makes the door for calls from browsers. */
function browserDoor({ settings, media, clock }: Engines, sessions: Heart['sessions']): WebrtcDoor {
  return new WebrtcDoor({
    media,
    hosts: settings.webrtc?.advertise ?? [],
    codecs: media.codecs,
    clock,
    onCall: (call) => sessions.incoming(call),
    async hangUpLost(appUuid, sessionUuid) {
      const session = sessions.isHere(sessionUuid) ? await sessions.get(appUuid, sessionUuid) : undefined;
      if (session?.type !== 'webrtc' || session.state === 'ended') return false;
      const context = { appUuid, traceparent: newTraceparent(), operationUuid: newUuid(), idempotencyKey: undefined };
      const done = await sessions.command(sessionUuid, { type: 'hangup' }, context);
      return isProblem(done) && done.status !== 404 ? done : !isProblem(done);
    },
  });
}

/** Makes the relay, which delivers the committed events to the webhook endpoints. */
function relayOf({ settings, store, outbound, clock, log, cluster, tracing }: Engines): Doors['relay'] {
  return createRelay({
    outbox: store.outbox,
    apps: store.apps,
    credentials: store.credentials,
    outbound,
    clock,
    log,
    timeoutSec: settings.webhookTimeoutSec,
    retryScale: settings.webhookRetryScale,
    nodeId: store.nodes.nodeId,
    isAlone: cluster === undefined,
    onAttempt: tracing && ((delivery) => tracing.record(deliverySpan(delivery))),
  });
}

function openHttp(
  { settings, store, clock, log, media, publicUrl, history, peers, streams, nodes, tracing, cluster }: Engines & ClusterDoors,
  { tokens, sessions, rooms, messages, charges, recordings, urls }: Heart,
  { carrier, browsers, trunksChanged, deviceChanged }: Doors,
  listener: HttpListener,
  readings: readonly Reading[],
  draining: () => boolean,
): HttpApp {
  const app: HttpApp = createHttpApp({
    tokens,
    mcpMayAct: settings.mcpWrite,
    doctor: examining(settings, publicUrl, (request) => app.fetch(request)),
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
    peer: listener.peer,
    sentPath: listener.sentPath,
    followed: followRecording,
    draining,
    ready: async () => ({
      database: await store.ready(),
      media: media.ready(),
      sip: carrier.ready(),
      ...(cluster && { nats: cluster.readings().connected }),
    }),
    carrier,
    browserCalls: cluster?.browserCalls(browsers, store.sessions.owner) ?? browsers,
    onTrunksChanged: trunksChanged,
    onDeviceChanged: deviceChanged,
    nodes,
    history,
    sipTraceHide: settings.sipTraceHide,
    onCommand: tracing && ((command) => tracing.record(commandSpan(command))),
  });
  return app;
}

/** The readings of `/metrics` that no part makes itself. */
function readingsOf(parts: Engines & Heart & Doors, listeners: () => number): readonly Reading[] {
  const { clock, sessions, rooms, recordings, charges, messages, media, carrier, store, storage, cluster } = parts;
  return [
    gauge('sessions', 'Live Sessions', () => sessions.size),
    gauge('rooms', 'Live Rooms', () => rooms.size),
    gauge('recordings', 'Recordings being written', () => recordings.growing),
    counter('recordings_refused_total', 'Recordings refused for want of room or of a place', () => recordings.refused),
    gauge('recording_apps_full', 'Applications that keep as much in recordings as they may', () => recordings.fullApps),
    gauge('recording_listeners', 'Recordings being listened to', listeners),
    gauge(
      'recordings_waiting_bytes',
      'Bytes of recordings that are still to be uploaded',
      () => storage?.load().waitingBytes ?? 0,
    ),
    gauge(
      'clock_offset_seconds',
      'Seconds by which the clock of the machine is ahead of the time in events',
      () => (clock.wall() - clock.now()) / 1000,
    ),
    gauge('memory_limit_bytes', 'Bytes of memory that the container or the machine gives', () => memoryLimit()),
    gauge('media_legs', 'Open legs: of calls, browsers and WebSockets, and pipes to other nodes', () => media.load().legs),
    gauge('rtp_port_pairs', 'RTP port pairs in RTP_PORTS', () => media.load().ports),
    gauge('rtp_port_pairs_free', 'RTP port pairs that could be opened', () => media.load().portsFree),
    ...clusterReadings(cluster, rooms),
    ...mediaReadings(media),
    ...trafficReadings(media.traffic),
    ...webrtcReadings(media),
    gauge('sip_dialogs', 'SIP dialogs', () => carrier.load().dialogs),
    gauge('sip_transactions', 'SIP transactions', () => carrier.load().transactions),
    counter('sip_datagrams_lost_total', 'SIP datagrams lost as too many waited', () => carrier.load().datagramsLost),
    counter('sip_calls_late_total', 'SIP calls refused as a connection brought too many', () => carrier.load().callsLate),
    gauge('trunks_down', 'Trunks that do not answer or are not registered', () => carrier.load().trunksDown),
    gauge('sip_banned', 'Addresses that are banned', () => carrier.bans().now),
    counter('sip_bans_total', 'Bans of addresses', () => carrier.bans().total),
    gauge('charges_attempting', 'Charges with the provider', () => charges.attempting),
    gauge('messages_submitting', 'Short messages with the gateway', () => messages.submitting),
    gauge(
      'database_away_seconds',
      'Seconds for which the database has been away, 0 while it answers',
      () => store.awayMs() / 1000,
    ),
    gauge('journal_waiting', 'Changes waiting for the database', () => store.load().waiting),
    counter('journal_changes_total', 'Changes committed or refused', () => store.load().changes),
    counter('journal_flushes_total', 'Statements they were committed in', () => store.load().flushes),
  ];
}
