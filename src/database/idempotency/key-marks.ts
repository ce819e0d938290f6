/**
 * The marks of Idempotency-Keys in memory, where a process has its database for itself: a key has a row once it has an
 * answer, so that a keyed command is one commit and not two. A crash forgets the marks, and with them nothing that was
 * committed: neither an effect nor an answer is stored under a key that was only marked.
 */
import { IDEMPOTENCY_LEASE_SEC, IDEMPOTENCY_MARKS_MAX, IDEMPOTENCY_WORK_MAX_SEC } from '../../limits.ts';
import { StoreUnavailable } from '../journal/journal.ts';

/** A request with an Idempotency-Key. */
export interface KeyedRequest {
  readonly appUuid: string;
  readonly key: string;
  /** Digest of method, path and canonical body. */
  readonly fingerprint: string;
}

/** Names an Idempotency-Key, which belongs to an application. */
type KeyName = Pick<KeyedRequest, 'appUuid' | 'key'>;

interface Mark {
  readonly fingerprint: string;
  /** ms since the epoch. */
  readonly markedAt: number;
  /** Resolves when it is known whether the key has an answer already; undefined from then on. */
  looking: Promise<void> | undefined;
}

const nameOf = ({ appUuid, key }: KeyName): string => `${appUuid} ${key}`;

export class KeyMarks {
  readonly #marks = new Map<string, Mark>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Marks the key. `'in_flight'` and `'mismatch'`: it is marked already, by the same request less than 60 s ago, or by
   * another one. Else what `look` tells, which asks for an answer that is stored; the mark stays only if that is
   * `undefined`. Rejects with `StoreUnavailable` where too many keys are marked, or with what `look` rejects with.
   */
  async begin<A>(request: KeyedRequest, look: () => Promise<A | undefined>): Promise<A | 'in_flight' | 'mismatch' | undefined> {
    const name = nameOf(request);
    let known = this.#marks.get(name);
    // A mark that is being looked for may turn out to be an answer.
    while (known?.looking !== undefined) {
      await known.looking;
      known = this.#marks.get(name);
    }
    const markedAt = Math.floor(this.#now());
    if (known !== undefined && known.fingerprint !== request.fingerprint) return 'mismatch';
    if (known !== undefined && known.markedAt + IDEMPOTENCY_LEASE_SEC * 1000 >= markedAt) return 'in_flight';
    this.#sweep(markedAt);
    if (this.#marks.size >= IDEMPOTENCY_MARKS_MAX) throw new StoreUnavailable('too many Idempotency-Keys are in flight');
    const { promise, resolve } = Promise.withResolvers<void>();
    const mark: Mark = { fingerprint: request.fingerprint, markedAt, looking: promise };
    // Set anew, so that the marks stay in the order of their age.
    this.#marks.delete(name);
    this.#marks.set(name, mark);
    let found: A | undefined;
    try {
      found = await look();
    } catch (error) {
      this.#marks.delete(name);
      throw error;
    } finally {
      if (found !== undefined) this.#marks.delete(name);
      mark.looking = undefined;
      resolve();
    }
    return found;
  }

  /** The request under a key that is marked: its fingerprint, and when it was marked (ms since the epoch). */
  of(name: KeyName): Pick<Mark, 'fingerprint' | 'markedAt'> | undefined {
    return this.#marks.get(nameOf(name));
  }

  /** Ends the mark of that request. */
  end(request: KeyedRequest): void {
    const name = nameOf(request);
    if (this.#marks.get(name)?.fingerprint === request.fingerprint) this.#marks.delete(name);
  }

  /** Forgets marks that were left, as it is not known what came of their requests. */
  #sweep(now: number): void {
    for (const [name, { markedAt }] of this.#marks) {
      if (markedAt + IDEMPOTENCY_WORK_MAX_SEC * 1000 >= now) return;
      this.#marks.delete(name);
    }
  }
}
