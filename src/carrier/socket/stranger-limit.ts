/**
 * Limits the datagrams from addresses of no trunk that are looked at in one turn of the event loop. The rest of such a
 * flood is dropped before it is parsed, so that it costs trunks, the API and the media nothing but the reading. The
 * network may lose any datagram, and a peer sends it again.
 */
import { SIP_TURN_STRANGER_DATAGRAMS } from '../../limits.ts';

export class StrangerLimit {
  readonly #isTrunk: (address: string) => boolean;
  readonly #afterTurn: (done: () => void) => void;
  #taken = 0;
  /** The address that was asked for last in this turn, and the answer. */
  #last: { readonly address: string; readonly isTrunk: boolean } | undefined;

  /** `afterTurn` calls back when the present turn of the event loop is over. */
  constructor(isTrunk: (address: string) => boolean, afterTurn: (done: () => void) => void) {
    this.#isTrunk = isTrunk;
    this.#afterTurn = afterTurn;
  }

  /** Tells whether a datagram from `address` is looked at. */
  admits(address: string): boolean {
    if (this.#last === undefined) this.#afterTurn(() => this.#forget());
    if (this.#last?.address !== address) this.#last = { address, isTrunk: this.#isTrunk(address) };
    if (this.#last.isTrunk) return true;
    this.#taken += 1;
    return this.#taken <= SIP_TURN_STRANGER_DATAGRAMS;
  }

  #forget(): void {
    this.#taken = 0;
    this.#last = undefined;
  }
}
