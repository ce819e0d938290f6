/** The carrier of short messages as the platform sees it; `provider/` has the doors that implement it. */
import type { IncomingPart } from './incoming.ts';
import type { Receipt } from './receipt.ts';

export interface Submission {
  readonly messageUuid: string;
  /** E.164. */
  readonly from: string;
  readonly to: string;
  readonly text: string;
  /** Parts not accepted yet, by number from 0, in order. */
  readonly parts: readonly number[];
  /** The parts of the message in all, as `partsOf` had it when it was queued: the settings may have changed since. */
  readonly total: number;
}

export type PartOutcome =
  | { readonly outcome: 'accepted'; readonly smscId: string }
  /** The message has failed for good. `code` is one lower_snake word. */
  | { readonly outcome: 'refused'; readonly code: string; readonly message: string }
  /** It was not taken, and may be later: throttled, a full queue, or the connection was lost before it was sent. */
  | { readonly outcome: 'later' }
  /** It left, and nothing came back: whether it was taken is not known. */
  | { readonly outcome: 'unknown' };

export interface Submitted {
  readonly part: number;
  readonly outcome: PartOutcome;
}

/** The link to the carrier over which a message came. */
export interface CarrierLink {
  readonly id: string;
  /** When the link before it was lost, or else when it came up; ms since the epoch. */
  readonly since: number;
}

export interface SmsListener {
  /** Resolves when the receipt is durable (or belongs to nobody); rejects when it should be sent again. */
  onReceipt(receipt: Receipt): Promise<void>;
  /**
   * Resolves once a message from a telephone is durable, with false where nobody has its number; rejects when it should
   * be sent again.
   */
  onMessage(part: IncomingPart, link: CarrierLink): Promise<boolean>;
  /** The gateway became able to take messages. */
  onReady(): void;
}

/** A part that was accepted and whose receipt has not come. */
export interface OpenPart {
  readonly smscId: string;
  /** E.164. */
  readonly to: string;
}

/** Receipts that this process makes itself: those that a process before it owed are made after a start. */
interface OwnReceipts {
  /** The beginning of the ids of its parts. */
  readonly idPrefix: string;
  resume(parts: readonly OpenPart[]): void;
}

export interface SmsGateway {
  /** The receipts that this gateway makes itself, or undefined where they come from elsewhere. */
  readonly ownReceipts?: OwnReceipts;
  /** The number of parts in which a text of so many segments is submitted. */
  partsOf(segments: number): number;
  /** Takes the carrier, at first or after `rest`. */
  start(listener: SmsListener): void;
  /** Lets go of the carrier until the next start, for a node that submits now. Absent where any number may hold it. */
  rest?(): Promise<void>;
  /** Connected, and taking messages. */
  ready(): boolean;
  /** Messages it takes at once; the rest waits in the database. */
  readonly window: number;
  /** Sends the parts in order, up to the first that is not accepted. Never rejects. */
  submit(submission: Submission): Promise<readonly Submitted[]>;
  close(): Promise<void>;
}
