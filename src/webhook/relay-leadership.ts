/**
 * What a relay does while it holds the lease. Events come in through one cursor over the outbox. An application with more undelivered events than
 * it may keep in memory is *behind*: the cursor passes over its new ones, which stay in the database, and they are read by its own cursor as its lanes
 * empty. At the start every application with a backlog is behind.
 */
import type { Clock } from '../clock.ts';
import type { AppStore } from '../database/apps.ts';
import type { Attempt } from '../database/events.ts';
import type { Cursor, OutboxEvent, OutboxStore, Settlement } from '../database/outbox.ts';
import {
  RELAY_APP_LEAST_EVENTS,
  RELAY_APP_MAX_EVENTS,
  RELAY_HELD_BACK_MS,
  RELAY_IN_FLIGHT_MAX,
  RELAY_MEMORY_MAX_EVENTS,
  RELAY_OUTAGE_PAUSE_MS,
  RELAY_PAGE_MAX_EVENTS,
  RELAY_POLL_MS,
  RELAY_SETTLING_MAX_EVENTS,
} from '../limits.ts';
import type { Log } from '../log.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { attemptDelivery } from './delivery.ts';
import type { Endpoint, Endpoints } from './endpoint.ts';
import { Lanes } from './lanes.ts';
import { settler } from './outcome-writer.ts';
import { retryDelayMs } from './retry.ts';

export interface TenureOptions {
  readonly outbox: OutboxStore;
  readonly apps: Pick<AppStore, 'disableWebhook'>;
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  readonly timeoutSec: number;
  readonly retryScale: number;
  readonly random: () => number;
  readonly holder: string;
  readonly endpoints: Endpoints;
  /** Ms since the epoch. */
  readonly leasedUntil: number;
}

export interface TenureLoad {
  readonly queued: number;
  readonly inFlight: number;
  readonly settling: number;
  readonly delivered: number;
  readonly failed: number;
}

export interface Tenure {
  readonly leasedUntil: number;
  /** The lease was lost, or the tenure was ended. */
  readonly over: boolean;
  start(): void;
  wake(): void;
  renew(until: number): void;
  /** The lease is another's: what is in memory is theirs to deliver. */
  abandon(): void;
  /** Starts nothing new, waits for what is under way, writes it back. */
  end(): Promise<void>;
  load(): TenureLoad;
}

interface Job extends OutboxEvent {
  failures: number;
}

export function tenure(options: TenureOptions): Tenure {
  const { outbox, outbound, clock, log, endpoints } = options;
  const lanes = new Lanes<Job>();
  /** Applications that are behind, and how far their own cursor has come. */
  const behind = new Map<string, Cursor>();
  let cursor: Cursor = { xid: '0', eventId: 0 };
  let leasedUntil = options.leasedUntil;
  let begun = false;
  let over = false;
  let ending = false;
  let dispatching = false;
  let inFlight = 0;
  let delivered = 0;
  let failed = 0;
  let landed = () => {};
  let pumping: Promise<void> | undefined;
  let woken = false;
  let wakePump = () => {};
  let cancelTimer = () => {};
  let timerAt = Number.POSITIVE_INFINITY;

  const wake = (): void => {
    woken = true;
    wakePump();
  };
  const abandon = (): void => {
    over = true;
    cancelTimer();
    wake();
  };
  const outcomes = settler(outbox, options.holder, log, () => dispatch(), abandon);

  // --- reading

  const begin = async (): Promise<void> => {
    const horizon = await outbox.horizon();
    for (const appUuid of await outbox.backlog(horizon)) behind.set(appUuid, { xid: '0', eventId: 0 });
    cursor = horizon;
    begun = true;
  };

  const pump = async (): Promise<void> => {
    if (!begun) await begin();
    while (!over && !ending) {
      woken = false;
      const full = lanes.size >= RELAY_MEMORY_MAX_EVENTS * 2;
      const page = full ? { events: [], heldBack: false } : await outbox.read(cursor, RELAY_PAGE_MAX_EVENTS);
      if (over) return;
      for (const event of page.events) accept(event);
      const caughtUp = await catchUp();
      dispatch();
      if (page.events.length === RELAY_PAGE_MAX_EVENTS || caughtUp) continue;
      await rest(page.heldBack ? RELAY_HELD_BACK_MS : RELAY_POLL_MS);
    }
  };

  const accept = (event: OutboxEvent): void => {
    const { appUuid } = event;
    if (!behind.has(appUuid)) {
      if (hasRoom(appUuid)) add(event);
      else behind.set(appUuid, { xid: event.xid, eventId: event.eventId - 1 });
    }
    cursor = event;
  };

  const hasRoom = (appUuid: string): boolean =>
    lanes.sizeOf(appUuid) < (lanes.size < RELAY_MEMORY_MAX_EVENTS ? RELAY_APP_MAX_EVENTS : RELAY_APP_LEAST_EVENTS);

  /** Reads on for applications that are behind and have room again. True when something was read. */
  const catchUp = async (): Promise<boolean> => {
    let some = false;
    for (const [appUuid, after] of behind) {
      if (lanes.sizeOf(appUuid) > (lanes.size < RELAY_MEMORY_MAX_EVENTS ? RELAY_APP_MAX_EVENTS / 2 : 0)) continue;
      const limit = RELAY_APP_MAX_EVENTS / 2;
      const events = await outbox.readApp(appUuid, after, cursor, limit);
      if (over) return false;
      for (const event of events) add(event);
      const last = events.at(-1);
      if (events.length < limit) behind.delete(appUuid);
      else if (last !== undefined) behind.set(appUuid, last);
      some ||= events.length > 0;
    }
    return some;
  };

  const add = (event: OutboxEvent): void => {
    const job: Job = { ...event, failures: event.attempts.length };
    lanes.add(job, event.attempts.at(-1)?.retry_at ?? 0);
  };

  const rest = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (woken) {
        resolve();
        return;
      }
      const cancel = clock.at(clock.now() + ms, resolve);
      wakePump = () => {
        cancel();
        resolve();
      };
    });

  // --- sending

  const dispatch = (): void => {
    // A job that is settled without being sent comes back here while the loop below still runs.
    if (dispatching) return;
    dispatching = true;
    while (!over && !ending && clock.now() < leasedUntil) {
      if (inFlight >= RELAY_IN_FLIGHT_MAX || outcomes.waiting >= RELAY_SETTLING_MAX_EVENTS) break;
      const job = lanes.take(clock.now());
      if (job === undefined) break;
      inFlight += 1;
      void send(job);
    }
    dispatching = false;
    setTimer();
  };

  const setTimer = (): void => {
    const due = lanes.nextDue;
    if (over || due === undefined || due >= timerAt) return;
    cancelTimer();
    timerAt = due;
    cancelTimer = clock.at(due, () => {
      timerAt = Number.POSITIVE_INFINITY;
      dispatch();
    });
  };

  const send = async (job: Job): Promise<void> => {
    const started = clock.now();
    let endpoint: Endpoint;
    try {
      endpoint = endpoints.known(job.appUuid) ?? (await endpoints.lookUp(job.appUuid));
    } catch (error) {
      log.warn({ webhook_id: job.webhookId, error: String(error) }, 'a webhook waits for the database');
      land(() => lanes.retry(job, clock.now() + RELAY_OUTAGE_PAUSE_MS, false));
      return;
    }
    if (endpoint.blocks(job.name)) finish(job, 'blocked', undefined);
    else if (endpoint.url === '' || endpoint.keys.length === 0) finish(job, 'undeliverable', undefined);
    else {
      const outcome = await attemptDelivery(outbound, endpoint, job, options.timeoutSec * 1000, () => clock.now());
      const now = clock.now();
      const attempt = (retryAt: number | null): Attempt => ({
        at: Math.floor(started),
        status: outcome.status,
        error: outcome.error,
        duration_ms: Math.round(now - started),
        retry_at: retryAt,
      });
      if (outcome.error === '') {
        delivered += 1;
        finish(job, 'delivered', attempt(null));
        return;
      }
      failed += 1;
      if (outcome.error === 'gone') void disable(job.appUuid);
      job.failures += 1;
      const wait = retryDelayMs(job.failures, options.retryScale, options.random(), outcome.retryAfterMs);
      if (wait === undefined || outcome.error === 'gone') finish(job, 'dead', attempt(null));
      else {
        const due = Math.ceil(now + wait);
        outcomes.add({ xid: job.xid, eventId: job.eventId, status: 'pending', attempt: attempt(due) });
        land(() => lanes.retry(job, due, outcome.error === 'timeout'));
      }
    }
  };

  const disable = async (appUuid: string): Promise<void> => {
    log.warn({ app_uuid: appUuid }, 'the webhook endpoint answered 410 and is switched off until the application is patched');
    await options.apps
      .disableWebhook(appUuid)
      .catch((error: unknown) => log.warn({ error: String(error) }, 'the 410 is not stored'));
  };

  const finish = (job: Job, status: Settlement['status'], attempt: Attempt | undefined): void => {
    outcomes.add({ xid: job.xid, eventId: job.eventId, status, attempt });
    land(() => lanes.done(job, status === 'delivered'));
    const after = behind.get(job.appUuid);
    const readOn = after !== undefined && lanes.sizeOf(job.appUuid) <= RELAY_APP_MAX_EVENTS / 2;
    if (readOn || lanes.size === RELAY_MEMORY_MAX_EVENTS * 2 - 1) wake();
  };

  const land = (settle: () => void): void => {
    inFlight -= 1;
    if (!over) settle();
    landed();
    dispatch();
  };

  const start = (): void => {
    pumping = (async () => {
      while (!over && !ending) {
        try {
          await pump();
        } catch (error) {
          // What was read is in the lanes and the cursors stand behind it: go on from there.
          log.warn({ error: String(error) }, 'the webhook relay waits for the database');
          await rest(RELAY_OUTAGE_PAUSE_MS);
        }
      }
    })();
  };

  return {
    get leasedUntil() {
      return leasedUntil;
    },
    get over() {
      return over;
    },
    start,
    wake,
    renew(until) {
      leasedUntil = until;
      dispatch();
    },
    abandon,
    async end() {
      ending = true;
      wake();
      while (inFlight > 0)
        await new Promise<void>((resolve) => {
          landed = resolve;
        });
      await outcomes.drain();
      over = true;
      cancelTimer();
      await pumping;
    },
    load: () => ({ queued: lanes.size, inFlight, settling: outcomes.waiting, delivered, failed }),
  };
}
