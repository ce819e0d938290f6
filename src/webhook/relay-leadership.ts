/**
 * The work of a relay while it holds the lease: the intake fills the lanes, the heads of the lanes are sent, and the
 * outcomes are written back.
 *
 *   outbox ─intake→ lanes ─take→ send ─→ delivered, blocked, undeliverable, dead │ failed: the head rests until its retry
 *
 * The lanes of an application whose endpoint answered 410 wait, for as long as retries would, until the application is
 * patched (contract §9).
 */

import type { Clock } from '../clock.ts';
import type { AppStore } from '../database/app/apps.ts';
import type { Attempt } from '../database/event/attempt.ts';
import type { Cursor, OutboxEvent, OutboxStore, Settlement } from '../database/event/outbox.ts';
import { StoreUnavailable, warnUnlessAway } from '../database/journal/journal.ts';
import {
  RELAY_COUNTED_BYTES,
  RELAY_DISABLED_LOOK_MS,
  RELAY_IN_FLIGHT_MAX,
  RELAY_IN_FLIGHT_RESERVE_MAX,
  RELAY_OUTAGE_PAUSE_MS,
  RELAY_SETTLING_MAX_EVENTS,
  RELAY_TURN_DELIVERIES,
} from '../limits.ts';
import type { Log } from '../log.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { AttemptedDelivery } from '../tracing/spans.ts';
import { childOf } from '../tracing/tracing.ts';
import { type AttemptOutcome, attemptDelivery } from './delivery.ts';
import type { Endpoint, Endpoints } from './endpoint.ts';
import { Intake } from './intake.ts';
import { Lanes } from './lanes.ts';
import { OutcomeWriter } from './outcome-writer.ts';
import { isPastDay, nextAttemptAt, RETRY_SPAN_MS, retryDelayMs } from './retry.ts';

export interface LeadershipOptions {
  readonly outbox: OutboxStore;
  readonly apps: Pick<AppStore, 'disableWebhook'>;
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  readonly timeoutSec: number;
  readonly retryScale: number;
  readonly random: () => number;
  /** The relay calls it with each attempt when that is over. */
  readonly onAttempt?: ((delivery: AttemptedDelivery) => void) | undefined;
  readonly holder: string;
  readonly endpoints: Endpoints;
  /** Milliseconds since the epoch. */
  readonly leasedUntil: number;
  /** The intake rests so long, at most, without being woken; milliseconds. */
  readonly pollMs: number;
  /** Resolves one turn of the event loop later. */
  readonly turn: () => Promise<void>;
}

export interface LeadershipLoad {
  readonly queued: number;
  readonly inFlight: number;
  readonly delivered: number;
  readonly failed: number;
}

interface Job extends Omit<OutboxEvent, 'attempts'> {
  readonly weight: number;
  failures: number;
  /** It waits for the application to be patched: its endpoint answered 410, or its secret cannot be opened. */
  parked: boolean;
  /** The application was changed since it was taken from its lanes. */
  isPatched: boolean;
  /** When its first attempt was made, in milliseconds since the epoch. */
  triedSince: number | undefined;
  /** The URL at which its last attempt has failed, as far as this leadership knows. */
  failedAt: string | undefined;
}

export class RelayLeadership {
  readonly #options: LeadershipOptions;
  readonly #lanes = new Lanes<Job>();
  readonly #intake: Intake;
  readonly #outcomes: OutcomeWriter;
  #leasedUntil: number;
  #over = false;
  #ending = false;
  #dispatching = false;
  /** Deliveries begun in this turn of the event loop. */
  #begun = 0;
  readonly #inFlight = new Set<Job>();
  #delivered = 0;
  #failed = 0;
  #landed = () => {};
  #reading: Promise<void> | undefined;
  /** Looks up where jobs have failed, one application after the other: at the start there may be many. */
  #placing: Promise<void> = Promise.resolve();
  #cancelTimer = () => {};
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(options: LeadershipOptions) {
    const { outbox, holder, clock, log, pollMs } = options;
    this.#options = options;
    this.#leasedUntil = options.leasedUntil;
    this.#intake = new Intake({
      outbox,
      stock: this.#lanes,
      clock,
      log,
      add: (event) => this.#add(event),
      onRead: () => this.#dispatch(),
      onWentBack: () => {
        log.warn({}, 'the database went back to an earlier state: the webhook relay begins anew');
        this.abandon();
      },
      pollMs,
    });
    this.#outcomes = new OutcomeWriter({
      outbox,
      holder,
      clock,
      log,
      onWritten: () => this.#dispatch(),
      onLeaseLost: () => this.abandon(),
    });
  }

  get leasedUntil(): number {
    return this.#leasedUntil;
  }

  /** The lease was lost, or all that is in memory belongs to a state of the database that is gone. */
  get over(): boolean {
    return this.#over;
  }

  start(): void {
    this.#reading = this.#intake.run();
  }

  wake(): void {
    this.#intake.wake();
  }

  /** Every event up to here was read; undefined where it does not read. */
  get readTo(): Cursor | undefined {
    return this.#intake.readTo;
  }

  /** The intake takes events that come right after what it has read, or returns false and has to read them. */
  takeIn(events: readonly OutboxEvent[]): boolean {
    return this.#intake.take(events);
  }

  /** The lease is held until then, in milliseconds since the epoch. */
  renew(until: number): void {
    this.#leasedUntil = until;
    this.#dispatch();
  }

  /** The application was changed: what waits for it, a disabled endpoint for one, is tried at once. */
  appChanged(appUuid: string): void {
    for (const job of this.#inFlight) if (job.appUuid === appUuid) job.isPatched = true;
    this.#hurry(appUuid, (job) => job.parked);
    if (this.#lanes.weightOf(appUuid) > 0) void this.#hurryMoved(appUuid);
  }

  /** Tries at once what failed at a URL that the application has left: that says nothing of the new one. */
  async #hurryMoved(appUuid: string): Promise<void> {
    const endpoint = await this.#options.endpoints.lookUp(appUuid).catch(() => undefined);
    // Without a database to ask, and without a URL to try, what waits keeps its time.
    const url = endpoint?.url ?? '';
    if (url !== '') this.#hurry(appUuid, ({ failedAt }) => failedAt !== undefined && failedAt !== url);
  }

  /** Whether the application has set another URL than this one, as while an attempt was under way. */
  #hasLeft(appUuid: string, url: string): boolean {
    const known = this.#options.endpoints.known(appUuid)?.url ?? '';
    return known !== '' && known !== url;
  }

  #hurry(appUuid: string, which: (job: Job) => boolean): void {
    this.#lanes.hurry(appUuid, this.#options.clock.now(), which);
    this.#dispatch();
  }

  /** Delivers nothing more: what is in memory is for whoever leads next. */
  abandon(): void {
    this.#over = true;
    this.#cancelTimer();
    this.#intake.stop();
  }

  /** Starts nothing new, waits for what is under way, and writes it back. */
  async end(): Promise<void> {
    this.#ending = true;
    this.#intake.stop();
    while (this.#inFlight.size > 0)
      await new Promise<void>((resolve) => {
        this.#landed = resolve;
      });
    await this.#outcomes.drain();
    this.#cancelTimer();
    await this.#reading;
  }

  load(): LeadershipLoad {
    return {
      queued: this.#lanes.size,
      inFlight: this.#inFlight.size,
      delivered: this.#delivered,
      failed: this.#failed,
    };
  }

  #add({ attempts, ...event }: OutboxEvent): void {
    const weight = Math.max(1, Math.ceil(event.body.length / RELAY_COUNTED_BYTES));
    const tried = { failures: attempts.length, triedSince: attempts[0]?.at, failedAt: undefined };
    const job: Job = { ...event, ...tried, weight, parked: false, isPatched: false };
    this.#lanes.add(job, nextAttemptAt(attempts.at(-1), this.#options.clock.now()));
    if (attempts.length > 0) this.#placing = this.#placing.then(() => this.#place(job));
  }

  /** What failed before this leadership is taken to have failed at the URL that the application has now. */
  async #place(job: Job): Promise<void> {
    const endpoint = this.#over ? undefined : await this.#options.endpoints.lookUp(job.appUuid).catch(() => undefined);
    job.failedAt ??= endpoint?.url;
  }

  #dispatch(): void {
    // A job that is settled without being sent comes back here while the loop below still runs.
    if (this.#dispatching) return;
    this.#dispatching = true;
    const { clock } = this.#options;
    let isDry = false;
    while (!this.#over && !this.#ending && clock.now() < this.#leasedUntil) {
      const isFull = this.#inFlight.size >= RELAY_IN_FLIGHT_MAX;
      if (this.#inFlight.size >= RELAY_IN_FLIGHT_MAX + RELAY_IN_FLIGHT_RESERVE_MAX) break;
      if (this.#outcomes.waiting >= RELAY_SETTLING_MAX_EVENTS) break;
      if (this.#begun >= RELAY_TURN_DELIVERIES) break;
      const job = this.#lanes.take(clock.now(), isFull ? 'reserve' : 'any');
      isDry = job === undefined;
      if (job === undefined) break;
      this.#inFlight.add(job);
      job.isPatched = false;
      this.#countBegun();
      void this.#send(job);
    }
    this.#dispatching = false;
    // Whatever else holds jobs back, such as a lease that has run out, dispatches again when it is over. A timer for a
    // job that is due and held back would fire at once, over and over.
    if (isDry) this.#setTimer();
  }

  /**
   * Counts a delivery of this turn. The runtime takes answers until there is none left: where each lets another
   * delivery begin, and receivers are quick, it would have no turn until the backlog is gone.
   */
  #countBegun(): void {
    this.#begun += 1;
    if (this.#begun > 1) return;
    void this.#options.turn().then(() => {
      const isSpent = this.#begun >= RELAY_TURN_DELIVERIES;
      this.#begun = 0;
      if (isSpent) this.#dispatch();
    });
  }

  #setTimer(): void {
    const due = this.#lanes.nextDue;
    if (this.#over || due === undefined || due >= this.#timerAt) return;
    this.#cancelTimer();
    this.#timerAt = due;
    this.#cancelTimer = this.#options.clock.at(due, () => {
      this.#timerAt = Number.POSITIVE_INFINITY;
      this.#dispatch();
    });
  }

  async #send(job: Job): Promise<void> {
    const { clock, endpoints, log } = this.#options;
    const started = clock.now();
    let endpoint: Endpoint;
    try {
      endpoint = endpoints.known(job.appUuid) ?? (await endpoints.lookUp(job.appUuid));
    } catch (error) {
      warnUnlessAway(log, error, { webhook_id: job.webhookId }, 'the endpoint of a webhook could not be read');
      // A secret that this MASTER_KEY does not open stays so until the application has another one.
      job.parked = !(error instanceof StoreUnavailable);
      this.#retry(job, clock.now() + (job.parked ? RELAY_DISABLED_LOOK_MS : RELAY_OUTAGE_PAUSE_MS));
      return;
    }
    // The look-up may have outlasted the lease: whoever holds that now sends the event.
    if (this.#over || clock.now() >= this.#leasedUntil) this.#retry(job, clock.now());
    else if (endpoint.blocks(job.name)) this.#finish(job, 'blocked', undefined);
    else if (endpoint.url === '' || endpoint.keys.length === 0) this.#finish(job, 'undeliverable', undefined);
    else if (endpoint.disabled) this.#waitForPatch(job, endpoint, clock.now());
    else {
      const traceparent = childOf(job.traceparent);
      const outcome = await attemptDelivery(this.#options, endpoint, job, traceparent);
      const ended = clock.now();
      this.#options.onAttempt?.({
        traceparent,
        parent: job.traceparent,
        event: job.name,
        webhookId: job.webhookId,
        status: outcome.status,
        error: outcome.error,
        startedAt: started,
        endedAt: ended,
      });
      // Its retry would be sent if it were due before the endpoint is known to be switched off.
      if (outcome.error === 'gone') await this.#disable(job.appUuid, endpoint);
      this.#settle(job, outcome, { started, ended, url: endpoint.url });
    }
  }

  /**
   * The endpoint has answered 410 before: nothing is sent, and the job waits for as long as its retries would have gone
   * on since it could first have been sent.
   */
  #waitForPatch(job: Job, { since }: Endpoint, now: number): void {
    const { retryScale } = this.#options;
    const givenUpAt = (job.triedSince ?? Math.max(job.at, since)) + RETRY_SPAN_MS * retryScale;
    const attempt: Attempt = { at: Math.floor(now), status: null, error: 'disabled', duration_ms: 0, retry_at: null };
    if (now >= givenUpAt) this.#finish(job, 'dead', attempt);
    else {
      const due = Math.ceil(Math.min(givenUpAt, now + RELAY_DISABLED_LOOK_MS));
      job.parked = true;
      this.#retry(job, due);
    }
  }

  #settle(job: Job, outcome: AttemptOutcome, { started, ended, url }: { started: number; ended: number; url: string }): void {
    const { clock, random, retryScale, timeoutSec } = this.#options;
    const now = clock.now();
    const attempt = (retryAt: number | null): Attempt => ({
      at: Math.floor(started),
      status: outcome.status,
      error: outcome.error,
      duration_ms: Math.round(ended - started),
      ...(outcome.response === '' ? {} : { response: outcome.response }),
      retry_at: retryAt,
    });
    if (outcome.error === '') {
      this.#delivered += 1;
      this.#finish(job, 'delivered', attempt(null));
      return;
    }
    this.#failed += 1;
    job.parked = outcome.error === 'gone';
    // The first failure at another URL came before its time, and takes nothing from the schedule.
    if (job.failedAt === undefined || job.failedAt === url) job.failures += 1;
    job.failedAt = url;
    job.triedSince ??= started;
    const wait = retryDelayMs(job.failures, retryScale, random(), outcome.retryAfterMs);
    const elapsedMs = now - job.triedSince;
    if (wait === undefined || isPastDay(job.failures, elapsedMs, wait, timeoutSec * 1000, retryScale))
      this.#finish(job, 'dead', attempt(null));
    else {
      const due = this.#hasLeft(job.appUuid, url) ? Math.ceil(now) : Math.ceil(now + wait);
      this.#outcomes.add({ xid: job.xid, eventId: job.eventId, status: 'pending', attempt: attempt(due) });
      this.#retry(job, due, outcome.error === 'timeout');
    }
  }

  /** Puts a job back into its lanes. One that waits for a patch which has come meanwhile is tried at once. */
  #retry(job: Job, due: number, timedOut = false): void {
    const now = this.#options.clock.now();
    this.#land(job, () => this.#lanes.retry(job, job.parked && job.isPatched ? now : due, timedOut));
  }

  /** The application may have been patched while the attempt was under way: then its endpoint stays on. */
  async #disable(appUuid: string, { url, since }: Endpoint): Promise<void> {
    const { apps, log } = this.#options;
    try {
      if (await apps.disableWebhook(appUuid, url, since))
        log.warn({ app_uuid: appUuid }, 'the webhook endpoint answered 410 and is switched off until the application is patched');
    } catch (error) {
      log.warn({ app_uuid: appUuid, error: String(error) }, 'the 410 of a webhook endpoint is not stored');
    }
  }

  #finish(job: Job, status: Settlement['status'], attempt: Attempt | undefined): void {
    this.#outcomes.add({ xid: job.xid, eventId: job.eventId, status, attempt });
    this.#land(job, () => this.#lanes.done(job, status === 'delivered'));
    this.#intake.made(job.appUuid);
  }

  #land(job: Job, settle: () => void): void {
    this.#inFlight.delete(job);
    settle();
    this.#landed();
    this.#dispatch();
  }
}
