/** How full this node is, 0 to 1 and beyond: the worst of its legs, its RTP ports, its ticks and its event loop. */
import type { Clock } from '../clock.ts';
import { NODE_LEGS_FULL, NODE_LOOP_LAG_FULL_MS, NODE_LOOP_LOOK_MS } from '../limits.ts';

export interface LoadReadings {
  /** Open RTP legs. */
  legs(): number;
  /** RTP port pairs that could be opened, and all of them. */
  portsFree(): number;
  readonly ports: number;
  /** The time that each media thread was busy since its start, in microseconds. */
  busyUs(): readonly number[];
}

export class NodeLoad {
  readonly #readings: LoadReadings;
  readonly #clock: Clock;
  #lagMs = 0;
  #ticks = 0;
  #busyUs: readonly number[] = [];
  #at: number;
  #cancel = () => {};

  constructor(readings: LoadReadings, clock: Clock) {
    this.#readings = readings;
    this.#clock = clock;
    this.#at = clock.now();
    this.#look();
  }

  get value(): number {
    const { legs, portsFree, ports } = this.#readings;
    const used = 1 - portsFree() / Math.max(1, ports);
    return Math.max(legs() / NODE_LEGS_FULL, used, this.#ticks, this.#lagMs / NODE_LOOP_LAG_FULL_MS);
  }

  stop(): void {
    this.#cancel();
  }

  /** The event loop is as late as this timer is; a media thread is as full as the part of the time in which it worked. */
  #look(): void {
    const due = this.#clock.now() + NODE_LOOP_LOOK_MS;
    this.#cancel = this.#clock.at(due, () => {
      const now = this.#clock.now();
      this.#lagMs += (Math.max(0, now - due) - this.#lagMs) / 8;
      const busy = this.#readings.busyUs();
      const elapsedUs = Math.max(1, now - this.#at) * 1000;
      this.#ticks = Math.max(0, ...busy.map((us, at) => Math.max(0, us - (this.#busyUs[at] ?? us)) / elapsedUs));
      this.#busyUs = busy;
      this.#at = now;
      this.#look();
    });
  }
}
