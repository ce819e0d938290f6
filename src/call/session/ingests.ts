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
  /** Entries in the order in which they were made. */
  readonly #all = new Map<string, OpenIngest>();

  /**
   * Returns the name the URL ends in. It ends as the id of this node does, so that another node of a cluster knows
   * where the body goes; 74 random bits are left.
   */
  add(entry: Omit<OpenIngest, 'used'>, nodeId: string): string {
    if (this.#all.size >= INGESTS_REMEMBERED_MAX) {
      const oldest = this.#all.keys().next();
      if (oldest.done !== true) this.#all.delete(oldest.value);
    }
    const name = isUuid(nodeId) ? newUuid().slice(0, NODE_TAG_AT) + nodeId.slice(NODE_TAG_AT) : newUuid();
    this.#all.set(name, { ...entry, used: false });
    return name;
  }

  /** The application's own, or undefined. */
  find(appUuid: string, name: string): OpenIngest | undefined {
    const found = this.#all.get(name);
    return found?.appUuid === appUuid ? found : undefined;
  }

  /** Forgets an ingest whose play was not admitted. */
  forget(name: string): void {
    this.#all.delete(name);
  }
}
