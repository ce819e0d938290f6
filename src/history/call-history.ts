/**
 * Collects the timelines of calls in memory and stores them in batches, so that a call costs the database one row for
 * a few seconds of it and nothing waits for that row. A timeline is for people: a crash may lose its last seconds,
 * while the events of the call lose nothing.
 */

import { ThrottledLog } from '../bounds/throttled-log.ts';
import type { Clock } from '../clock.ts';
import {
  HISTORY_CALL_MAX_ENTRIES,
  HISTORY_FLUSH_MS,
  HISTORY_LATE_MS,
  HISTORY_PART_MAX_ENTRIES,
  HISTORY_PART_MS,
  HISTORY_SAID_EVERY_MS,
  HISTORY_WAITING_MAX_PARTS,
} from '../limits.ts';
import type { Log } from '../log.ts';
import type { Entry, TimedEntry } from './entry.ts';

/**
 * A piece of one call's timeline, as it is stored. `since` is the time of its first entry, in ms since the epoch, and
 * later than that of the piece before it.
 */
export interface TimelinePart {
  readonly sessionUuid: string;
  readonly since: number;
  readonly entries: readonly TimedEntry[];
}

/** Takes entries. Whoever sees something of a call tells it here; nothing is kept when the history is off. */
export interface HistorySink {
  /** A Session of that application begins. Nothing is kept of a Session that has not begun. */
  begin(sessionUuid: string, appUuid: string): void;
  /**
   * Adds an entry, with the time of now. With `appUuid` only where the Session is that application's: whoever names a
   * Session of another one leaves no mark in its timeline.
   */
  add(sessionUuid: string, entry: Entry, appUuid?: string): void;
  /** The Session is over: what comes within a second still belongs to it. */
  ended(sessionUuid: string): void;
}

/** The sink when `CALL_HISTORY_DAYS` is 0. */
export const NO_HISTORY: HistorySink = { begin() {}, add() {}, ended() {} };

export interface CallHistoryOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Stores parts. A rejection leaves them waiting. */
  write(parts: readonly TimelinePart[]): Promise<void>;
  /** It is called with each entry that is kept. */
  readonly onEntry?: ((sessionUuid: string, entry: TimedEntry) => void) | undefined;
  /** Nothing more is added to the timeline of that Session. */
  onClosed(sessionUuid: string): void;
}

interface Growing {
  readonly appUuid: string;
  entries: TimedEntry[];
  /** Entries of the call so far, with the ones that are stored. */
  count: number;
  since: number;
  endedAt: number | undefined;
}

export class CallHistory implements HistorySink {
  readonly #options: CallHistoryOptions;
  readonly #troubles: ThrottledLog;
  readonly #calls = new Map<string, Growing>();
  #waiting: TimelinePart[] = [];
  #writing: Promise<void> | undefined;
  #disarm: (() => void) | undefined;
  #dropped = 0;

  constructor(options: CallHistoryOptions) {
    this.#options = options;
    this.#troubles = new ThrottledLog(options.log, options.clock, HISTORY_SAID_EVERY_MS);
  }

  begin(sessionUuid: string, appUuid: string): void {
    // A call that comes back from another node may have left a moment ago.
    const before = this.#calls.get(sessionUuid);
    if (before !== undefined) this.#cut(sessionUuid, before);
    this.#calls.set(sessionUuid, { appUuid, entries: [], count: 0, since: before?.since ?? 0, endedAt: undefined });
  }

  add(sessionUuid: string, entry: Entry, appUuid?: string): void {
    // A command is told once it is answered, and stands where it came: before what it caused.
    const took = entry.kind === 'command' ? entry.took_ms : 0;
    const at = Math.floor(this.#options.clock.now() - took);
    const call = this.#calls.get(sessionUuid);
    // One place beyond the limit is for the entry that says so.
    if (call === undefined || call.count > HISTORY_CALL_MAX_ENTRIES) return;
    if (appUuid !== undefined && appUuid !== call.appUuid) return;
    if (call.entries.length === 0) call.since = Math.max(at, call.since + 1);
    const timed: TimedEntry =
      call.count === HISTORY_CALL_MAX_ENTRIES ? { at, kind: 'media', what: 'timeline_full' } : { at, ...entry };
    call.entries.push(timed);
    call.count += 1;
    this.#options.onEntry?.(sessionUuid, timed);
    this.#arm();
  }

  ended(sessionUuid: string): void {
    const call = this.#calls.get(sessionUuid);
    if (call !== undefined) call.endedAt = this.#options.clock.now();
    this.#arm();
  }

  /** The entries of a call that are not stored yet. */
  unsaved(sessionUuid: string): readonly TimedEntry[] {
    const waiting = this.#waiting.filter((part) => part.sessionUuid === sessionUuid).flatMap(({ entries }) => entries);
    return [...waiting, ...(this.#calls.get(sessionUuid)?.entries ?? [])];
  }

  /** Calls in memory and parts that wait for the database, for `/metrics`. */
  load(): { readonly calls: number; readonly waiting: number; readonly dropped: number } {
    return { calls: this.#calls.size, waiting: this.#waiting.length, dropped: this.#dropped };
  }

  /** Stores everything, once, as far as the database takes it. */
  async close(): Promise<void> {
    this.#disarm?.();
    for (const [sessionUuid, call] of this.#calls) this.#cut(sessionUuid, call);
    this.#calls.clear();
    await this.#writing;
    await this.#write();
  }

  #arm(): void {
    this.#disarm ??= this.#options.clock.at(this.#options.clock.now() + HISTORY_FLUSH_MS, () => {
      this.#disarm = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    const now = this.#options.clock.now();
    let growing = false;
    for (const [sessionUuid, call] of this.#calls) {
      const isOver = call.endedAt !== undefined && now - call.endedAt >= HISTORY_LATE_MS;
      const isDue = call.entries.length >= HISTORY_PART_MAX_ENTRIES || now - call.since >= HISTORY_PART_MS;
      if (isOver || isDue) this.#cut(sessionUuid, call);
      if (isOver) {
        this.#calls.delete(sessionUuid);
        this.#options.onClosed(sessionUuid);
      } else growing ||= call.entries.length > 0 || call.endedAt !== undefined;
    }
    if (this.#waiting.length > 0) this.#writing ??= this.#write();
    if (growing || this.#waiting.length > 0) this.#arm();
  }

  #cut(sessionUuid: string, call: Growing): void {
    if (call.entries.length === 0) return;
    if (this.#waiting.length >= HISTORY_WAITING_MAX_PARTS) this.#dropped += 1;
    else this.#waiting.push({ sessionUuid, since: call.since, entries: call.entries });
    call.entries = [];
  }

  async #write(): Promise<void> {
    // What is cut while this is written waits behind it.
    const parts = [...this.#waiting];
    try {
      if (parts.length > 0) await this.#options.write(parts);
      this.#waiting = this.#waiting.slice(parts.length);
      if (parts.length > 0) this.#troubles.settled({}, 'timelines of calls are written again');
    } catch (error) {
      const fields = { error: String(error), parts: parts.length };
      this.#troubles.say('warn', 'write', fields, 'timelines of calls wait for the database');
    }
    this.#writing = undefined;
  }
}
