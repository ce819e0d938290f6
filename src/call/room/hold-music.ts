/**
 * The hold music of one Room: it is opened when a member is alone, and given up when it is not alone any more. The mix
 * itself decides to the frame when it is heard (native/plane/room/room.h). Nobody is told of it: a source that cannot
 * be opened or breaks off is silence and a line in the log, until the next time that a member is alone.
 */
import type { Log } from '../../log.ts';
import type { MediaEngine, MediaRoom } from '../../media/engine.ts';

interface HoldMusicOptions {
  readonly url: string;
  readonly roomId: string;
  readonly appUuid: string;
  readonly room: Pick<MediaRoom, 'playMusic' | 'stopMusic'>;
  readonly media: Pick<MediaEngine, 'openPlaylist'>;
  readonly log: Pick<Log, 'warn'>;
}

export class HoldMusic {
  readonly #options: HoldMusicOptions;
  #wanted = false;
  #opening = false;
  /** A member has come to be alone since the source was asked for. */
  #wantedAnew = false;

  constructor(options: HoldMusicOptions) {
    this.#options = options;
  }

  /** The number of members has changed. */
  members(count: number): void {
    const wanted = count === 1;
    if (wanted === this.#wanted) return;
    this.#wanted = wanted;
    this.#wantedAnew = wanted;
    if (!wanted) this.#options.room.stopMusic();
    else if (!this.#opening) void this.#play();
  }

  /** One opening at a time; what it gives is played if a member is alone by then, whoever that is. */
  async #play(): Promise<void> {
    const { media, room, url, appUuid } = this.#options;
    this.#opening = true;
    this.#wantedAnew = false;
    const playlist = await media.openPlaylist([url], appUuid).finally(() => {
      this.#opening = false;
    });
    if ('refused' in playlist) {
      this.#complain(playlist.refused.reason);
      if (this.#wantedAnew) await this.#play();
    } else if (this.#wanted) room.playMusic(playlist, (reason) => this.#complain(reason));
    else playlist.release();
  }

  #complain(reason: string): void {
    this.#options.log.warn({ room_id: this.#options.roomId, reason }, 'the hold music of a Room cannot be played');
  }
}
