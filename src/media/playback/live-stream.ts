/**
 * A live HTTP source: an endless file of any format, an HLS stream, or a streaming server's. It is opened at admission,
 * up to its first audio, and read no faster than it is heard. Where the connection breaks it is made again, a bounded
 * number of times; audio that a stall made late is left out (pump), unless the server named the length: then it is a
 * file that is not missing a moment.
 */
import { unlessAborted } from '../../bounds/unless-aborted.ts';
import {
  LIVE_AHEAD_MS,
  LIVE_HEALTHY_MS,
  LIVE_RECONNECT_MS,
  LIVE_SILENT_MAX_BYTES,
  PLAYLIST_DEPTH_MAX,
  PLAYLIST_ENTRIES_MAX,
  SOURCE_ADMISSION_MS,
} from '../../limits.ts';
import type { GetResponse } from '../../outbound/http-get.ts';
import type { SourceRefused } from '../audio.ts';
import { decodeSteps } from '../decode/decode-steps.ts';
import { DecodeError } from '../decode/decoder.ts';
import { IcyStripper, icyInterval } from '../format/icy.ts';
import { type HlsMedia, type PlaylistText, parsePlaylist } from '../format/playlist-text.ts';
import type { AudioKind } from '../format/sniff.ts';
import { Download, type DownloadTarget } from '../source/download.ts';
import type { MemoryShare } from '../source/held-bytes.ts';
import { HlsBody } from '../source/hls.ts';
import { type AudioOutbound, Refusal } from '../source/opening.ts';
import { readText } from '../source/playlist-body.ts';
import { recognise } from '../source/recognise.ts';
import { failureOf, PcmFailed, type PcmSource, type PcmTerms, Playable } from './pcm-source.ts';

interface Body {
  /** The kind of the bytes that came last, where it may change. Undefined: that with which the body began. */
  readonly kind?: AudioKind | undefined;
  next(): Promise<Uint8Array | undefined>;
  close(): void;
}

/** One connection, its first audio found. */
interface Connection {
  readonly kind: AudioKind;
  readonly head: Uint8Array;
  /** The head is all there is. */
  readonly ended: boolean;
  /** The way in which the end of the body is told. A connection that just closes has broken. */
  readonly framing: GetResponse['framing'];
  readonly body: Body;
}

interface LiveOptions {
  readonly outbound: AudioOutbound;
  /** Memory for what comes before the first audio. */
  readonly held: MemoryShare;
  readonly url: string;
  /** These exist for tests. */
  readonly reconnectMs?: readonly number[];
  readonly admissionMs?: number;
}

/** A connection that is being made. */
interface Attempt {
  readonly signal: AbortSignal;
  /** The number of entries that its playlists may still name. */
  entries: number;
}

export class OpenStream extends Playable {
  readonly urls: readonly string[] = [];
  readonly #options: LiveOptions;
  readonly #abort = new AbortController();
  /** Ends the connection that is being made, or was made last. */
  #attempt: AbortController | undefined;
  #first: Connection | undefined;

  constructor(options: LiveOptions) {
    super();
    this.#options = options;
  }

  /** Resolves with why the stream is refused, or undefined when it is admitted. */
  async admit(): Promise<SourceRefused | undefined> {
    try {
      this.#first = await this.connect();
      return undefined;
    } catch (error) {
      this.release();
      return { refused: error instanceof Refusal ? error.detail : { reason: 'preparation_failed', retryable: true } };
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get reconnectMs(): readonly number[] {
    return this.#options.reconnectMs ?? LIVE_RECONNECT_MS;
  }

  source(terms: PcmTerms): PcmSource {
    const first = this.#first;
    this.#first = undefined;
    return new LiveSource(this, first, { ...terms, decoders: terms.decoders.of(this.#options.held.owner) });
  }

  release(): void {
    this.#abort.abort();
    this.#attempt?.abort();
    this.#first?.body.close();
    this.#first = undefined;
  }

  /**
   * Makes a connection up to its first audio, in `SOURCE_ADMISSION_MS`. A playlist is followed to the first of its
   * entries that gives any. Rejects with `Refusal`.
   */
  async connect(): Promise<Connection> {
    const attempt = new AbortController();
    this.#attempt = attempt;
    if (this.#abort.signal.aborted) attempt.abort();
    const late = setTimeout(() => attempt.abort(), this.#options.admissionMs ?? SOURCE_ADMISSION_MS);
    try {
      return await this.#open(this.#options.url, [], { signal: attempt.signal, entries: PLAYLIST_ENTRIES_MAX });
    } catch (error) {
      throw attempt.signal.aborted ? new Refusal('timeout', true) : error;
    } finally {
      clearTimeout(late);
    }
  }

  async #open(url: string, within: readonly string[], attempt: Attempt): Promise<Connection> {
    const target = { outbound: this.#options.outbound, url, signal: attempt.signal };
    const download = await Download.open({ ...target, maxBytes: Infinity }, {});
    const { framing, headers, status } = download.response;
    const interval = icyInterval(headers);
    const stripper = interval === undefined ? undefined : new IcyStripper(interval);
    const body: Body = {
      next: async () => {
        const chunk = await download.next();
        return chunk === undefined ? undefined : (stripper?.strip(chunk) ?? chunk);
      },
      close: () => download.close(),
    };
    try {
      const found = await recognise(body.next, this.#options.held, status);
      if (found.kind !== 'playlist') return { ...found, kind: found.kind, framing, body };
      const text = await readText(found.ended ? { ...body, next: async () => undefined } : body, found.head);
      return await this.#follow(
        parsePlaylist(text, download.response.url),
        { ...target, url: download.response.url },
        within,
        attempt,
      );
    } catch (error) {
      body.close();
      throw error;
    }
  }

  async #follow(list: PlaylistText, target: DownloadTarget, within: readonly string[], attempt: Attempt): Promise<Connection> {
    if (list.type === 'media') return await segments(target, list, this.#options.held);
    if (list.type === 'unsupported') throw new Refusal('unsupported', false, 200);
    if (list.type === 'too many entries' || within.length >= PLAYLIST_DEPTH_MAX) throw new Refusal('rejected', false, 200);
    const chain = [...within, target.url];
    attempt.entries -= list.urls.length;
    if (attempt.entries < 0) throw new Refusal('rejected', false, 200);
    if (list.urls.some((url) => chain.includes(url))) throw new Refusal('rejected', false, 200);
    let refusal: unknown = new Refusal('unsupported', false, 200);
    for (const [index, url] of list.urls.entries()) {
      try {
        return await this.#open(url, chain, attempt);
      } catch (error) {
        if (index === 0) refusal = error;
        if (attempt.signal.aborted) break;
      }
    }
    throw refusal;
  }
}

/** The segments of an HLS stream as one connection. Rejects with `Refusal`. */
async function segments(target: DownloadTarget, media: HlsMedia, held: MemoryShare): Promise<Connection> {
  const body = new HlsBody(target, media, held);
  try {
    const found = await recognise(() => body.next(), held);
    if (found.kind === 'playlist') throw new Refusal('unsupported', false, 200);
    return { ...found, kind: found.kind, framing: media.ended ? 'length' : 'chunked', body };
  } catch (error) {
    body.close();
    throw error;
  }
}

class LiveSource implements PcmSource {
  readonly aheadMs = LIVE_AHEAD_MS;
  readonly pieceMs = 0;
  readonly live: boolean;
  readonly #stream: OpenStream;
  readonly #terms: PcmTerms;
  #connection: Connection | undefined;

  constructor(stream: OpenStream, first: Connection | undefined, terms: PcmTerms) {
    this.#stream = stream;
    this.#connection = first;
    this.#terms = terms;
    this.live = first?.framing !== 'length';
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
        if (this.#connection.framing !== 'close') return;
      } catch (error) {
        broken = error;
      } finally {
        this.#connection?.body.close();
        this.#connection = undefined;
      }
      const wait = reconnectMs[attempts++];
      if (signal.aborted || wait === undefined)
        throw new PcmFailed(broken instanceof DecodeError ? failureOf(broken) : 'source_disconnected');
      await pause(wait, signal);
    }
  }

  interrupt(): void {
    this.#stream.release();
    this.#connection?.body.close();
  }

  async *#hear(connection: Connection): AsyncGenerator<Int16Array<ArrayBuffer>> {
    const { decoders, rateHz } = this.#terms;
    let { kind } = connection;
    let decoder = await decoders.open(kind, rateHz);
    let silentBytes = 0;
    try {
      yield* decodeSteps(decoder, connection.head, this.#terms.rateHz);
      if (!connection.ended) {
        for (let chunk = await connection.body.next(); chunk !== undefined; chunk = await connection.body.next()) {
          const now = connection.body.kind ?? kind;
          if (now !== kind) {
            const { pcm } = await decoder.end();
            if (pcm.length > 0) yield pcm;
            decoder.close();
            kind = now;
            decoder = await decoders.open(kind, rateHz);
          }
          // Sound holds the sender back; rubbish would be read as fast as the line gives it, for ever.
          silentBytes += chunk.length;
          if (silentBytes > LIVE_SILENT_MAX_BYTES) throw new DecodeError('no sound in it');
          for await (const pcm of decodeSteps(decoder, chunk, this.#terms.rateHz)) {
            silentBytes = 0;
            yield pcm;
          }
        }
      }
      if (connection.framing === 'close') return;
      const { pcm } = await decoder.end();
      if (pcm.length > 0) yield pcm;
    } finally {
      decoder.close();
    }
  }
}

/** Resolves after `ms`, or at once when the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await unlessAborted(promise, signal).catch(() => {});
  clearTimeout(timer);
}
