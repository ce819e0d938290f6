/** The turns of a trunk's INVITEs: at most `max_cps` a second, evenly spaced, over all nodes that share them. */
import { Pace } from '../../bounds/pace.ts';
import { SIP_PACE_WAIT_MAX_MS } from '../../limits.ts';
import type { Trunk } from './trunk.ts';

/** The turns that the nodes of a cluster share. */
export interface SharedTurns {
  /**
   * Takes the next turn of a trunk for an application. The result is the wait in milliseconds, undefined when it would
   * be too long.
   */
  turn(trunk: string, appUuid: string, maxCps: number): Promise<number | undefined>;
}

export class Turns {
  readonly #pace = new Pace(SIP_PACE_WAIT_MAX_MS);
  readonly #now: () => number;
  readonly #shared: SharedTurns | undefined;

  constructor(now: () => number, shared?: SharedTurns) {
    this.#now = now;
    this.#shared = shared;
  }

  /**
   * Takes the next turn of a trunk for an application. The result is the wait until then, in milliseconds: 0 without a
   * `max_cps`, undefined when the turn is more than SIP_PACE_WAIT_MAX_MS away, or beyond the share that the application
   * has beside others. Then none is taken.
   */
  async take({ name, settings: { max_cps: maxCps } }: Trunk, appUuid: string): Promise<number | undefined> {
    if (maxCps === undefined) return 0;
    return this.#shared === undefined
      ? this.#pace.take(name, appUuid, maxCps, this.#now())
      : await this.#shared.turn(name, appUuid, maxCps);
  }

  /** Forgets trunks that no longer exist. */
  keep(names: ReadonlySet<string>): void {
    this.#pace.keep(names);
  }
}
