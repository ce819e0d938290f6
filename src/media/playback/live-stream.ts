/**
 * A live HTTP source: an endless WAV or MP3, or a streaming server's. It is opened at admission, up to its first audio, and read no faster than it is
 * heard. Where the connection breaks it is made again, a bounded number of times; audio that a stall made late is left out (feeder), unless the
 * server named the length: then it is a file that is not missing a moment.
 */
import {
  DECODE_STEP_BYTES,
  LIVE_HEALTHY_MS,
  LIVE_RECONNECT_MS,
  PLAYER_AHEAD_MS,
  SOURCE_ADMISSION_MS,
  SOURCE_STALL_MS,
} from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import type { SourceKind } from '../decode/decode-worker.ts';
import { DecodeError, type DecodeStream } from '../decode/decoder.ts';
import type { SourceRefused } from '../engine.ts';
import { IcyStripper, icyInterval } from '../source/icy.ts';
import { type AudioOutbound, Refusal, recognise, requestAudio, within } from '../source/opening.ts';
import { failureOf, Playable, type Reel, ReelBroken, type ReelTerms } from './pcm-source.ts';

/** One connection, its first audio found. */
interface Connection {
  readonly kind: SourceKind;
  readonly head: Uint8Array;
  readonly ended: boolean;
  readonly response: GetResponse;
  next(): Promise<Uint8Array | undefined>;
}

export interface LiveOptions {
  readonly outbound: AudioOutbound;
  readonly url: string;
  /** For tests. */
  readonly reconnectMs?: readonly number[];
}

export class OpenStream extends Playable {
  readonly urls: readonly string[] = [];
  readonly #options: LiveOptions;
  readonly #abort = new AbortController();
  #first: Connection | undefined;

  constructor(options: LiveOptions) {
    super();
    this.#options = options;
  }

  /** Undefined where it is admitted. */
  async admit(): Promise<SourceRefused | undefined> {
    const late = setTimeout(() => this.#abort.abort(), SOURCE_ADMISSION_MS);
    try {
      this.#first = await this.connect();
      return undefined;
    } catch (error) {
      const detail = this.#abort.signal.aborted
        ? ({ reason: 'timeout', retryable: true } as const)
        : error instanceof Refusal
          ? error.detail
          : ({ reason: 'preparation_failed', retryable: true } as const);
      this.release();
      return { refused: detail };
    } finally {
      clearTimeout(late);
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get reconnectMs(): readonly number[] {
    return this.#options.reconnectMs ?? LIVE_RECONNECT_MS;
  }

  reel(terms: ReelTerms): Reel {
    const first = this.#first;
    this.#first = undefined;
    return new LiveReel(this, first, terms);
  }

  release(): void {
    this.#abort.abort();
    this.#first?.response.body.close();
    this.#first = undefined;
  }

  async connect(): Promise<Connection> {
    const { outbound, url } = this.#options;
    const response = await requestAudio(outbound, url, {}, this.#abort.signal);
    const interval = icyInterval(response.headers);
    const stripper = interval === undefined ? undefined : new IcyStripper(interval);
    const { body } = response;
    const next = async () => {
      const chunk = await within(
        body.read(),
        SOURCE_STALL_MS,
        () => body.close(),
        () => new Refusal('timeout', true, 200),
      );
      return chunk === undefined ? undefined : (stripper?.strip(chunk) ?? chunk);
    };
    try {
      return { ...(await recognise(next)), response, next };
    } catch (error) {
      body.close();
      throw error;
    }
  }
}

class LiveReel implements Reel {
  readonly aheadMs = PLAYER_AHEAD_MS;
  readonly pieceMs = 0;
  readonly live: boolean;
  readonly #stream: OpenStream;
  readonly #terms: ReelTerms;
  #connection: Connection | undefined;

  constructor(stream: OpenStream, first: Connection | undefined, terms: ReelTerms) {
    this.#stream = stream;
    this.#connection = first;
    this.#terms = terms;
    this.live = first?.response.framing !== 'length';
  }

  async *pcm(): AsyncGenerator<Int16Array<ArrayBuffer>> {
    const { rateHz } = this.#terms;
    const { signal, reconnectMs } = this.#stream;
    let attempts = 0;
    for (;;) {
      let broken: unknown;
      let heard = 0;
      try {
        this.#connection ??= await this.#stream.connect();
        for await (const pcm of this.#hear(this.#connection)) {
          heard += pcm.length;
          if (heard >= (LIVE_HEALTHY_MS * rateHz) / 1000) attempts = 0;
          yield pcm;
        }
        // A length or a last chunk is an end; a connection that just closes is not.
        if (this.#connection.response.framing !== 'close') return;
      } catch (error) {
        broken = error;
      } finally {
        this.#connection?.response.body.close();
        this.#connection = undefined;
      }
      const wait = reconnectMs[attempts++];
      if (signal.aborted || wait === undefined)
        throw new ReelBroken(broken instanceof DecodeError ? failureOf(broken) : 'source_disconnected');
      await pause(wait, signal);
    }
  }

  interrupt(): void {
    this.#stream.release();
    this.#connection?.response.body.close();
  }

  async *#hear(connection: Connection): AsyncGenerator<Int16Array<ArrayBuffer>> {
    const { decoders, rateHz } = this.#terms;
    const decoder = await decoders.open(connection.kind, rateHz);
    try {
      yield* steps(decoder, connection.head);
      if (!connection.ended) {
        for (let chunk = await connection.next(); chunk !== undefined; chunk = await connection.next())
          yield* steps(decoder, chunk);
      }
      if (connection.response.framing === 'close') return;
      const { pcm } = await decoder.end();
      if (pcm.length > 0) yield pcm;
    } finally {
      decoder.close();
    }
  }
}

async function* steps(decoder: DecodeStream, bytes: Uint8Array): AsyncGenerator<Int16Array<ArrayBuffer>> {
  for (let at = 0; at < bytes.length; at += DECODE_STEP_BYTES) {
    const pcm = await decoder.push(new Uint8Array(bytes.subarray(at, at + DECODE_STEP_BYTES)));
    if (pcm.length > 0) yield pcm;
  }
}

/** Resolves after `ms`, or at once when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      'abort',
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}
