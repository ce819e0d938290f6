/**
 * Short messages from telephones, to the applications that have their numbers, stored in the order in which they come.
 */
import { ThrottledLog } from '../../bounds/throttled-log.ts';
import type { Clock } from '../../clock.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import type { ReceivedStore } from '../../database/received-messages.ts';
import { sha256 } from '../../hash.ts';
import { MESSAGES_SAID_EVERY_MS, RECEIVED_DOUBTED_MAX, RECEIVED_PENDING_MAX, RECEIVED_WAIT_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { CarrierLink } from '../../machine/message/gateway.ts';
import type { IncomingPart } from '../../machine/message/incoming.ts';

export interface IncomingMessagesOptions {
  readonly store: ReceivedStore;
  readonly clock: Clock;
  readonly log: Log;
  /** The application that a number is assigned to. */
  owner(e164: string): Promise<string | undefined>;
}

export class IncomingMessages {
  readonly #options: IncomingMessagesOptions;
  readonly #log: ThrottledLog;
  /** The parts that the database may have taken, though it did not answer, and when each was first given to it. */
  readonly #doubted = new Map<string, number>();
  /** The link over which those came: they come again over no other one. */
  #doubtedOf = '';
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: IncomingMessagesOptions) {
    this.#options = options;
    this.#log = new ThrottledLog(options.log, options.clock, MESSAGES_SAID_EVERY_MS);
  }

  /**
   * Resolves once the part is durable, with false where no application has its number. Rejects where it has to come
   * again: the database is away, or `RECEIVED_PENDING_MAX` wait already.
   */
  take(part: IncomingPart, link: CarrierLink): Promise<boolean> {
    if (this.#pending >= RECEIVED_PENDING_MAX) return Promise.reject(new Error('too many messages are being stored'));
    this.#pending++;
    const stored = this.#last.then(() => this.#store(part, link)).finally(() => this.#pending--);
    this.#last = stored.catch(() => {});
    return stored;
  }

  async #store(part: IncomingPart, link: CarrierLink): Promise<boolean> {
    const { store, clock, owner } = this.#options;
    const appUuid = await owner(part.to);
    if (appUuid === undefined) {
      this.#log.say('warn', 'nobody', {}, 'a short message came to a number that is assigned to no application');
      return false;
    }
    const name = this.#doubted.size === 0 ? '' : nameOf(part, link);
    const doubtedAt = this.#doubted.get(name);
    const at = doubtedAt ?? clock.now();
    try {
      await store.take(part, link, appUuid, at, doubtedAt !== undefined);
    } catch (error) {
      if (error instanceof StoreUnavailable) this.#doubt(part, link, at);
      else this.#log.say('error', 'refused', { error: String(error) }, 'a short message is refused by the database');
      throw error;
    }
    this.#doubted.delete(name);
    return true;
  }

  /** The first of an outage are kept: those that come in the midst of it do not reach the database. */
  #doubt(part: IncomingPart, link: CarrierLink, at: number): void {
    if (this.#doubtedOf !== link.id) this.#doubted.clear();
    this.#doubtedOf = link.id;
    if (this.#doubted.size < RECEIVED_DOUBTED_MAX) this.#doubted.set(nameOf(part, link), at);
  }

  /** Tells what there is of messages of which a segment has not come for `RECEIVED_WAIT_MS`. */
  async giveUp(): Promise<void> {
    const now = this.#options.clock.now();
    await this.#options.store.giveUp(now - RECEIVED_WAIT_MS, now);
  }
}

/** The name of a part: what is the same when it comes again over its link. */
const nameOf = ({ to, from, reference, total, number, octets }: IncomingPart, link: CarrierLink): string =>
  Buffer.from(sha256(JSON.stringify([link.id, to, from, reference, total, number, [...octets]]))).toString('base64');
