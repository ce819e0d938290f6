/**
 * Which recording's upload takes its next step, and when. A few steps are under way at once. Applications have their
 * turns one after the other, and the recordings of each in the order in which they came, round again after each step:
 * neither thousands of another application nor a long one of its own hold up a short one.
 *
 *   growing ──full part──► ready ──► running ──sent──► ready …  ──done──► over
 *                            ▲          ├─ the store is away or refuses: back to the end, and all wait
 *                            └──sweep── └─ this one will not do: set back, and others go on
 *
 * A spool file with no place in memory is found again by a look at the folder once there is room.
 */

import { RoundRobin } from '../../bounds/round-robin.ts';
import { ThrottledLog } from '../../bounds/throttled-log.ts';
import { withTimeLimit } from '../../bounds/time-limit.ts';
import type { Clock } from '../../clock.ts';
import { codeOf } from '../../error-facts.ts';
import { SPOOL_LEFT_AT_ONCE } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { CircuitBreaker } from '../s3/circuit-breaker.ts';
import { ObjectError } from '../s3/object-error.ts';
import { type Progress, Upload, type UploadContext } from './upload.ts';

interface UploadQueueOptions extends UploadContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Finished spool files in the folder, and uploads without a file. `onError` is told of those that are not read. */
  readonly findLeft: (onError: (recordingUuid: string, error: unknown) => void) => AsyncIterable<string>;
  /** The application of a recording. Undefined where nobody knows it. */
  readonly appOf: (recordingUuid: string) => Promise<string | undefined>;
}

/** Failures of one upload beside successes of others after which the trouble is its own. */
const OWN_FAILURES = 3;

export class UploadQueue {
  readonly #options: UploadQueueOptions;
  readonly #troubles: ThrottledLog;
  readonly #breaker: CircuitBreaker;
  readonly #all = new Map<string, Upload>();
  readonly #ready = new RoundRobin<Upload>();
  readonly #running = new Map<Upload, Promise<void>>();
  /** Being removed, each with the end of that: not to be found again by a look at the folder. */
  readonly #taken = new Map<string, { readonly upload: Upload; readonly over: Promise<void> }>();
  #successes = 0;
  #moreInFolder = false;
  #looking: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #cancelSweep: () => void = () => {};
  readonly #abort = new AbortController();

  constructor(options: UploadQueueOptions) {
    const { clock, log, limits } = options;
    this.#options = options;
    this.#troubles = new ThrottledLog(log, clock, limits.complaintMs);
    this.#breaker = new CircuitBreaker(clock, limits, () => this.#pump());
    this.#look();
    this.#armSweep();
  }

  get files(): number {
    return this.#all.size;
  }

  *uploads(): Iterable<Upload> {
    yield* this.#all.values();
  }

  /** Resolves once the folder has been looked through for what a former process left. */
  async looked(): Promise<void> {
    await this.#looking;
  }

  grows(recordingUuid: string, appUuid: string): void {
    this.#add(recordingUuid, appUuid);
  }

  finished(recordingUuid: string, appUuid: string): void {
    const taken = this.#taken.get(recordingUuid);
    if (taken !== undefined) taken.upload.finished = true;
    const upload = this.#add(recordingUuid, appUuid);
    if (upload === undefined) return;
    upload.finished = true;
    // What waits counts from now on, also while nothing is uploaded.
    upload.measure().catch(() => {});
    if (!this.#running.has(upload) && upload.restsUntil === undefined) this.#ready.add(upload.appUuid, upload);
    this.#pump();
  }

  /**
   * Takes an upload out, a new one where there is none, and hands it over once its step under way has come to an end.
   * Rejects with an `ObjectError` where that takes too long. An upload that was here goes on where it or `use` rejects.
   * One of two that are taken out at once waits for the other: it would not find the step that is under way.
   */
  async without<T>(recordingUuid: string, use: (upload: Upload) => Promise<T>): Promise<T> {
    for (let other = this.#taken.get(recordingUuid); other !== undefined; other = this.#taken.get(recordingUuid))
      await other.over;
    const over = Promise.withResolvers<void>();
    const known = this.#all.get(recordingUuid);
    const upload = known ?? new Upload(recordingUuid, '', this.#options);
    this.#taken.set(recordingUuid, { upload, over: over.promise });
    this.#all.delete(recordingUuid);
    this.#ready.delete(upload.appUuid, upload);
    try {
      await this.#stepEnds(upload);
      return await use(upload);
    } catch (error) {
      if (known !== undefined) this.#all.set(recordingUuid, known);
      // One that was not here, and has come to its end meanwhile, is found in the folder.
      if (known === undefined) this.#moreInFolder ||= upload.finished;
      else if (known.finished) this.finished(recordingUuid, known.appUuid);
      throw error;
    } finally {
      this.#taken.delete(recordingUuid);
      over.resolve();
    }
  }

  /** Stops what is under way; what the store has confirmed by then is remembered. */
  async close(): Promise<void> {
    this.#abort.abort();
    this.#cancelSweep();
    this.#breaker.stop();
    await Promise.all([...this.#running.values(), this.#looking, this.#sweeping]);
  }

  /** Resolves once no step of the upload is under way. */
  async #stepEnds(upload: Upload): Promise<void> {
    const running = this.#running.get(upload);
    const late = () => {
      throw new ObjectError('away', 'timeout');
    };
    if (running !== undefined) await withTimeLimit(running, this.#options.limits.stepWaitMs, late, this.#options.clock);
  }

  get #closed(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Tells whether it has not been taken out. */
  #has(upload: Upload): boolean {
    return this.#all.get(upload.recordingUuid) === upload;
  }

  #add(recordingUuid: string, appUuid: string): Upload | undefined {
    const known = this.#all.get(recordingUuid);
    if (known !== undefined) return known;
    if (this.#taken.has(recordingUuid)) return undefined;
    const { spoolMaxFiles, spoolReserveFiles } = this.#options.limits;
    if (this.#all.size >= spoolMaxFiles + spoolReserveFiles) {
      this.#moreInFolder = true;
      return undefined;
    }
    const upload = new Upload(recordingUuid, appUuid, this.#options);
    this.#all.set(recordingUuid, upload);
    return upload;
  }

  #pump(): void {
    if (this.#running.size === 0 && this.#ready.size === 0) this.#options.buffers.clear();
    while (!this.#closed && this.#running.size < this.#breaker.atOnce(this.#options.limits.uploads)) {
      const upload = this.#ready.take();
      if (upload === undefined) return;
      this.#running.set(upload, this.#run(upload));
    }
  }

  async #run(upload: Upload): Promise<void> {
    const failures = this.#breaker.failures;
    let outcome: Progress | 'set back' | 'waits';
    try {
      outcome = await upload.step(this.#abort.signal);
      upload.failures = 0;
      if (outcome === 'sent' || outcome === 'done') this.#succeeded();
    } catch (error) {
      outcome = this.#closed ? 'waits' : this.#failed(upload, error, failures);
    }
    this.#running.delete(upload);
    if (this.#has(upload)) this.#place(upload, outcome);
    this.#pump();
  }

  #place(upload: Upload, outcome: Progress | 'set back' | 'waits'): void {
    if (outcome === 'done' || outcome === 'gone') {
      this.#all.delete(upload.recordingUuid);
    } else if (outcome === 'set back') {
      const { retryMinMs, setBackMaxMs } = this.#options.limits;
      const wait = Math.min(setBackMaxMs, retryMinMs * 2 ** Math.min(upload.failures, 20));
      upload.restsUntil = this.#options.clock.now() + wait;
    } else if (outcome !== 'idle' || upload.finished) {
      this.#ready.add(upload.appUuid, upload);
    }
  }

  #succeeded(): void {
    this.#successes++;
    this.#breaker.succeeded();
    this.#troubles.settled(this.#backlog(), 'recordings are uploaded again');
  }

  #failed(upload: Upload, error: unknown, failures: number): 'set back' | 'waits' {
    upload.failures++;
    const othersGoOn = upload.failedAfter !== this.#successes && upload.failures >= OWN_FAILURES;
    upload.failedAfter = this.#successes;
    const { fault, code, status } =
      error instanceof ObjectError ? error : { fault: 'disk', code: codeOf(error) ?? 'Error', status: undefined };
    const fields = { code, status, ...this.#backlog() };
    const one = { ...fields, recording_uuid: upload.recordingUuid };
    const say = (level: 'warn' | 'error', words: typeof one | typeof fields, message: string) =>
      this.#troubles.say(level, `${fault} ${code}`, words, message);
    switch (fault) {
      case 'away':
        this.#breaker.failed(failures, false);
        say('warn', fields, 'recordings wait: the object store is away');
        return othersGoOn ? 'set back' : 'waits';
      case 'refused':
        this.#breaker.failed(failures, true);
        say('error', fields, 'recordings wait: the object store refuses them; see RECORDINGS and S3_* settings');
        return othersGoOn ? 'set back' : 'waits';
      case 'upload unknown':
        say('warn', one, 'an upload starts over: the object store does not know it any more');
        return 'set back';
      case 'disk':
        say('error', one, 'a recording waits: its file cannot be read, or its upload not be noted');
        return 'set back';
      default:
        say('error', one, 'a recording waits: the object store does not take it');
        return 'set back';
    }
  }

  #backlog(): { waiting: number } {
    return { waiting: this.#all.size };
  }

  #armSweep(): void {
    const { clock, limits } = this.#options;
    this.#cancelSweep = clock.at(clock.now() + limits.sweepMs, () => {
      this.#sweeping = this.#sweep().finally(() => {
        if (!this.#closed) this.#armSweep();
      });
    });
  }

  /** Looks at one file after another, so that thousands of them are no burst. Never rejects. */
  async #sweep(): Promise<void> {
    const now = this.#options.clock.now();
    for (const upload of this.#all.values()) {
      if (upload.restsUntil === undefined || upload.restsUntil > now) continue;
      upload.restsUntil = undefined;
      this.#ready.add(upload.appUuid, upload);
    }
    this.#pump();
    for (const upload of [...this.#all.values()].filter(({ finished }) => !finished)) {
      if (this.#closed) return;
      if (this.#running.has(upload) || this.#ready.has(upload.appUuid, upload)) continue;
      const due = await upload.measure().catch(() => false);
      if (due && this.#has(upload) && !upload.finished && upload.restsUntil === undefined)
        this.#ready.add(upload.appUuid, upload);
      this.#pump();
    }
    if (this.#moreInFolder && this.#all.size <= this.#options.limits.spoolMaxFiles / 2) this.#look();
  }

  #look(): void {
    this.#moreInFolder = false;
    this.#looking = this.#findLeft().catch((error: unknown) => {
      this.#moreInFolder = true;
      this.#troubles.say(
        'error',
        'folder',
        { code: codeOf(error) ?? 'Error' },
        'the folder of recordings cannot be looked through',
      );
    });
  }

  async #findLeft(): Promise<void> {
    const found: string[] = [];
    let areAllRead = true;
    const onError = (recordingUuid: string, error: unknown) => {
      areAllRead = false;
      const fields = { code: codeOf(error) ?? 'Error', recording_uuid: recordingUuid };
      this.#troubles.say('error', 'left', fields, 'a recording that was left in the folder waits: it cannot be read');
    };
    for await (const recordingUuid of this.#options.findLeft(onError)) {
      if (this.#closed || this.#moreInFolder) return;
      if (!this.#all.has(recordingUuid)) found.push(recordingUuid);
      if (found.length === SPOOL_LEFT_AT_ONCE) await this.#takeUp(found.splice(0));
    }
    await this.#takeUp(found);
    if (!areAllRead) this.#moreInFolder = true;
  }

  /** Takes up some that were left, each in the turns of its application. */
  async #takeUp(found: readonly string[]): Promise<void> {
    // While the database is away, those that are found have their turns as one application has.
    const apps = await Promise.all(found.map((each) => this.#options.appOf(each).catch(() => undefined)));
    for (const [at, recordingUuid] of found.entries()) {
      if (this.#closed) return;
      // The reserve is for recordings to come.
      if (this.#all.size >= this.#options.limits.spoolMaxFiles) this.#moreInFolder = true;
      if (this.#moreInFolder) return;
      this.finished(recordingUuid, apps[at] ?? '');
      await this.#all.get(recordingUuid)?.measure(); // so that what waits counts before a further recording is admitted
    }
  }
}
