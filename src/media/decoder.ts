/** The decoding thread as the main thread sees it: streams that take bytes and give PCM, one step at a time. */
import type { Log } from '../log.ts';
import type { DecodeAnswer, DecodeRequest, SourceKind } from './decode-worker.ts';

/** The source cannot be decoded from here on. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

export interface DecodeStream {
  /** Decodes a step; rejects with `DecodeError` where the source is damaged. */
  push(bytes: Uint8Array<ArrayBuffer>): Promise<Int16Array<ArrayBuffer>>;
  /** After the last byte: what was still held. */
  end(): Promise<Int16Array<ArrayBuffer>>;
  close(): void;
}

interface Waiting {
  readonly resolve: (pcm: Int16Array<ArrayBuffer>) => void;
  readonly reject: (error: Error) => void;
}

export class DecoderThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #lost = false;
  #last = 0;

  constructor(log: Log) {
    this.#worker = new Worker(new URL('./decode-worker.ts', import.meta.url));
    this.#worker.onmessage = (event: MessageEvent<DecodeAnswer>) => {
      const { stream, pcm, error } = event.data;
      const waiting = this.#waiting.get(stream);
      this.#waiting.delete(stream);
      if (error === undefined) waiting?.resolve(pcm);
      else waiting?.reject(new DecodeError(error));
    };
    this.#worker.onerror = (event) => log.error({ error: event.message }, 'decoding thread');
    this.#ended = new Promise((resolve) => {
      this.#worker.addEventListener('close', () => {
        this.#lost = true;
        for (const waiting of this.#waiting.values()) waiting.reject(new Error('the decoding thread is gone'));
        this.#waiting.clear();
        resolve();
      });
    });
  }

  /** Rejects where there are too many decoders, or no thread. */
  async open(kind: SourceKind, rateHz: number): Promise<DecodeStream> {
    const stream = ++this.#last;
    await this.#ask({ type: 'open', stream, kind, rateHz }).catch((error: unknown) => {
      throw error instanceof DecodeError ? new Error(error.message) : error; // our lack of room, not the source's fault
    });
    return {
      push: (bytes) => this.#ask({ type: 'push', stream, bytes }),
      end: () => this.#ask({ type: 'end', stream }),
      close: () => this.#post({ type: 'close', stream }),
    };
  }

  get alive(): boolean {
    return !this.#lost;
  }

  /** Ends the thread; what still waits is rejected. */
  async close(): Promise<void> {
    this.#post({ type: 'quit' });
    await this.#ended;
  }

  #ask(request: Exclude<DecodeRequest, { type: 'quit' | 'close' }>): Promise<Int16Array<ArrayBuffer>> {
    if (this.#lost) return Promise.reject(new Error('the decoding thread is gone'));
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.stream, { resolve, reject });
      this.#post(request);
    });
  }

  #post(request: DecodeRequest): void {
    if (!this.#lost) this.#worker.postMessage(request);
  }
}
