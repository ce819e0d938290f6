/**
 * Which worker a leg lives on. Orders go there; while the leg moves to another they wait, so that they are carried out
 * in the order given, wherever it is. A move takes about a millisecond; where a worker dies in it, the leg is lost and
 * with it what waits.
 */
import type { LegCounters } from '../audio.ts';
import type { MediaWorker, PlaneListener } from './media-worker.ts';
import type { WorkerCommand } from './worker-command.ts';

export class Placement {
  readonly #id: number;
  readonly #listeners: PlaneListener;
  #worker: MediaWorker;
  #target: MediaWorker | undefined;
  #waiting: (WorkerCommand | MediaWorker)[] = [];
  #counting: (() => void)[] = [];

  constructor(id: number, listener: PlaneListener, worker: MediaWorker) {
    this.#id = id;
    this.#listeners = listener;
    this.#worker = worker;
    worker.attach(id, listener);
  }

  command(command: WorkerCommand): void {
    if (this.#target === undefined) this.#worker.command(command);
    else this.#waiting.push(command);
  }

  /** Orders given from now on are carried out on that worker. */
  moveTo(worker: MediaWorker): void {
    if (this.#target !== undefined) {
      this.#waiting.push(worker);
      return;
    }
    if (worker === this.#worker) return;
    this.#target = worker;
    worker.attach(this.#id, this.#listeners);
    this.#worker.command({ type: 'move', leg: this.#id, plane: worker.plane });
  }

  /** The plane told that the leg has come (`true`), or that it could not go. */
  settled(moved: boolean): void {
    const target = this.#target;
    if (target === undefined) return;
    this.#target = undefined;
    (moved ? this.#worker : target).detach(this.#id);
    if (moved) this.#worker = target;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const next of waiting) {
      if (this.#target !== undefined) this.#waiting.push(next);
      else if ('type' in next) this.#worker.command(next);
      else this.moveTo(next);
    }
    if (this.#target === undefined) for (const count of this.#counting.splice(0)) count();
  }

  async counters(): Promise<LegCounters> {
    if (this.#target !== undefined) await new Promise<void>((resolve) => this.#counting.push(resolve));
    return this.#worker.counters(this.#id);
  }

  /** The leg is over. */
  detach(): void {
    this.#worker.detach(this.#id);
    this.#target?.detach(this.#id);
    this.#target = undefined;
    this.#waiting = [];
    for (const count of this.#counting.splice(0)) count();
  }

  /** A worker died: wherever the leg was, it is closed. */
  lost(): void {
    for (const worker of [this.#worker, this.#target]) worker?.command({ type: 'close', leg: this.#id });
    this.detach();
  }
}
