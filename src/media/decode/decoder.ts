/** The decoding thread as the main thread sees it: streams that take bytes and give PCM, one step at a time. */
import { threadScript } from '../../installation.ts';
import { DECODE_STEP_MAX_MS, THREADS_STUCK_MAX } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { AudioKind } from '../format/sniff.ts';
import { stuckThreads, Thread } from '../worker/thread.ts';
import type { DecodeAnswer, DecodeAnswers, DecodeRequest } from './decode-request.ts';

/** The source cannot be decoded from here on. */
export class DecodeError extends Error {
  override readonly name = 'DecodeError';
}

interface Decoded {
  readonly pcm: Int16Array<ArrayBuffer>;
  readonly samples: number;
}

export interface DecodeStream {
  /** Decodes a step, and takes the memory of the bytes; rejects with `DecodeError` where the source is damaged. */
  push(bytes: Uint8Array<ArrayBuffer>): Promise<Int16Array<ArrayBuffer>>;
  /**
   * Ends the stream after its last byte. The result is the sound that was still held and the length of the whole in
   * samples, skipped ones included.
   */
  end(): Promise<Decoded>;
  close(): void;
}

/** Decoders of an application, or of nobody. */
export interface Decoders {
  /** Decodes to `rateHz`, from `skip` samples on. Rejects where there are too many decoders, or no thread. */
  open(kind: AudioKind, rateHz: number, skip?: number): Promise<DecodeStream>;
  /** The same, in the share of an application. */
  of(owner: string): Decoders;
}

interface Waiting {
  readonly resolve: (decoded: Decoded) => void;
  readonly reject: (error: Error) => void;
}

/** Looks without an answer after which the thread is stuck. A process that was held itself looks once too often. */
const LOOKS_MAX = 2;

/**
 * The thread is started for the first stream. One that dies or is stuck takes its streams with it; the next stream gets
 * a new one. It is stuck when it answers nothing for `DECODE_STEP_MAX_MS` while something is asked: the steps of a
 * thousand streams wait for each other, and none of them for that long.
 */
export class DecoderThread implements Decoders {
  readonly #log: Log;
  readonly #script: URL;
  readonly #stepMaxMs: number;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Thread<DecodeRequest, DecodeAnswers> | undefined;
  #closing = false;
  #last = 0;
  #watch: ReturnType<typeof setInterval> | undefined;
  /** Looks since the last answer. */
  #looks = 0;

  /** The options are for tests. */
  constructor(log: Log, options: { readonly script?: URL; readonly stepMaxMs?: number } = {}) {
    this.#log = log;
    this.#script = options.script ?? threadScript('src/media/decode/decode-worker.ts');
    this.#stepMaxMs = options.stepMaxMs ?? DECODE_STEP_MAX_MS;
  }

  of(owner: string): Decoders {
    return {
      open: (kind, rateHz, skip) => this.open(kind, rateHz, skip, owner),
      of: (other) => this.of(other),
    };
  }

  async open(kind: AudioKind, rateHz: number, skip = 0, owner = ''): Promise<DecodeStream> {
    if (this.#closing) throw new Error('the decoding thread is gone');
    if (this.#thread === undefined || this.#thread.gone) {
      if (stuckThreads() >= THREADS_STUCK_MAX) throw new Error('too many threads hang');
      this.#thread = this.#spawn();
    }
    const thread = this.#thread;
    const stream = ++this.#last;
    await this.#ask(thread, { type: 'open', stream, owner, kind, rateHz, skip }).catch((error: unknown) => {
      throw error instanceof DecodeError ? new Error(error.message) : error; // our lack of room, not the source's fault
    });
    return {
      push: async (bytes) => (await this.#ask(thread, { type: 'push', stream, owner, bytes })).pcm,
      end: () => this.#ask(thread, { type: 'end', stream, owner }),
      close: () => thread.post({ type: 'close', stream, owner }),
    };
  }

  /** Ends the thread; what still waits is rejected. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#thread?.post({ type: 'quit' });
    await this.#thread?.ended();
  }

  #spawn(): Thread<DecodeRequest, DecodeAnswers> {
    return new Thread<DecodeRequest, DecodeAnswers>(this.#script, {
      message: (answers) => {
        for (const answer of answers) this.#answered(answer);
      },
      error: (error) => this.#log.error({ error }, 'decoding thread'),
      gone: () => {
        if (!this.#closing) this.#log.error({ streams: this.#waiting.size }, 'the decoding thread is gone');
        for (const stream of [...this.#waiting.keys()]) this.#settle(stream)?.reject(new Error('the decoding thread is gone'));
      },
    });
  }

  #answered({ stream, pcm, samples, error }: DecodeAnswer): void {
    const waiting = this.#settle(stream);
    if (error === undefined) waiting?.resolve({ pcm, samples });
    else waiting?.reject(new DecodeError(error));
  }

  #ask(
    thread: Thread<DecodeRequest, DecodeAnswers>,
    request: Exclude<DecodeRequest, { type: 'quit' | 'close' }>,
  ): Promise<Decoded> {
    if (thread.gone) return Promise.reject(new Error('the decoding thread is gone'));
    return new Promise((resolve, reject) => {
      this.#waiting.set(request.stream, { resolve, reject });
      this.#watchOver(thread);
      thread.post(request, request.type === 'push' ? [request.bytes.buffer] : []);
    });
  }

  #watchOver(thread: Thread<DecodeRequest, DecodeAnswers>): void {
    if (this.#watch !== undefined) return;
    this.#looks = 0;
    this.#watch = setInterval(() => {
      if (++this.#looks === LOOKS_MAX) thread.terminate();
    }, this.#stepMaxMs / LOOKS_MAX);
  }

  #settle(stream: number): Waiting | undefined {
    const waiting = this.#waiting.get(stream);
    this.#waiting.delete(stream);
    this.#looks = 0;
    if (this.#waiting.size === 0) {
      clearInterval(this.#watch);
      this.#watch = undefined;
    }
    return waiting;
  }
}
