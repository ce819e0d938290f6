/**
 * The nodes of the cluster as this one sees them. Every second one statement raises my beat and reads everyone's; a
 * node whose beat has not moved for long enough is declared dead, by one of the others (`machine/node/watch.ts`).
 */

import { ThrottledLog } from '../../bounds/throttled-log.ts';
import { type Clock, sleep } from '../../clock.ts';
import { warnUnlessAway } from '../../database/journal/journal.ts';
import type { NodeRow, NodeStore } from '../../database/node/nodes.ts';
import { NODE_BEAT_MS, NODE_LEFT_LOOK_MS, NODE_POLL_GAP_MAX_MS, NODE_STRANGERS_MAX, NODE_SWEEP_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { forsaken, type Lost, lost, newWatch, read, suspects, type Watch } from '../../machine/node/watch.ts';
import type { Reach } from '../../machine/room/home-watch.ts';

const GAP = 'the beats of the other nodes were not read for a while: none is declared dead until they were read for longer';
/** A machine that is too slow for a beat a second is so for long. */
const GAP_SAID_EVERY_MS = 60_000;

export interface MembersOptions {
  readonly nodes: Pick<NodeStore, 'nodeId' | 'beat' | 'bury'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly burialMs: number;
  readonly orphanMs: number;
  /** My load as JSON, told with each beat. */
  load(): string;
  /** Tells whether a node answers over NATS. */
  ping(nodeId: string): Promise<Reach>;
  /** Takes over what dead nodes left. `seenAt`: their last sign of life, by this node's clock. */
  takeOver(seenAt: number): Promise<void>;
  /**
   * A node is a suspect, and does not answer over NATS either; or it is declared dead, and nobody knew whether it
   * answers. Called again with each beat. What it left is taken over once this has resolved.
   */
  onForsaken(nodeId: string): Promise<void>;
  /** The readings of this node had a gap, in which others may have taken it for lost. */
  onBack(): void;
  /** My own row as each beat reads it: a drain is ordered there. */
  onOwn(row: NodeRow): void;
}

export class Members {
  readonly #options: MembersOptions;
  #watch: Watch;
  #rows: ReadonlyMap<string, NodeRow> = new Map();
  /** Nodes that NATS knows nobody of, until their next beat. */
  readonly #gone = new Map<string, number>();
  /** Nodes that are asked for and not known, each with the number of readings that had begun when it was. */
  readonly #strangers = new Map<string, number>();
  #readingsBegun = 0;
  /** The number of the reading that `#rows` is from. */
  #readingsDone = 0;
  #stopped = false;
  #cancel = () => {};
  #sweepAt: number;
  /** When a node last came or went, by my clock. */
  #changedAt: number;
  #burying = false;
  readonly #gaps: ThrottledLog;

  constructor(options: MembersOptions) {
    this.#options = options;
    this.#gaps = new ThrottledLog(options.log, options.clock, GAP_SAID_EVERY_MS);
    const now = options.clock.now();
    this.#watch = newWatch(now);
    this.#sweepAt = now + NODE_SWEEP_MS;
    this.#changedAt = now;
  }

  /** Reads the others once, and goes on each second. Rejects when the database is away. */
  async start(): Promise<void> {
    await this.#beat();
    this.#next();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  /** All nodes that were not declared dead, this one included. */
  get rows(): readonly NodeRow[] {
    return [...this.#rows.values()];
  }

  /** When a node last came or went. Two beats later all nodes know the same ones. */
  get changedAt(): number {
    return this.#changedAt;
  }

  get(nodeId: string): NodeRow | undefined {
    return this.#rows.get(nodeId);
  }

  /**
   * Tells whether a node was declared dead, or has left. One that has just come may speak before its row was read here:
   * it is there before it speaks, so that a reading which begins later and has no such row tells.
   */
  isDead(nodeId: string): boolean {
    if (this.#rows.has(nodeId)) return false;
    const since = this.#strangers.get(nodeId);
    if (since === undefined) this.#remember(nodeId, this.#readingsBegun);
    return since !== undefined && this.#readingsDone > since;
  }

  /** Tells whether nothing may be placed there: no beat for 3 s, or NATS knows nobody of that name. */
  isSuspect(nodeId: string): boolean {
    const row = this.#rows.get(nodeId);
    if (row === undefined) return true;
    return this.#gone.get(nodeId) === row.beat || suspects(this.#watch, this.#options.clock.now()).includes(nodeId);
  }

  /** NATS knows nobody of that name: it counts as a suspect until its next beat. */
  isAway(nodeId: string): void {
    const row = this.#rows.get(nodeId);
    if (row !== undefined) this.#gone.set(nodeId, row.beat);
  }

  #next(): void {
    if (this.#stopped) return;
    const { clock } = this.#options;
    this.#cancel = clock.at(clock.now() + NODE_BEAT_MS, () => {
      this.#beat()
        .catch((error: unknown) => warnUnlessAway(this.#options.log, error, {}, 'the beat of this node was not stored'))
        .finally(() => this.#next());
    });
  }

  async #beat(): Promise<void> {
    const { nodes, clock, load, onOwn, onBack } = this.#options;
    const reading = ++this.#readingsBegun;
    const rows = await nodes.beat(load());
    if (this.#stopped) return;
    this.#learn(new Map(rows.filter(({ deadAt }) => deadAt === undefined).map((row) => [row.nodeId, row])), reading);
    const peers = rows.filter(({ nodeId }) => nodeId !== nodes.nodeId);
    const { readAt = clock.now() } = this.#watch;
    if (clock.now() - readAt > NODE_POLL_GAP_MAX_MS) {
      this.#gaps.say('warn', 'gap', { gap_ms: Math.round(clock.now() - readAt) }, GAP);
      onBack();
    }
    this.#watch = read(this.#watch, new Map(peers.map(({ nodeId, beat }) => [nodeId, beat])), clock.now());
    for (const [nodeId, beat] of this.#gone) if (this.#rows.get(nodeId)?.beat !== beat) this.#gone.delete(nodeId);
    const own = rows.find(({ nodeId }) => nodeId === nodes.nodeId);
    if (own !== undefined) onOwn(own);
    if (!this.#burying) void this.#buryLost();
    for (const nodeId of forsaken(this.#watch, clock.now())) void this.#forsake(nodeId);
  }

  /** One that is forgotten is asked for anew: it is told as dead a reading later. */
  #remember(nodeId: string, since: number): void {
    if (this.#strangers.size >= NODE_STRANGERS_MAX) this.#strangers.clear();
    this.#strangers.set(nodeId, since);
  }

  /** Takes the rows of all nodes that were not declared dead. */
  #learn(rows: ReadonlyMap<string, NodeRow>, reading: number): void {
    const [before, now] = [this.#rows, rows].map((each) => [...each.keys()].sort().join(' '));
    if (before !== now) this.#changedAt = this.#options.clock.now();
    for (const nodeId of this.#rows.keys()) if (!rows.has(nodeId)) this.#remember(nodeId, reading - 1);
    for (const nodeId of rows.keys()) this.#strangers.delete(nodeId);
    this.#rows = rows;
    this.#readingsDone = reading;
  }

  async #forsake(nodeId: string): Promise<void> {
    const reach = await this.#options.ping(nodeId);
    if ((reach === 'silent' || reach === 'nobody') && !this.#stopped) await this.#options.onForsaken(nodeId);
  }

  async #buryLost(): Promise<void> {
    const { clock, burialMs, orphanMs, log } = this.#options;
    this.#burying = true;
    try {
      for (const each of lost(this.#watch, burialMs, orphanMs, clock.now())) await this.#bury(each);
      if (clock.now() >= this.#sweepAt) {
        this.#sweepAt = clock.now() + NODE_SWEEP_MS;
        await this.#options.takeOver(clock.now());
      }
    } catch (error) {
      warnUnlessAway(log, error, {}, 'what a dead node left is taken over later');
    } finally {
      this.#burying = false;
    }
  }

  async #bury({ nodeId, beat, seenAt, mayAnswer }: Lost): Promise<void> {
    const { nodes, clock, log, ping, takeOver, onForsaken } = this.#options;
    // It lives, and is cut off from the database: its calls go on until they are orphans.
    if (mayAnswer && (await ping(nodeId)) === 'answers') return;
    if (!(await nodes.bury(nodeId, beat))) return;
    log.warn({ node_id: nodeId, silent_ms: Math.round(clock.now() - seenAt) }, 'a node was declared dead');
    // NATS may be lost together with the node. A row that says dead is heeded by that node, too.
    if (mayAnswer && !this.#stopped) await onForsaken(nodeId);
    void this.#lookAgain(seenAt);
    await takeOver(seenAt);
  }

  /** A flush of the dead node that was under way may have made a Session after all. */
  async #lookAgain(seenAt: number): Promise<void> {
    const { clock, log, takeOver } = this.#options;
    for (let look = 0; look < 2; look++) {
      await sleep(clock, NODE_LEFT_LOOK_MS);
      if (this.#stopped) return;
      await takeOver(seenAt).catch((error: unknown) => warnUnlessAway(log, error, {}, 'the leftovers of a node wait'));
    }
  }
}
