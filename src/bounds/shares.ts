/**
 * Places that applications share. One may have so many of them, and a few more are kept beyond the most of all, for
 * applications that have next to none: whoever fills the places leaves the others theirs.
 */

export interface ShareLimits {
  /** The places of all together, beside those in reserve. */
  readonly all: number;
  /** The most places of one application. */
  readonly ofApp: number;
  /** Places in reserve, once the others are taken. */
  readonly reserve: number;
  /** An application with fewer places than this may take one of the reserve. */
  readonly reservedOfApp: number;
}

export class Shares {
  readonly #limits: ShareLimits;
  readonly #taken = new Map<string, number>();
  #size = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  /** The places that are taken. */
  get size(): number {
    return this.#size;
  }

  of(appUuid: string): number {
    return this.#taken.get(appUuid) ?? 0;
  }

  /** Takes a place. False: the application has its share, or all places are taken. */
  take(appUuid: string): boolean {
    const { all, ofApp, reserve, reservedOfApp } = this.#limits;
    const own = this.of(appUuid);
    if (own >= ofApp || this.#size >= all + reserve) return false;
    if (this.#size >= all && own >= reservedOfApp) return false;
    this.add(appUuid);
    return true;
  }

  /** Takes a place, whether or not there is one: what has begun is not refused. */
  add(appUuid: string): void {
    this.#taken.set(appUuid, this.of(appUuid) + 1);
    this.#size += 1;
  }

  /** Gives a place back that was taken. */
  give(appUuid: string): void {
    const left = this.of(appUuid) - 1;
    if (left < 0) return;
    this.#size -= 1;
    if (left > 0) this.#taken.set(appUuid, left);
    else this.#taken.delete(appUuid);
  }
}
