/**
 * `max_channels` of a trunk over all nodes. One node, found by rendezvous hashing, knows how many channels each node
 * holds, and grants no more than there are. When a node comes or goes the home may be another one: it grants nothing
 * until all nodes have seen the change, and asks them all what they hold. Who wants a channel waits for that. A home
 * that does not answer grants nothing either, until it is back or buried: a carrier's limit is not to be passed. It may
 * have heard a question all the same, or not have heard that channels were given back, so it is told what this node
 * holds until it has answered.
 */
import { type Clock, sleep } from '../../clock.ts';
import { CHANNEL_ASK_AGAIN_MS, NODE_BEAT_MS, NODE_PING_TIMEOUT_MS } from '../../limits.ts';
import type { Bus } from '../bus/bus.ts';
import { beatLoadOf } from '../membership/beat-load.ts';
import type { Members } from '../membership/members.ts';
import { homeOf } from './rendezvous.ts';

/** All nodes have seen by then that one has come or gone. */
const SETTLED_MS = 2 * NODE_BEAT_MS;

/** What a node holds, and the number of the message that said so: messages may overtake each other. */
interface Holding {
  readonly channels: number;
  readonly turn: number;
}

interface Ledger {
  /** When a node had last come or gone as it was opened. It is opened anew then, as another home may have granted. */
  readonly changedAt: number;
  /** What each node holds, once all have told it. */
  readonly holdings: Promise<Map<string, Holding>>;
}

export interface ChannelQuotaOptions {
  readonly bus: Pick<Bus, 'ask' | 'answer'>;
  readonly members: Pick<Members, 'rows' | 'changedAt' | 'get'>;
  readonly nodeId: string;
  readonly clock: Clock;
  /** The channels of a trunk that this node holds. */
  held(trunk: string): number;
}

export class ChannelQuota {
  readonly #options: ChannelQuotaOptions;
  readonly #ledgers = new Map<string, Ledger>();
  /** The trunks of which the home may believe something else than this node holds, each with its `max`. */
  readonly #untold = new Map<string, number>();
  /** Questions under way, by trunk. */
  readonly #asking = new Map<string, number>();
  #turn = 0;
  #isTelling = false;
  #stopped = false;

  constructor(options: ChannelQuotaOptions) {
    this.#options = options;
    options.bus.answer('channels', async (body, from) => {
      // Whoever asks, or this node, has not read yet which node is the home now.
      if (!isWish(body) || homeOf(body.trunk, this.#up()) !== options.nodeId) return {};
      return { granted: await this.#grant(from, body) };
    });
    options.bus.answer('channels.held', (body) => (isNamed(body) ? { channels: options.held(body.trunk) } : {}));
  }

  /**
   * Asks to hold so many channels of a trunk with `max`. Returns how many this node may hold: never less than what it
   * holds already (`current`), and that where nobody answers.
   */
  async hold(trunk: string, max: number, channels: number, current: number): Promise<number> {
    const wish = { trunk, max, channels, current: Math.min(current, channels), turn: ++this.#turn };
    this.#asking.set(trunk, (this.#asking.get(trunk) ?? 0) + 1);
    try {
      const granted = await this.#ask(wish);
      if (granted === undefined) this.#untold.set(trunk, max);
      else this.#untold.delete(trunk);
      return granted ?? wish.current;
    } finally {
      const left = (this.#asking.get(trunk) ?? 1) - 1;
      if (left > 0) this.#asking.set(trunk, left);
      else this.#asking.delete(trunk);
      if (this.#untold.size > 0 && !this.#isTelling) void this.#tell();
    }
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    for (const each of [this.#ledgers, this.#untold]) for (const trunk of each.keys()) if (!names.has(trunk)) each.delete(trunk);
  }

  /** Asks nothing by itself any more. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * The result is undefined where the home has not answered. Where this node wants a channel just after another one has
   * come or gone, the home is asked again: it may start, or be another one. That takes three beats at most, after the
   * two in which this node and the one that it takes for the home have read of the change.
   */
  async #ask(wish: Wish): Promise<number | undefined> {
    const { nodeId, bus, members, clock } = this.#options;
    const isWanted = wish.channels > (wish.current ?? 0);
    const agreed = clock.now() + SETTLED_MS;
    for (;;) {
      const home = homeOf(wish.trunk, this.#up());
      if (home === undefined || home === nodeId) {
        const granted = await this.#grant(nodeId, wish);
        if (granted !== undefined) return granted;
        continue;
      }
      const settled = () => members.changedAt + SETTLED_MS + NODE_BEAT_MS;
      const waitMs = Math.max(0, isWanted ? settled() - clock.now() : 0) + NODE_PING_TIMEOUT_MS;
      const result = await bus.ask(home, 'channels', wish, waitMs, waitMs);
      const isAnswered = result.outcome === 'answered';
      if (isAnswered && isGrant(result.body)) return result.body.granted;
      const until = isAnswered ? Math.max(agreed, settled()) : settled();
      if (!isWanted || clock.now() >= until || this.#stopped) return undefined;
      await sleep(clock, CHANNEL_ASK_AGAIN_MS);
    }
  }

  /** Tells the homes what this node holds, each second, as long as one of them has not answered. */
  async #tell(): Promise<void> {
    const { clock, held } = this.#options;
    this.#isTelling = true;
    while (this.#untold.size > 0 && !this.#stopped) {
      await sleep(clock, NODE_BEAT_MS);
      for (const [trunk, max] of [...this.#untold]) {
        // The answer to a question that is under way may let this node hold more than it does now.
        if (this.#stopped || this.#asking.has(trunk) || !this.#untold.has(trunk)) continue;
        await this.hold(trunk, max, held(trunk), held(trunk));
      }
    }
    this.#isTelling = false;
  }

  /** All nodes that were not declared dead: the same in every node's eyes, suspects included. */
  #up(): readonly string[] {
    return this.#options.members.rows.map(({ nodeId }) => nodeId);
  }

  /** The result is undefined where another node has become the home meanwhile. */
  async #grant(from: string, { trunk, max, channels, current = 0, turn }: Wish): Promise<number | undefined> {
    const holdings = await this.#holdings(trunk);
    if (holdings === undefined) return undefined;
    const known = holdings.get(from);
    if (known !== undefined && known.turn > turn) return known.channels;
    const others = [...holdings].reduce((sum, [nodeId, each]) => (nodeId === from ? sum : sum + each.channels), 0);
    const granted = Math.max(current, Math.min(channels, max - others));
    holdings.set(from, { channels: granted, turn });
    return granted;
  }

  /**
   * What each node holds. Where a node comes or goes while they are asked, they are asked anew: those who have told
   * already may hold more by then, as another home's grant. The result is undefined where this is the home no more.
   */
  async #holdings(trunk: string): Promise<Map<string, Holding> | undefined> {
    const { members, nodeId } = this.#options;
    for (;;) {
      const { changedAt } = members;
      const known = this.#ledgers.get(trunk);
      const ledger = known?.changedAt === changedAt ? known : { changedAt, holdings: this.#open(trunk, this.#up()) };
      this.#ledgers.set(trunk, ledger);
      const holdings = await ledger.holdings;
      if (members.changedAt === changedAt) return holdings;
      if ((homeOf(trunk, this.#up()) ?? nodeId) !== nodeId) return undefined;
    }
  }

  async #open(trunk: string, nodes: readonly string[]): Promise<Map<string, Holding>> {
    const { bus, nodeId, held, members, clock } = this.#options;
    const unsettledMs = members.changedAt + SETTLED_MS - clock.now();
    if (unsettledMs > 0) await sleep(clock, unsettledMs);
    const holdings = new Map<string, Holding>();
    await Promise.all(
      nodes.map(async (each) => {
        if (each === nodeId) return;
        const result = await bus.ask(each, 'channels.held', { trunk }, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS);
        const told = result.outcome === 'answered' && isHolding(result.body) ? result.body.channels : undefined;
        // One that does not answer holds what it held at its last beat.
        holdings.set(each, { channels: told ?? beatLoadOf(members.get(each)).channels[trunk] ?? 0, turn: 0 });
      }),
    );
    holdings.set(nodeId, { channels: held(trunk), turn: 0 });
    return holdings;
  }
}

interface Wish {
  readonly trunk: string;
  readonly max: number;
  readonly channels: number;
  /** What the node holds already. A node of an older release does not say it. */
  readonly current?: number;
  readonly turn: number;
}

const isNamed = (body: unknown): body is { readonly trunk: string } =>
  typeof body === 'object' && body !== null && 'trunk' in body && typeof body.trunk === 'string';
const isWish = (body: unknown): body is Wish => isNamed(body) && 'max' in body && 'channels' in body && 'turn' in body;
const isGrant = (body: unknown): body is { readonly granted: number } =>
  typeof body === 'object' && body !== null && 'granted' in body && typeof body.granted === 'number';
const isHolding = (body: unknown): body is { readonly channels: number } =>
  typeof body === 'object' && body !== null && 'channels' in body && typeof body.channels === 'number';
