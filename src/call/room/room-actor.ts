/**
 * One live Room: its state, its mix and the places in it. Orders are taken one at a time: step → commit → perform. A
 * place is taken before a Session is told to join and given back when its leave is durable, so that the cap holds
 * however many join at once.
 */

import type { Change, RoomRow } from '../../database/journal/journal.ts';
import {
  type RoomCommand,
  type RoomEffect,
  type RoomInput,
  type RoomPlayback,
  type RoomState,
  type RoomStep,
  roomDeadline,
  roomRefusal,
  stepRoom,
} from '../../machine/room/room.ts';
import type { MediaRoom, Playlist, RoomNotice } from '../../media/engine.ts';
import { isOfPlayback } from '../../notice/signal.ts';
import { type Problem, problems } from '../../problem.ts';
import { type Envelope, Mailbox, refuse } from '../mailbox.ts';
import type { Answer, CommandContext } from '../ports/sessions.ts';
import { LiveRecordings } from '../recording/live-recordings.ts';
import type { ActorEnvironment } from '../session/session-actor.ts';
import { isEmpty, stepChange } from '../step-change.ts';
import { Traces } from '../traces.ts';
import { Coaches } from './coaches.ts';
import { HoldMusic } from './hold-music.ts';
import { roomIsMoving } from './room-moving.ts';

export interface RoomEnvironment
  extends Pick<ActorEnvironment, 'journal' | 'clock' | 'log' | 'nodeId' | 'turns' | 'media' | 'recordings'> {
  /** Tells every member to leave. */
  dismiss(room: RoomActor): void;
  onDeleted(roomId: string): void;
  /** The Room could not be stored. */
  onNeverBegan(roomId: string): void;
  /** Another node has the Room by now. */
  onTaken(room: RoomActor): void;
}

export class RoomActor {
  #state: RoomState;
  #row: RoomRow | undefined;
  readonly #isDoomed: boolean;
  readonly media: MediaRoom;
  readonly epoch: number;
  readonly coaches = new Coaches();
  /** The application's cap of members, as this node heard of it last. */
  mostMembers = Infinity;
  /** It is being given up to another node: nobody may join it any more, and it takes no orders. */
  isLeaving = false;
  readonly #environment: RoomEnvironment;
  readonly #members = new Map<string, 'reserved' | 'joining' | 'joined'>();
  /** Sessions that ask to join, each with the number of its joins whose outcome is open. */
  readonly #asking = new Map<string, number>();
  /** The bots that have joined. */
  readonly #bots = new Set<string>();
  readonly #music: HoldMusic | undefined;
  readonly #recordings: LiveRecordings;
  readonly #mailbox: Mailbox<RoomInput>;
  readonly #traces = new Traces();
  /** The sources of a play are being opened. */
  #isOpening = false;

  /**
   * `epoch` is that of the row: how often the Room was taken over. `isDoomed`: by its row it is to be deleted, and its
   * row goes on saying so, whatever is stored of it before that is done.
   */
  constructor(state: RoomState, media: MediaRoom, environment: RoomEnvironment, epoch = 0, isDoomed = false) {
    this.epoch = epoch;
    this.#isDoomed = isDoomed;
    this.#state = state;
    this.media = media;
    this.#environment = environment;
    this.#recordings = new LiveRecordings((terms) => environment.recordings.orderOf(terms));
    this.#mailbox = new Mailbox({
      journal: environment.journal,
      clock: environment.clock,
      log: environment.log,
      owner: 'Room',
      logged: { room_id: state.roomId },
      take: (envelope) => this.#take(envelope),
      turn: (isGone) => environment.turns?.take(state.appUuid, isGone),
      dropped: (input) => this.#dropped(input),
      nextDeadline: () => roomDeadline(this.#state),
      deadline: { type: 'deadline' },
      broken: { type: 'broken' },
      brokenAgain: () => {
        void media.close();
        environment.onDeleted(this.#state.roomId);
      },
    });
    this.#detectVoices();
    const { media: engine, log } = environment;
    const { holdMusicUrl: url, roomId, appUuid } = state;
    this.#music = url === '' ? undefined : new HoldMusic({ url, roomId, appUuid, room: media, media: engine, log });
  }

  get state(): RoomState {
    return this.#state;
  }

  /** Sessions that have joined. */
  get joined(): readonly string[] {
    return [...this.#members].filter(([, phase]) => phase === 'joined').map(([sessionUuid]) => sessionUuid);
  }

  /** Sessions that have a place, joined or still joining. */
  get places(): readonly string[] {
    return [...this.#members.keys()];
  }

  has(sessionUuid: string): boolean {
    return this.#members.has(sessionUuid);
  }

  /** The reason why a Session may take no place now, or undefined. `most` is the application's cap of members. */
  seatRefusal(
    { appUuid, sessionUuid, coach }: { readonly appUuid: string; readonly sessionUuid: string; readonly coach?: string },
    most: number,
  ): Problem | undefined {
    if (this.#state.appUuid !== appUuid) return problems.notFound('Room');
    this.mostMembers = most;
    if (this.#isDoomed || this.#state.phase !== 'open') return problems.conflict('Room is being deleted');
    if (this.isLeaving) return roomIsMoving;
    if (coach !== undefined && (coach === sessionUuid || !this.joined.includes(coach)))
      return problems.conflict('The Session to coach is not a member of the room');
    return this.has(sessionUuid) || this.#members.size < most ? undefined : problems.roomFull();
  }

  take(sessionUuid: string): void {
    this.#members.set(sessionUuid, 'joining');
  }

  /** Keeps a place for a Session that asks to join, also where it leaves before. Returns what ends that. */
  hold(sessionUuid: string): () => void {
    if (!this.has(sessionUuid)) this.take(sessionUuid);
    this.#asking.set(sessionUuid, (this.#asking.get(sessionUuid) ?? 0) + 1);
    return () => {
      const left = (this.#asking.get(sessionUuid) ?? 0) - 1;
      if (left > 0) this.#asking.set(sessionUuid, left);
      else this.#asking.delete(sessionUuid);
    };
  }

  /** Keeps a place for a Session that has not been answered yet. */
  reserve(sessionUuid: string): void {
    this.#members.set(sessionUuid, 'reserved');
  }

  /** Sessions that have a place and have not been answered yet. */
  get reserved(): readonly string[] {
    return [...this.#members].filter(([, phase]) => phase === 'reserved').map(([sessionUuid]) => sessionUuid);
  }

  /** A Session has joined. While a bot is in the Room, voices are told whether or not events of them are. */
  confirm(sessionUuid: string, isBot: boolean): void {
    if (!this.#members.has(sessionUuid)) return;
    this.#members.set(sessionUuid, 'joined');
    this.#music?.members(this.joined.length);
    if (isBot && this.#bots.add(sessionUuid).size === 1) this.#detectVoices();
  }

  giveBack(sessionUuid: string): void {
    if (this.#bots.delete(sessionUuid) && this.#bots.size === 0) this.#detectVoices();
    if (!this.#members.delete(sessionUuid)) return;
    if (this.#asking.has(sessionUuid)) this.take(sessionUuid);
    this.coaches.left(sessionUuid);
    this.#music?.members(this.joined.length);
    if (this.#members.size === 0) this.signal({ type: 'empty' });
  }

  /** Has the mix tell who talks while anyone is to hear of it: the application by events, or a bot. */
  #detectVoices(): void {
    this.media.setVoiceActivity(this.#state.voiceActivityEvents || this.#bots.size > 0);
  }

  /** Nobody is in it, nothing goes on in it, and nothing was asked of it that is still to be done. */
  get isIdle(): boolean {
    const { phase, playback, recording } = this.#state;
    const isAtRest = phase === 'open' && !this.#isDoomed && playback === undefined && recording === undefined;
    return isAtRest && this.#members.size === 0 && this.#mailbox.isIdle;
  }

  /** Opens the sources of a play, which is being carried out from here on, unless it would be refused. */
  async open<S>(sources: () => Promise<S>): Promise<S | Problem> {
    const refused = roomRefusal(this.#state, 'play', this.#isOpening);
    if (refused !== undefined) return refused;
    this.#isOpening = true;
    return await sources().finally(() => {
      this.#isOpening = false;
    });
  }

  begin(context: CommandContext, answer: Answer): Promise<Answer | Problem> {
    return this.#mailbox.ask({ type: 'begin' }, { context, answer });
  }

  /** Takes over `playlist`: it is played, or released when the order is refused. */
  async order(order: RoomCommand, context: CommandContext, answer: Answer, playlist?: Playlist): Promise<Answer | Problem> {
    const { operationUuid } = context;
    if (this.isLeaving) {
      playlist?.release();
      return roomIsMoving;
    }
    // A play whose own sources are open is not held back by another that begins to open its.
    const isHeldBack = this.#isOpening && playlist === undefined;
    const refused = isHeldBack ? roomRefusal(this.#state, order.type, true) : undefined;
    if (refused !== undefined) return refused;
    return await this.#mailbox.ask({ type: 'command', command: order, operationUuid }, { context, answer, playlist });
  }

  /** Takes a notice of the Room's mix. */
  hear(notice: RoomNotice): void {
    const { playback } = this.#state;
    if (notice.type === 'recording.failed') this.#environment.recordings.complain(notice);
    if (notice.type !== 'room.lost') this.signal({ type: 'media', notice });
    else if (playback !== undefined)
      this.signal({
        type: 'media',
        notice: { type: 'playback.failed', operationUuid: playback.operationUuid, reason: 'media_unavailable' },
      });
  }

  signal(input: RoomInput): void {
    this.#mailbox.signal(input);
  }

  /** Stops its recording. Resolves when that is ordered. */
  async shutdown(): Promise<void> {
    this.#mailbox.signal({ type: 'shutdown' });
    await this.#mailbox.drained();
  }

  async #take(envelope: Envelope<RoomInput>): Promise<void> {
    const { input, context, answer, playlist, reply } = envelope;
    const { clock, recordings } = this.#environment;
    // Somebody has come while it waited.
    if (input.type === 'empty' && this.#members.size > 0) return;
    const now = clock.now();
    const next = stepRoom(this.#state, input, now);
    if (next.refused !== undefined) {
      refuse(envelope, next.refused);
      return;
    }
    if (context !== undefined) this.#traces.take(context);
    const change = this.#changeOf(next, envelope, now);
    const outcome = change === undefined ? 'stored' : await this.#mailbox.commit(change, envelope);
    if (outcome === 'elsewhere') this.#takenOver(envelope);
    if (outcome === 'refused' && input.type === 'begin') this.#neverBegan();
    if (outcome === 'gone') recordings.leftBehind(this.#state.appUuid, next.recordings ?? []);
    if (outcome === 'refused' || outcome === 'elsewhere' || outcome === 'gone') return;
    this.#state = next.state;
    if (change?.room !== undefined) this.#row = change.room;
    recordings.committed(this.#state.appUuid, next.recordings ?? []);
    this.#recordings.settle(next.recordings ?? []);
    for (const effect of next.effects) this.#perform(effect, playlist);
    if (answer !== undefined) reply?.(answer);
    // The deletion of a Room that nobody is in, or no longer.
    if (next.state.phase === 'deleting' && this.#members.size === 0 && input.type !== 'empty') this.signal({ type: 'empty' });
    if (next.state.phase === 'deleted') this.#mailbox.close();
  }

  #neverBegan(): void {
    this.abandon();
    this.#environment.onNeverBegan(this.#state.roomId);
  }

  /** Another node has the Room by now: nothing of this one is told any more. */
  #takenOver(envelope: Envelope<RoomInput>): void {
    refuse(envelope, problems.notFound('Room'));
    this.#lateRecording(envelope.input);
    this.#mailbox.close();
    this.#environment.onTaken(this);
  }

  /** The Room is not this node's any more: its mix is closed, and nothing is written or told. */
  abandon(): void {
    const { recording, roomId } = this.#state;
    this.#mailbox.close();
    void this.media.close();
    this.#environment.recordings.abandoned(recording === undefined ? [] : [recording]);
    this.#environment.onDeleted(roomId);
  }

  /** The Room is gone, or its time was over before it could begin. */
  #dropped(input: RoomInput): void {
    if (input.type === 'begin') this.#neverBegan();
    this.#lateRecording(input);
  }

  /** The end of a recording that the Room does not take any more is told of without it. */
  #lateRecording(input: RoomInput): void {
    if (input.type === 'media' && 'recordingUuid' in input.notice) this.#environment.recordings.late(input.notice);
  }

  #changeOf(next: RoomStep, envelope: Envelope<RoomInput>, now: number): Change | undefined {
    const { state } = next;
    const row: RoomRow = {
      roomId: state.roomId,
      appUuid: state.appUuid,
      nodeId: this.#environment.nodeId,
      epoch: this.epoch,
      voiceActivityEvents: state.voiceActivityEvents,
      holdMusicUrl: state.holdMusicUrl,
      volume: state.volume,
      deleting: this.#isDoomed || state.phase !== 'open',
      playback: playbackText(state.playback),
      createdAt: state.createdAt,
      deletedAt: state.phase === 'deleted' ? now : undefined,
    };
    const before = this.#row;
    const rowChanged =
      row.deleting !== before?.deleting ||
      row.volume !== before.volume ||
      row.playback !== before.playback ||
      row.deletedAt !== before.deletedAt;
    const { appUuid, roomId: room_id } = state;
    const about = { appUuid, clientState: '', traces: this.#traces, now, owner: { room_id } };
    const change = stepChange(next, envelope, about, this.#environment.recordings);
    // Nothing is written without the row, whose epoch says whose the Room is.
    return rowChanged || !isEmpty(change) ? { ...change, room: row } : undefined;
  }

  #perform(effect: RoomEffect, playlist: Playlist | undefined): void {
    switch (effect.do) {
      case 'play':
        this.#mailbox.withdraw((input) => input.type === 'media' && isOfPlayback(input.notice, effect.operationUuid));
        if (playlist !== undefined) this.media.play({ ...effect, playlist });
        break;
      case 'stop':
        this.media.stopPlayback(effect.operationUuid);
        break;
      case 'control_playback':
        this.media.controlPlayback(effect.operationUuid, effect.control);
        break;
      case 'set_volume':
        this.media.setPlaybackVolume(effect.volume);
        break;
      case 'record':
      case 'stop_recording':
      case 'mask_recording':
        this.#recordings.perform(effect, this.media, (notice) => this.hear(notice));
        break;
      case 'dismiss':
        this.#environment.dismiss(this);
        break;
      case 'close':
        void this.media.close();
        this.#environment.onDeleted(this.#state.roomId);
        break;
    }
  }
}

/** The part of a playback that is stored, so that a restart can tell its end. */
export interface StoredPlayback extends Pick<RoomPlayback, 'operationUuid' | 'urls'> {
  /** The status that a list tells on another node. */
  readonly status?: 'stopped' | 'playing' | 'paused';
}
const playbackText = (playback: RoomPlayback | undefined): string => {
  if (playback === undefined) return '';
  const stored: StoredPlayback = {
    operationUuid: playback.operationUuid,
    urls: playback.urls,
    status: playback.phase === 'starting' ? 'stopped' : playback.phase === 'paused' ? 'paused' : 'playing',
  };
  return JSON.stringify(stored);
};
