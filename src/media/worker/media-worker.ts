/**
 * One media worker as the main thread sees it: commands go down in batches, replies and notices come up to whoever they
 * concern.
 */
import { threadScript } from '../../installation.ts';
import { MEDIA_WORKER_PULSE_MAX_MS, MEDIA_WORKER_START_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { type LegCounters, NO_COUNTERS } from '../audio.ts';
import { native } from '../native.ts';
import type { RecordingListeners } from '../recording/recordings.ts';
import { NOTICE, type NoticeRecord, unpackNotices } from './notice.ts';
import { Thread } from './thread.ts';
import type { WorkerCommand, WorkerReply } from './worker-command.ts';

/** The listener to what a worker tells about one leg or room. */
export interface PlaneListener {
  opened(errno: number): void;
  notice(record: NoticeRecord): void;
  closed(counters: LegCounters): void;
  /** A stream leg's 20 ms for its far end, and the bytes its inbox has passed on by then. */
  frame?(passed: number, frame: Uint8Array): void;
  /** It could not be moved. */
  stayed(): void;
  /** The worker died, and the leg with it. */
  lost(): void;
}

/** A worker that is stuck is noticed by the third look after its last sign of life, so by 1.8 times that limit. */
const LOOK_SHARE = 0.4;

const PRIORITY = ['ordinary', 'nicer', 'real-time'] as const;

/** Lateness and load of the ticks of the last second, and of all so far. */
export interface TickLoad {
  readonly ticks: number;
  readonly skippedTicks: number;
  readonly latenessMaxUs: number;
  /** Counts of all ticks, by `LATENESS_STEPS_US`. */
  readonly lateness: readonly number[];
  readonly busyUs: number;
}

export interface MediaWorkerOptions {
  readonly mediaTimeoutMs: number;
  readonly log: Log;
  /** The listeners of recordings, shared by all workers. */
  readonly recordings?: RecordingListeners;
  /** The worker is gone, whatever ended it, before `close` was called; called once it had ticked. */
  readonly gone?: () => void;
  /** This exists for tests. */
  readonly script?: URL;
  readonly pulseMaxMs?: number;
}

export class MediaWorker {
  readonly #thread: Thread<readonly WorkerCommand[], WorkerReply>;
  readonly #log: Log;
  readonly #recordings: RecordingListeners | undefined;
  readonly #pulseMaxMs: number;
  readonly #gone: (() => void) | undefined;
  readonly #watch: ReturnType<typeof setInterval>;
  readonly #listeners = new Map<number, PlaneListener>();
  readonly #asked = new Map<number, (counters: LegCounters) => void>();
  #up: ((error: Error | undefined) => void) | undefined;
  #commands: WorkerCommand[] = [];
  #started = false;
  #plane = 0;
  #lastRequest = 0;
  #pulseAt = 0;
  #missedLooks = 0;
  #closing = false;
  #dead = false;
  #load: TickLoad = { ticks: 0, skippedTicks: 0, latenessMaxUs: 0, lateness: [], busyUs: 0 };

  private constructor(options: MediaWorkerOptions) {
    this.#log = options.log;
    this.#recordings = options.recordings;
    this.#gone = options.gone;
    this.#pulseMaxMs = options.pulseMaxMs ?? MEDIA_WORKER_PULSE_MAX_MS;
    this.#thread = new Thread<readonly WorkerCommand[], WorkerReply>(
      options.script ?? threadScript('src/media/worker/worker.ts'),
      {
        message: (reply) => this.#hear(reply),
        error: (error) => this.#log.error({ error }, 'media worker'),
        gone: () => this.#die(),
      },
    );
    this.#watch = setInterval(() => this.#look(), this.#pulseMaxMs * LOOK_SHARE);
  }

  /** Resolves once the worker ticks; rejects where it does not within `MEDIA_WORKER_START_MS`. */
  static async start(options: MediaWorkerOptions): Promise<MediaWorker> {
    const worker = new MediaWorker(options);
    const timer = setTimeout(() => worker.#thread.terminate(), MEDIA_WORKER_START_MS);
    const started = new Promise<void>((resolve, reject) => {
      worker.#up = (error) => (error === undefined ? resolve() : reject(error));
    });
    worker.command({ type: 'start', mediaTimeoutMs: options.mediaTimeoutMs });
    await started.finally(() => clearTimeout(timer));
    return worker;
  }

  get legs(): number {
    return this.#listeners.size;
  }

  /** The number of its plane in the process. */
  get plane(): number {
    return this.#plane;
  }

  get load(): TickLoad {
    return this.#load;
  }

  /** Whether ticks were heard of lately. */
  get alive(): boolean {
    return !this.#dead && performance.now() - this.#pulseAt < this.#pulseMaxMs;
  }

  attach(leg: number, listener: PlaneListener): void {
    this.#listeners.set(leg, listener);
  }

  detach(leg: number): void {
    this.#listeners.delete(leg);
  }

  /**
   * Queues a command. All of one turn of the event loop go down together, in order: each time the worker is woken
   * costs it and us a change of threads.
   */
  command(command: WorkerCommand): void {
    if (this.#dead) return;
    if (this.#commands.length === 0) setImmediate(() => this.#send());
    this.#commands.push(command);
  }

  counters(leg: number): Promise<LegCounters> {
    if (this.#dead) return Promise.resolve(NO_COUNTERS);
    const request = ++this.#lastRequest;
    return new Promise((resolve) => {
      this.#asked.set(request, resolve);
      this.command({ type: 'counters', leg, request });
    });
  }

  /** Ends the thread. Legs that are still open lose their ports. */
  async close(): Promise<void> {
    this.#closing = true;
    this.command({ type: 'quit' });
    await this.#thread.ended();
  }

  #send(): void {
    const commands = this.#commands;
    this.#commands = [];
    if (this.#dead) return;
    // Sound goes down without a copy.
    const given = commands.flatMap((command) => (command.type === 'feed' ? [command.pcm.buffer] : []));
    this.#thread.post(commands, given);
    native.wake(this.#plane);
  }

  #hear(reply: WorkerReply): void {
    switch (reply.type) {
      case 'up':
        this.#plane = reply.plane;
        this.#started = true;
        this.#pulseAt = performance.now();
        this.#log.info({ priority: PRIORITY[reply.priority] }, 'media worker');
        this.#up?.(undefined);
        break;
      case 'notices':
        for (const record of unpackNotices(reply.words, reply.count)) {
          const listener = this.#listeners.get(record.leg);
          if (listener !== undefined) listener.notice(record);
          else this.#recordings?.get(record.leg)?.(record);
        }
        break;
      case 'opened':
        this.#listeners.get(reply.leg)?.opened(reply.errno);
        break;
      case 'not recorded':
        this.#recordings?.get(reply.recording)?.({ kind: NOTICE.recordingFailed, leg: reply.recording, a: 0, b: 0, c: 0, d: 0 });
        break;
      case 'frames':
        this.#deliver(reply.bytes);
        break;
      case 'stayed':
        this.#listeners.get(reply.leg)?.stayed();
        break;
      case 'room closed':
        this.#listeners.get(reply.leg)?.closed(NO_COUNTERS);
        break;
      case 'closed':
        this.#listeners.get(reply.leg)?.closed(reply.counters);
        break;
      case 'counters':
        this.#asked.get(reply.request)?.(reply.counters);
        this.#asked.delete(reply.request);
        break;
      case 'pulse':
        this.#pulseAt = performance.now();
        this.#load = reply;
        break;
      case 'failed':
        this.#log.error({ error: reply.message }, 'media order failed');
        break;
    }
  }

  /** Frames of stream legs, each to its own. */
  #deliver(bytes: Uint8Array<ArrayBuffer>): void {
    const words = new DataView(bytes.buffer);
    for (let at = 0; at + 12 <= bytes.length; ) {
      const length = words.getUint32(at + 8, true);
      this.#listeners
        .get(words.getUint32(at, true))
        ?.frame?.(words.getUint32(at + 4, true), bytes.subarray(at + 12, at + 12 + length));
      at += 12 + ((length + 3) & ~3);
    }
  }

  /**
   * Ends a worker that is stuck. Two looks apart, so that a main thread which itself was stuck first hears what it
   * missed.
   */
  #look(): void {
    this.#missedLooks = this.#started && !this.alive ? this.#missedLooks + 1 : 0;
    if (this.#missedLooks < 2) return;
    // It may be computing at a real-time priority, and would hold up every other thread of its core.
    const lowered = native.planeGiveUp(this.#plane);
    this.#log.error({ legs: this.#listeners.size, lowered }, 'a media worker is stuck');
    this.#thread.terminate();
    this.#die(); // a thread stuck in the kernel may never tell
  }

  #die(): void {
    if (this.#dead) return;
    clearInterval(this.#watch);
    this.#dead = true;
    if (!this.#closing) this.#log.error({ legs: this.#listeners.size }, 'a media worker is gone');
    this.#up?.(new Error('a media worker ended at its start'));
    for (const asked of this.#asked.values()) asked(NO_COUNTERS);
    this.#asked.clear();
    for (const listener of [...this.#listeners.values()]) listener.lost();
    if (this.#started && !this.#closing) this.#gone?.();
  }
}
