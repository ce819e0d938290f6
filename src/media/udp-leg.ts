/** One leg on the main thread: turns the engine's calls into orders, and the plane's records into notices in the words of the Session. */

import { isIP } from 'node:net';
import type { DecoderThread } from './decoder.ts';
import type { LegCounters, MediaNotice, PlayOptions, RtpLeg, RtpParameters } from './engine.ts';
import { Feeder, type FeedFailure } from './feeder.ts';
import type { LegEars, MediaWorker } from './media-worker.ts';
import { NOTICE, type NoticeRecord } from './notice.ts';
import { codecRateHz } from './order.ts';
import { OpenPlaylist } from './playlist.ts';

interface Playback {
  readonly operationUuid: string;
  readonly feeder: Feeder;
  started: boolean;
  failure: FeedFailure | undefined;
}

/**
 * What the plane takes: literal addresses, ports of 16 bits, packets of 10 to 60 ms. A far end of none is one we cannot send to until it is
 * heard from.
 */
function bounded(agreed: RtpParameters): RtpParameters {
  const port = (value: number) => (Number.isInteger(value) && value > 0 && value <= 65_535 ? value : 9); // discard (RFC 863)
  return {
    ...agreed,
    remoteHost: isIP(agreed.remoteHost) === 0 ? '0.0.0.0' : agreed.remoteHost,
    remotePort: port(agreed.remotePort),
    remoteRtcpPort: port(agreed.remoteRtcpPort),
    ptimeMs: Math.min(60, Math.max(10, Math.round(agreed.ptimeMs) || 20)),
  };
}

const NO_COUNTERS: LegCounters = { packetsReceived: 0, packetsSent: 0, packetsLost: 0, jitterMs: 0 };

export class UdpLeg implements RtpLeg, LegEars {
  readonly host: string;
  readonly port: number;
  readonly #id: number;
  readonly #worker: MediaWorker;
  readonly #decoders: DecoderThread;
  readonly #notify: (notice: MediaNotice) => void;
  readonly #nextPlayback: () => number;
  readonly #bound: (errno: number) => void;
  readonly #freed: () => void;
  /** Playbacks whose last notice has not come, by their number in the plane. */
  readonly #playbacks = new Map<number, Playback>();
  #current = 0;
  #rateHz = 8_000;
  #closing: Promise<LegCounters> | undefined;
  #finished: ((counters: LegCounters) => void) | undefined;
  #lost = false;

  constructor(options: {
    readonly id: number;
    readonly host: string;
    readonly port: number;
    readonly worker: MediaWorker;
    readonly decoders: DecoderThread;
    readonly notify: (notice: MediaNotice) => void;
    readonly nextPlayback: () => number;
    /** The ports were bound (0), or why not. */
    readonly bound: (errno: number) => void;
    /** The ports are free again; called once. */
    readonly freed: () => void;
  }) {
    this.#id = options.id;
    this.host = options.host;
    this.port = options.port;
    this.#worker = options.worker;
    this.#decoders = options.decoders;
    this.#notify = options.notify;
    this.#nextPlayback = options.nextPlayback;
    this.#bound = options.bound;
    this.#freed = options.freed;
  }

  negotiate(parameters: RtpParameters): void {
    if (this.#closing !== undefined) return;
    this.#rateHz = codecRateHz(parameters.codec);
    this.#worker.order({ type: 'negotiate', leg: this.#id, parameters: bounded(parameters) });
  }

  play(options: PlayOptions): void {
    const { playlist, operationUuid } = options;
    if (!(playlist instanceof OpenPlaylist)) throw new TypeError('a playlist of another engine');
    if (this.#closing !== undefined || this.#lost) {
      playlist.release();
      this.#notify({ type: 'playback.failed', operationUuid, reason: 'media_unavailable' });
      return;
    }
    this.#playbacks.get(this.#current)?.feeder.stop();
    const playback = this.#nextPlayback();
    this.#current = playback;
    const rateHz = this.#rateHz;
    this.#worker.order({ type: 'play', leg: this.#id, playback, rateHz, volume: options.volume });
    const feeder = new Feeder({
      playlist,
      loop: options.loop,
      rateHz,
      decoders: this.#decoders,
      feed: (pcm) => this.#worker.order({ type: 'feed', leg: this.#id, playback, pcm }),
      done: (failure) => this.#fed(playback, failure),
    });
    this.#playbacks.set(playback, { operationUuid, feeder, started: false, failure: undefined });
  }

  stopPlayback(operationUuid: string): void {
    const playing = this.#playbacks.get(this.#current);
    if (playing === undefined || playing.operationUuid !== operationUuid) return;
    playing.feeder.stop();
    this.#worker.order({ type: 'stop', leg: this.#id, playback: this.#current });
  }

  counters(): Promise<LegCounters> {
    return this.#lost ? Promise.resolve(NO_COUNTERS) : (this.#closing ?? this.#worker.counters(this.#id));
  }

  close(): Promise<LegCounters> {
    this.#closing ??= new Promise((resolve) => {
      this.#finished = resolve;
      for (const playback of this.#playbacks.values()) playback.feeder.stop();
      if (this.#lost) resolve(NO_COUNTERS);
      else this.#worker.order({ type: 'close', leg: this.#id });
    });
    return this.#closing;
  }

  opened(errno: number): void {
    this.#bound(errno);
  }

  notice(record: NoticeRecord): void {
    switch (record.kind) {
      case NOTICE.mediaStarted:
        this.#notify({ type: 'media.started' });
        break;
      case NOTICE.mediaTimeout:
        this.#notify({ type: 'media.timeout' });
        break;
      case NOTICE.digit:
        this.#notify({ type: 'digit', digit: String.fromCharCode(record.a), durationMs: record.b, method: 'rfc4733' });
        break;
      case NOTICE.playbackHungry:
        this.#playbacks.get(record.a)?.feeder.hungry(record.b, record.c);
        break;
      case NOTICE.playbackStarted:
        this.#started(this.#playbacks.get(record.a));
        break;
      case NOTICE.playbackEnded:
        this.#ended(record.a);
        break;
      case NOTICE.playbackStopped:
        this.#stopped(record.a);
        break;
    }
  }

  closed(counters: LegCounters): void {
    this.#worker.detach(this.#id);
    this.#freed();
    this.#finished?.(counters);
  }

  lost(): void {
    if (this.#lost) return;
    this.#lost = true;
    for (const [number, { operationUuid, feeder }] of this.#playbacks) {
      feeder.stop();
      this.#playbacks.delete(number);
      this.#notify({ type: 'playback.failed', operationUuid, reason: 'media_unavailable' });
    }
    this.#bound(-1);
    this.closed(NO_COUNTERS);
  }

  /** The feeder has handed everything over. What was fed is still heard; a failure before any sound is told at once. */
  #fed(number: number, failure: FeedFailure | undefined): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    playback.failure = failure;
    this.#worker.order({ type: 'finish', leg: this.#id, playback: number });
    if (playback.feeder.fed > 0) return;
    this.#ended(number);
  }

  #started(playback: Playback | undefined): void {
    if (playback === undefined || playback.started) return;
    playback.started = true;
    this.#notify({ type: 'playback.started', operationUuid: playback.operationUuid });
  }

  #ended(number: number): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    const { operationUuid, failure } = playback;
    if (failure === undefined) {
      this.#started(playback); // a playlist of empty files starts and ends at once
      this.#forget(number);
      this.#notify({ type: 'playback.completed', operationUuid });
      return;
    }
    this.#forget(number);
    this.#notify({ type: 'playback.failed', operationUuid, reason: failure.reason, sourceIndex: failure.sourceIndex });
  }

  #stopped(number: number): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    playback.feeder.stop();
    this.#forget(number);
    this.#notify({ type: 'playback.stopped', operationUuid: playback.operationUuid });
  }

  #forget(number: number): void {
    this.#playbacks.delete(number);
    if (this.#current === number) this.#current = 0;
  }
}
