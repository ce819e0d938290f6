/** The part of the composition root that makes this process the owner of its database, or a node of a cluster. */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ChargeDispatcher } from '../call/charge/charge-dispatcher.ts';
import type { MessageDispatcher } from '../call/message/message-dispatcher.ts';
import type { Dialer } from '../call/ports/leg.ts';
import type { Peers } from '../call/ports/peers.ts';
import type { TokenBuckets } from '../call/rate/token-buckets.ts';
import type { RecordingRegistry } from '../call/recording/recording-registry.ts';
import type { RoomRegistry } from '../call/room/room-registry.ts';
import { Mover } from '../call/session/handover/mover.ts';
import { OwnCalls } from '../call/session/handover/own-calls.ts';
import { TakenCalls } from '../call/session/handover/taken-calls.ts';
import { Takeover } from '../call/session/handover/takeover.ts';
import type { SessionRegistry } from '../call/session/session-registry.ts';
import { untilStored } from '../call/until-stored.ts';
import type { Carrier } from '../carrier/carrier.ts';
import { DEVICE_TRUNK } from '../carrier/device/device-trunk.ts';
import { trunksOf } from '../carrier/trunk/route.ts';
import { isPinnedTo } from '../carrier/trunk/trunk.ts';
import { type Clock, sleep } from '../clock.ts';
import { natsTransport } from '../cluster/bus/nats.ts';
import { Cluster, type ClusterWork, MESSAGES_LEASE } from '../cluster/cluster.ts';
import type { BeatLoad } from '../cluster/membership/beat-load.ts';
import { clusterName, joinAlone, joinCluster, OTHER_KEY_THAN_CLUSTER, PROTOCOL } from '../cluster/membership/join.ts';
import { NodeLoad } from '../cluster/membership/load.ts';
import type { LocalWork } from '../cluster/peer/commands.ts';
import type { Config } from '../config.ts';
import type { NodeAbout } from '../database/node/nodes.ts';
import type { Store } from '../database/store.ts';
import type { TrunkRow } from '../database/trunk/trunks.ts';
import { NODE_DEAD_GRACE_MS, OWN_CALLS_WAIT_MS } from '../limits.ts';
import type { Log } from '../log.ts';
import { tryAddress } from '../media/leg/try-address.ts';
import type { NativeMediaEngine } from '../media/media-engine.ts';
import { counter, gauge, type Reading } from '../metrics.ts';
import { leaveNodeId, nodeBefore } from '../settings/node-id.ts';
import { sharedSettings } from '../settings/shared.ts';
import { formatHostPort } from '../sip/message/uri.ts';
import { VERSION } from '../version.ts';
import type { Drain } from './drain.ts';

const OTHER_KEY =
  'MASTER_KEY: another than that which sealed the secrets in this database: set that one, or see "Another MASTER_KEY" in docs/operations/backup.md';

const NEITHER_KEY =
  'MASTER_KEY_BEFORE: neither this nor MASTER_KEY opens what is sealed in this database, and nothing was changed: give the key of before (DATA_DIR/master.key of before, where no variable gave it), or see "Another MASTER_KEY" in docs/operations/backup.md';

interface Entry {
  readonly settings: Config;
  readonly log: Log;
  readonly clock: Clock;
  readonly store: Store;
  readonly volumeId: string;
  readonly httpPort: number;
}

/**
 * Enters this process into the database, alone or as a node, and frees what its predecessor held. `before` is that
 * predecessor. Throws in one line where MASTER_KEY is another than that of the database.
 */
export async function enter({ settings, log, clock, store, volumeId, httpPort }: Entry): Promise<{
  readonly cluster: Cluster | undefined;
  readonly before: string | undefined;
}> {
  const { nodes, idempotency, credentials } = store;
  const { dataDir, natsUrls, node, rtp, masterKey } = settings;
  const about: NodeAbout = {
    volumeId,
    host: node.host,
    httpPort,
    rtpHost: rtp.host,
    sipContact: '',
    labels: node.labels,
    version: VERSION,
    protocol: PROTOCOL,
  };
  const before = nodeBefore(dataDir);
  // Other nodes may work under the key before: a process alone changes it.
  if (settings.masterKeyBefore !== undefined && natsUrls === undefined) await changeKey(store, settings.masterKeyBefore, log);
  // What it seals from now on would open under this key only, and all that is sealed under none.
  if (!(await credentials.opensAny())) throw new Error(natsUrls === undefined ? OTHER_KEY : OTHER_KEY_THAN_CLUSTER);
  // A node that cannot take part enters nothing that the others would take for a lost node.
  const pipeHost = natsUrls === undefined ? '' : await addressOf(node.host);
  const name = natsUrls === undefined ? '' : await clusterName(nodes, masterKey);
  if (natsUrls === undefined) await joinAlone(nodes, about);
  else await joinCluster({ nodes, about, before, clock, log });
  leaveNodeId(dataDir, nodes.nodeId);
  const freed = before === undefined ? 0 : await idempotency.releaseLeft(before);
  if (freed > 0) log.warn({ keys: freed }, 'gave back the idempotency keys that an earlier process left in flight');
  if (natsUrls === undefined) return { cluster: undefined, before };
  const [shared, open] = [sharedSettings(settings), natsTransport(natsUrls)];
  return { cluster: new Cluster({ settings, shared, open, name, pipeHost, nodes, clock, log }), before };
}

/**
 * Seals under MASTER_KEY what was sealed under the key before. This process holds the lock on the database. Throws in
 * one line where neither is its key.
 */
async function changeKey(store: Store, before: Uint8Array, log: Log): Promise<void> {
  const { done, kept, lost, isRewritten } = await store.reseal(before);
  if (lost > 0 && done + kept === 0) throw new Error(NEITHER_KEY);
  if (done > 0)
    log.warn(
      { secrets: done },
      'sealed the secrets under another MASTER_KEY; MASTER_KEY_BEFORE is for URLs of recordings from now on',
    );
  if (!isRewritten) log.warn({}, 'run VACUUM FULL on the database: its files may have ciphertexts under the key before');
  if (lost > 0) log.error({ secrets: lost }, 'secrets open neither under MASTER_KEY nor under MASTER_KEY_BEFORE: set them again');
}

/**
 * The address behind the name of this node, on which other nodes reach it. Throws in one line where it is none of this
 * machine's: no member of a Room could be piped to another node.
 */
async function addressOf(host: string): Promise<string> {
  const address = isIP(host) !== 0 ? host : await lookedUp(host);
  await tryAddress('NODE_HOST', address);
  return address;
}

async function lookedUp(host: string): Promise<string> {
  try {
    return (await lookup(host)).address;
  } catch {
    throw new Error(`NODE_HOST: there is no address for ${host}`);
  }
}

/** The carrier as the cluster needs it. */
type ClusterCarrier = Dialer &
  Parameters<Cluster['dialogs']['serve']>[0] &
  Pick<Carrier, 'ports' | 'channelsHeld' | 'registrations' | 'registrationsChanged'>;

/** What the cluster needs of the platform. */
interface ClusterParts {
  readonly settings: Pick<Config, 'node' | 'rtp' | 'orphanTimeoutSec'>;
  readonly cluster: Cluster | undefined;
  readonly store: Store;
  readonly media: Pick<NativeMediaEngine, 'load' | 'ticks'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly tokens: TokenBuckets;
  readonly sessions: SessionRegistry;
  readonly rooms: RoomRegistry;
  readonly recordings: RecordingRegistry;
  readonly charges: ChargeDispatcher;
  readonly carrier: ClusterCarrier;
  readonly messages: MessageDispatcher;
  readonly drain: Drain;
  readonly trunks: () => readonly TrunkRow[];
  reloadTrunks(set?: string): Promise<void>;
  /** Reads a device again that another node has changed. */
  refreshDevice(username: string): Promise<void>;
}

/**
 * Takes part in the cluster: from here on this node is placed on, watches the others and takes over what they leave.
 * `perform` serves what they forward. Returns the others, or undefined where this process is alone.
 */
export async function connectCluster(parts: ClusterParts, perform: LocalWork['perform']): Promise<Peers | undefined> {
  const { cluster, store, carrier, messages, drain } = parts;
  if (cluster === undefined) {
    await messages.start();
    return undefined;
  }
  const sip = carrier.ports().find(({ transport }) => transport !== 'tls');
  if (sip !== undefined) await store.nodes.announce(formatHostPort(sip.host, sip.port));
  cluster.shareCaches({
    onChangeHere: (tell) => store.apps.onChangeHere(tell),
    appChanged: store.appChanged,
    trunksChanged: (set) => parts.reloadTrunks(set),
    deviceChanged: (username) => parts.refreshDevice(username),
  });
  await cluster.start(membership(parts, cluster));
  cluster.dialogs.serve(carrier);
  drain.mover = moverOf(parts, cluster);
  cluster.shareTrunks((trunk) => carrier.channelsHeld()[trunk] ?? 0);
  keepLeases(parts, cluster);
  cluster.onMessages(() => messages.look());
  return cluster.serve(localWork(parts, perform));
}

/** What this node does as a member: it tells its load, and answers to the life and death of nodes. */
function membership(parts: ClusterParts, cluster: Cluster): ClusterWork {
  const { settings, clock, log, sessions, rooms, recordings, charges, drain } = parts;
  const takeover = takeoverOf(parts);
  const takenCalls = takenCallsOf(parts, cluster);
  return {
    load: loadOf(parts, cluster),
    async takeOver(seenAt) {
      // Recordings, Rooms, then Sessions, so that their ends come in order.
      await charges.endCollections();
      await recordings.endBuried();
      const left = await rooms.recover(() => sessions.recover(seenAt));
      await rooms.letGoTaken();
      if (left > 0) log.warn({ sessions: left }, 'took over Sessions of a node that is dead');
    },
    onOwn: (row) => drain.ordered(row),
    onBack() {
      if (settings.node.takesOver) void takenCalls.look();
      void untilStored(clock, () => rooms.letGoTaken());
    },
    async onForsaken(nodeId) {
      if (settings.node.takesOver && !drain.isOn) await takeover.take(nodeId);
    },
  };
}

/** Makes what tells the load of this node, as the JSON that goes with each beat. */
function loadOf({ media, clock, sessions, rooms, carrier }: ClusterParts, cluster: Cluster): () => string {
  const load = new NodeLoad(
    {
      legs: () => media.load().legs,
      portsFree: () => media.load().portsFree,
      ports: media.load().ports,
      busyUs: () => media.ticks().map(({ busyUs }) => busyUs),
    },
    clock,
  );
  return () => {
    cluster.load = Number(load.value.toFixed(3));
    const counts = { sessions: sessions.size, rooms: rooms.size, legs: media.load().legs };
    const bindings = Object.entries(carrier.registrations());
    const routed = bindings.filter(([, { serviceRoute }]) => serviceRoute.length > 0);
    const told: BeatLoad = {
      load: cluster.load,
      channels: carrier.channelsHeld(),
      registered: Object.fromEntries(bindings.map(([trunk, { until }]) => [trunk, until])),
      serviceRoutes: Object.fromEntries(routed.map(([trunk, { serviceRoute }]) => [trunk, serviceRoute])),
    };
    return JSON.stringify({ ...told, ...counts });
  };
}

/** What hands the calls of this node to others when it drains. */
function moverOf({ store, clock, log, sessions, rooms, carrier }: ClusterParts, cluster: Cluster): Mover {
  return new Mover({
    peers: cluster.moves,
    dialer: carrier,
    clock,
    log,
    nodeId: store.nodes.nodeId,
    all: () => sessions.all(),
    find: (sessionUuid) => sessions.find(sessionUuid),
    take: store.sessions.take,
    hold: (sessionUuid) => sessions.adoption.hold(sessionUuid),
    goOn: (state, leg, epoch, traceparent) => sessions.goOn(state, leg, epoch, traceparent),
    handedOver: (state, nodeId) => rooms.span?.handedOver(state, nodeId),
  });
}

/** Keeps the leases of what one node does for all: the registration of each trunk, and short messages. */
function keepLeases({ settings, store, clock, log, carrier, messages, drain, trunks }: ClusterParts, cluster: Cluster): void {
  const wanted = () => {
    if (drain.isOn) return [];
    const registered = trunks().filter(({ register, settings: of }) => register && isPinnedTo(of, settings.node.labels));
    return [MESSAGES_LEASE, ...registered.map(({ name }) => registerLease(name))];
  };
  let submits = false;
  let submitting = Promise.resolve();
  cluster.keepLeases(store.leases, wanted, () => {
    carrier.registrationsChanged();
    if (cluster.submitsMessages === submits) return messages.look();
    submits = !submits;
    const change = submits ? () => untilStored(clock, () => messages.start()) : () => messages.rest();
    submitting = submitting
      .then(change)
      .catch((error: unknown) => log.error({ error: String(error) }, 'messages are not submitted'));
  });
}

/** What this node serves of what other nodes forward to it, and knows of where the rest is. */
function localWork({ store, tokens, sessions, rooms, trunks }: ClusterParts, perform: LocalWork['perform']): LocalWork {
  return {
    sessions: {
      get isDraining() {
        return sessions.isDraining;
      },
      isHere: (sessionUuid) => sessions.isHere(sessionUuid),
      owner: store.sessions.owner,
      obey: (...order) => sessions.obey(...order),
      replacement: (appUuid, sessionUuid) => sessions.replacement(appUuid, sessionUuid),
      named: (appUuid, replaces) => sessions.named(appUuid, replaces),
    },
    rooms: {
      isHere: (roomId) => rooms.isHere(roomId),
      home: store.rooms.home,
      settle: (appUuid, roomId) => rooms.settle(appUuid, roomId),
    },
    tokens,
    trunks: (dial) =>
      trunksOf(trunks(), dial).map(({ name, maxChannels, settings }) => ({ name, maxChannels, nodes: settings.nodes })),
    flows: store.devices.flows,
    release: store.idempotency.release,
    perform,
  };
}

/** What lets the calls go that others have taken from this node. */
function takenCallsOf({ store, clock, sessions, rooms }: ClusterParts, cluster: Cluster): TakenCalls {
  const takenCalls = new TakenCalls({
    clock,
    all: () => sessions.all(),
    find: (sessionUuid) => sessions.find(sessionUuid),
    mine: store.sessions.mine,
    owner: store.sessions.owner,
    handedOver: (state, nodeId) => rooms.span?.handedOver(state, nodeId),
  });
  cluster.onTaken((nodeId, taken) => {
    for (const sessionUuid of taken) void takenCalls.told(nodeId, sessionUuid);
  });
  return takenCalls;
}

/** Takes the calls of the process before, where CALL_TAKEOVER is on, before whatever nobody has becomes an orphan. */
export async function takeOwnCalls(
  {
    settings,
    store,
    log,
  }: {
    readonly settings: Pick<Config, 'node'>;
    readonly store: { readonly sessions: Pick<Store['sessions'], 'takeCalls'>; readonly trunks: Pick<Store['trunks'], 'list'> };
    readonly log: Log;
  },
  sessions: SessionRegistry,
  before: string | undefined,
): Promise<OwnCalls | undefined> {
  if (!settings.node.takesOver || before === undefined) return undefined;
  const own = new OwnCalls({
    ...{ sessions, log, takeCalls: store.sessions.takeCalls },
    trunks: async () => [DEVICE_TRUNK.name, ...(await store.trunks.list()).map(({ name }) => name)],
  });
  await own.take(before);
  return own;
}

/** Goes on with them. Resolves when that is done, or OWN_CALLS_WAIT_MS later: silent far ends hold up no start. */
export async function goOnWithOwnCalls(own: OwnCalls, parts: ClusterParts): Promise<void> {
  await Promise.race([own.goOn(takeoverOf(parts)), sleep(parts.clock, OWN_CALLS_WAIT_MS)]);
}

/** What goes on with the calls of lost nodes. */
function takeoverOf({ settings, store, clock, log, sessions, carrier, trunks, cluster }: ClusterParts): Takeover {
  return new Takeover({
    dialer: carrier,
    clock,
    log,
    orphanTimeoutMs: settings.orphanTimeoutSec * 1000,
    lead: (nodeId) => cluster?.lead(nodeId),
    takeCalls: (...which) => sessions.adoption.one(store.sessions.takeCalls(...which)),
    trunks: () =>
      trunks()
        .filter((trunk) => isPinnedTo(trunk.settings, settings.node.labels))
        .map(({ name }) => name),
    hold: () => sessions.adoption.holdAll(),
    tell: (taken) => cluster?.tellTaken(taken),
    goOn: (state, leg, epoch) => sessions.goOn(state, leg, epoch, ''),
    orphan: (row) => sessions.orphan(row),
  });
}

/** The readings of `/metrics` that a node has beside those of a process alone. */
export function clusterReadings(cluster: Cluster | undefined, rooms: Pick<RoomRegistry, 'span'>): readonly Reading[] {
  if (cluster === undefined) return [];
  const now = () => cluster.readings();
  return [
    gauge('node_load', 'How full this node is, 1 is full: the worst of legs, ports, ticks and event loop', () => cluster.load),
    gauge('nodes_others', 'Other nodes that were not declared dead', () => now().others),
    gauge('nodes_suspect', 'Other nodes without a sign of life for 3 s', () => now().suspects),
    gauge('nodes_unreached', 'Other nodes that live and do not answer over NATS', () => now().unreached),
    gauge(
      'nodes_clocks_apart',
      'Other nodes whose clock differs by more than 5 s from that of this one',
      () => now().clocksApart,
    ),
    gauge('nats_connected', 'Whether NATS is reached', () => (now().connected ? 1 : 0)),
    counter(
      'room_pipes_unheard_total',
      'Times that nothing came from the home of a Room on another node, although it answered',
      () => rooms.span?.pipesUnheard ?? 0,
    ),
    counter('node_requests_total', 'Requests to other nodes', () => now().sent),
    counter('node_messages_total', 'Messages of other nodes', () => now().received),
    counter('node_messages_dropped_total', 'Messages that were not of this cluster, or came twice or late', () => now().dropped),
    counter('node_requests_unknown_total', 'Requests to other nodes whose outcome is not known', () => now().unknown),
  ];
}

/** The lease of the node that registers a trunk. */
export const registerLease = (trunk: string): string => `register:${trunk}`;

/** What ends with a node. */
interface Mortal extends Pick<ClusterParts, 'store' | 'log' | 'clock'> {
  readonly sessions: Pick<SessionRegistry, 'size' | 'abandon'>;
  /** Ends the process, which was declared dead. */
  exit(): void;
}

/** Ends this process once it is declared dead, from before it writes: what it takes up would be tried for ever. */
export function endWhenDead(parts: Mortal): void {
  parts.store.nodes.onDead((by) => void die(parts, by));
}

/** This node was declared dead: another has its calls. The far ends are hung up on, and the process ends. */
async function die({ log, clock, sessions, exit }: Mortal, by: string): Promise<void> {
  log.error(
    { ...(by === '' ? {} : { by }), sessions: sessions.size },
    'this node was declared dead: it was stopped, cut off, or starting, for longer than NODE_BURIAL_SEC; it hangs up its calls and ends',
  );
  sessions.abandon();
  await sleep(clock, NODE_DEAD_GRACE_MS);
  exit();
}
