/**
 * Reads committed events from the outbox into the lanes. All events come through one cursor. An application with more
 * undelivered events than it may keep in memory is *behind*: the cursor passes over its new events, which stay in the
 * database, and a cursor of the application's own reads them as its lanes empty. At the start every application with a
 * backlog is behind.
 */
import type { Clock } from '../clock.ts';
import type { Cursor, OutboxEvent, OutboxStore } from '../database/outbox.ts';
import {
  RELAY_APP_LEAST_EVENTS,
  RELAY_APP_MAX_EVENTS,
  RELAY_HELD_BACK_MS,
  RELAY_MEMORY_MAX_EVENTS,
  RELAY_OUTAGE_PAUSE_MS,
  RELAY_PAGE_MAX_EVENTS,
  RELAY_POLL_MS,
} from '../limits.ts';
import type { Log } from '../log.ts';

/** The number of events in the lanes, all together and of one application. */
interface Stock {
  readonly size: number;
  sizeOf(appUuid: string): number;
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
}

const START: Cursor = { xid: '0', eventId: 0 };

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
        this.#options.log.warn({ error: String(error) }, 'the webhook relay waits for the database');
        await this.#rest(RELAY_OUTAGE_PAUSE_MS);
      }
    }
  }

  stop(): void {
    this.#stopped = true;
    this.wake();
  }

  /** There may be something new to read. */
  wake(): void {
    this.#woken = true;
    this.#endRest();
  }

  /** An event of the application is done: wakes the reader when that made room for what is still in the database. */
  made(appUuid: string): void {
    const { stock } = this.#options;
    const readOn = this.#behind.has(appUuid) && stock.sizeOf(appUuid) <= RELAY_APP_MAX_EVENTS / 2;
    if (readOn || stock.size === RELAY_MEMORY_MAX_EVENTS * 2 - 1) this.wake();
  }

  async #pump(): Promise<void> {
    const { outbox, stock, onRead } = this.#options;
    while (!this.#stopped) {
      this.#woken = false;
      const cursor = this.#cursor ?? (await this.#begin());
      const isFull = stock.size >= RELAY_MEMORY_MAX_EVENTS * 2;
      const page = isFull ? { events: [], heldBack: false } : await outbox.read(cursor, RELAY_PAGE_MAX_EVENTS);
      if (this.#stopped) return;
      for (const event of page.events) this.#accept(event);
      const caughtUp = await this.#catchUp();
      onRead();
      if (page.events.length === RELAY_PAGE_MAX_EVENTS || caughtUp) continue;
      await this.#rest(page.heldBack ? RELAY_HELD_BACK_MS : RELAY_POLL_MS);
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
      if (this.#hasRoom(appUuid)) this.#options.add(event);
      else this.#behind.set(appUuid, { xid: event.xid, eventId: event.eventId - 1 });
    }
    this.#cursor = event;
  }

  #hasRoom(appUuid: string): boolean {
    const { stock } = this.#options;
    return stock.sizeOf(appUuid) < (stock.size < RELAY_MEMORY_MAX_EVENTS ? RELAY_APP_MAX_EVENTS : RELAY_APP_LEAST_EVENTS);
  }

  /** Reads on for applications that are behind and have room again. Returns whether something was read. */
  async #catchUp(): Promise<boolean> {
    const { outbox, stock, add } = this.#options;
    const limit = RELAY_APP_MAX_EVENTS / 2;
    let some = false;
    for (const [appUuid, after] of this.#behind) {
      if (stock.sizeOf(appUuid) > (stock.size < RELAY_MEMORY_MAX_EVENTS ? limit : 0)) continue;
      const events = await outbox.readApp(appUuid, after, this.#cursor ?? START, limit);
      if (this.#stopped) return false;
      for (const event of events) add(event);
      const last = events.at(-1);
      if (events.length < limit) this.#behind.delete(appUuid);
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
