/**
 * The end of the event log, for those who follow it. Transactions commit in another order than they take their numbers,
 * so an event may appear below one that was read already. The tail therefore stops before a gap until it is filled, or
 * until the transactions that may fill it are over: theirs were rolled back.
 */
import { type Clock, sleep } from '../../clock.ts';
import {
  EVENT_TAIL_BATCH_MAX_EVENTS,
  EVENT_TAIL_BEGIN_MS,
  EVENT_TAIL_GAP_MS,
  EVENT_TAIL_LOOK_MS,
  EVENT_TAIL_SPACING_MS,
} from '../../limits.ts';
import type { Database } from '../driver/database.ts';

/** Is told the new end of the log, and how many bytes of bodies lie before it. */
type Follower = (position: number, bytes: number) => void;

export interface EventTail {
  /**
   * Calls back whenever the log has grown. `lost` is called where the log has become one that does not reach as far, as
   * after a restore: what was told of is not in it. Returns what stops both.
   */
  follow(follower: Follower, lost?: () => void): () => void;
  /** The position up to which the log is complete. Rejects with `StoreUnavailable`. */
  position(): Promise<number>;
  /**
   * The first position that is still in the log, or may be in it next, and the last that was ever given. Undefined
   * before the first event of all.
   */
  bounds(): Promise<{ readonly first: number; readonly last: number } | undefined>;
  /** There may be something new. */
  wake(): void;
}

const AFTER = `SELECT event_id, octet_length(body) AS bytes FROM events WHERE event_id > $1::bigint ORDER BY event_id LIMIT ${EVENT_TAIL_BATCH_MAX_EVENTS}`;
/** The end of what is committed, with the transactions that run: one of them may have an event below that end. */
const LAST = `SELECT (SELECT max(event_id) FROM events) AS last, pg_snapshot_xmax(pg_current_snapshot())::text AS next,
  pg_snapshot_xmin(pg_current_snapshot()) < pg_snapshot_xmax(pg_current_snapshot()) AS runs`;
/** Whether one of the transactions runs that ran when LAST was asked. */
const RUNS = 'SELECT pg_snapshot_xmin(pg_current_snapshot()) < $1::text::xid8 AS runs';
const BOUNDS = `SELECT coalesce((SELECT min(event_id) FROM events), last + 1) AS first, last
  FROM pg_sequence_last_value(pg_get_serial_sequence('events', 'event_id')::regclass) AS last`;

/** Makes the tail of the log in `database`. Nothing is read until somebody follows it or asks for its position. */
export function eventTail(database: Database, clock: Clock): EventTail {
  return new LogTail(database, clock);
}

class LogTail implements EventTail {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #gap: Gap;
  /** The followers, and what tells each of them that the log is another one. */
  readonly #followers = new Map<Follower, () => void>();
  /** The position up to which the log was read. Undefined until the first look. */
  #end: number | undefined;
  #looking: Promise<void> | undefined;
  #disarm: (() => void) | undefined;
  #armedAt = Number.POSITIVE_INFINITY;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
    this.#gap = new Gap(database, clock);
  }

  follow(follower: Follower, lost: () => void = () => {}): () => void {
    this.#followers.set(follower, lost);
    this.#arm(EVENT_TAIL_LOOK_MS);
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size > 0) return;
      this.#disarm?.();
      this.#armedAt = Number.POSITIVE_INFINITY;
      // Whoever comes next begins at the end that the log has then.
      this.#forget();
    };
  }

  async position(): Promise<number> {
    // What was known for one that never came to follow, or has left, is old.
    if (this.#followers.size === 0) this.#forget();
    // The first look may be the last one of a follower that has just left.
    while (this.#end === undefined) await this.#look();
    return this.#end;
  }

  async bounds(): Promise<{ readonly first: number; readonly last: number } | undefined> {
    const [row] = await this.#database.query<{ first: unknown; last: unknown }>(BOUNDS);
    return row?.last == null ? undefined : { first: Number(row.first), last: Number(row.last) };
  }

  wake(): void {
    if (this.#followers.size > 0) this.#arm(EVENT_TAIL_SPACING_MS);
  }

  /** Looks in `ms` milliseconds at the latest, while somebody follows. */
  #arm(ms: number): void {
    const at = this.#clock.now() + ms;
    if (at >= this.#armedAt || this.#followers.size === 0) return;
    this.#disarm?.();
    this.#armedAt = at;
    this.#disarm = this.#clock.at(at, () => {
      this.#armedAt = Number.POSITIVE_INFINITY;
      this.#look().catch(() => {
        // The database is away: the next look asks again.
      });
    });
  }

  /** Reads what is new; one reading at a time. */
  #look(): Promise<void> {
    this.#looking ??= this.#advance().finally(() => {
      this.#looking = undefined;
      this.#arm(this.#gap.isOpen ? EVENT_TAIL_SPACING_MS : EVENT_TAIL_LOOK_MS);
    });
    return this.#looking;
  }

  #forget(): void {
    this.#end = undefined;
    this.#gap.close();
  }

  /** Returns the end of the log when every transaction that may write below it is over, or EVENT_TAIL_BEGIN_MS are. */
  async #begin(): Promise<number> {
    const [row] = await this.#database.query<{ last: unknown; next: unknown; runs: unknown }>(LAST);
    const until = this.#clock.now() + EVENT_TAIL_BEGIN_MS;
    for (let runs = row?.runs; runs === true && this.#clock.now() < until; ) {
      await sleep(this.#clock, EVENT_TAIL_SPACING_MS);
      runs = (await this.#database.query<{ runs: unknown }>(RUNS, [String(row?.next)]))[0]?.runs;
    }
    return Number(row?.last ?? 0);
  }

  /** Moves the end of the log on, batch by batch, as far as it is complete, and tells the followers. */
  async #advance(): Promise<void> {
    if (this.#end === undefined) {
      const end = await this.#begin();
      this.#end = end;
      // One that asked for the end before may not have this one.
      for (const follower of this.#followers.keys()) follower(end, 0);
      return;
    }
    for (let from: number = this.#end; ; ) {
      const rows = await this.#database.query<{ event_id: unknown; bytes: unknown }>(AFTER, [from]);
      // The last follower has left meanwhile.
      if (this.#end !== from) return;
      let bytes = 0;
      let next: number = from;
      for (const row of rows) {
        const eventId = Number(row.event_id);
        if (eventId > next + 1 && !this.#gap.isPassed()) break;
        this.#gap.close();
        next = eventId;
        bytes += Number(row.bytes);
      }
      if (rows.length === 0) {
        // What stood behind the gap was erased, or is not in the database that took over.
        this.#gap.close();
        await this.#checkEnd(from);
      }
      if (next !== from) {
        this.#end = next;
        for (const follower of this.#followers.keys()) follower(next, bytes);
      }
      // Once the transactions are over, what they have committed is read before the gap is passed.
      const goesOn = this.#gap.isOpen ? await this.#gap.isOverNow() : next !== from;
      if (!goesOn) return;
      from = next;
    }
  }

  /** A log whose numbers have not come as far as its end is another one: it is followed from its own end on. */
  async #checkEnd(end: number): Promise<void> {
    const last = (await this.bounds())?.last ?? 0;
    if (last >= end || this.#end !== end) return;
    this.#forget();
    for (const lost of this.#followers.values()) lost();
  }
}

/** The gap behind the end of the log, if there is one: a transaction that is under way there, or was rolled back. */
class Gap {
  readonly #database: Pick<Database, 'query'>;
  readonly #clock: Clock;
  /** When it is passed whatever runs. Undefined while there is no gap. */
  #until: number | undefined;
  /** The transactions before this one may fill it. Undefined until they were asked for. */
  #next: string | undefined;
  #isOver = false;

  constructor(database: Pick<Database, 'query'>, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  get isOpen(): boolean {
    return this.#until !== undefined;
  }

  close(): void {
    this.#until = undefined;
  }

  /** Opens the gap, if it is not open. Tells whether it is known as one that nothing will fill. */
  isPassed(): boolean {
    if (this.#until === undefined) {
      this.#until = this.#clock.now() + EVENT_TAIL_GAP_MS;
      this.#next = undefined;
      this.#isOver = false;
    }
    return this.#isOver || this.#clock.now() >= this.#until;
  }

  /**
   * Asks whether the transactions are over that ran when the gap was seen. Each of them had its number before it took
   * its place in the log.
   */
  async isOverNow(): Promise<boolean> {
    const [row] =
      this.#next === undefined
        ? await this.#database.query<{ next?: unknown; runs: unknown }>(LAST)
        : await this.#database.query<{ next?: unknown; runs: unknown }>(RUNS, [this.#next]);
    this.#next ??= String(row?.next);
    this.#isOver = row?.runs === false;
    return this.#isOver;
  }
}
