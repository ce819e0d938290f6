/**
 * Judges which nodes are dead, as one node sees it. A peer is judged by this node's own monotonic clock: its beat has
 * not moved. Times of two machines are never compared.
 *
 *   alive ─3 s without a beat→ suspect ─NODE_BURIAL_SEC, with an unbroken watch of my own→ may be buried
 *
 * The watch of a node is broken by a gap between its own readings: it was stopped, or cut off from the database. Then
 * everyone looks dead to it, so it buries nobody until it has watched without a gap for twice NODE_BURIAL_SEC. Without
 * that rule the first node that came back after an outage of the database buried all others.
 */
import { NODE_POLL_GAP_MAX_MS, NODE_SUSPECT_MS } from '../../limits.ts';

interface Peer {
  readonly beat: number;
  /** When this node last saw the beat move. Milliseconds of its own clock. */
  readonly movedAt: number;
}

export interface Watch {
  readonly peers: ReadonlyMap<string, Peer>;
  /** The last reading. Undefined before the first one. */
  readonly readAt: number | undefined;
  /** Since when there was no gap between readings. */
  readonly unbrokenSince: number;
}

export const newWatch = (now: number): Watch => ({ peers: new Map(), readAt: undefined, unbrokenSince: now });

/** A reading of the beats of all live peers, myself left out. */
export function read(watch: Watch, beats: ReadonlyMap<string, number>, now: number): Watch {
  const isGap = watch.readAt === undefined || now - watch.readAt > NODE_POLL_GAP_MAX_MS;
  const peers = new Map<string, Peer>();
  for (const [nodeId, beat] of beats) {
    const known = watch.peers.get(nodeId);
    peers.set(nodeId, known?.beat === beat ? known : { beat, movedAt: now });
  }
  return { peers, readAt: now, unbrokenSince: isGap ? now : watch.unbrokenSince };
}

/** Peers on which nothing is placed: no beat of theirs was seen for 3 s. */
export function suspects({ peers }: Watch, now: number): readonly string[] {
  return [...peers].filter(([, { movedAt }]) => now - movedAt >= NODE_SUSPECT_MS).map(([nodeId]) => nodeId);
}

/**
 * Peers whose calls may be taken over: suspects, as a node sees them that has watched for twice as long without a gap
 * of its own. After an outage of the database everyone's beats are old.
 */
export function forsaken(watch: Watch, now: number): readonly string[] {
  const isBlind = watch.readAt === undefined || now - watch.readAt > NODE_POLL_GAP_MAX_MS;
  return isBlind || now - watch.unbrokenSince < 2 * NODE_SUSPECT_MS ? [] : suspects(watch, now);
}

export interface Lost {
  readonly nodeId: string;
  /** The beat that was seen; only a node whose beat is still this one may be buried. */
  readonly beat: number;
  /** Its last sign of life, by my clock. */
  readonly seenAt: number;
  /** It may be cut off from the database only: it is buried at once if it does not answer a ping either. */
  readonly mayAnswer: boolean;
}

/** Peers that may be buried now. One that answers a ping waits for `orphanMs`, after which its calls are orphans. */
export function lost(watch: Watch, burialMs: number, orphanMs: number, now: number): readonly Lost[] {
  const { peers, readAt, unbrokenSince } = watch;
  const isBlind = readAt === undefined || now - readAt > NODE_POLL_GAP_MAX_MS || now - unbrokenSince < 2 * burialMs;
  if (isBlind) return [];
  return [...peers]
    .filter(([, { movedAt }]) => now - movedAt >= burialMs)
    .map(([nodeId, { beat, movedAt }]) => ({ nodeId, beat, seenAt: movedAt, mayAnswer: now - movedAt < orphanMs }));
}
