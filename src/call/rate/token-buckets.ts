/**
 * Token buckets. A bucket starts full and refills steadily; only what is admitted keeps its token (contract §10). HTTP
 * and the bots on WebSockets take from the same ones.
 */
import { RATE_BUCKETS_FORGOTTEN_AT_ONCE, RATE_BUCKETS_MAX } from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { type Bucket, type BucketName, buckets } from './buckets.ts';

interface Level {
  tokens: number;
  /** When `tokens` was true, ms since the epoch. */
  at: number;
}

/** A bucket, and the name that its level is kept under. */
interface Wanted {
  readonly name: string;
  readonly bucket: Bucket;
}

/** A bucket that a token was taken of. */
interface Taken {
  readonly level: Level;
  readonly bucket: Bucket;
}

function giveBack(taken: readonly Taken[]): void {
  for (const { level, bucket } of taken) level.tokens = Math.min(bucket.capacity, level.tokens + 1);
}

/** Every bucket is full when it was not used for so long, in milliseconds. */
const FULL_AFTER_MS = Math.max(...Object.values(buckets).map(({ capacity, refill }) => (capacity / refill) * 1000));

export class TokenBuckets {
  /** Levels in the order of their last use. */
  readonly #levels = new Map<string, Level>();

  get size(): number {
    return this.#levels.size;
  }

  /** Takes a token of each, or none. Returns how to give them back, or the whole seconds until there is one of each. */
  take(wanted: readonly Wanted[], now: number): (() => void) | number {
    const taken: Taken[] = [];
    let waitSec = 0;
    for (const { name, bucket } of wanted) {
      const level = this.#level(name, bucket, now);
      if (level.tokens < 1) waitSec = Math.max(waitSec, Math.ceil((1 - level.tokens) / bucket.refill));
      taken.push({ level, bucket });
    }
    if (waitSec > 0) return waitSec;
    for (const { level } of taken) level.tokens -= 1;
    return () => giveBack(taken);
  }

  /** Does work for a token of the bucket, which keeps it where the work ends in a problem, or fails. */
  async spend<T>(wanted: Wanted, now: number, work: () => Promise<T | Problem>): Promise<T | Problem> {
    return await spend(this.take([wanted], now), work);
  }

  /** Gives tokens back that another node took for a command which was not admitted. */
  give(taken: readonly Wanted[]): void {
    for (const { name, bucket } of taken) {
      const level = this.#levels.get(name);
      if (level !== undefined) level.tokens = Math.min(bucket.capacity, level.tokens + 1);
    }
  }

  #level(name: string, bucket: Bucket, now: number): Level {
    const known = this.#levels.get(name);
    const level = known ?? { tokens: bucket.capacity, at: now };
    level.tokens = Math.min(bucket.capacity, level.tokens + (Math.max(0, now - level.at) / 1000) * bucket.refill);
    level.at = now;
    if (known !== undefined) this.#levels.delete(name);
    else this.#forgetFull(now);
    this.#levels.set(name, level);
    return level;
  }

  /** Forgets some that are full by now, which is what an absent one is; and the one unused for longest at the most. */
  #forgetFull(now: number): void {
    let left = RATE_BUCKETS_FORGOTTEN_AT_ONCE;
    for (const [name, { at }] of this.#levels) {
      if (this.#levels.size < RATE_BUCKETS_MAX && (left === 0 || now - at < FULL_AFTER_MS)) return;
      this.#levels.delete(name);
      left -= 1;
    }
  }
}

/** Does work for tokens that `take` gave, which their buckets get back where the work ends in a problem, or fails. */
export async function spend<T>(taken: (() => void) | number, work: () => Promise<T | Problem>): Promise<T | Problem> {
  if (typeof taken === 'number') return problems.rateLimited(taken);
  let isAdmitted = false;
  try {
    const outcome = await work();
    isAdmitted = !isProblem(outcome);
    return outcome;
  } finally {
    if (!isAdmitted) taken();
  }
}

/** A bucket of one call, Room or application, by the name that its level is kept under. */
export function bucketOf(name: BucketName, whose: string): Wanted {
  return { name: `${name} ${whose}`, bucket: buckets[name] };
}
