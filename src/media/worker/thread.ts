/** A worker thread with an end: it says so when it is gone, and one that does not end when asked is ended. */
import { THREAD_END_MS } from '../../limits.ts';

export class Thread<Down, Up> {
  readonly #worker: Worker;
  readonly #ended: Promise<void>;
  #gone = false;

  /** Starts a thread. `gone` is called once, whatever ended it. */
  constructor(
    script: URL,
    on: { readonly message: (message: Up) => void; readonly error: (error: string) => void; readonly gone: () => void },
  ) {
    this.#worker = new Worker(script);
    this.#worker.onmessage = (event: MessageEvent<Up>) => on.message(event.data);
    this.#worker.onerror = (event) => on.error(event.message);
    this.#ended = new Promise((resolve) => {
      this.#worker.addEventListener('close', () => {
        this.#gone = true;
        on.gone();
        resolve();
      });
    });
  }

  get gone(): boolean {
    return this.#gone;
  }

  /** Sends a message. What `transfer` names goes to the thread without a copy, and is of no use here any more. */
  post(message: Down, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#gone) this.#worker.postMessage(message, [...transfer]);
  }

  /** Ends the thread from outside, without asking it. */
  terminate(): void {
    this.#worker.terminate();
  }

  /** Resolves when the thread has ended, which it was asked to; at the latest `THREAD_END_MS` from now. */
  async ended(): Promise<void> {
    const timer = setTimeout(() => this.terminate(), THREAD_END_MS);
    await this.#ended;
    clearTimeout(timer);
  }
}
