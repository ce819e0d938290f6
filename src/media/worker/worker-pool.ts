/**
 * The media workers of a node, a fixed number of them. One that is lost is replaced; until then the node is not ready,
 * and what would go to it goes to the others.
 */
import { THREADS_STUCK_MAX } from '../../limits.ts';
import { MediaWorker, type MediaWorkerOptions, type TickLoad } from './media-worker.ts';
import { RestartLimit } from './restart-limit.ts';
import { stuckThreads } from './thread.ts';

interface WorkerPoolOptions extends Omit<MediaWorkerOptions, 'gone'> {
  readonly workers: number;
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #limit = new RestartLimit();
  readonly #workers = new Set<MediaWorker>();
  /** Places of lost workers that wait for their replacement, one after the other. */
  #missing = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #starting: Promise<void> | undefined;
  /** The counts of lost workers, because counters never go back. */
  #lost: TickLoad = { ticks: 0, skippedTicks: 0, latenessMaxUs: 0, lateness: [], busyUs: 0 };
  #closing = false;

  private constructor(options: WorkerPoolOptions) {
    this.#options = options;
  }

  /** Starts the workers one after another; resolves when all of them tick. Rejects where one does not. */
  static async start(options: WorkerPoolOptions): Promise<WorkerPool> {
    const pool = new WorkerPool(options);
    try {
      for (let i = 0; i < options.workers; i++) await pool.#add();
    } catch (error) {
      await pool.close();
      throw error;
    }
    return pool;
  }

  /** The workers that tick. */
  get alive(): MediaWorker[] {
    return [...this.#workers].filter((worker) => worker.alive);
  }

  /** Whether all places are filled with workers that tick. */
  get ready(): boolean {
    return !this.#closing && this.alive.length === this.#options.workers;
  }

  /** Lateness and load of each worker, and last of those that were lost, if any were. */
  ticks(): readonly TickLoad[] {
    const loads = [...this.#workers].map((worker) => worker.load);
    return this.#lost.ticks === 0 ? loads : [...loads, this.#lost];
  }

  /** Ends all workers. Legs that are still open lose their ports. */
  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#timer);
    await this.#starting;
    for (const worker of this.#workers) await worker.close();
  }

  async #add(): Promise<void> {
    const worker: MediaWorker = await MediaWorker.start({ ...this.#options, gone: () => this.#gone(worker) });
    this.#workers.add(worker);
  }

  #gone(worker: MediaWorker): void {
    if (!this.#workers.delete(worker)) return;
    const { ticks, skippedTicks, lateness } = worker.load;
    this.#lost = {
      ...this.#lost,
      ticks: this.#lost.ticks + ticks,
      skippedTicks: this.#lost.skippedTicks + skippedTicks,
      lateness: lateness.map((count, step) => count + (this.#lost.lateness[step] ?? 0)),
    };
    this.#missing++;
    this.#replace();
  }

  /** Starts one replacement as soon as the limit permits it, then the next. */
  #replace(): void {
    if (this.#closing || this.#missing === 0 || this.#timer !== undefined || this.#starting !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#limit.started(performance.now());
      if (stuckThreads() < THREADS_STUCK_MAX) this.#start();
      else this.#replace();
    }, this.#limit.waitMs(performance.now()));
  }

  #start(): void {
    this.#starting = this.#add()
      .then(() => {
        this.#missing--;
        this.#options.log.warn({ workers: this.#workers.size }, 'a lost media worker was replaced');
      })
      .catch((error: unknown) => this.#options.log.error({ error: String(error) }, 'a lost media worker could not be replaced'))
      .finally(() => {
        this.#starting = undefined;
        this.#replace();
      });
  }
}
