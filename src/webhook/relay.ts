/**
 * The relay: reads committed events, keeps each in its lanes, delivers heads, writes outcomes back. One relay works at
 * a time in a cluster; the others wait for its lease. `relay-leadership.ts` is what one does while it holds the lease.
 */

import { nextTurn } from '../bounds/in-turns.ts';
import { type Clock, sleep } from '../clock.ts';
import type { AppStore } from '../database/app/apps.ts';
import type { CredentialStore } from '../database/app/credentials.ts';
import type { OutboxStore } from '../database/event/outbox.ts';
import { warnUnlessAway } from '../database/journal/journal.ts';
import { newUuid } from '../id.ts';
import {
  RELAY_LAST_LOOK_MS,
  RELAY_LEASE_MS,
  RELAY_LEASE_RETRY_MS,
  RELAY_LONE_LEASE_MS,
  RELAY_LONE_POLL_MS,
  RELAY_POLL_MS,
} from '../limits.ts';
import type { Log } from '../log.ts';
import type { Outbound } from '../outbound/outbound.ts';
import type { AttemptedDelivery } from '../tracing/spans.ts';
import { type Endpoints, endpoints } from './endpoint.ts';
import { type LeadershipLoad, RelayLeadership } from './relay-leadership.ts';

export interface RelayOptions {
  readonly outbox: OutboxStore;
  readonly apps: Pick<AppStore, 'settings' | 'onChange' | 'disableWebhook'>;
  readonly credentials: Pick<CredentialStore, 'signingSecrets'>;
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  /** `WEBHOOK_TIMEOUT_SEC`, `WEBHOOK_RETRY_SCALE`. */
  readonly timeoutSec: number;
  readonly retryScale: number;
  /** The relay calls it with each attempt when that is over. */
  readonly onAttempt?: ((delivery: AttemptedDelivery) => void) | undefined;
  /** A random number in [0, 1). */
  readonly random?: () => number;
  /** The node of the relay. Its lease is free as soon as that was declared dead. Left out: nobody's. */
  readonly nodeId?: string;
  /** The process has its database for itself: nobody else takes the lease, or writes events. */
  readonly isAlone?: boolean;
  /** The time that the lease lasts without renewal, in milliseconds. */
  readonly leaseMs?: number;
  /** Resolves one turn of the event loop later: by setImmediate, unless told. */
  readonly turn?: () => Promise<void>;
}

interface RelayLoad extends LeadershipLoad {
  readonly leading: boolean;
}

export interface Relay {
  start(): void;
  /**
   * Waits until everything that is committed by now, at any node, is delivered or settled, for at most `ms`. What waits
   * for a retry is left to the next start, and what is committed later to whoever has the lease then. Returns whether
   * nothing is left.
   */
  deliverLast(ms: number): Promise<boolean>;
  /** Lets deliveries under way end (bounded by their timeout), writes their outcomes, gives the lease back. */
  stop(): Promise<void>;
  /** The relay's load, for `/metrics`. */
  load(): RelayLoad;
}

/** Makes a relay that is not started yet. */
export const createRelay = (options: RelayOptions): Relay => new LeasedRelay(options);

class LeasedRelay implements Relay {
  readonly #options: RelayOptions;
  readonly #holder: string;
  readonly #endpoints: Endpoints;
  readonly #leaseMs: number;
  #held: RelayLeadership | undefined;
  #stopped = true;
  #running: Promise<void> | undefined;
  /** The database did not answer when it was asked for the lease. */
  #isAway = false;
  #endPause = () => {};

  constructor(options: RelayOptions) {
    this.#holder = options.nodeId ?? newUuid();
    const {
      outbox,
      apps,
      credentials,
      clock,
      isAlone,
      leaseMs = isAlone === true ? RELAY_LONE_LEASE_MS : RELAY_LEASE_MS,
    } = options;
    this.#options = options;
    this.#leaseMs = leaseMs;
    this.#endpoints = endpoints(apps, credentials, () => clock.now());
    outbox.onEvents(() => this.#held?.wake());
    outbox.follow({
      readTo: () => this.#held?.readTo,
      take: (events) => this.#held?.takeIn(events) === true,
    });
    apps.onChange((appUuid) => this.#held?.appChanged(appUuid));
  }

  start(): void {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#running = this.#run();
  }

  async deliverLast(ms: number): Promise<boolean> {
    const { clock, outbox } = this.#options;
    const until = clock.now() + ms;
    const before = await outbox.nextTransaction().catch(() => undefined);
    if (before === undefined) return false;
    for (;;) {
      this.#held?.wake();
      const isEmpty = await outbox.isEmpty(before).catch(() => undefined);
      // A database that does not answer would be asked for beyond the time, and takes no outcome.
      if (isEmpty !== false || clock.now() >= until) return isEmpty ?? false;
      await sleep(clock, Math.min(until - clock.now(), RELAY_LAST_LOOK_MS));
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#endPause();
    await this.#running;
    this.#running = undefined;
  }

  load(): RelayLoad {
    const held = this.#held;
    return {
      leading: held !== undefined && !held.over,
      ...(held?.load() ?? { queued: 0, inFlight: 0, delivered: 0, failed: 0 }),
    };
  }

  async #run(): Promise<void> {
    const { outbox, log, random = Math.random, turn = nextTurn, isAlone } = this.#options;
    while (!this.#stopped) {
      const until = await this.#lease();
      if (this.#stopped) break;
      if (until === undefined) {
        if (this.#held !== undefined && !this.#isAway) log.warn({}, 'another node has taken over the webhook relay');
        this.#held?.abandon();
        this.#held = undefined;
      } else if (this.#held === undefined || this.#held.over) {
        const pollMs = isAlone === true ? RELAY_LONE_POLL_MS : RELAY_POLL_MS;
        const granted = { holder: this.#holder, endpoints: this.#endpoints, leasedUntil: until, pollMs };
        this.#held = new RelayLeadership({ ...this.#options, random, turn, ...granted });
        this.#held.start();
      } else this.#held.renew(until);
      await this.#pause(this.#askAgainMs());
    }
    if (this.#held !== undefined) await this.#end(this.#held);
    this.#held = undefined;
    await outbox.release(this.#holder).catch(() => {});
  }

  /** Ends the leadership. The lease is renewed until then: who took it would send again what is still under way. */
  async #end(held: RelayLeadership): Promise<void> {
    let isOver = false;
    const ended = held.end().finally(() => {
      isOver = true;
      this.#endPause();
    });
    while (!isOver) {
      await this.#pause(this.#leaseMs / 4);
      if (isOver) break;
      const until = await this.#lease();
      if (until === undefined) held.abandon();
      else held.renew(until);
    }
    await ended;
  }

  /**
   * Takes or renews the lease. Returns the time until which it is surely ours, by our own clock, counted from before
   * the question.
   */
  async #lease(): Promise<number | undefined> {
    const { clock, outbox, log } = this.#options;
    const asked = clock.now();
    try {
      const isHeld = await outbox.lease(this.#holder, this.#leaseMs);
      this.#isAway = false;
      return isHeld ? asked + this.#leaseMs : undefined;
    } catch (error) {
      this.#isAway = true;
      warnUnlessAway(log, error, {}, 'the webhook lease waits for the database');
      return this.#held?.over === true ? undefined : this.#held?.leasedUntil;
    }
  }

  /**
   * The holder renews its lease four times while it lasts. Who waits asks twice as often, as it has to see it run out
   * twice, and each of them more often while the database does not answer.
   */
  #askAgainMs(): number {
    if (this.#isAway) return Math.min(RELAY_LEASE_RETRY_MS, this.#leaseMs / 16);
    return this.#leaseMs / (this.#held === undefined ? 8 : 4);
  }

  /** Resolves when `ms` have passed, or the relay is stopped. */
  #pause(ms: number): Promise<void> {
    const { clock } = this.#options;
    return new Promise((resolve) => {
      const cancel = clock.at(clock.now() + ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
