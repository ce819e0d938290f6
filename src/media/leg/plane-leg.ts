/**
 * The part of a leg on the main thread that does not depend on what carries its sound: a place on a worker, playbacks,
 * membership in rooms, and one end.
 */

import type { PlaybackControl } from '../../machine/playback/playback.ts';
import type { MediaNotice } from '../../notice/signal.ts';
import {
  type JoinOptions,
  type LegCounters,
  type MediaRecording,
  type MediaRoom,
  NO_COUNTERS,
  type PipeCodec,
  type PlayOptions,
  type Recordable,
  type RecordOptions,
  type RoomMember,
} from '../audio.ts';
import type { DecoderThread } from '../decode/decoder.ts';
import { Playbacks } from '../playback/playbacks.ts';
import { PlaneRecordings, type RecordingListeners } from '../recording/recordings.ts';
import type { MediaWorker, PlaneListener } from '../worker/media-worker.ts';
import { NOTICE, type NoticeRecord } from '../worker/notice.ts';
import { Placement } from '../worker/placement.ts';
import { PlaneRoom, wholePercent } from './plane-room.ts';

/** The kinds of answerers, by the numbers of `Answerer` in native/kernel/answer/answer_detector.h. */
const ANSWERERS = ['unknown', 'human', 'machine'] as const;

/** Stands for the errno of a leg whose worker died before it was open. */
export const WORKER_LOST = -1;

export interface PlaneLegOptions {
  readonly id: number;
  readonly worker: MediaWorker;
  readonly decoders: DecoderThread;
  readonly notify: (notice: MediaNotice) => void;
  readonly nextPlayback: () => number;
  /** A number for a recording, of the range of legs and rooms. */
  readonly nextNumber: () => number;
  readonly recordings: RecordingListeners;
  /** It is open (0), or why not (errno, or WORKER_LOST). Called once. */
  readonly opened: (errno: number) => void;
  /** Called once, when everything that the leg held is free again. */
  readonly freed: (counters: LegCounters) => void;
}

export abstract class PlaneLeg implements RoomMember, Recordable, PlaneListener {
  protected readonly id: number;
  protected readonly placement: Placement;
  protected readonly playbacks: Playbacks;
  readonly #recordings: PlaneRecordings;
  protected readonly notify: (notice: MediaNotice) => void;
  readonly #opened: (errno: number) => void;
  readonly #freed: (counters: LegCounters) => void;
  #closing: Promise<LegCounters> | undefined;
  #finished: ((counters: LegCounters) => void) | undefined;
  #isOpen = false;
  #lost = false;
  /** The operations whose keys are being sent, by their number on the plane. */
  readonly #keys = new Map<number, string>();
  #lastKeys = 0;
  /** The number of the room in which it has a seat. */
  #room: number | undefined;
  /** Seats that were given up and whose end the plane has still to tell, by the number of their room. */
  readonly #givenUp = new Map<number, number>();

  constructor(options: PlaneLegOptions) {
    this.id = options.id;
    this.notify = options.notify;
    this.#opened = options.opened;
    this.#freed = options.freed;
    this.placement = new Placement(options.id, this, options.worker);
    this.playbacks = new Playbacks({
      id: options.id,
      command: (command) => this.placement.command(command),
      decoders: options.decoders,
      notify: options.notify,
      nextPlayback: options.nextPlayback,
    });
    this.#recordings = new PlaneRecordings({
      id: options.id,
      command: (command) => this.placement.command(command),
      notify: options.notify,
      nextNumber: options.nextNumber,
      listeners: options.recordings,
    });
  }

  /** Rate of the sound it plays. */
  protected abstract get rateHz(): number;

  /** The codec in which its sound goes to another node with the least loss and work. */
  abstract get pipeCodec(): PipeCodec;

  protected get over(): boolean {
    return this.#closing !== undefined || this.#lost;
  }

  play(options: PlayOptions): void {
    this.playbacks.play(options, this.rateHz);
  }

  stopPlayback(operationUuid: string): void {
    this.playbacks.stop(operationUuid);
  }

  controlPlayback(operationUuid: string, control: PlaybackControl): void {
    this.playbacks.control(operationUuid, control);
  }

  record(options: RecordOptions): MediaRecording {
    return this.#recordings.record(options);
  }

  sendKeys(operationUuid: string, keys: string, durationMs: number, gapMs: number): void {
    if (this.over) return;
    const number = ++this.#lastKeys;
    this.#keys.set(number, operationUuid);
    this.placement.command({ type: 'keys', leg: this.id, number, keys, durationMs, gapMs });
  }

  detectMachine(timeoutMs: number): void {
    if (!this.over) this.placement.command({ type: 'answerer', leg: this.id, timeoutMs });
  }

  detectTones(on: boolean): void {
    this.placement.command({ type: 'tones', leg: this.id, on });
  }

  join(room: MediaRoom, options: JoinOptions): void {
    if (!(room instanceof PlaneRoom)) throw new TypeError('a room of another engine');
    const worker = this.over ? undefined : room.seat();
    if (worker === undefined) {
      this.notify({ type: 'room.left', room: room.number });
      return;
    }
    if (this.#room !== room.number) this.#giveUpSeat();
    this.#room = room.number;
    this.placement.moveTo(worker);
    this.placement.command({
      type: 'join',
      leg: this.id,
      room: room.number,
      muted: options.muted,
      from: wholePercent(options.fromVolumePercent),
      to: wholePercent(options.toVolumePercent),
    });
    if (options.coach !== undefined) this.coach(options.coach.of);
  }

  coach(of: RoomMember | undefined): void {
    this.placement.command({ type: 'coach', leg: this.id, coached: of instanceof PlaneLeg ? of.id : 0 });
  }

  leave(): void {
    this.#giveUpSeat();
    this.placement.command({ type: 'leave', leg: this.id });
  }

  #giveUpSeat(): void {
    if (this.#room === undefined) return;
    this.#givenUp.set(this.#room, (this.#givenUp.get(this.#room) ?? 0) + 1);
    this.#room = undefined;
  }

  /**
   * The plane tells the end of a seat. That of one which was given up is told as asked for, because the next order to
   * join the same room may be under way already; nothing is told while the leg has another seat in that room.
   */
  #seatEnded(room: number): void {
    const before = this.#givenUp.get(room) ?? 0;
    if (before > 1) this.#givenUp.set(room, before - 1);
    else this.#givenUp.delete(room);
    if (before > 0) {
      if (this.#room !== room) this.notify({ type: 'room.left', room, isAsked: true });
      return;
    }
    if (this.#room === room) this.#room = undefined;
    this.notify({ type: 'room.left', room });
  }

  setMuted(muted: boolean): void {
    this.placement.command({ type: 'mute', leg: this.id, muted });
  }

  setVolume(direction: 'from_member' | 'to_member', percent: number): boolean {
    if (this.over) return false;
    this.placement.command({
      type: 'room volume',
      leg: this.id,
      from: direction === 'from_member',
      percent: wholePercent(percent),
    });
    return true;
  }

  counters(): Promise<LegCounters> {
    return this.#lost ? Promise.resolve(NO_COUNTERS) : (this.#closing ?? this.placement.counters());
  }

  close(): Promise<LegCounters> {
    this.#closing ??= new Promise((resolve) => {
      this.#finished = resolve;
      this.playbacks.close();
      this.#recordings.close();
      if (this.#lost) resolve(NO_COUNTERS);
      else this.placement.command({ type: 'close', leg: this.id });
    });
    return this.#closing;
  }

  opened(errno: number): void {
    if (errno !== 0) this.placement.detach();
    this.#isOpen = errno === 0;
    this.#opened(errno);
  }

  stayed(): void {
    this.placement.settled(false);
  }

  notice(record: NoticeRecord): void {
    if (this.playbacks.notice(record)) return;
    switch (record.kind) {
      case NOTICE.mediaStarted:
        this.notify({ type: 'media.started' });
        break;
      case NOTICE.mediaTimeout:
        this.notify({ type: 'media.timeout' });
        break;
      case NOTICE.keysSent: {
        const operationUuid = this.#keys.get(record.a);
        this.#keys.delete(record.a);
        if (operationUuid !== undefined) this.notify({ type: 'keys.sent', keysOf: operationUuid });
        break;
      }
      case NOTICE.digit:
        this.notify({
          type: 'digit',
          digit: String.fromCharCode(record.a),
          durationMs: record.b,
          method: record.c === 1 ? 'inband' : 'rfc4733',
        });
        break;
      case NOTICE.keyDown:
        this.notify({
          type: 'key.down',
          digit: String.fromCharCode(record.a),
          method: record.c === 1 ? 'inband' : 'rfc4733',
        });
        break;
      case NOTICE.keyUp:
        this.notify({ type: 'key.up' });
        break;
      case NOTICE.payloadType:
        this.notify({ type: 'payload.changed', payloadType: record.a });
        break;
      case NOTICE.roomJoined:
        this.notify({ type: 'room.joined', room: record.a });
        break;
      case NOTICE.roomLeft:
        this.#seatEnded(record.a);
        break;
      case NOTICE.voice:
        this.notify({ type: 'voice', talking: record.a === 1 });
        break;
      case NOTICE.answerer:
        this.notify({ type: 'machine.detected', result: ANSWERERS[record.a] ?? 'unknown', afterMs: record.b });
        break;
      case NOTICE.greetingEnded:
        this.notify({ type: 'machine.greeting_ended', beep: record.a === 1 });
        break;
      case NOTICE.moved:
        this.placement.settled(true);
        break;
    }
  }

  closed(counters: LegCounters): void {
    this.placement.detach();
    this.#freed(counters);
    this.#finished?.(counters);
  }

  lost(): void {
    if (this.#lost) return;
    this.#lost = true;
    this.placement.lost();
    this.playbacks.lost();
    this.#recordings.lost();
    if (!this.#isOpen) this.#opened(WORKER_LOST);
    else if (this.#closing === undefined) this.notify({ type: 'media.lost' });
    this.closed(NO_COUNTERS);
  }
}
