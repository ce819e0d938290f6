/**
 * The order in which trunks are tried for a call (docs/operations/carriers.md, Routing): by priority, the lowest number
 * first, and by weight within it. A trunk that failed lately, does not answer its probes, or is not
 * registered although it should be, comes last.
 */
import { SIP_TRUNK_FAILED_MS } from '../../limits.ts';
import { lotOf } from '../draw.ts';
import type { Trunk } from './trunk.ts';

export class FailedTrunks {
  /** The time of the last failure, by trunk, in milliseconds. */
  readonly #at = new Map<string, number>();

  failed(name: string, now: number): void {
    this.#at.set(name, now);
  }

  /** Whether the trunk failed less than SIP_TRUNK_FAILED_MS ago. */
  isFailed(name: string, now: number): boolean {
    return (this.#at.get(name) ?? -Infinity) > now - SIP_TRUNK_FAILED_MS;
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#at.keys()) if (!names.has(name)) this.#at.delete(name);
  }
}

/** Sorts trunks for one call. `isDoubtful` puts a trunk last; `random` gives numbers in [0, 1). */
export function inOrder(trunks: readonly Trunk[], isDoubtful: (trunk: Trunk) => boolean, random: () => number): readonly Trunk[] {
  const rank = (trunk: Trunk): number => (isDoubtful(trunk) ? 1e6 : 0) + (trunk.settings.priority ?? 0);
  const drawn = trunks.map((trunk) => ({ trunk, rank: rank(trunk), lot: lotOf(trunk.settings.weight ?? 1, random) }));
  return drawn.sort((a, b) => a.rank - b.rank || b.lot - a.lot).map(({ trunk }) => trunk);
}
