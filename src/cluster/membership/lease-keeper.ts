/**
 * Work that one node of the cluster does at a time: each node asks for the leases each second, one gets each, and
 * another takes over when the holder is gone. A lease that could not be renewed is lost when its time is over by this
 * node's own clock, counted from before it was asked for.
 */

import type { Clock } from '../../clock.ts';
import { warnUnlessAway } from '../../database/journal/journal.ts';
import type { LeaseStore } from '../../database/node/leases.ts';
import { NODE_LEASE_MS, NODE_LEASE_RENEW_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';

export interface LeaseKeeperOptions {
  readonly leases: Pick<LeaseStore, 'takeAll' | 'give'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The leases that this node would have now. */
  wanted(): readonly string[];
  /** The leases that this node has have changed. */
  onChange(): void;
}

export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  /** The time until which each lease is surely ours. */
  readonly #until = new Map<string, number>();
  /** The leases that were held when a change was told last. */
  #told = '';
  #stopped = false;
  /** The last turn. It never rejects. */
  #turning = Promise.resolve();
  #cancel = () => {};

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#turning = this.#turn();
  }

  holds(name: string): boolean {
    return !this.#stopped && (this.#until.get(name) ?? 0) > this.#options.clock.now();
  }

  /** Gives all leases back, so that others need not wait for them. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    // What is being asked for would be taken, or taken again, after it was given back.
    await this.#turning;
    const held = [...this.#until.keys()];
    this.#until.clear();
    for (const name of held) await this.#options.leases.give(name).catch(() => {});
  }

  async #turn(): Promise<void> {
    const { leases, clock, log, wanted } = this.#options;
    const asked = clock.now();
    const names = wanted();
    // All were asked for at one time. The answer may be longer in coming than they last.
    const [until] = this.#until.values();
    if (until !== undefined) this.#cancel = clock.at(until, () => this.#tell());
    try {
      const held = names.length === 0 ? [] : await leases.takeAll(names, NODE_LEASE_MS);
      for (const name of held) this.#until.set(name, asked + NODE_LEASE_MS);
      for (const name of [...this.#until.keys()]) {
        if (held.includes(name)) continue;
        this.#until.delete(name);
        if (!names.includes(name)) await leases.give(name);
      }
    } catch (error) {
      warnUnlessAway(log, error, {}, 'leases were not renewed');
      for (const [name, until] of this.#until) if (until <= clock.now()) this.#until.delete(name);
    }
    this.#cancel();
    if (this.#stopped) return;
    this.#tell();
    this.#cancel = clock.at(clock.now() + NODE_LEASE_RENEW_MS, () => this.start());
  }

  /** Tells when other leases are held than before. */
  #tell(): void {
    // An answer that took too long is of a lease that is over: it counts with the next one.
    const held = [...this.#until.keys()].filter((name) => this.holds(name));
    const told = this.#told;
    this.#told = held.sort().join(' ');
    if (this.#told !== told) this.#options.onChange();
  }
}
