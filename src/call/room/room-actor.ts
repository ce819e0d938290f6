/**
 * One live Room: its state, its mix and the places in it. Orders are taken one at a time: step → commit → perform. A place is taken before a
 * Session is told to join and given back when its leave is durable, so that the cap holds however many join at once.
 */

import { type Change, type RoomRow, StoreUnavailable } from '../../database/journal/journal.ts';
import { platformEvent } from '../../event/platform-event.ts';
import { newUuid, newWebhookId } from '../../id.ts';
import { MAILBOX_MAX_INPUTS } from '../../limits.ts';
import {
  type RoomAct,
  type RoomInput,
  type RoomOrder,
  type RoomPlayback,
  type RoomState,
  type RoomStep,
  roomDeadline,
  roomRefusal,
  stepRoom,
} from '../../machine/room/room.ts';
import type { MediaRoom, Playlist, RoomNotice } from '../../media/engine.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Answer, CommandContext } from '../ports/sessions.ts';
import { LiveRecordings } from '../recording/live-recordings.ts';
import type { ActorEnvironment } from '../session/session-actor.ts';

const RETRY_FIRST_MS = 100;
const RETRY_LONGEST_MS = 2_000;
const RETRY_AFTER_SEC = 2;

export interface RoomEnvironment
  extends Omit<ActorEnvironment, 'onEnded' | 'mediaRoom' | 'onMembership' | 'onDigit' | 'payments' | 'media'> {
  /** Tells every member to leave. */
  dismiss(room: RoomActor): void;
  onDeleted(roomId: string): void;
}

export class RoomActor {
  #state: RoomState;
  #row: RoomRow | undefined;
  readonly media: MediaRoom;
  readonly #environment: RoomEnvironment;
  readonly #members = new Map<string, 'joining' | 'joined'>();
  readonly #recordings: LiveRecordings;
  #turn: Promise<unknown> = Promise.resolve();
  /** Refuses an order that waits its turn. */
  readonly #orders = new Set<() => void>();
  /** A signal waits for the database; orders do not. */
  #stalled = false;
  #waiting = 0;
  #cancelTimer: (() => void) | undefined;
  #traceparent = '';

  constructor(state: RoomState, media: MediaRoom, environment: RoomEnvironment) {
    this.#state = state;
    this.media = media;
    this.#environment = environment;
    this.#recordings = new LiveRecordings((terms) => environment.recordings.orderOf(terms));
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

  take(sessionUuid: string): void {
    this.#members.set(sessionUuid, 'joining');
  }

  confirm(sessionUuid: string): void {
    if (this.#members.has(sessionUuid)) this.#members.set(sessionUuid, 'joined');
  }

  giveBack(sessionUuid: string): void {
    if (this.#members.delete(sessionUuid) && this.#members.size === 0) this.signal({ type: 'empty' });
  }

  refusal(type: RoomOrder['type']): Problem | undefined {
    return roomRefusal(this.#state, type);
  }

  begin(context: CommandContext, answer: Answer): Promise<Answer | Problem> {
    return this.#ask({ type: 'begin' }, context, answer, undefined);
  }

  /** Takes over `playlist`: it is played, or released when the order is refused. */
  order(order: RoomOrder, context: CommandContext, answer: Answer, playlist?: Playlist): Promise<Answer | Problem> {
    return this.#ask({ type: 'order', order, operationUuid: context.operationUuid }, context, answer, playlist);
  }

  /** What the mix tells. */
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
    void this.#queue(() => this.#take(input, undefined, undefined, undefined));
  }

  /** Stops its recording. Resolves when that is ordered. */
  async shutdown(): Promise<void> {
    await this.#queue(() => this.#take({ type: 'shutdown' }, undefined, undefined, undefined));
  }

  async #ask(
    input: RoomInput,
    context: CommandContext,
    answer: Answer,
    playlist: Playlist | undefined,
  ): Promise<Answer | Problem> {
    const { promise, resolve } = Promise.withResolvers<Answer | Problem>();
    const refuse = () => resolve(roomBusy());
    if (this.#stalled || this.#waiting >= MAILBOX_MAX_INPUTS) refuse();
    else {
      this.#orders.add(refuse);
      const take = async () =>
        this.#orders.delete(refuse) ? ((await this.#take(input, context, answer, playlist)) ?? answer) : roomBusy();
      void this.#queue(take).then(resolve);
    }
    const result = await promise;
    if (isProblem(result)) playlist?.release();
    return result;
  }

  /** One at a time. A bug in a turn is logged and ends that turn only. */
  #queue<T>(work: () => Promise<T>): Promise<T | Problem> {
    this.#waiting++;
    const done = this.#turn.then(work).catch((error: unknown) => {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#environment.log.error({ room_id: this.#state.roomId, support_id: newUuid(), reason }, 'a bug in a Room');
      return roomBusy();
    });
    this.#turn = done.finally(() => {
      this.#waiting--;
    });
    return done;
  }

  /** A Problem: the order was refused or could not be stored, and did not happen. */
  async #take(
    input: RoomInput,
    context: CommandContext | undefined,
    answer: Answer | undefined,
    playlist: Playlist | undefined,
  ): Promise<Problem | undefined> {
    const { clock, journal, recordings } = this.#environment;
    const now = clock.now();
    // The Room is gone, maybe while this waited its turn.
    if (this.#state.phase === 'deleted' && input.type === 'media' && 'recordingUuid' in input.notice)
      recordings.late(input.notice);
    const next = stepRoom(this.#state, input, now);
    if (next.refused !== undefined) return next.refused;
    if (context !== undefined) this.#traceparent = context.traceparent;
    const change = this.#changeOf(next, context, answer, now);
    for (let waitMs = RETRY_FIRST_MS; change !== undefined; waitMs = Math.min(waitMs * 2, RETRY_LONGEST_MS)) {
      try {
        await journal.commit(change);
        this.#stalled = false;
        break;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        if (context !== undefined) {
          recordings.abandoned(change.recordings);
          return roomBusy();
        }
        this.#stalled = true;
        for (const refuse of this.#orders) refuse();
        this.#orders.clear();
        await new Promise<void>((resolve) => clock.at(clock.now() + waitMs, resolve));
      }
    }
    this.#state = next.state;
    if (change?.room !== undefined) this.#row = change.room;
    recordings.committed(next.recordings ?? []);
    this.#recordings.settle(next.recordings ?? []);
    for (const act of next.acts) this.#perform(act, playlist);
    // Deleting a Room that nobody is in, or no longer.
    if (next.state.phase === 'deleting' && this.#members.size === 0 && input.type !== 'empty') this.signal({ type: 'empty' });
    this.#sleep();
    return undefined;
  }

  #changeOf(next: RoomStep, context: CommandContext | undefined, answer: Answer | undefined, now: number): Change | undefined {
    const { state } = next;
    const row: RoomRow = {
      roomId: state.roomId,
      appUuid: state.appUuid,
      nodeId: this.#environment.nodeId,
      voiceActivityEvents: state.voiceActivityEvents,
      volume: state.volume,
      deleting: state.phase !== 'open',
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
    const key = context?.idempotencyKey;
    const stored =
      context !== undefined && answer !== undefined && key !== undefined
        ? { appUuid: context.appUuid, key, status: answer.status, body: answer.body }
        : undefined;
    const { recordings = [] } = next;
    if (!rowChanged && next.events.length === 0 && stored === undefined && recordings.length === 0) return undefined;
    const about = { appUuid: state.appUuid, clientState: '', traceparent: this.#traceparent, now };
    const { links } = this.#environment.recordings;
    return {
      ...(rowChanged ? { room: row } : {}),
      events: next.events.map((event) => platformEvent(event, { ...about, links, webhookId: newWebhookId() })),
      ...(stored === undefined ? {} : { answer: stored }),
      ...(recordings.length === 0
        ? {}
        : { recordings: this.#environment.recordings.changes(recordings, { ...about, owner: { room_id: state.roomId } }) }),
    };
  }

  #perform(act: RoomAct, playlist: Playlist | undefined): void {
    switch (act.do) {
      case 'play':
        if (playlist !== undefined) this.media.play({ ...act, playlist });
        break;
      case 'stop':
        this.media.stopPlayback(act.operationUuid);
        break;
      case 'pause':
        this.media.controlPlayback(act.operationUuid, { type: 'pause' });
        break;
      case 'resume':
        this.media.controlPlayback(act.operationUuid, { type: 'resume' });
        break;
      case 'seek':
        this.media.controlPlayback(act.operationUuid, { type: 'seek', place: act.to });
        break;
      case 'set_volume':
        this.media.setPlaybackVolume(act.volume);
        break;
      case 'record':
      case 'stop_recording':
      case 'mask_recording':
        this.#recordings.perform(act, this.media, (notice) => this.hear(notice));
        break;
      case 'dismiss':
        this.#environment.dismiss(this);
        break;
      case 'close':
        void this.media.close();
        this.#cancelTimer?.();
        this.#environment.onDeleted(this.#state.roomId);
        break;
    }
  }

  #sleep(): void {
    this.#cancelTimer?.();
    const deadline = roomDeadline(this.#state);
    this.#cancelTimer =
      deadline === undefined ? undefined : this.#environment.clock.at(deadline, () => this.signal({ type: 'deadline' }));
  }
}

/** What is stored of a playback, so that a restart can tell its end. */
export type StoredPlayback = Pick<RoomPlayback, 'operationUuid' | 'urls'>;
const playbackText = (playback: RoomPlayback | undefined): string => {
  if (playback === undefined) return '';
  const stored: StoredPlayback = { operationUuid: playback.operationUuid, urls: playback.urls };
  return JSON.stringify(stored);
};

const roomBusy = () => problems.unavailable('The Room could not take the command; try again.', RETRY_AFTER_SEC);
