/** The hold music of a room on the main thread: a playback in a player of its own, which the room gives a number. */
import type { Playlist } from '../audio.ts';
import type { DecoderThread } from '../decode/decoder.ts';
import { Playbacks } from '../playback/playbacks.ts';
import type { MediaWorker, PlaneListener } from '../worker/media-worker.ts';
import type { NoticeRecord } from '../worker/notice.ts';

/** The name of its playback, of which there is one at a time. */
const MUSIC = 'hold music';

interface HoldMusicOptions {
  /** The number of the room, and that of its music, of the range of legs and rooms. */
  readonly room: number;
  readonly number: number;
  readonly worker: MediaWorker;
  readonly decoders: DecoderThread;
  readonly nextPlayback: () => number;
}

export class PlaneHoldMusic implements PlaneListener {
  readonly #options: HoldMusicOptions;
  readonly #playbacks: Playbacks;
  #failed: (reason: string) => void = () => {};

  constructor(options: HoldMusicOptions) {
    const { room, number, worker, decoders, nextPlayback } = options;
    this.#options = options;
    this.#playbacks = new Playbacks({
      id: number,
      command: (command) => worker.command(command),
      decoders,
      notify: (notice) => {
        if (notice.type === 'playback.failed') this.#failed(notice.reason);
        // It repeats for ever, so that only a source without any sound comes to its end.
        if (notice.type === 'playback.completed') this.#failed('no sound');
      },
      nextPlayback,
    });
    worker.attach(number, this);
    worker.command({ type: 'open music', leg: room, music: number });
  }

  /** Plays it over and over. `failed` tells when it breaks off. */
  play(playlist: Playlist, rateHz: number, failed: (reason: string) => void): void {
    this.#failed = failed;
    this.#playbacks.play({ operationUuid: MUSIC, playlist, loop: 0, volume: 100 }, rateHz);
  }

  stop(): void {
    this.#playbacks.stop(MUSIC);
  }

  /** The room is closed or lost. */
  close(): void {
    this.#playbacks.close();
    this.#options.worker.detach(this.#options.number);
  }

  notice(record: NoticeRecord): void {
    this.#playbacks.notice(record);
  }

  opened(): void {}

  closed(): void {}

  stayed(): void {}

  lost(): void {
    this.close();
  }
}
