/**
 * Reads committed events from the outbox into the lanes. All events come through one cursor; those that a flush of this
 * process has just written behind it are taken without reading them. An application with more undelivered events than
 * it may keep in memory is *behind*: the cursor passes over its new events, which stay in the database, and a cursor of
 * the application's own reads them as its lanes empty. At the start every application with a backlog is behind.
 */

import type { Clock } from '../clock.ts';
import type { Cursor, OutboxEvent, OutboxStore } from '../database/event/outbox.ts';
import { warnUnlessAway } from '../database/journal/journal.ts';
import {
  RELAY_APP_FULL_EVENTS,
  RELAY_APP_LEAST_EVENTS,
  RELAY_APP_MAX_EVENTS,
  RELAY_HELD_BACK_MS,
  RELAY_MEMORY_MAX_EVENTS,
  RELAY_OUTAGE_PAUSE_MS,
  RELAY_PAGE_MAX_EVENTS,
} from '../limits.ts';
import type { Log } from '../log.ts';

/** The weight of the events in the lanes, all together and of one application. */
interface Stock {
  readonly weight: number;
  weightOf(appUuid: string): number;
}

export interface IntakeOptions {
  readonly outbox: OutboxStore;
  readonly stock: Stock;
  readonly clock: Clock;
  readonly log: Log;
  /** Puts an event into its lanes. */
  add(event: OutboxEvent): void;
  /** A page of events has been added. */
  onRead(): void;
  /** The database went back behind the position: reading has ended, and is to begin anew. */
  onWentBack(): void;
  /** How long it rests, at most, without being woken. */
  readonly pollMs: number;
}

const START: Cursor = { xid: '0', eventId: 0 };

/** Tells whether one position lies behind another: transactions first, as numbers. */
const isAfter = (one: Cursor, other: Cursor): boolean =>
  Number(one.xid) > Number(other.xid) || (one.xid === other.xid && one.eventId > other.eventId);

export class Intake {
  readonly #options: IntakeOptions;
  /** Applications that are behind, and how far the cursor of each has come. */
  readonly #behind = new Map<string, Cursor>();
  #cursor: Cursor | undefined;
  #stopped = false;
  #woken = false;
  #endRest = () => {};

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Reads until it is stopped. An outage of the database is waited out. Never rejects. */
  async run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#pump();
      } catch (error) {
        // The events that were read are in the lanes, and the cursors stand behind them: reading goes on from there.
        warnUnlessAway(this.#options.log, error, {}, 'the webhook relay waits for the database');
        await this.#rest(RELAY_OUTAGE_PAUSE_MS);
      }
    }
  }

  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** Every event up to here was read; undefined before the first reading, and once it is stopped. */
  get readTo(): Cursor | undefined {
    return this.#stopped ? undefined : this.#cursor;
  }

  /**
   * Takes events of one transaction, of which it was found that nothing lies between them and what `readTo` was when
   * they were written. False: nothing is taken, and they are to be read.
   */
  take(events: readonly OutboxEvent[]): boolean {
    const { onRead } = this.#options;
    if (this.#stopped || this.#cursor === undefined) return false;
    // The cursor stays while applications catch up with it.
    if (this.#behind.size > 0) return false;
    // A reading that began before may have come to its end meanwhile, with these events or beyond them.
    for (const event of events) if (isAfter(event, this.#cursor)) this.#accept(event);
    onRead();
    return true;
  }

  /** There may be something new to read. */
  wake(): void {
    this.#woken = true;
    this.#endRest();
  }

  /** An event of the application is done: wakes the reader when that made room for what is still in the database. */
  made(appUuid: string): void {
    if (this.#behind.has(appUuid) && this.#options.stock.weightOf(appUuid) <= this.#mostOfOne / 2) this.wake();
  }

  async #pump(): Promise<void> {
    const { outbox, onRead, pollMs } = this.#options;
    while (!this.#stopped) {
      this.#woken = false;
      const cursor = this.#cursor ?? (await this.#begin());
      const page = await outbox.read(cursor, RELAY_PAGE_MAX_EVENTS);
      if (this.#stopped) return;
      if (page.wentBack) {
        this.#stopped = true;
        this.#options.onWentBack();
        return;
      }
      // Some may have been taken while the page was read.
      for (const event of page.events) if (isAfter(event, this.#cursor ?? cursor)) this.#accept(event);
      const caughtUp = await this.#catchUp();
      onRead();
      if (page.more || caughtUp) continue;
      await this.#rest(page.heldBack ? RELAY_HELD_BACK_MS : pollMs);
    }
  }

  async #begin(): Promise<Cursor> {
    const { outbox } = this.#options;
    const horizon = await outbox.horizon();
    for (const appUuid of await outbox.backlog(horizon)) this.#behind.set(appUuid, START);
    this.#cursor = horizon;
    return horizon;
  }

  #accept(event: OutboxEvent): void {
    const { appUuid } = event;
    if (!this.#behind.has(appUuid)) {
      if (this.#options.stock.weightOf(appUuid) < this.#mostOfOne) this.#options.add(event);
      else this.#behind.set(appUuid, { xid: event.xid, eventId: event.eventId - 1 });
    }
    this.#cursor = event;
  }

  /**
   * The weight of events that an application may have in memory now. It has some however many others have, whose
   * receivers may be away for a day.
   */
  get #mostOfOne(): number {
    const { weight } = this.#options.stock;
    if (weight < RELAY_MEMORY_MAX_EVENTS) return RELAY_APP_MAX_EVENTS;
    return weight < RELAY_MEMORY_MAX_EVENTS * 2 ? RELAY_APP_LEAST_EVENTS : RELAY_APP_FULL_EVENTS;
  }

  /** Reads on for applications that are behind and have room again. Returns whether something was read. */
  async #catchUp(): Promise<boolean> {
    const { outbox, stock, add } = this.#options;
    let some = false;
    for (const [appUuid, after] of this.#behind) {
      const limit = this.#mostOfOne / 2;
      if (stock.weightOf(appUuid) > limit) continue;
      const { events, more } = await outbox.readApp(appUuid, after, this.#cursor ?? START, limit);
      if (this.#stopped) return false;
      for (const event of events) add(event);
      const last = events.at(-1);
      if (!more) this.#behind.delete(appUuid);
      else if (last !== undefined) this.#behind.set(appUuid, last);
      some ||= events.length > 0;
    }
    return some;
  }

  #rest(ms: number): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => {
      if (this.#woken) {
        resolve();
        return;
      }
      const cancel = clock.at(clock.now() + ms, resolve);
      this.#endRest = () => {
        cancel();
        resolve();
      };
    });
  }
}
