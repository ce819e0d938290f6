/**
 * The relay: reads committed events, keeps each in its lanes, delivers heads, writes outcomes back. One relay works at a time in a cluster; the
 * others wait for its lease. `relay-leadership.ts` is what one does while it holds the lease.
 */
import type { Clock } from '../clock.ts';
import type { AppStore } from '../database/apps.ts';
import type { CredentialStore } from '../database/credentials.ts';
import type { OutboxStore } from '../database/outbox.ts';
import { newUuid } from '../id.ts';
import { RELAY_LAST_LOOK_MS, RELAY_LEASE_MS } from '../limits.ts';
import type { Log } from '../log.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { endpoints } from './endpoint.ts';
import { type LeadershipLoad, RelayLeadership } from './relay-leadership.ts';

export interface RelayOptions {
  readonly outbox: OutboxStore;
  readonly apps: AppStore;
  readonly credentials: CredentialStore;
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly log: Log;
  /** `WEBHOOK_TIMEOUT_SEC`, `WEBHOOK_RETRY_SCALE`. */
  readonly timeoutSec: number;
  readonly retryScale: number;
  /** A random number in [0, 1). */
  readonly random?: () => number;
  /** The time that the lease lasts without renewal, in milliseconds. */
  readonly leaseMs?: number;
}

export interface RelayLoad extends LeadershipLoad {
  readonly leading: boolean;
}

export interface Relay {
  start(): void;
  /**
   * Waits until everything that was committed is delivered or settled, for at most `ms`. What waits for a retry is left to the next start. Returns
   * whether nothing is left.
   */
  deliverLast(ms: number): Promise<boolean>;
  /** Lets deliveries under way end (bounded by their timeout), writes their outcomes, gives the lease back. */
  stop(): Promise<void>;
  /** The relay's load, for `/metrics`. */
  load(): RelayLoad;
}

/** A relay that is not started yet. */
export function createRelay(options: RelayOptions): Relay {
  const { outbox, clock, log, leaseMs = RELAY_LEASE_MS } = options;
  const holder = newUuid();
  const known = endpoints(options.apps, options.credentials, () => clock.now());
  const random = options.random ?? Math.random;
  let held: RelayLeadership | undefined;
  let stopped = true;
  let running: Promise<void> | undefined;
  let cancelPause = () => {};

  outbox.onEvents(() => held?.wake());
  options.apps.onChange((appUuid) => held?.appChanged(appUuid));

  /** Until `ms` have passed or the relay is stopped. */
  const pause = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = clock.at(clock.now() + ms, resolve);
      cancelPause = () => {
        cancel();
        resolve();
      };
    });

  /** Takes or renews the lease; the time until which it is surely ours, by our own clock, counted from before the question. */
  const lease = async (): Promise<number | undefined> => {
    const asked = clock.now();
    try {
      return (await outbox.lease(holder, leaseMs)) ? asked + leaseMs : undefined;
    } catch (error) {
      log.warn({ error: String(error) }, 'the webhook lease waits for the database');
      return held?.leasedUntil;
    }
  };

  const run = async (): Promise<void> => {
    while (!stopped) {
      const until = await lease();
      if (stopped) break;
      if (until === undefined) {
        if (held !== undefined) log.warn({}, 'another node has taken over the webhook relay');
        held?.abandon();
        held = undefined;
      } else if (held === undefined || held.over) {
        held = new RelayLeadership({ ...options, holder, random, endpoints: known, leasedUntil: until });
        held.start();
      } else held.renew(until);
      await pause(leaseMs / 4);
    }
    await held?.end();
    held = undefined;
    await outbox.release(holder).catch(() => {});
  };

  return {
    start() {
      if (!stopped) return;
      stopped = false;
      running = run();
    },
    async deliverLast(ms) {
      const until = clock.now() + ms;
      for (;;) {
        held?.wake();
        const left = await outbox.isEmpty().catch(() => false);
        if (left || clock.now() >= until) return left;
        await new Promise<void>((resolve) => clock.at(Math.min(until, clock.now() + RELAY_LAST_LOOK_MS), resolve));
      }
    },
    async stop() {
      stopped = true;
      cancelPause();
      await running;
      running = undefined;
    },
    load: () => ({
      leading: held !== undefined && !held.over,
      ...(held?.load() ?? { queued: 0, inFlight: 0, settling: 0, delivered: 0, failed: 0 }),
    }),
  };
}
