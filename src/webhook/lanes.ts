/**
 * Lanes (contract §9), in memory and pure. A job waits until it is the head of every lane it belongs to; a failed one
 * stays the head until it is done, so that nothing overtakes it. Jobs enter in one global order, hence two jobs can
 * never wait for each other.
 *
 *   waiting (behind others) → resting (head, not due) → ready (head, due) → in flight → done | resting again
 *
 * Each application has a window of jobs in flight, which halves when its endpoint times out and grows by one with each
 * success: a receiver that hangs holds a few connections, not all of them. Ready applications take turns. An
 * application with few jobs in flight also has a turn in a round of its own, the reserve, so that it is served when the
 * receivers of others hold every other connection.
 */
import { APP_RESERVED_JOBS, APP_WINDOW_LEAST_JOBS, APP_WINDOW_MAX_JOBS } from '../limits.ts';
import { DueHeap } from './due-heap.ts';

export interface LaneJob {
  readonly appUuid: string;
  readonly lanes: readonly string[];
  /** The number of events that it counts as where events in memory are limited. */
  readonly weight: number;
}

interface Entry<J> {
  readonly job: J;
  /** Lanes in which another job is before it. */
  behind: number;
  dueAt: number;
  /** It is the head of its lanes and waits for its time. */
  resting: boolean;
}

interface AppState<J> {
  readonly ready: Queue<Entry<J>>;
  jobs: number;
  /** The weight of its jobs, all together. */
  weight: number;
  inFlight: number;
  window: number;
  /** It has a turn in the round of all. */
  inRound: boolean;
  /** It has a turn in the reserve. */
  inReserve: boolean;
}

export class Lanes<J extends LaneJob> {
  readonly #lanes = new Map<string, Queue<Entry<J>>>();
  readonly #apps = new Map<string, AppState<J>>();
  readonly #round = new Queue<string>();
  readonly #reserve = new Queue<string>();
  #resting = new DueHeap<Entry<J>>();
  readonly #entries = new Map<J, Entry<J>>();
  #weight = 0;

  /** The number of jobs that are not done. */
  get size(): number {
    return this.#entries.size;
  }

  /** The weight of all jobs that are not done. */
  get weight(): number {
    return this.#weight;
  }

  /** The weight of the jobs of one application that are not done. */
  weightOf(appUuid: string): number {
    return this.#apps.get(appUuid)?.weight ?? 0;
  }

  /** When the next resting job is due. */
  get nextDue(): number | undefined {
    return this.#resting.earliest;
  }

  /** Puts a job at the tail of its lanes, not to be sent before `dueAt`. */
  add(job: J, dueAt: number): void {
    const entry: Entry<J> = { job, behind: 0, dueAt, resting: false };
    this.#entries.set(job, entry);
    const app = this.#app(job.appUuid);
    app.jobs += 1;
    app.weight += job.weight;
    this.#weight += job.weight;
    for (const name of new Set(job.lanes)) {
      let lane = this.#lanes.get(name);
      if (lane === undefined) {
        lane = new Queue();
        this.#lanes.set(name, lane);
      }
      if (lane.length > 0) entry.behind += 1;
      lane.push(entry);
    }
    if (entry.behind === 0) this.#rest(entry);
  }

  /**
   * The next job to send, now in flight; undefined when there is none that may. `reserve`: only of an application that
   * has few in flight.
   */
  take(now: number, from: 'any' | 'reserve' = 'any'): J | undefined {
    for (;;) {
      const entry = this.#resting.takeDue(now);
      if (entry === undefined) break;
      entry.resting = false;
      const app = this.#app(entry.job.appUuid);
      app.ready.push(entry);
      this.#list(entry.job.appUuid, app);
    }
    return from === 'any' ? this.#takeFrom(this.#round) : this.#takeFrom(this.#reserve);
  }

  #takeFrom(turns: Queue<string>): J | undefined {
    for (;;) {
      const appUuid = turns.shift();
      if (appUuid === undefined) return undefined;
      const app = this.#app(appUuid);
      if (turns === this.#round) app.inRound = false;
      else app.inReserve = false;
      if (app.inFlight >= (turns === this.#round ? app.window : reservedFor(app))) continue;
      const entry = app.ready.shift();
      if (entry === undefined) {
        this.#forget(appUuid, app);
        continue;
      }
      app.inFlight += 1;
      this.#list(appUuid, app);
      return entry.job;
    }
  }

  /** Makes the application's resting jobs due at `now` where `which` says so. */
  hurry(appUuid: string, now: number, which: (job: J) => boolean): void {
    if (this.weightOf(appUuid) === 0) return;
    let isAny = false;
    for (const entry of this.#entries.values()) {
      const { job, resting, dueAt } = entry;
      if (job.appUuid !== appUuid || !resting || dueAt <= now || !which(job)) continue;
      entry.dueAt = now;
      isAny = true;
    }
    if (!isAny) return;
    // The heap is made anew: what is done would else be kept until the time at which it was due before.
    this.#resting = new DueHeap();
    for (const entry of this.#entries.values()) if (entry.resting) this.#rest(entry);
  }

  #rest(entry: Entry<J>): void {
    entry.resting = true;
    this.#resting.push(entry.dueAt, entry);
  }

  /** A job in flight failed: it keeps its place and rests until `dueAt`. */
  retry(job: J, dueAt: number, timedOut: boolean): void {
    const entry = this.#landed(job);
    const app = this.#app(job.appUuid);
    if (timedOut) app.window = Math.max(APP_WINDOW_LEAST_JOBS, app.window >> 1);
    entry.dueAt = dueAt;
    this.#rest(entry);
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
        if (head.behind === 0) this.#rest(head);
      }
    }
    app.jobs -= 1;
    app.weight -= job.weight;
    this.#weight -= job.weight;
    this.#list(job.appUuid, app);
    this.#forget(job.appUuid, app);
    this.#passIdle();
  }

  /** Takes the turn in the reserve from those that have nothing ready, up to the first that has. */
  #passIdle(): void {
    for (;;) {
      const appUuid = this.#reserve.first;
      if (appUuid === undefined) return;
      const app = this.#app(appUuid);
      if (app.ready.length > 0) return;
      this.#reserve.shift();
      app.inReserve = false;
      this.#forget(appUuid, app);
    }
  }

  /** Drops the state of an application without jobs, once it has no turn: its next job would give it a second one. */
  #forget(appUuid: string, app: AppState<J>): void {
    const isIdle = app.jobs === 0 && app.window === APP_WINDOW_MAX_JOBS;
    if (isIdle && !app.inRound && !app.inReserve) this.#apps.delete(appUuid);
  }

  #landed(job: J): Entry<J> {
    const entry = this.#entries.get(job);
    if (entry === undefined) throw new Error('a job that is not in the lanes');
    this.#app(job.appUuid).inFlight -= 1;
    return entry;
  }

  #list(appUuid: string, app: AppState<J>): void {
    if (app.ready.length === 0) return;
    if (!app.inRound && app.inFlight < app.window) {
      app.inRound = true;
      this.#round.push(appUuid);
    }
    if (!app.inReserve && app.inFlight < reservedFor(app)) {
      app.inReserve = true;
      this.#reserve.push(appUuid);
    }
  }

  #app(appUuid: string): AppState<J> {
    let app = this.#apps.get(appUuid);
    if (app === undefined) {
      const counts = { jobs: 0, weight: 0, inFlight: 0, window: APP_WINDOW_MAX_JOBS };
      app = { ready: new Queue(), ...counts, inRound: false, inReserve: false };
      this.#apps.set(appUuid, app);
    }
    return app;
  }
}

/** The jobs in flight up to which the application has a turn in the reserve; no more than its window permits. */
const reservedFor = ({ window }: { readonly window: number }): number => Math.min(window, APP_RESERVED_JOBS);

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
