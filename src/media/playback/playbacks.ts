/**
 * The playbacks of one leg or room on the main thread: each has a pump, its commands go to the plane, its records
 * become notices.
 */
import type { PlaybackControl } from '../../machine/playback/playback.ts';
import type { MediaNotice } from '../../notice/signal.ts';
import type { PlayOptions } from '../audio.ts';
import type { DecoderThread } from '../decode/decoder.ts';
import { NOTICE, type NoticeRecord } from '../worker/notice.ts';
import type { WorkerCommand } from '../worker/worker-command.ts';
import { Playable } from './pcm-source.ts';
import { type FeedFailure, PlaybackPump } from './playback-pump.ts';

type PlaybackNotice = Extract<MediaNotice, { readonly operationUuid: string; readonly type: `playback.${string}` }>;

/** A notice before the playback that it is of is named. */
type Unnamed<N> = N extends PlaybackNotice ? Omit<N, 'operationUuid'> : never;

interface Playback {
  readonly operationUuid: string;
  readonly playable: Playable;
  readonly pump: PlaybackPump;
  started: boolean;
  failure: FeedFailure | undefined;
  /** Another playback of the same name has taken its place, which nothing may be told of twice. */
  isReplaced: boolean;
}

interface PlaybacksOptions {
  /** The leg or room in the plane. */
  readonly id: number;
  readonly command: (command: WorkerCommand) => void;
  readonly decoders: DecoderThread;
  readonly notify: (notice: PlaybackNotice) => void;
  readonly nextPlayback: () => number;
}

export class Playbacks {
  readonly #options: PlaybacksOptions;
  /** The playbacks whose last notice has not come, by their number in the plane. */
  readonly #playbacks = new Map<number, Playback>();
  #current = 0;
  #over = false;

  constructor(options: PlaybacksOptions) {
    this.#options = options;
  }

  /** Plays instead of what was playing, at the rate it is heard with. */
  play(options: PlayOptions, rateHz: number): void {
    const { playlist, operationUuid } = options;
    if (!(playlist instanceof Playable)) throw new TypeError('a playlist of another engine');
    if (this.#over) {
      playlist.release();
      this.#options.notify({ type: 'playback.failed', operationUuid, reason: 'media_unavailable' });
      return;
    }
    this.#halt(this.#playbacks.get(this.#current));
    for (const before of this.#playbacks.values()) before.isReplaced ||= before.operationUuid === operationUuid;
    const { id, command, decoders } = this.#options;
    const playback = this.#options.nextPlayback();
    this.#current = playback;
    command({ type: 'play', leg: id, playback, rateHz, volume: options.volume });
    const pump = new PlaybackPump({
      source: playlist.source({ loop: options.loop, rateHz, decoders }),
      rateHz,
      move: () => command({ type: 'seek', leg: id, playback }),
      feed: (pcm) => command({ type: 'feed', leg: id, playback, pcm }),
      done: (failure) => this.#fed(playback, failure),
    });
    this.#playbacks.set(playback, {
      operationUuid,
      playable: playlist,
      pump,
      started: false,
      failure: undefined,
      isReplaced: false,
    });
  }

  stop(operationUuid: string): void {
    const playing = this.#playbacks.get(this.#current);
    if (playing === undefined || playing.operationUuid !== operationUuid) return;
    this.#halt(playing);
    this.#options.command({ type: 'stop', leg: this.#options.id, playback: this.#current });
  }

  /** Holds, goes on with, or moves within the playback of that operation; no effect where another one plays or none. */
  control(operationUuid: string, control: PlaybackControl): void {
    const playing = this.#playbacks.get(this.#current);
    if (playing === undefined || playing.operationUuid !== operationUuid) return;
    const pause = (paused: boolean) =>
      this.#options.command({ type: 'pause', leg: this.#options.id, playback: this.#current, paused });
    switch (control.type) {
      case 'pause':
        pause(true);
        break;
      case 'resume':
        pause(false);
        break;
      case 'restart':
        playing.pump.seek({ positionMs: 0 });
        pause(false);
        break;
      case 'seek':
        playing.pump.seek(control.place);
        break;
    }
  }

  /** The leg or room is being closed: nothing more is fed, and the plane tells that what plays was stopped. */
  close(): void {
    this.#over = true;
    for (const playback of this.#playbacks.values()) this.#halt(playback);
  }

  /** The plane is gone. */
  lost(): void {
    this.close();
    for (const [number, playback] of this.#playbacks) {
      this.#playbacks.delete(number);
      this.#tell(playback, { type: 'playback.failed', reason: 'media_unavailable' });
    }
  }

  /** Takes a record of the plane. False where it is not of a playback. */
  notice(record: NoticeRecord): boolean {
    switch (record.kind) {
      case NOTICE.playbackHungry:
        this.#playbacks.get(record.a)?.pump.hungry(record.b, record.c);
        return true;
      case NOTICE.playbackMoved:
        this.#moved(this.#playbacks.get(record.a), record.b);
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

  /** The pump has handed everything over. What was fed is still heard; a failure before any sound is told at once. */
  #fed(number: number, failure: FeedFailure | undefined): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    playback.failure = failure;
    this.#options.command({ type: 'finish', leg: this.#options.id, playback: number });
    if (playback.pump.fed > 0) return;
    this.#ended(number);
  }

  #started(playback: Playback | undefined): void {
    if (playback === undefined || playback.started) return;
    playback.started = true;
    this.#tell(playback, { type: 'playback.started' });
  }

  #ended(number: number): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    const { failure } = playback;
    if (failure === undefined) {
      this.#started(playback); // a playlist of empty files starts and ends at once
      this.#forget(number);
      this.#tell(playback, { type: 'playback.completed' });
      return;
    }
    this.#forget(number);
    this.#tell(playback, {
      type: 'playback.failed',
      reason: failure.reason,
      ...(failure.sourceIndex === undefined ? {} : { sourceIndex: failure.sourceIndex }),
    });
  }

  #stopped(number: number): void {
    const playback = this.#playbacks.get(number);
    if (playback === undefined) return;
    this.#forget(number);
    this.#tell(playback, { type: 'playback.stopped' });
  }

  /** Whoever replaced a playback by one of the same name has told of its end already. */
  #tell({ operationUuid, isReplaced }: Playback, notice: Unnamed<PlaybackNotice>): void {
    if (!isReplaced) this.#options.notify({ ...notice, operationUuid });
  }

  /** Another place follows. The playback had not ended before the seek, which is known only now. */
  #moved(playback: Playback | undefined, taken: number): void {
    if (playback === undefined) return;
    playback.failure = undefined; // it may lie behind the new place
    playback.pump.moved(taken);
  }

  #halt(playback: Playback | undefined): void {
    playback?.pump.stop();
    playback?.playable.release();
  }

  #forget(number: number): void {
    this.#halt(this.#playbacks.get(number));
    this.#playbacks.delete(number);
    if (this.#current === number) this.#current = 0;
  }
}
