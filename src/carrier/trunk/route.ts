/**
 * The order in which trunks are tried for a call (docs/operations/carriers.md, Routing): by priority, the lowest number
 * first, and by weight within it. A trunk that failed lately, does not answer its probes, or is not
 * registered although it should be, comes last.
 */
import { SIP_TRUNK_FAILED_MS } from '../../limits.ts';
import { lotOf } from '../draw.ts';
import { isLoopback, type Trunk, trunkAddress } from './trunk.ts';

/** The trunks that failed lately. One that is set up at another address since has not failed there. */
export class FailedTrunks {
  /** The last failure by the way that the call went, in milliseconds. */
  readonly #last = new Map<string, { readonly name: string; readonly at: number }>();

  failed(trunk: Trunk, now: number): void {
    for (const [way, { at }] of this.#last) if (isPast(at, now)) this.#last.delete(way);
    this.#last.set(wayOf(trunk), { name: trunk.name, at: now });
  }

  /** Whether the trunk failed less than SIP_TRUNK_FAILED_MS ago. */
  isFailed(trunk: Trunk, now: number): boolean {
    return !isPast(this.#last.get(wayOf(trunk))?.at ?? -Infinity, now);
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    for (const [way, { name }] of this.#last) if (!names.has(name)) this.#last.delete(way);
  }
}

const isPast = (at: number, now: number): boolean => at <= now - SIP_TRUNK_FAILED_MS;

/** A trunk, and where the calls over it go. */
const wayOf = ({ name, uri, settings }: Trunk): string => `${name} ${uri} ${settings.outbound_proxy ?? ''}`;

/**
 * The trunks that an application may dial over, whichever node may use them: that of the name, or all. A loopback trunk
 * that is not named is one of them only when there is no other.
 */
export function trunksOf(
  trunks: readonly Trunk[],
  { appUuid, trunk: name }: { readonly appUuid: string; readonly trunk?: string | undefined },
): readonly Trunk[] {
  const permitted = trunks.filter(
    ({ uri, settings }) => trunkAddress(uri) !== undefined && settings.apps?.includes(appUuid) !== false,
  );
  if (name !== undefined) return permitted.filter((trunk) => trunk.name === name);
  return permitted.length > 1 ? permitted.filter((trunk) => !isLoopback(trunk)) : permitted;
}

/** Sorts trunks for one call. `isDoubtful` puts a trunk last; `random` gives numbers in [0, 1). */
export function inOrder(trunks: readonly Trunk[], isDoubtful: (trunk: Trunk) => boolean, random: () => number): readonly Trunk[] {
  const rank = (trunk: Trunk): number => (isDoubtful(trunk) ? 1e6 : 0) + (trunk.settings.priority ?? 0);
  const drawn = trunks.map((trunk) => ({ trunk, rank: rank(trunk), lot: lotOf(trunk.settings.weight ?? 1, random) }));
  return drawn.sort((a, b) => a.rank - b.rank || b.lot - a.lot).map(({ trunk }) => trunk);
}
