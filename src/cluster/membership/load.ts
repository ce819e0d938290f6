/** How full this node is, 0 to 1 and beyond: the worst of its legs, its RTP ports, its ticks and its event loop. */
import type { Clock } from '../../clock.ts';
import { NODE_LEGS_FULL, NODE_LOOP_LAG_FULL_MS, NODE_LOOP_LOOK_MS } from '../../limits.ts';

export interface LoadReadings {
  /** Open RTP legs. */
  legs(): number;
  /** RTP port pairs that could be opened, and all of them. */
  portsFree(): number;
  readonly ports: number;
  /** How long each media thread worked in the last second, in microseconds. */
  busyUs(): readonly number[];
}

export class NodeLoad {
  readonly #readings: LoadReadings;
  readonly #clock: Clock;
  #lagMs = 0;
  #cancel = () => {};

  constructor(readings: LoadReadings, clock: Clock) {
    this.#readings = readings;
    this.#clock = clock;
    this.#look();
  }

  get value(): number {
    const { legs, portsFree, ports, busyUs } = this.#readings;
    const used = 1 - portsFree() / Math.max(1, ports);
    const worked = Math.max(0, ...busyUs()) / 1e6;
    return Math.max(legs() / NODE_LEGS_FULL, used, worked, this.#lagMs / NODE_LOOP_LAG_FULL_MS);
  }

  stop(): void {
    this.#cancel();
  }

  /** The event loop is as late as this timer is. */
  #look(): void {
    const due = this.#clock.now() + NODE_LOOP_LOOK_MS;
    this.#cancel = this.#clock.at(due, () => {
      this.#lagMs += (Math.max(0, this.#clock.now() - due) - this.#lagMs) / 8;
      this.#look();
    });
  }
}
