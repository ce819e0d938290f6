/**
 * The marks of Idempotency-Keys in memory, where a process has its database for itself: a key has a row once it has an
 * answer, so that a keyed command is one commit and not two. A crash forgets the marks, and with them nothing that was
 * committed: neither an effect nor an answer is stored under a key that was only marked. A key stays in flight for as
 * long as its request is worked on, also where the process stands still in the midst of it for longer than the lease.
 */
import { IDEMPOTENCY_LEASE_SEC, IDEMPOTENCY_MARKS_MAX } from '../../limits.ts';
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
  /** What is worked on. */
  readonly #worked = new Map<string, Mark>();
  /** What ended, nobody knows how, in the order of its end. It may be tried again when its lease is over. */
  readonly #left = new Map<string, Mark>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /**
   * Marks the key. `'in_flight'` and `'mismatch'`: it is marked already, by the same request, which is worked on or was
   * left less than 60 s after its mark, or by another one. Else what `look` tells, which asks for an answer that is
   * stored; the mark stays only if that is `undefined`. Rejects with `StoreUnavailable` where too many keys are marked,
   * or with what `look` rejects with.
   */
  async begin<A>(request: KeyedRequest, look: () => Promise<A | undefined>): Promise<A | 'in_flight' | 'mismatch' | undefined> {
    const name = nameOf(request);
    let known = this.of(request);
    // A mark that is being looked for may turn out to be an answer.
    while (known?.looking !== undefined) {
      await known.looking;
      known = this.of(request);
    }
    const markedAt = Math.floor(this.#now());
    if (known !== undefined && known.fingerprint !== request.fingerprint) return 'mismatch';
    if (known !== undefined && (this.#worked.has(name) || isLeased(known, markedAt))) return 'in_flight';
    this.#sweep(markedAt);
    if (this.#worked.size + this.#left.size >= IDEMPOTENCY_MARKS_MAX)
      throw new StoreUnavailable('too many Idempotency-Keys are in flight');
    const { promise, resolve } = Promise.withResolvers<void>();
    const mark: Mark = { fingerprint: request.fingerprint, markedAt, looking: promise };
    this.#left.delete(name);
    this.#worked.set(name, mark);
    let found: A | undefined;
    try {
      found = await look();
    } catch (error) {
      this.#worked.delete(name);
      throw error;
    } finally {
      if (found !== undefined) this.#worked.delete(name);
      mark.looking = undefined;
      resolve();
    }
    return found;
  }

  /** The request under a key that is marked: its fingerprint, and when it was marked (ms since the epoch). */
  of(name: KeyName): Mark | undefined {
    return this.#worked.get(nameOf(name)) ?? this.#left.get(nameOf(name));
  }

  /** Ends the mark of that request. */
  end(request: KeyedRequest): void {
    if (this.of(request)?.fingerprint !== request.fingerprint) return;
    this.#worked.delete(nameOf(request));
    this.#left.delete(nameOf(request));
  }

  /** Leaves the mark of that request to its lease: the work is over, and nobody knows what came of it. */
  leave(request: KeyedRequest): void {
    const mark = this.of(request);
    if (mark?.fingerprint !== request.fingerprint) return;
    this.end(request);
    this.#left.set(nameOf(request), mark);
  }

  /** Forgets marks whose lease is over, the ones left first until one lasts. */
  #sweep(now: number): void {
    for (const [name, mark] of this.#left) {
      if (isLeased(mark, now)) return;
      this.#left.delete(name);
    }
  }
}

const isLeased = ({ markedAt }: Mark, now: number): boolean => markedAt + IDEMPOTENCY_LEASE_SEC * 1000 >= now;
