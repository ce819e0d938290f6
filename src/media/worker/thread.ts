/**
 * A worker thread with an end: it says so when it is gone, and one that does not end when asked is ended. A thread that
 * hangs outside script (in the addon, in a system call) cannot be ended: it is given up, and counts as stuck until it
 * comes back.
 */
import { THREAD_END_MS, THREAD_TERMINATE_MS } from '../../limits.ts';

/** What is told about a thread. */
interface ThreadListener<Up> {
  message(message: Up): void;
  error(error: string): void;
  /** Called once, whatever ended it, or when it was given up. */
  gone(): void;
}

/** The threads of the process that were given up and have not ended. */
const stuck = new Set<object>();

/** How many threads of the process hang and could not be ended. */
export const stuckThreads = (): number => stuck.size;

export class Thread<Down, Up> {
  readonly #worker: Worker;
  readonly #on: ThreadListener<Up>;
  readonly #ended = Promise.withResolvers<void>();
  #giveUp: ReturnType<typeof setTimeout> | undefined;
  #gone = false;

  constructor(script: URL, on: ThreadListener<Up>) {
    this.#on = on;
    this.#worker = new Worker(script);
    this.#worker.onmessage = (event: MessageEvent<Up>) => {
      if (!this.#gone) on.message(event.data);
    };
    this.#worker.onerror = (event) => on.error(event.message);
    this.#worker.addEventListener('close', () => {
      clearTimeout(this.#giveUp);
      stuck.delete(this);
      this.#leave();
    });
  }

  get gone(): boolean {
    return this.#gone;
  }

  /** Sends a message. What `transfer` names goes to the thread without a copy, and is of no use here any more. */
  post(message: Down, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#gone) this.#worker.postMessage(message, [...transfer]);
  }

  /** Ends the thread from outside, without asking it. One that has not ended by `THREAD_TERMINATE_MS` is given up. */
  terminate(): void {
    this.#worker.terminate();
    this.#giveUp ??= setTimeout(() => {
      stuck.add(this);
      this.#on.error(
        'a thread hangs outside script and cannot be ended: it may keep a core busy until this process ends; ' +
          'drain this node and start it again',
      );
      this.#leave();
    }, THREAD_TERMINATE_MS);
  }

  /**
   * Resolves when the thread, which was asked to end, has ended or was given up: at the latest `THREAD_END_MS` and
   * `THREAD_TERMINATE_MS` from now.
   */
  async ended(): Promise<void> {
    const timer = setTimeout(() => this.terminate(), THREAD_END_MS);
    await this.#ended.promise;
    clearTimeout(timer);
  }

  #leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#on.gone();
    this.#ended.resolve();
  }
}
