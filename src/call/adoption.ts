/**
 * Takes over rows of other processes, also where the answer of the database was lost: then they may be this node's, and
 * it does not know. So it looks, until no statement can be under way any more, for rows that are its own and that
 * nobody here has.
 */

import { type Clock, sleep } from '../clock.ts';
import { warnUnlessAway } from '../database/journal/journal.ts';
import { ADOPTION_LOOK_MS, STATEMENT_MAX_MS } from '../limits.ts';
import type { Log } from '../log.ts';

interface AdoptionOptions<Row> {
  readonly records: {
    /** Takes over the rows of processes that are gone. */
    adopt(): Promise<readonly Row[]>;
    /** The live rows that are this node's. */
    mine(): Promise<readonly Row[]>;
  };
  readonly clock: Clock;
  readonly log: Log;
  idOf(row: Row): string;
  /** Goes on with what `take` finds. */
  takeUp(): Promise<unknown>;
}

export class Adoption<Row> {
  readonly #options: AdoptionOptions<Row>;
  /** A statement that takes rows was begun and not answered. */
  #isUnsure = false;
  /** A statement that was not answered may be carried out until then, in ms since the epoch. */
  #doubtUntil = -Infinity;
  #isLooking = false;
  /** The rows that are being taken by name; and how often rows are being taken whose names are not known yet. */
  readonly #inHand = new Map<string, number>();
  #batches = 0;

  constructor(options: AdoptionOptions<Row>) {
    this.#options = options;
  }

  /** A row is being taken, or made, by name: `take` leaves it out until the returned function is called. */
  hold(id: string): () => void {
    this.#inHand.set(id, (this.#inHand.get(id) ?? 0) + 1);
    return () => {
      const holders = (this.#inHand.get(id) ?? 0) - 1;
      if (holders > 0) this.#inHand.set(id, holders);
      else this.#inHand.delete(id);
    };
  }

  /** Rows are being taken that are not known by name: until the returned function is called, `take` looks for none. */
  holdAll(): () => void {
    this.#batches++;
    return () => {
      this.#batches--;
    };
  }

  /** Takes rows some other way. Where that is not answered, this node looks for them. */
  async one<T>(taking: Promise<T>): Promise<T> {
    try {
      return await taking;
    } catch (error) {
      this.doubt();
      throw error;
    }
  }

  /** A statement that takes rows was not answered. */
  doubt(): void {
    this.#isUnsure = true;
    this.#doubtUntil = this.#options.clock.now() + STATEMENT_MAX_MS;
    if (!this.#isLooking) void this.#look();
  }

  async #look(): Promise<void> {
    const { clock, log, takeUp } = this.#options;
    this.#isLooking = true;
    while (this.#isUnsure) {
      await sleep(clock, ADOPTION_LOOK_MS);
      await takeUp().catch((error: unknown) => warnUnlessAway(log, error, {}, 'what this node may have taken waits'));
    }
    this.#isLooking = false;
  }

  /** Returns the rows that are this node's now; some of them may be known to it. Rejects while the database is away. */
  async take(): Promise<readonly Row[]> {
    const { clock, records, idOf } = this.#options;
    const begunAt = clock.now();
    const adopted = await this.one(records.adopt());
    if (!this.#isUnsure) return adopted;
    const isBlind = this.#batches > 0;
    const rows = isBlind ? adopted : await this.one(records.mine());
    // A batch that has begun meanwhile may have taken some of them.
    const isBlinded = isBlind || this.#batches > 0;
    this.#isUnsure = isBlinded || begunAt <= this.#doubtUntil;
    return (isBlinded ? adopted : rows).filter((row) => !this.#inHand.has(idOf(row)));
  }
}
