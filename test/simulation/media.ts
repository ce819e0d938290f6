/** The media engine of one simulated process: two workers, which can be lost, and sources that may not open. */
import type {
  Ingest,
  MediaEngine,
  MediaPipe,
  MediaRoom,
  PipeOptions,
  Playlist,
  Push,
  RoomNotice,
  SourceRefused,
} from '../../src/media/engine.ts';
import type { MediaNotice } from '../../src/notice/signal.ts';
import { type Pipes, SimulatedPipe } from './pipe.ts';
import { LegSound, SimulatedRoom, type SoundWorld } from './sound.ts';

const WORKERS = 2;

/** A playlist that remembers whether it was given back. */
class OpenedPlaylist implements Playlist {
  readonly urls: readonly string[];
  readonly #released: (playlist: OpenedPlaylist) => void;

  constructor(urls: readonly string[], released: (playlist: OpenedPlaylist) => void) {
    this.urls = urls;
    this.#released = released;
  }

  release(): void {
    this.#released(this);
  }
}

export class SimulatedMedia implements MediaEngine {
  readonly srtpSuites = [];
  readonly codecs = [];
  readonly webrtc = undefined;
  readonly #world: SoundWorld;
  readonly #legs = new Set<{ readonly sound: LegSound; readonly lost: () => void }>();
  readonly #rooms = new Set<SimulatedRoom>();
  /** Sources that were opened and not given back. */
  readonly #open = new Set<Playlist>();
  #rooms_made = 0;

  readonly #pipes: Pipes;

  constructor(world: SoundWorld, pipes: Pipes) {
    this.#world = world;
    this.#pipes = pipes;
  }

  /** Opened sources that nobody has given back. */
  get openSources(): number {
    return this.#open.size;
  }

  /** Legs, ends of pipes and rooms that are not closed. */
  get openSounds(): number {
    return [...this.#legs].filter(({ sound }) => !sound.isOver).length + [...this.#rooms].filter((room) => !room.isOver).length;
  }

  /** The sound of a new leg. `lost`: its worker died. */
  leg(notify: (notice: MediaNotice) => void, lost: () => void): LegSound {
    const sound = new LegSound(this.#world, this.#world.random.int(0, WORKERS - 1), notify);
    this.#legs.add({ sound, lost });
    return sound;
  }

  /** A media worker dies, with every leg and room on it. */
  loseWorker(): void {
    const worker = this.#world.random.int(0, WORKERS - 1);
    for (const room of [...this.#rooms]) {
      if (room.isOver) this.#rooms.delete(room);
      else if (room.worker === worker) room.lose();
    }
    for (const leg of [...this.#legs]) {
      if (!leg.sound.isOver && leg.sound.worker !== worker) continue;
      this.#legs.delete(leg);
      if (leg.sound.isOver) continue;
      leg.sound.lose();
      leg.lost();
    }
  }

  openRtpLeg = async () => undefined;
  openWebrtcLeg = async () => undefined;
  openStreamLeg = async () => undefined;

  async openPipe(options: PipeOptions): Promise<MediaPipe | undefined> {
    const pipe = new SimulatedPipe(this.#world, this.#world.random.int(0, WORKERS - 1), this.#pipes, options);
    this.#legs.add({ sound: pipe, lost: () => options.notify({ type: 'media.lost' }) });
    return pipe;
  }

  /** The time that each worker was busy. */
  ticks() {
    return [];
  }

  async openRoom(notify: (notice: RoomNotice) => void): Promise<MediaRoom | undefined> {
    this.#rooms_made += 1;
    const room = new SimulatedRoom(this.#world, this.#rooms_made, this.#world.random.int(0, WORKERS - 1), notify);
    this.#rooms.add(room);
    return room;
  }

  openPlaylist(urls: readonly string[]): Promise<Playlist | SourceRefused> {
    return this.#opened(urls);
  }

  openStream(url: string): Promise<Playlist | SourceRefused> {
    return this.#opened([url], []);
  }

  #opened(urls: readonly string[], told = urls): Promise<Playlist | SourceRefused> {
    const { scheduler, random, isAlive } = this.#world;
    const { promise, resolve } = Promise.withResolvers<Playlist | SourceRefused>();
    scheduler.after(random.between(5, random.chance(0.1) ? 4_000 : 150), () => {
      if (!isAlive()) return;
      if (random.chance(0.05))
        resolve({ refused: { reason: 'not_found', retryable: false, upstream_status: 404, source_index: 0 } });
      else resolve(this.#playlist(told));
    });
    return promise;
  }

  #playlist(urls: readonly string[]): Playlist {
    const playlist = new OpenedPlaylist(urls, (each) => this.#open.delete(each));
    this.#open.add(playlist);
    return playlist;
  }

  openPush(): Push {
    const ingest: Ingest = {
      accept: () => true,
      write: async () => false,
      end: () => {},
      fail: () => {},
      over: Promise.resolve(),
    };
    return { playlist: this.#playlist([]), ingest };
  }

  ready(): boolean {
    return true;
  }

  load() {
    return { legs: this.#legs.size, ports: 1_000, portsFree: 1_000 };
  }

  async close(): Promise<void> {}
}
