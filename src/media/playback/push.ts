/**
 * Audio that the application sends in one request body while it is heard: raw samples without a header. What has come
 * and was not fed yet is a short queue; past it the body is not read, and the sender is held back.
 *
 *   waiting ─accept→ receiving ─end→ draining        waiting 60 s, 30 s without a byte, a broken body → failed
 */
import type { PlaybackFailure } from '../../event/event.ts';
import { INGEST_IDLE_MS, INGEST_START_MS, PUSH_AHEAD_MS, PUSH_QUEUE_MS } from '../../limits.ts';
import type { PushFormat } from '../../machine/playback/playback.ts';
import type { DecodeStream } from '../decode/decoder.ts';
import { wavHead } from '../format/wav-head.ts';
import { failureOf, PcmFailed, type PcmSource, type PcmTerms, Playable } from './pcm-source.ts';

/** The body's side of a push. */
export interface Ingest {
  /** Takes the one body there is. False where one was taken before, or the playback is over. */
  accept(): boolean;
  /** Takes bytes; resolves when there is room for more. False where the playback is over. */
  write(bytes: Uint8Array): Promise<boolean>;
  /** The body is complete: what came is still heard. */
  end(): void;
  /** The body broke off. */
  fail(): void;
  /** The playback takes no more: it was stopped, replaced, or timed out. Resolves then. */
  readonly over: Promise<void>;
}

export class OpenPush extends Playable implements Ingest {
  readonly urls: readonly string[] = [];
  readonly over: Promise<void>;
  readonly format: PushFormat;
  readonly #idleMs: number;
  readonly #blockBytes: number;
  readonly #queueBytes: number;
  readonly #isOver: () => void;
  #state: 'waiting' | 'receiving' | 'draining' | 'over' = 'waiting';
  #failure: PlaybackFailure | undefined;
  #chunks: Uint8Array[] = [];
  #queued = 0;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout>;

  /** The times are for tests. */
  constructor(format: PushFormat, times: { readonly startMs?: number; readonly idleMs?: number } = {}) {
    super();
    this.format = format;
    this.#idleMs = times.idleMs ?? INGEST_IDLE_MS;
    this.#blockBytes = format.encoding === 'mulaw' ? 1 : 2;
    this.#queueBytes = (format.sample_rate * this.#blockBytes * PUSH_QUEUE_MS) / 1000;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.over = promise;
    this.#isOver = resolve;
    this.#timer = setTimeout(() => this.#fail('ingest_timeout'), times.startMs ?? INGEST_START_MS);
  }

  accept(): boolean {
    if (this.#state !== 'waiting') return false;
    this.#state = 'receiving';
    this.#awaitBytes();
    return true;
  }

  async write(bytes: Uint8Array): Promise<boolean> {
    if (this.#state !== 'receiving') return false;
    clearTimeout(this.#timer);
    if (bytes.length > 0) this.#chunks.push(bytes);
    this.#queued += bytes.length;
    this.#turnReader();
    while (this.#state === 'receiving' && this.#queued > this.#queueBytes) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
    if (this.#state !== 'receiving') return false;
    this.#awaitBytes();
    return true;
  }

  end(): void {
    if (this.#state !== 'receiving') return;
    clearTimeout(this.#timer);
    this.#state = 'draining';
    this.#turnReader();
  }

  fail(): void {
    this.#fail('source_disconnected');
  }

  release(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    clearTimeout(this.#timer);
    this.#chunks = [];
    this.#isOver();
    this.#turnReader();
    this.#turnWriter();
  }

  source(terms: PcmTerms): PcmSource {
    return {
      aheadMs: PUSH_AHEAD_MS,
      pieceMs: 0,
      live: false,
      pcm: () => this.#pcm(terms),
      interrupt: () => this.release(),
    };
  }

  async *#pcm({ decoders, rateHz }: PcmTerms): AsyncGenerator<Int16Array<ArrayBuffer>> {
    let decoder: DecodeStream | undefined;
    try {
      decoder = await decoders.open('wav', rateHz);
      await decoder.push(
        wavHead(
          {
            encoding: this.format.encoding === 'mulaw' ? 'mulaw' : 'integer',
            hz: this.format.sample_rate,
            channels: 1,
            sampleBytes: this.#blockBytes,
            highFirst: false,
          },
          Infinity,
        ),
      );
      for (let bytes = await this.#read(); bytes !== undefined; bytes = await this.#read()) {
        const pcm = await decoder.push(bytes);
        if (pcm.length > 0) yield pcm;
      }
      // A failure after the body was complete is none; before, what came is heard and then it is told.
      const { pcm } = await decoder.end();
      if (pcm.length > 0) yield pcm;
    } catch (error) {
      throw error instanceof PcmFailed ? error : new PcmFailed(failureOf(error));
    } finally {
      decoder?.close();
    }
    if (this.#failure !== undefined) throw new PcmFailed(this.#failure);
  }

  /**
   * Whole samples, at most what a tenth of a second holds; a part of one waits for the rest of it. Undefined at the
   * end.
   */
  async #read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const most = (this.format.sample_rate * this.#blockBytes) / 10;
    for (;;) {
      const ready = this.#queued - (this.#queued % this.#blockBytes);
      if (ready > 0) return this.#take(Math.min(ready, most));
      if (this.#state === 'draining' || this.#state === 'over') return undefined;
      await new Promise<void>((resolve) => {
        this.#wakeReader = resolve;
      });
    }
  }

  #take(bytes: number): Uint8Array<ArrayBuffer> {
    const out = new Uint8Array(bytes);
    for (let made = 0; made < bytes; ) {
      const [chunk] = this.#chunks;
      if (chunk === undefined) break;
      const part = chunk.subarray(0, bytes - made);
      out.set(part, made);
      made += part.length;
      if (part.length === chunk.length) this.#chunks.shift();
      else this.#chunks[0] = chunk.subarray(part.length);
    }
    this.#queued -= bytes;
    this.#turnWriter();
    return out;
  }

  #awaitBytes(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail('ingest_timeout'), this.#idleMs);
  }

  /** Ends the push with a failure. The audio that came is still heard first. */
  #fail(failure: PlaybackFailure): void {
    if (this.#state !== 'waiting' && this.#state !== 'receiving') return;
    clearTimeout(this.#timer);
    this.#failure = failure;
    this.#state = 'draining';
    this.#isOver();
    this.#turnReader();
    this.#turnWriter();
  }

  #turnReader(): void {
    const wake = this.#wakeReader;
    this.#wakeReader = undefined;
    wake?.();
  }

  #turnWriter(): void {
    const wake = this.#wakeWriter;
    this.#wakeWriter = undefined;
    wake?.();
  }
}
