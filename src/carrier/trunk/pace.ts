/** Paces the INVITEs of a trunk: at most `max_cps` a second, evenly spaced. */
import { SIP_PACE_WAIT_MAX_MS } from '../../limits.ts';

export class Pace {
  /** The time of the last turn that was given away, by trunk, in milliseconds. */
  readonly #last = new Map<string, number>();

  /**
   * Takes the next turn of a trunk. The result is the wait until then, in milliseconds: 0 without a `max_cps`,
   * undefined when the turn is more than SIP_PACE_WAIT_MAX_MS away. Then none is taken.
   */
  take(name: string, maxCps: number | undefined, now: number): number | undefined {
    if (maxCps === undefined) return 0;
    const at = Math.max(now, (this.#last.get(name) ?? -Infinity) + 1000 / maxCps);
    if (at - now > SIP_PACE_WAIT_MAX_MS) return undefined;
    this.#last.set(name, at);
    return at - now;
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    for (const name of this.#last.keys()) if (!names.has(name)) this.#last.delete(name);
  }
}
