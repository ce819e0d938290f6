/** The part of the composition root that makes this process the owner of its database, or a node of a cluster. */
import type { ChargeDispatcher } from './call/charge/charge-dispatcher.ts';
import type { Peers } from './call/ports/peers.ts';
import type { TokenBuckets } from './call/rate/token-buckets.ts';
import type { RecordingRegistry } from './call/recording/recording-registry.ts';
import type { RoomRegistry } from './call/room/room-registry.ts';
import type { SessionRegistry } from './call/session/session-registry.ts';
import type { Carrier } from './carrier/carrier.ts';
import { type Clock, sleep } from './clock.ts';
import { Cluster } from './cluster/cluster.ts';
import type { LocalWork } from './cluster/commands.ts';
import { clusterName, joinAlone, joinCluster, PROTOCOL } from './cluster/join.ts';
import { NodeLoad } from './cluster/load.ts';
import type { Config } from './config.ts';
import type { NodeAbout } from './database/nodes.ts';
import type { Store } from './database/store.ts';
import type { TrunkRow } from './database/trunk/trunks.ts';
import { NODE_DEAD_GRACE_MS } from './limits.ts';
import type { Log } from './log.ts';
import type { NativeMediaEngine } from './media/media-engine.ts';
import { leaveNodeId, nodeBefore } from './settings/node-id.ts';
import { VERSION } from './version.ts';

interface Entry {
  readonly settings: Config;
  readonly log: Log;
  readonly clock: Clock;
  readonly store: Store;
  readonly volumeId: string;
  readonly httpPort: number;
}

/** Enters this process into the database, alone or as a node, and frees what its predecessor held. */
export async function enter({ settings, log, clock, store, volumeId, httpPort }: Entry): Promise<Cluster | undefined> {
  const { nodes, idempotency } = store;
  const { dataDir, natsUrl, node, rtp, masterKey } = settings;
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
  const name = natsUrl === undefined ? '' : await clusterName(nodes, masterKey);
  if (natsUrl === undefined) await joinAlone(nodes, about);
  else await joinCluster({ nodes, about, before, clock, log });
  leaveNodeId(dataDir, nodes.nodeId);
  const freed = before === undefined ? 0 : await idempotency.releaseLeft(before);
  if (freed > 0) log.warn({ keys: freed }, 'freed the idempotency keys that an earlier process left in flight');
  if (natsUrl === undefined) return undefined;
  return new Cluster({ settings: { ...settings, natsUrl }, name, nodes, clock, log });
}

/** What the cluster needs of the platform. */
interface ClusterParts {
  readonly settings: Config;
  readonly cluster: Cluster | undefined;
  readonly store: Store;
  readonly media: NativeMediaEngine;
  readonly clock: Clock;
  readonly log: Log;
  readonly tokens: TokenBuckets;
  readonly sessions: SessionRegistry;
  readonly rooms: RoomRegistry;
  readonly recordings: RecordingRegistry;
  readonly charges: ChargeDispatcher;
  readonly carrier: Carrier;
  trunks(): readonly TrunkRow[];
  reloadTrunks(): Promise<void>;
}

/**
 * Takes part in the cluster: from here on this node is placed on, watches the others and takes over what they leave.
 * `perform` serves what they forward. Returns the others, or undefined where this process is alone.
 */
export async function connectCluster(parts: ClusterParts, perform: LocalWork['perform']): Promise<Peers | undefined> {
  const { cluster, store, media, log, tokens, sessions, rooms, recordings, charges, carrier } = parts;
  store.nodes.onDead((by) => void die(parts, by));
  if (cluster === undefined) return undefined;
  const sip = carrier.ports().find(({ transport }) => transport !== 'tls');
  if (sip !== undefined) await store.nodes.announce(`${sip.host}:${sip.port}`);
  cluster.shareCaches({
    onChangeHere: (tell) => store.apps.onChangeHere(tell),
    appChanged: store.appChanged,
    trunksChanged: () => parts.reloadTrunks(),
  });
  const { rtp } = parts.settings;
  const load = new NodeLoad(
    {
      legs: () => media.load().legs,
      portsFree: () => media.load().portsFree,
      ports: Math.floor((rtp.lastPort - rtp.firstPort + 1) / 2),
      busyUs: () => media.ticks().map(({ busyUs }) => busyUs),
    },
    parts.clock,
  );
  await cluster.start({
    load: () =>
      JSON.stringify({
        load: Number(load.value.toFixed(3)),
        sessions: sessions.size,
        rooms: rooms.size,
        legs: media.load().legs,
      }),
    async takeOver(seenAt) {
      // Recordings, Rooms, then Sessions, so that their ends come in order.
      await charges.endCollections();
      await recordings.endBuried();
      await rooms.recover();
      const left = await sessions.recover(seenAt);
      if (left > 0) log.warn({ sessions: left }, 'took over Sessions of a node that is dead');
    },
    onOwn: () => {},
  });
  return cluster.serve({
    sessions: { isHere: (sessionUuid) => sessions.isHere(sessionUuid), owner: store.sessions.owner },
    rooms: {
      isHere: (roomId) => rooms.isHere(roomId),
      home: store.rooms.home,
      bring: (appUuid, roomId) => rooms.bring(appUuid, roomId),
      giveUp: (roomId) => rooms.giveUp(roomId),
    },
    tokens,
    trunks: () => parts.trunks().map(({ name, settings }) => ({ name, nodes: settings.nodes, apps: settings.apps })),
    release: store.idempotency.release,
    perform,
  });
}

/** This node was declared dead: another has its calls. The far ends are hung up on, and the process ends. */
async function die({ log, clock, sessions }: ClusterParts, by: string): Promise<void> {
  log.error({ by, sessions: sessions.size }, 'this node was declared dead: it hangs up its calls and ends');
  sessions.abandon();
  await sleep(clock, NODE_DEAD_GRACE_MS);
  process.exit(1);
}
