/**
 * Delivery receipts, and the parts of messages that they are for. A receipt may come before the database has the id of
 * its part, and before the gateway has told that id: it is kept meanwhile, within bounds.
 *
 *   receipt ─► its part is stored: told · is being stored: the gateway brings it again · is being submitted: kept
 */
import { ThrottledLog } from '../../bounds/throttled-log.ts';
import { type Clock, sleep } from '../../clock.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import type { MessageStore, PartFound } from '../../database/messages.ts';
import {
  EARLY_RECEIPT_WAIT_MS,
  EARLY_RECEIPTS_MAX,
  MESSAGES_SAID_EVERY_MS,
  RECEIPT_LOOKUP_WAIT_MS,
  RECEIPT_LOOKUPS_MAX,
  RECEIPTS_PENDING_MAX,
} from '../../limits.ts';
import type { Log } from '../../log.ts';
import { received } from '../../machine/message/message.ts';
import { idCandidates, normalId, type Receipt } from '../../machine/message/receipt.ts';

interface ReceiptsOptions {
  readonly store: Pick<MessageStore, 'findParts' | 'change' | 'held' | 'shared'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this process has messages with the gateway, whose parts have no ids yet. */
  isSubmitting(): boolean;
}

interface EarlyReceipt {
  readonly receipt: Receipt;
  readonly candidates: readonly string[];
  /** ms since the epoch. */
  readonly until: number;
}

export class Receipts {
  readonly #options: ReceiptsOptions;
  readonly #log: ThrottledLog;
  /** The ids of parts that the gateway has taken, until the database has them, with the receipt that came too early. */
  readonly #unstored = new Map<string, Receipt | undefined>();
  /** Receipts of no known part, by their ids, the oldest first: their messages may still be being submitted. */
  readonly #early = new Map<string, EarlyReceipt>();
  #pending = 0;

  constructor(options: ReceiptsOptions) {
    this.#options = options;
    this.#log = new ThrottledLog(options.log, options.clock, MESSAGES_SAID_EVERY_MS);
  }

  /**
   * Takes a receipt from the gateway. Rejects where the gateway has to bring it again: the database is away, its
   * message is not stored yet, or `RECEIPTS_PENDING_MAX` are being looked up.
   */
  async take(receipt: Receipt): Promise<void> {
    if (this.#pending >= RECEIPTS_PENDING_MAX) throw new Error('too many receipts are being looked up');
    this.#pending++;
    const candidates = idCandidates(receipt.smscId);
    try {
      for (let lookup = 0; lookup < RECEIPT_LOOKUPS_MAX; lookup++) {
        if (lookup > 0) await sleep(this.#options.clock, RECEIPT_LOOKUP_WAIT_MS);
        // Its message is about to be stored; what is there under that id is an older one.
        if (candidates.some((id) => this.#unstored.has(id))) continue;
        if (await this.#isStored(receipt, candidates)) return;
      }
      const awaited = candidates.find((id) => this.#unstored.has(id));
      if (awaited !== undefined) {
        this.#unstored.set(awaited, receipt);
        throw new StoreUnavailable('the message of a receipt is not stored yet');
      }
      const isSubmitting = await this.#isSubmitting();
      if (isSubmitting) this.#keep(receipt, candidates);
      // Its message may have been stored since the last look.
      if (await this.#isStored(receipt, candidates)) this.#early.delete(normalId(receipt.smscId));
      else if (!isSubmitting) this.#unknown(receipt.state);
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        this.#log.say('error', 'refused', { error: String(error) }, 'a receipt is refused by the database');
      throw error;
    } finally {
      this.#pending--;
    }
  }

  /** Has parts stored that the gateway took under these ids, and then takes the receipts that came for them before. */
  async storing(smscIds: readonly string[], store: () => Promise<void>): Promise<void> {
    const ids = smscIds.map(normalId);
    for (const id of ids) this.#unstored.set(id, undefined);
    try {
      await store();
    } finally {
      for (const id of ids) {
        const early = this.#unstored.get(id);
        this.#unstored.delete(id);
        // Whoever was asked to bring it again may be gone; a receipt that comes twice changes nothing.
        if (early !== undefined) this.take(early).catch(() => {});
      }
    }
    this.#giveUp(EARLY_RECEIPTS_MAX);
    for (const [name, { receipt, candidates }] of this.#early) {
      if (!candidates.some((id) => ids.includes(id))) continue;
      this.#early.delete(name);
      this.take(receipt).catch(() => this.#keep(receipt, candidates));
    }
  }

  /** Looks whether another node has stored the parts by now whose receipts came here. */
  async lookForEarly(): Promise<void> {
    this.#giveUp(EARLY_RECEIPTS_MAX);
    if (!this.#options.store.shared) return;
    for (const [name, { receipt, candidates }] of this.#early)
      if (await this.#isStored(receipt, candidates)) this.#early.delete(name);
  }

  /** Whether parts are with the gateway that have no ids yet, of this node or of the one that submitted before. */
  async #isSubmitting(): Promise<boolean> {
    const { store, isSubmitting } = this.#options;
    return isSubmitting() || (store.shared && (await store.held(Number.MAX_SAFE_INTEGER)).length > 0);
  }

  /** Keeps a receipt until the gateway tells the ids of the parts that it is submitting, within bounds. */
  #keep(receipt: Receipt, candidates: readonly string[]): void {
    const name = normalId(receipt.smscId);
    // One that comes again is the newest.
    this.#early.delete(name);
    this.#giveUp(EARLY_RECEIPTS_MAX - 1);
    this.#early.set(name, { receipt, candidates, until: this.#options.clock.now() + EARLY_RECEIPT_WAIT_MS });
  }

  /** Keeps at most so many, and none past its time: a later message may get the same id. */
  #giveUp(most: number): void {
    const now = this.#options.clock.now();
    for (const [name, { until, receipt }] of this.#early) {
      if (until > now && this.#early.size <= most) break;
      this.#early.delete(name);
      this.#unknown(receipt.state);
    }
  }

  #unknown(state: Receipt['state']): void {
    this.#log.say('warn', 'nobody', { state }, 'a receipt for no message of ours');
  }

  /** Stores the receipt with the part that it is for. Resolves with false where there is no such part. */
  async #isStored(receipt: Receipt, candidates: readonly string[]): Promise<boolean> {
    const { store, clock } = this.#options;
    const part = meant(await store.findParts(candidates), receipt);
    if (part === undefined) return false;
    const now = clock.now();
    await store.change(part.messageUuid, now, (state) => received(state, part.part, receipt, now));
    return true;
  }
}

/**
 * The part a receipt is for: one that still waits, by the likeliest spelling of its id, sent to the number the receipt
 * names, and the newest. An id read in another base must be about the same number; ids come round again. So must a text
 * that only looks like a receipt: anybody may have sent it.
 */
function meant(found: readonly PartFound[], receipt: Receipt): PartFound | undefined {
  const spellings = idCandidates(receipt.smscId);
  for (const open of [true, false]) {
    for (const [at, id] of spellings.entries()) {
      const named = found.filter((part) => part.smscId === id && part.open === open);
      const part =
        named.find(({ to }) => sameNumber(to, receipt.recipient)) ?? (at === 0 && receipt.isMarked ? named[0] : undefined);
      if (part !== undefined) return part;
    }
  }
  return undefined;
}

/** National and international spellings of one number end alike. */
const COMPARED_DIGITS = 7;
const sameNumber = (to: string, recipient: string): boolean =>
  recipient !== '' && to.slice(-COMPARED_DIGITS) === recipient.slice(-COMPARED_DIGITS);
