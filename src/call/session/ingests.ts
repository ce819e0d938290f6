/**
 * The ingest URLs of pushes, by name. They are remembered for a while after they were used or have expired, so that
 * each gets its own error.
 */
import { isUuid, newUuid } from '../../id.ts';
import { INGESTS_REMEMBERED_MAX } from '../../limits.ts';
import type { Ingest } from '../../media/engine.ts';

/** The last group of a UUID, which is random. */
const NODE_TAG_AT = 24;

export interface OpenIngest {
  readonly appUuid: string;
  readonly operationUuid: string;
  readonly ingest: Ingest;
  /** ms since the epoch. */
  readonly expiresAt: number;
  /** A body was taken. */
  used: boolean;
}

export class Ingests {
  /** What each application has, by name, in the order in which it was made. */
  readonly #ofApps = new Map<string, Map<string, OpenIngest>>();
  #count = 0;

  /**
   * Returns the name the URL ends in. It ends as the id of this node does, so that another node of a cluster knows
   * where the body goes; 74 random bits are left.
   */
  add(entry: Omit<OpenIngest, 'used'>, nodeId: string): string {
    if (this.#count >= INGESTS_REMEMBERED_MAX) this.#forgetOne();
    const name = isUuid(nodeId) ? newUuid().slice(0, NODE_TAG_AT) + nodeId.slice(NODE_TAG_AT) : newUuid();
    const ofApp = this.#ofApps.get(entry.appUuid) ?? new Map<string, OpenIngest>();
    this.#ofApps.set(entry.appUuid, ofApp.set(name, { ...entry, used: false }));
    this.#count += 1;
    return name;
  }

  /** The application's own, or undefined. */
  find(appUuid: string, name: string): OpenIngest | undefined {
    return this.#ofApps.get(appUuid)?.get(name);
  }

  /** Forgets an ingest whose play was not admitted. */
  forget(appUuid: string, name: string): void {
    const ofApp = this.#ofApps.get(appUuid);
    if (ofApp?.delete(name) !== true) return;
    this.#count -= 1;
    if (ofApp.size === 0) this.#ofApps.delete(appUuid);
  }

  /** Forgets the oldest of the application that has the most: no other loses a URL that is still to be used. */
  #forgetOne(): void {
    const [appUuid, most] = [...this.#ofApps].reduce((one, other) => (other[1].size > one[1].size ? other : one));
    const [oldest = ''] = most.keys();
    this.forget(appUuid, oldest);
  }
}
