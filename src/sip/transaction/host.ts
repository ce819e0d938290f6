/** What a transaction needs of the layer that keeps it: the time, the timers and the way out. */
import type { Deadlines } from '../deadlines.ts';
import type { Peer } from '../flow.ts';

export interface TransactionHost<T> {
  /** The time of the input being worked on, in milliseconds. */
  readonly now: number;
  readonly deadlines: Deadlines;
  /** Sends bytes. `ticket` names the client transaction to tell when they cannot be delivered; `""` names none. */
  transmit(bytes: Uint8Array, peer: Peer, ticket: string): void;
  /** Drops a transaction that is terminated. */
  forget(transaction: T): void;
}
