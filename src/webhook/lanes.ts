/**
 * Lanes (contract §9), in memory and pure. A job waits until it is the head of every lane it belongs to; a failed one stays the head until it is
 * done, so that nothing overtakes it. Jobs enter in one global order, hence two jobs can never wait for each other.
 *
 *   waiting (behind others) → resting (head, not due) → ready (head, due) → in flight → done | resting again
 *
 * Each application has a window of jobs in flight, which halves when its endpoint times out and grows by one with each success: a receiver that
 * hangs holds a few connections, not all of them. Ready applications take turns.
 */
import { APP_WINDOW_LEAST_JOBS, APP_WINDOW_MAX_JOBS } from '../limits.ts';
import { DueHeap } from './due-heap.ts';

export interface LaneJob {
  readonly appUuid: string;
  readonly lanes: readonly string[];
}

interface Entry<J> {
  readonly job: J;
  /** Lanes in which another job is before it. */
  behind: number;
  dueAt: number;
}

interface AppState<J> {
  readonly ready: Queue<Entry<J>>;
  jobs: number;
  inFlight: number;
  window: number;
  /** In the round of applications that may send. */
  listed: boolean;
}

export class Lanes<J extends LaneJob> {
  readonly #lanes = new Map<string, Queue<Entry<J>>>();
  readonly #apps = new Map<string, AppState<J>>();
  readonly #round = new Queue<string>();
  readonly #resting = new DueHeap<Entry<J>>();
  readonly #entries = new Map<J, Entry<J>>();

  /** Jobs that are not done. */
  get size(): number {
    return this.#entries.size;
  }

  /** Jobs of one application that are not done. */
  sizeOf(appUuid: string): number {
    return this.#apps.get(appUuid)?.jobs ?? 0;
  }

  /** When the next resting job is due. */
  get nextDue(): number | undefined {
    return this.#resting.earliest;
  }

  /** Puts a job at the tail of its lanes, not to be sent before `dueAt`. */
  add(job: J, dueAt: number): void {
    const entry: Entry<J> = { job, behind: 0, dueAt };
    this.#entries.set(job, entry);
    this.#app(job.appUuid).jobs += 1;
    for (const name of new Set(job.lanes)) {
      let lane = this.#lanes.get(name);
      if (lane === undefined) {
        lane = new Queue();
        this.#lanes.set(name, lane);
      }
      if (lane.length > 0) entry.behind += 1;
      lane.push(entry);
    }
    if (entry.behind === 0) this.#resting.push(dueAt, entry);
  }

  /** The next job to send, now in flight; undefined when there is none that may. */
  take(now: number): J | undefined {
    for (;;) {
      const due = this.#resting.takeDue(now);
      if (due === undefined) break;
      const app = this.#app(due.job.appUuid);
      app.ready.push(due);
      this.#list(due.job.appUuid, app);
    }
    for (;;) {
      const appUuid = this.#round.shift();
      if (appUuid === undefined) return undefined;
      const app = this.#app(appUuid);
      app.listed = false;
      if (app.inFlight >= app.window) continue;
      const entry = app.ready.shift();
      if (entry === undefined) continue;
      app.inFlight += 1;
      this.#list(appUuid, app);
      return entry.job;
    }
  }

  /** A job in flight failed: it keeps its place and rests until `dueAt`. */
  retry(job: J, dueAt: number, timedOut: boolean): void {
    const entry = this.#landed(job);
    const app = this.#app(job.appUuid);
    if (timedOut) app.window = Math.max(APP_WINDOW_LEAST_JOBS, app.window >> 1);
    entry.dueAt = dueAt;
    this.#resting.push(dueAt, entry);
    this.#list(job.appUuid, app);
  }

  /** A job in flight is delivered or given up: its lanes go on. */
  done(job: J, delivered: boolean): void {
    const app = this.#app(job.appUuid);
    this.#landed(job);
    this.#entries.delete(job);
    if (delivered) app.window = Math.min(APP_WINDOW_MAX_JOBS, app.window + 1);
    for (const name of new Set(job.lanes)) {
      const lane = this.#lanes.get(name);
      lane?.shift();
      const head = lane?.first;
      if (head === undefined) this.#lanes.delete(name);
      else {
        head.behind -= 1;
        if (head.behind === 0) this.#resting.push(head.dueAt, head);
      }
    }
    app.jobs -= 1;
    if (app.jobs === 0 && app.window === APP_WINDOW_MAX_JOBS) this.#apps.delete(job.appUuid);
    else this.#list(job.appUuid, app);
  }

  #landed(job: J): Entry<J> {
    const entry = this.#entries.get(job);
    if (entry === undefined) throw new Error('a job that is not in the lanes');
    this.#app(job.appUuid).inFlight -= 1;
    return entry;
  }

  #list(appUuid: string, app: AppState<J>): void {
    if (app.listed || app.ready.length === 0 || app.inFlight >= app.window) return;
    app.listed = true;
    this.#round.push(appUuid);
  }

  #app(appUuid: string): AppState<J> {
    let app = this.#apps.get(appUuid);
    if (app === undefined) {
      app = { ready: new Queue(), jobs: 0, inFlight: 0, window: APP_WINDOW_MAX_JOBS, listed: false };
      this.#apps.set(appUuid, app);
    }
    return app;
  }
}

/** First in, first out, in amortised constant time. */
class Queue<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.length === 0) return undefined;
    this.#head += 1;
    if (this.#head > 32 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
