/**
 * An HLS stream (RFC 8216) as one body: the bytes of its segments, one after the other. A stream without an end begins
 * three segments before its last one, and its playlist is asked for again as long as it is heard.
 *
 * Segments of MPEG audio or AAC, by themselves or in a transport stream, are what the decoding thread reads; encrypted
 * and fragmented ones are refused. At a discontinuity the content is looked at anew: an advertisement may be of another
 * kind than the programme around it.
 */
import { type Clock, systemClock } from '../../clock.ts';
import { HLS_FAILURES_MAX, HLS_LIVE_SEGMENTS, HLS_TINY_BYTES, HLS_TINY_PAUSE_MS, SOURCE_STALL_MS } from '../../limits.ts';
import { type HlsMedia, parsePlaylist } from '../format/playlist-text.ts';
import type { AudioKind } from '../format/sniff.ts';
import { Download, type DownloadTarget } from './download.ts';
import type { MemoryShare } from './held-bytes.ts';
import { Refusal } from './opening.ts';
import { readText } from './playlist-body.ts';
import { recognise } from './recognise.ts';

const system = systemClock();

export class HlsBody {
  readonly #target: DownloadTarget;
  readonly #held: MemoryShare;
  readonly #clock: Clock;
  #media: HlsMedia;
  /** Number of the next segment. */
  #next: bigint;
  #segment: Download | undefined;
  /** The bytes that have come of the segment. */
  #bytes = 0;
  /** The bytes that are still to come of a segment that is a part of its resource. */
  #left = Infinity;
  #failures = 0;
  /** The next bytes may be of another kind than those before. */
  #mayDiffer = false;
  #kind: AudioKind | undefined;
  #closed = false;
  #endPause = () => {};

  /**
   * Begins a body. `target` is that of the media playlist `media`; its limit counts for each segment. `held` has the
   * memory for what comes before the sound of a segment.
   */
  constructor(target: DownloadTarget, media: HlsMedia, held: MemoryShare) {
    this.#target = target;
    this.#media = media;
    this.#held = held;
    this.#clock = target.clock ?? system;
    this.#next = firstOf(media);
  }

  /** The kind of the bytes that came last. Undefined: that with which the body began. */
  get kind(): AudioKind | undefined {
    return this.#kind;
  }

  /**
   * The next bytes; undefined at the end. Rejects where too many segments fail in a row, a live stream stands still, or
   * what follows a discontinuity is nothing we play.
   */
  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#closed) throw new Refusal('unreachable', true, 200);
      if (this.#segment === undefined && !(await this.#advance())) return undefined;
      try {
        const chunk = this.#mayDiffer ? await this.#recognised() : await this.#chunk();
        if (chunk !== undefined) {
          this.#failures = 0;
          return chunk;
        }
        if (this.#bytes === 0) throw new Refusal('invalid_response', false, 200);
        if (this.#bytes < HLS_TINY_BYTES) await this.#pause(HLS_TINY_PAUSE_MS);
      } catch (error) {
        this.#failed(error);
      }
      this.#segment?.close();
      this.#segment = undefined;
    }
  }

  close(): void {
    this.#closed = true;
    this.#endPause();
    this.#segment?.close();
  }

  /** Waits, but not for a body that is closed: its decoder and its memory are kept by whoever waits for its bytes. */
  async #pause(ms: number): Promise<void> {
    if (this.#closed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.at(this.#clock.now() + ms, resolve);
    this.#endPause = () => {
      cancel();
      resolve();
    };
    await promise;
  }

  /** The next bytes of the segment; undefined at its end. */
  async #chunk(): Promise<Uint8Array | undefined> {
    const chunk = this.#left === 0 ? undefined : (await this.#segment?.next())?.subarray(0, this.#left);
    this.#bytes += chunk?.length ?? 0;
    this.#left -= chunk?.length ?? 0;
    return chunk;
  }

  /** The first bytes of a segment, as many as tell what it is; undefined where it has none. */
  async #recognised(): Promise<Uint8Array | undefined> {
    const first = await this.#chunk();
    if (first === undefined) return undefined;
    let given = false;
    const { kind, head } = await recognise(async () => {
      if (given) return await this.#chunk();
      given = true;
      return first;
    }, this.#held);
    if (kind === 'playlist') throw new Refusal('unsupported', false, 200);
    this.#kind = kind;
    this.#mayDiffer = false;
    return head;
  }

  /** Opens the next segment; false at the end. One that cannot be opened is left out. */
  async #advance(): Promise<boolean> {
    let waitsFrom = this.#clock.now();
    for (;;) {
      const { segments, sequence, ended } = this.#media;
      // What has left the playlist is gone, and with it what it said of the segments to come.
      if (this.#next < sequence) {
        this.#next = sequence;
        this.#mayDiffer = true;
      }
      const segment = segments[Number(this.#next - sequence)];
      if (segment === undefined) {
        if (ended) return false;
        await this.#reload(waitsFrom);
        continue;
      }
      this.#next++;
      waitsFrom = this.#clock.now();
      this.#mayDiffer ||= segment.discontinuity;
      if (segment.url === undefined) continue;
      this.#bytes = 0;
      this.#left = segment.part?.bytes ?? Infinity;
      try {
        const opened = await Download.open({ ...this.#target, url: segment.url, part: segment.part }, {});
        this.#segment = opened;
        if (this.#closed) opened.close(); // It was closed meanwhile.
        return true;
      } catch (error) {
        this.#failed(error);
      }
    }
  }

  /** §6.3.4: a playlist in which a segment is waited for is asked for again after half of its target duration. */
  async #reload(waitsFrom: number): Promise<void> {
    const { targetSec } = this.#media;
    if (this.#clock.now() - waitsFrom > 3_000 * targetSec + SOURCE_STALL_MS) throw new Refusal('timeout', true, 200);
    await this.#pause(500 * targetSec);
    if (this.#closed) throw new Refusal('unreachable', true, 200);
    try {
      const download = await Download.open(this.#target, {});
      const media = parsePlaylist(await readText(download), download.response.url);
      if (media.type !== 'media') throw new Refusal('invalid_response', false, 200);
      // It began anew where it is behind by more than it has. One that is not as far behind is an older copy.
      if (media.sequence + 2n * BigInt(media.segments.length) < this.#next) {
        this.#next = firstOf(media);
        this.#mayDiffer = true;
      }
      this.#media = media;
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    const isOther = this.#mayDiffer && error instanceof Refusal && error.detail.reason === 'unsupported';
    if (this.#closed || isOther || ++this.#failures > HLS_FAILURES_MAX) throw error;
  }
}

/** The number of the segment with which a stream begins. */
function firstOf({ sequence, segments, ended }: HlsMedia): bigint {
  return sequence + BigInt(ended ? 0 : Math.max(0, segments.length - HLS_LIVE_SEGMENTS));
}
