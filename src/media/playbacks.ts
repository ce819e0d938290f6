/** The playbacks of one leg or room on the main thread: each has a feeder, its orders go to the plane, its records become notices. */
import type { DecoderThread } from './decoder.ts';
import type { MediaNotice, PlayOptions } from './engine.ts';
import { Feeder, type FeedFailure } from './feeder.ts';
import { NOTICE, type NoticeRecord } from './notice.ts';
import type { Order } from './order.ts';
import { OpenPlaylist } from './playlist.ts';

export type PlaybackNotice = Extract<MediaNotice, { readonly operationUuid: string; readonly type: `playback.${string}` }>;

interface Playback {
  readonly operationUuid: string;
  readonly feeder: Feeder;
  started: boolean;
  failure: FeedFailure | undefined;
}

export interface PlaybacksOptions {
  /** The leg or room in the plane. */
  readonly id: number;
  readonly order: (order: Order) => void;
  readonly decoders: DecoderThread;
  readonly notify: (notice: PlaybackNotice) => void;
  readonly nextPlayback: () => number;
}

export class Playbacks {
  readonly #options: PlaybacksOptions;
  /** Those whose last notice has not come, by their number in the plane. */
  readonly #playbacks = new Map<number, Playback>();
  #current = 0;
  #over = false;

  constructor(options: PlaybacksOptions) {
    this.#options = options;
  }

  /** Plays instead of what was playing, at the rate it is heard with. */
  play(options: PlayOptions, rateHz: number): void {
    const { playlist, operationUuid } = options;
    if (!(playlist instanceof OpenPlaylist)) throw new TypeError('a playlist of another engine');
    if (this.#over) {
      playlist.release();
      this.#options.notify({ type: 'playback.failed', operationUuid, reason: 'media_unavailable' });
      return;
    }
    this.#playbacks.get(this.#current)?.feeder.stop();
    const { id, order, decoders } = this.#options;
    const playback = this.#options.nextPlayback();
    this.#current = playback;
    order({ type: 'play', leg: id, playback, rateHz, volume: options.volume });
    const feeder = new Feeder({
      playlist,
      loop: options.loop,
      rateHz,
      decoders,
      feed: (pcm) => order({ type: 'feed', leg: id, playback, pcm }),
      done: (failure) => this.#fed(playback, failure),
    });
    this.#playbacks.set(playback, { operationUuid, feeder, started: false, failure: undefined });
  }

  stop(operationUuid: string): void {
    const playing = this.#playbacks.get(this.#current);
    if (playing === undefined || playing.operationUuid !== operationUuid) return;
    playing.feeder.stop();
    this.#options.order({ type: 'stop', leg: this.#options.id, playback: this.#current });
  }

  /** The leg or room is being closed: nothing more is fed, and the plane tells that what plays was stopped. */
  close(): void {
    this.#over = true;
    for (const playback of this.#playbacks.values()) playback.feeder.stop();
  }

  /** The plane is gone. */
  lost(): void {
    this.close();
    for (const [number, { operationUuid }] of this.#playbacks) {
      this.#playbacks.delete(number);
      this.#options.notify({ type: 'playback.failed', operationUuid, reason: 'media_unavailable' });
    }
  }

  /** Takes a record of the plane. False where it is not of a playback. */
  notice(record: NoticeRecord): boolean {
    switch (record.kind) {
      case NOTICE.playbackHungry:
        this.#playbacks.get(record.a)?.feeder.hungry(record.b, record.c);
        return true;
      case NOTICE.playbackStarted:
        this.#started(this.#playbacks.get(record.a));
        return true;
      case NOTICE.playbackEnded:
        this.#ended(record.a);
        return true;
      case NOTICE.playbackStopped:
        this.#stopped(record.a);
        return true;
      default:
        return false;
    }
  }

  /** The feeder has handed everything over. What was fed is still heard; a failure before any sound is told at once. */
  #fed(number: number, failure: FeedFailure | undefined): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    playback.failure = failure;
    this.#options.order({ type: 'finish', leg: this.#options.id, playback: number });
    if (playback.feeder.fed > 0) return;
    this.#ended(number);
  }

  #started(playback: Playback | undefined): void {
    if (playback === undefined || playback.started) return;
    playback.started = true;
    this.#options.notify({ type: 'playback.started', operationUuid: playback.operationUuid });
  }

  #ended(number: number): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    const { operationUuid, failure } = playback;
    if (failure === undefined) {
      this.#started(playback); // a playlist of empty files starts and ends at once
      this.#forget(number);
      this.#options.notify({ type: 'playback.completed', operationUuid });
      return;
    }
    this.#forget(number);
    this.#options.notify({ type: 'playback.failed', operationUuid, reason: failure.reason, sourceIndex: failure.sourceIndex });
  }

  #stopped(number: number): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    playback.feeder.stop();
    this.#forget(number);
    this.#options.notify({ type: 'playback.stopped', operationUuid: playback.operationUuid });
  }

  #forget(number: number): void {
    this.#playbacks.delete(number);
    if (this.#current === number) this.#current = 0;
  }
}
