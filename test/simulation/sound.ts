/** The sound of a leg or a Room without sound: what was ordered is told as the media plane would tell it, in time. */
import type {
  JoinOptions,
  LegAudio,
  MediaRecording,
  MediaRoom,
  PlaybackControl,
  PlayOptions,
  RecordOptions,
  RoomNotice,
} from '../../src/media/engine.ts';
import type { MediaNotice } from '../../src/notice/signal.ts';
import type { Timers } from './gate.ts';
import type { Random } from './random.ts';

/** What the sounds of one process share. */
export interface SoundWorld {
  readonly scheduler: Timers;
  readonly random: Random;
  readonly isAlive: () => boolean;
  /** The process runs: it is alive, and does not stand still. */
  readonly isRunning: () => boolean;
  /** The files of recordings, which outlive the process: milliseconds of audio by path. */
  readonly files: Map<string, number>;
}

type SoundNotice = Extract<MediaNotice, { readonly type: `playback.${string}` | `recording.${string}` | `speech.${string}` }>;

interface Playing {
  readonly options: PlayOptions;
  cancel: () => void;
}

interface Growing {
  readonly path: string;
  readonly since: number;
  cancel: () => void;
}

const END_MS = 15;

class Sound {
  protected readonly world: SoundWorld;
  readonly #notify: (notice: SoundNotice) => void;
  #playing: Playing | undefined;
  readonly #growing = new Map<string, Growing>();
  #isOver = false;

  constructor(world: SoundWorld, notify: (notice: SoundNotice) => void) {
    this.world = world;
    this.#notify = notify;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  protected later(ms: number, run: () => void): () => void {
    return this.world.scheduler.after(ms, () => {
      if (this.world.isAlive()) run();
    });
  }

  play(options: PlayOptions): void {
    if (this.#isOver) {
      options.playlist.release();
      return;
    }
    this.#stop('playback.stopped');
    const playing: Playing = { options, cancel: () => {} };
    this.#playing = playing;
    playing.cancel = this.later(this.world.random.between(5, 80), () => this.#start(playing));
  }

  #start(playing: Playing): void {
    const { operationUuid } = playing.options;
    const { random } = this.world;
    if (random.chance(0.08)) {
      this.#over(playing);
      this.#notify({ type: 'playback.failed', operationUuid, reason: 'media_unavailable' });
      return;
    }
    this.#notify({ type: 'playback.started', operationUuid });
    this.#arm(playing);
  }

  #arm(playing: Playing): void {
    const { operationUuid, loop } = playing.options;
    if (loop === 0) return;
    playing.cancel = this.later(this.world.random.between(200, 15_000), () => {
      this.#over(playing);
      this.#notify({ type: 'playback.completed', operationUuid });
    });
  }

  #over(playing: Playing): void {
    playing.cancel();
    playing.options.playlist.release();
    if (this.#playing === playing) this.#playing = undefined;
  }

  #stop(type: 'playback.stopped'): void {
    const playing = this.#playing;
    if (playing === undefined) return;
    this.#over(playing);
    const { operationUuid } = playing.options;
    this.later(END_MS, () => this.#notify({ type, operationUuid }));
  }

  stopPlayback(operationUuid: string): void {
    if (this.#playing?.options.operationUuid === operationUuid) this.#stop('playback.stopped');
  }

  controlPlayback(operationUuid: string, control: PlaybackControl): void {
    const playing = this.#playing;
    if (playing?.options.operationUuid !== operationUuid) return;
    playing.cancel();
    if (control.type !== 'pause') this.#arm(playing);
  }

  record({ recordingUuid, path }: RecordOptions): MediaRecording {
    const { scheduler, random, files } = this.world;
    const growing: Growing = { path, since: scheduler.now, cancel: () => {} };
    this.#growing.set(recordingUuid, growing);
    if (this.#isOver) this.#breakOff(recordingUuid, 'media_unavailable');
    else if (random.chance(0.06)) this.later(END_MS, () => this.#breakOff(recordingUuid, 'cannot_open'));
    else {
      growing.cancel = this.later(random.between(900, 1_200), () => {
        files.set(path, 1_000);
        this.#notify({ type: 'recording.started', recordingUuid });
        if (random.chance(0.1))
          growing.cancel = this.later(random.between(10, 20_000), () => this.#breakOff(recordingUuid, 'cannot_write'));
      });
    }
    return { mask: () => {}, unmask: () => {}, stop: () => this.#finish(recordingUuid) };
  }

  #breakOff(recordingUuid: string, reason: 'cannot_open' | 'cannot_write' | 'media_unavailable'): void {
    const durationMs = this.#close(recordingUuid);
    if (durationMs !== undefined) this.#notify({ type: 'recording.failed', recordingUuid, reason, durationMs });
  }

  #finish(recordingUuid: string): void {
    const durationMs = this.#close(recordingUuid);
    if (durationMs === undefined) return;
    this.later(this.world.random.between(5, this.world.random.chance(0.05) ? 9_000 : 400), () =>
      this.#notify({ type: 'recording.ended', recordingUuid, durationMs, bytes: durationMs * 16 }),
    );
  }

  /** Returns the milliseconds of audio in the file, or undefined where the recording was over before. */
  #close(recordingUuid: string): number | undefined {
    const growing = this.#growing.get(recordingUuid);
    if (growing === undefined) return undefined;
    growing.cancel();
    this.#growing.delete(recordingUuid);
    const durationMs = Math.floor(this.world.scheduler.now - growing.since);
    this.world.files.set(growing.path, durationMs);
    return durationMs;
  }

  /** The leg or Room ends: what plays is stopped, and its recordings are finished. Resolves with the last notice. */
  close(): Promise<unknown> {
    if (this.#isOver) return Promise.resolve();
    this.#isOver = true;
    this.#stop('playback.stopped');
    for (const recordingUuid of [...this.#growing.keys()]) this.#finish(recordingUuid);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.later(END_MS + 1, resolve);
    return promise;
  }

  /** The worker is lost, and the sound with it. */
  lose(): void {
    this.#isOver = true;
    const playing = this.#playing;
    if (playing !== undefined) this.#over(playing);
    for (const recordingUuid of [...this.#growing.keys()]) this.#breakOff(recordingUuid, 'media_unavailable');
  }
}

export class SimulatedRoom extends Sound implements MediaRoom {
  readonly number: number;
  readonly worker: number;
  readonly members = new Set<LegSound>();
  tellsVoices = false;
  readonly #tell: (notice: RoomNotice) => void;

  constructor(world: SoundWorld, number: number, worker: number, notify: (notice: RoomNotice) => void) {
    super(world, notify);
    this.number = number;
    this.worker = worker;
    this.#tell = notify;
  }

  setPlaybackVolume(): void {}

  playMusic(playlist: { release(): void }): void {
    playlist.release();
  }

  stopMusic(): void {}

  setVoiceActivity(on: boolean): void {
    this.tellsVoices = on;
  }

  override async close(): Promise<void> {
    for (const member of [...this.members]) member.leave();
    await super.close();
  }

  override lose(): void {
    super.lose();
    for (const member of [...this.members]) member.leave();
    this.#tell({ type: 'room.lost' });
  }
}

/** The sound of a leg. */
export class LegSound extends Sound implements LegAudio {
  readonly pipeCodec = 'PCMU' as const;
  worker: number;
  readonly #hear: (notice: MediaNotice) => void;
  #room: SimulatedRoom | undefined;
  #isMuted = false;
  #isTalking = false;

  constructor(world: SoundWorld, worker: number, notify: (notice: MediaNotice) => void) {
    super(world, notify);
    this.worker = worker;
    this.#hear = notify;
  }

  /** The room that it is in. */
  get room(): SimulatedRoom | undefined {
    return this.#room;
  }

  get isMuted(): boolean {
    return this.#isMuted;
  }

  join(room: MediaRoom, { muted }: JoinOptions): void {
    if (this.isOver || this.#room === room) return;
    this.leave();
    if (!(room instanceof SimulatedRoom)) throw new Error('a room of another engine');
    this.#isMuted = muted;
    if (room.isOver) {
      this.later(END_MS, () => this.#hear({ type: 'room.left', room: room.number }));
      return;
    }
    this.#room = room;
    this.worker = room.worker;
    room.members.add(this);
    this.later(this.world.random.between(15, 120), () => {
      if (this.#room !== room) return;
      this.#hear({ type: 'room.joined', room: room.number });
      this.#talk(room);
    });
  }

  /** Talks now and then, for as long as it is in the Room. */
  #talk(room: SimulatedRoom): void {
    this.later(this.world.random.between(300, 6_000), () => {
      if (this.#room !== room) return;
      if (room.tellsVoices && (!this.#isMuted || this.#isTalking)) {
        this.#isTalking = !this.#isTalking;
        this.#hear({ type: 'voice', talking: this.#isTalking });
      }
      this.#talk(room);
    });
  }

  leave(): void {
    const room = this.#room;
    if (room === undefined) return;
    this.#room = undefined;
    this.#isTalking = false;
    room.members.delete(this);
    this.later(END_MS, () => this.#hear({ type: 'room.left', room: room.number, isAsked: true }));
  }

  setMuted(muted: boolean): void {
    this.#isMuted = muted;
  }

  coach(): void {}

  setVolume(): boolean {
    return !this.isOver;
  }

  override close(): Promise<unknown> {
    this.leave();
    return super.close();
  }

  override lose(): void {
    this.#room?.members.delete(this);
    this.#room = undefined;
    super.lose();
  }
}
