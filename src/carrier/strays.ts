/**
 * Requests within dialogs of other nodes. A proxy that does not follow Contact may bring one to any node; the node that
 * has the dialog works on it, and this one sends its responses, so that they come from where the request went.
 *
 *   request, no dialog here ─ask the others─► taken: their responses go out here · nobody: 481
 */
import type { OtherDialogs } from '../call/ports/other-dialogs.ts';
import { SIP_STRAYS_MAX } from '../limits.ts';
import type { Peer } from '../sip/flow.ts';

export class Strays {
  readonly #others: OtherDialogs;
  readonly #own: (bytes: Uint8Array, source: Peer) => void;
  #asking = 0;

  /** `own` answers a request that no node has a dialog for. */
  constructor(others: OtherDialogs, own: (bytes: Uint8Array, source: Peer) => void) {
    this.#others = others;
    this.#own = own;
  }

  /** Asks about a request. Returns false when too many are being asked about. */
  take(bytes: Uint8Array, source: Peer): boolean {
    // What another node could not keep either.
    if (source.via !== undefined || this.#asking >= SIP_STRAYS_MAX) return false;
    this.#asking++;
    const asked = this.#others.take(bytes, source).catch(() => false);
    void asked.then((isTaken) => {
      this.#asking--;
      if (!isTaken) this.#own(bytes, source);
    });
    return true;
  }
}
