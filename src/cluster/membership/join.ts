/**
 * The start of a process on its database: alone, or as a node of a cluster. Refuses, in one line, a second MASTER_KEY
 * and a DATA_DIR that a living process uses.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import { type Clock, sleep } from '../../clock.ts';
import type { NodeAbout, NodeStore } from '../../database/node/nodes.ts';
import { newUuid } from '../../id.ts';
import { NODE_BEAT_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { formatHostPort } from '../../sip/message/uri.ts';

/**
 * The version of the messages between nodes, and of what a node writes. A rolling upgrade goes by the lowest one.
 * A pipe may be L16 from 2 on (`L16_PROTOCOL` in call/ports/room-peers.ts).
 */
export const PROTOCOL = 2;

export const OTHER_KEY_THAN_CLUSTER = 'MASTER_KEY: another than that of the cluster, give every node the same';

/** Enters the one process that owns its database: all others are dead. */
export async function joinAlone(nodes: NodeStore, about: NodeAbout): Promise<void> {
  await nodes.join(about);
  await nodes.buryOthers();
}

export interface JoinOptions {
  readonly nodes: Pick<NodeStore, 'onVolume' | 'bury' | 'get' | 'join'>;
  readonly about: NodeAbout;
  /** The process that used this DATA_DIR last. */
  readonly before: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Checks the MASTER_KEY of a cluster. Returns the name of the cluster. Throws in one line. */
export async function clusterName(nodes: NodeStore, masterKey: Uint8Array): Promise<string> {
  const key = new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), 'sidetone: check of the master key', 32));
  const check = createHmac('sha256', key).update('cluster').digest('hex');
  if ((await nodes.fact('master_key_check', check)) !== check) throw new Error(OTHER_KEY_THAN_CLUSTER);
  return await nodes.fact('cluster_id', newUuid());
}

/**
 * Enters this process as a node. The process that used the DATA_DIR before is gone, since two may not share one: it is
 * declared dead at once, unless its beat still moves. So is one on a copy of the DATA_DIR, as on a cloned machine:
 * recordings are found, and taken up after a crash, by the name of their DATA_DIR. Throws in one line.
 */
export async function joinCluster({ nodes, about, before, clock, log }: JoinOptions): Promise<void> {
  const formers = await nodes.onVolume(before ?? '', about.volumeId);
  // Two beats of time, so that a living process has raised its own.
  if (formers.length > 0) await sleep(clock, NODE_BEAT_MS * 1.5);
  for (const { nodeId, beat, host, httpPort } of formers) {
    if (!(await nodes.bury(nodeId, beat)) && (await nodes.get(nodeId))?.deadAt === undefined)
      throw new Error(
        nodeId === before
          ? 'DATA_DIR: is in use by another node, give each its own'
          : `DATA_DIR: is a copy of that of the node at ${formatHostPort(host, httpPort)}: give each its own, or remove volume.id and node.id from the copy`,
      );
    log.warn({ node_id: nodeId }, 'declared dead the process that used this DATA_DIR before');
  }
  await nodes.join(about);
}
