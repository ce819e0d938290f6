/**
 * Looks whether the other nodes, whose signs of life are in the database, answer over NATS as well. One that does not
 * is connected to another NATS, or to none: each command for its calls is refused, and its own log need not say so. The
 * answers tell the clocks of the others, which must be set alike; so must be settings that each node is asked for once.
 */
import type { Clock } from '../../clock.ts';
import { NODE_CLOCKS_APART_MS, NODE_REACH_LOOK_MS, NODE_REACH_MISSES, NODE_SETTINGS_ASKS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Reach } from '../../machine/room/home-watch.ts';
import { formatHostPort } from '../../sip/message/uri.ts';

/** A node that lives. `host` and `httpPort` are how the operator knows it. */
interface Peer {
  readonly nodeId: string;
  readonly host: string;
  readonly httpPort: number;
}

export interface ReachWatchOptions {
  readonly clock: Clock;
  readonly log: Log;
  ping(nodeId: string): Promise<Reach>;
  /** How far the clock of a node is ahead of this one's, in milliseconds. Undefined: it was not compared lately. */
  lead(nodeId: string): number | undefined;
  /** The settings of which a node has another value than this one. Undefined: it has not answered. */
  settingsApart(nodeId: string): Promise<readonly string[] | undefined>;
  /** The other nodes that give signs of life. */
  peers(): readonly Peer[];
}

export class ReachWatch {
  readonly #options: ReachWatchOptions;
  /** How often in a row each node has not answered. */
  readonly #misses = new Map<string, number>();
  /** The nodes whose clock is another one than this node's. */
  readonly #apart = new Set<string>();
  /** How often each node was asked for its settings in vain, as one of an older release is. */
  readonly #asked = new Map<string, number>();
  /** The settings of which each node that has answered has another value. */
  readonly #differing = new Map<string, readonly string[]>();
  #stopped = false;
  #cancel = () => {};

  constructor(options: ReachWatchOptions) {
    this.#options = options;
    this.#next();
  }

  /** Tells whether a node gives signs of life and does not answer over NATS. */
  isUnreached(nodeId: string): boolean {
    return (this.#misses.get(nodeId) ?? 0) >= NODE_REACH_MISSES;
  }

  /** How many nodes there are of which `isUnreached` is true. */
  get unreached(): number {
    return [...this.#misses.values()].filter((misses) => misses >= NODE_REACH_MISSES).length;
  }

  /** The settings of which a node has another value than this one, as far as they were compared. */
  settingsApart(nodeId: string): readonly string[] {
    return this.#differing.get(nodeId) ?? [];
  }

  /** How many nodes have a clock that differs from this one's. */
  get clocksApart(): number {
    return this.#apart.size;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  #next(): void {
    const { clock } = this.#options;
    this.#cancel = clock.at(clock.now() + NODE_REACH_LOOK_MS, () => {
      void this.#look().finally(() => {
        if (!this.#stopped) this.#next();
      });
    });
  }

  async #look(): Promise<void> {
    const { ping, peers } = this.#options;
    const asked = peers();
    for (const known of [this.#misses, this.#apart, this.#asked, this.#differing])
      for (const nodeId of [...known.keys()]) if (!asked.some((peer) => peer.nodeId === nodeId)) known.delete(nodeId);
    await Promise.all(
      asked.map(async (peer) => {
        const reach = await ping(peer.nodeId);
        this.#judge(peer, reach);
        if (reach !== 'answers') return;
        this.#compareClock(peer);
        await this.#compareSettings(peer);
      }),
    );
  }

  #judge({ nodeId, host, httpPort }: Peer, reach: Reach): void {
    const { log } = this.#options;
    const about = { node_id: nodeId, node: formatHostPort(host, httpPort) };
    const wasUnreached = this.isUnreached(nodeId);
    // A node that does not reach NATS itself knows nothing of the others, and says so elsewhere.
    if (reach === 'answers' || reach === 'unknown') {
      this.#misses.delete(nodeId);
      if (wasUnreached && reach === 'answers') log.info(about, 'a node answers over NATS again');
      return;
    }
    this.#misses.set(nodeId, (this.#misses.get(nodeId) ?? 0) + 1);
    if (!wasUnreached && this.isUnreached(nodeId))
      log.warn(about, 'a node lives and does not answer over NATS: see that NATS_URL leads both nodes to the same servers');
  }

  #compareClock({ nodeId, host, httpPort }: Peer): void {
    const { log, lead } = this.#options;
    const ahead = lead(nodeId) ?? 0;
    const isApart = Math.abs(ahead) > NODE_CLOCKS_APART_MS;
    if (isApart === this.#apart.has(nodeId)) return;
    const about = { node_id: nodeId, node: formatHostPort(host, httpPort), ahead_ms: Math.round(ahead) };
    if (isApart) {
      this.#apart.add(nodeId);
      log.warn(about, 'the clock of a node differs from that of this one: set both by NTP, and restart the one that was wrong');
    } else {
      this.#apart.delete(nodeId);
      log.info(about, 'the clock of a node is that of this one again');
    }
  }
  /** Compares the settings with those of a node, which has the same until its process ends. */
  async #compareSettings({ nodeId, host, httpPort }: Peer): Promise<void> {
    const { log, settingsApart } = this.#options;
    const asked = this.#asked.get(nodeId) ?? 0;
    if (asked >= NODE_SETTINGS_ASKS || this.#differing.has(nodeId)) return;
    const settings = await settingsApart(nodeId);
    if (settings === undefined) this.#asked.set(nodeId, asked + 1);
    else this.#differing.set(nodeId, settings);
    if (settings === undefined || settings.length === 0) return;
    log.warn(
      { node_id: nodeId, node: formatHostPort(host, httpPort), settings: settings.join(', ') },
      'a node has other values of settings than this one: what a request does depends on the node that it comes to; give all nodes the same',
    );
  }
}
