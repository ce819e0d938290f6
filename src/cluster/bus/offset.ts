/**
 * The clock of another node, as a ping tells it: between the question and its answer the other read its own clock, so
 * the difference is known to half of the round trip. Times of two machines are never compared without it.
 */
import { NODE_OFFSET_KEPT_MS } from '../../limits.ts';

interface Offset {
  /** The other's clock minus mine, and how wrong that may be, in milliseconds. */
  readonly ms: number;
  readonly errorMs: number;
  /** When it was measured, by my clock. */
  readonly at: number;
  /** The other node has not answered since: it is pinged before a deadline is told to it. */
  readonly isDoubtful: boolean;
}

export class Offsets {
  /** The clocks of the nodes that were pinged in the last while. */
  readonly #known = new Map<string, Offset>();

  /** A ping was asked at `asked` and answered at `now`, both by my clock; `theirs` is what the other's clock said. */
  measured(nodeId: string, asked: number, theirs: number, now: number): void {
    const errorMs = (now - asked) / 2;
    const known = this.#known.get(nodeId);
    // The fastest ping of the last while is the best one.
    const isKept = known !== undefined && !known.isDoubtful && now - known.at < NODE_OFFSET_KEPT_MS;
    if (isKept && known.errorMs <= errorMs) return;
    // A node whose fastest ping is old may have answered a slower one since, and be lost only now (`lead`).
    for (const [each, { at }] of this.#known) if (now - at >= 2 * NODE_OFFSET_KEPT_MS) this.#known.delete(each);
    this.#known.set(nodeId, { ms: theirs - (asked + now) / 2, errorMs, at: now, isDoubtful: false });
  }

  /**
   * A time of mine in the other's clock, at the latest `late` or at the earliest. Undefined: it has to be pinged first.
   */
  theirs(nodeId: string, mine: number, now: number): { readonly earliest: number; readonly latest: number } | undefined {
    const known = this.#known.get(nodeId);
    if (known === undefined || known.isDoubtful || now - known.at >= NODE_OFFSET_KEPT_MS) return undefined;
    const about = mine + known.ms;
    return { earliest: about - known.errorMs, latest: about + known.errorMs };
  }

  /** A node has not answered: its clock may have been set. */
  doubt(nodeId: string): void {
    const known = this.#known.get(nodeId);
    if (known !== undefined) this.#known.set(nodeId, { ...known, isDoubtful: true });
  }

  /**
   * How far the clock of a node was ahead of mine when that was last measured, in milliseconds, also where the node is
   * lost. Undefined: it was not measured lately.
   */
  lead(nodeId: string): number | undefined {
    return this.#known.get(nodeId)?.ms;
  }
}
