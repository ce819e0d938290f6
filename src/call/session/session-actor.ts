/**
 * One live Session: its state, its mailbox and its leg. Inputs are taken one at a time: step → commit → perform → sleep
 * until the next deadline. Nothing is ordered of the leg, and no command is acknowledged, before the step is durable.
 *
 * When the database is away, a command is refused (503) and changes nothing; a signal is a fact, so its step is kept
 * and tried again until it is stored, while the call and its audio go on.
 */

import type { TurnBudget } from '../../bounds/turn-budget.ts';
import type { Clock } from '../../clock.ts';
import type { Change, Journal, RoomEntry, SessionRow } from '../../database/journal/journal.ts';
import type { HistorySink } from '../../history/call-history.ts';
import type { Log } from '../../log.ts';
import { promptName } from '../../machine/payment/collection.ts';
import type { Membership, Seat } from '../../machine/room/membership.ts';
import { refusal } from '../../machine/session/command.ts';
import type { CallCommand, Command, Effect, SessionInput, Step } from '../../machine/session/input.ts';
import { isMovable } from '../../machine/session/movable.ts';
import { detectedFromStored } from '../../machine/session/operation/detection.ts';
import { quietFromStored } from '../../machine/session/operation/payment.ts';
import { nextDeadline, type SessionState } from '../../machine/session/session.ts';
import { step } from '../../machine/session/step.ts';
import type { LegAudio, MediaEngine, Playlist } from '../../media/engine.ts';
import { beginsSpeech, isOfPlayback, isSpeechEnd } from '../../notice/signal.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Replaces } from '../../sip/message/replaces.ts';
import { type Envelope, Mailbox, refuse } from '../mailbox.ts';
import type { Leg, LegListener, LegSnapshot, RoomNews } from '../ports/leg.ts';
import { type Answer, accepted, type CommandContext } from '../ports/sessions.ts';
import { LiveRecordings } from '../recording/live-recordings.ts';
import type { RecordingRegistry } from '../recording/recording-registry.ts';
import { isEmpty, stepChange } from '../step-change.ts';
import { Traces } from '../traces.ts';
import { mediaEntry } from './history-entries.ts';
import { performOptional, play } from './leg-orders.ts';
import { newsOf, speechNews } from './news.ts';
import { type PaymentRecords, paymentChanges } from './payment-records.ts';
import { performSeat, type RoomsOfSeats, type Seated } from './seat-orders.ts';
import { isChanged, sessionRow } from './session-row.ts';

export interface ActorEnvironment extends RoomsOfSeats {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  /** The turns of the event loop in which inputs are taken. Undefined: all that come in one turn are taken in it. */
  readonly turns?: TurnBudget | undefined;
  /** The Session's membership has changed, durably. */
  onMembership(sessionUuid: string, before: Membership | undefined, after: Membership | undefined): void;
  /** The epoch at which that mix of a Room let the Session in. Undefined where this process has all Rooms. */
  enteredAt(sessionUuid: string, membership: Membership): number | undefined;
  /** The Room that it is joining is not at that epoch any more. */
  onRoomMoved(sessionUuid: string, membership: Membership): void;
  /** It sits in the mix of its Room, or at its end of the pipe there, maybe anew. */
  onSeated(sessionUuid: string, roomId: string): void;
  /** The records of secure collections. Undefined when payments are off and nothing is ever collected. */
  readonly payments: PaymentRecords | undefined;
  readonly recordings: RecordingRegistry;
  readonly media: Pick<MediaEngine, 'openPlaylist'>;
  /** Something happened to a Session that bots may hear of: those in its Room, if it is in one, and its own. */
  onNews(sessionUuid: string, roomId: string | undefined, news: RoomNews): void;
  /** The Session whose call the far end of another one of the application wants to be connected with. */
  named(appUuid: string, sessionUuid: string, replaces: Replaces): Promise<string | undefined>;
  /** The timelines of calls. */
  readonly history: HistorySink;
  /** Calls are stored so that another node can go on with them (CALL_TAKEOVER). */
  readonly keepsCalls: boolean;
  /** The Session has ended and its end is durable; the actor takes no more inputs. */
  onEnded(sessionUuid: string): void;
}

/** Gives a Session to another node. Resolves with `given`, or with the epoch at which it stays here. */
type Give = (state: SessionState) => Promise<'given' | number>;

export class SessionActor {
  #state: SessionState;
  #row: SessionRow | undefined;
  /** The trunk that the row names which is taken over. */
  readonly #trunk: string;
  #leg: Leg | undefined;
  #epoch: number;
  #isOver = false;
  /** Another node goes on with the Session. */
  #isGiven = false;
  #keptCall: string | undefined;
  #giving: { readonly give: Give; readonly given: (given: boolean) => void } | undefined;
  readonly #environment: ActorEnvironment;
  readonly #recordings: LiveRecordings;
  readonly #mailbox: Mailbox<SessionInput>;
  readonly traces: Traces;

  /** `epoch` and `trunk` are those of the row that is taken over, `epoch` being how often that was done. */
  constructor(
    state: SessionState,
    leg: Leg | undefined,
    environment: ActorEnvironment,
    { epoch = 0, traceparent = '', trunk = '' } = {},
  ) {
    this.#epoch = epoch;
    this.#trunk = trunk;
    this.traces = new Traces(traceparent);
    this.#state = state;
    this.seated = state.seat;
    this.#leg = leg;
    this.#environment = environment;
    environment.history.begin(state.sessionUuid, state.appUuid);
    this.#recordings = new LiveRecordings((terms) => environment.recordings.orderOf(terms));
    this.#mailbox = new Mailbox({
      journal: environment.journal,
      clock: environment.clock,
      log: environment.log,
      owner: 'Session',
      logged: { session_uuid: state.sessionUuid },
      take: (envelope) => this.#take(envelope),
      turn: (isGone) => environment.turns?.take(state.appUuid, isGone),
      dropped: (input) => this.#dropped(input),
      nextDeadline: () => nextDeadline(this.#state),
      deadline: { type: 'deadline' },
      broken: { type: 'broken' },
      brokenAgain: () => this.abandon(),
    });
  }

  get state(): SessionState {
    return this.#state;
  }

  /** The number of times that the Session was taken over. */
  get epoch(): number {
    return this.#epoch;
  }

  /** The seat in a Room that was reserved when the Session was made, taken or not. */
  readonly seated: Seat | undefined;

  /** A signal of the leg, a deadline, or the platform's own word. Never lost while the Session lives. */
  signal(input: SessionInput): void {
    const notice = input.type === 'leg.media' ? input.notice : undefined;
    if (notice?.type === 'recording.failed') this.#environment.recordings.complain(notice);
    const isUndone = undoneBy(input);
    if (isUndone !== undefined && this.#mailbox.takeBack(isUndone)) return;
    this.#mailbox.signal(input);
  }

  /** Takes the leg's signals. It holds nothing but the actor, for it lives as long as the leg. */
  get listener(): LegListener {
    return (signal) => this.signal(signal);
  }

  /** Resolves when what was asked of it up to now has been taken, or refused. */
  settled(): Promise<void> {
    return this.#mailbox.drained();
  }

  /** The node was declared dead, or the actor is broken: it hangs up on the far end, and writes and tells nothing. */
  abandon(): void {
    this.#leg?.hangup();
    this.#close();
  }

  /** The process ends, and the end of the call could not be stored: its far end is hung up on all the same. */
  readonly hangUp = (): void => this.#leg?.hangup();

  /** What another node needs to go on with the call. Undefined: not now. */
  snapshot(): LegSnapshot | undefined {
    return this.#leg?.handOver?.snapshot();
  }

  /** Has the far end come back from a node that gave up. */
  reclaim(): void {
    this.#leg?.handOver?.reclaim();
    this.storeCall();
  }

  /** The numbers of the dialog have made a leap: they are stored, where another node may go on with the call. */
  storeCall(): void {
    if (this.#environment.keepsCalls) this.#mailbox.signal({ type: 'deadline' });
  }

  /**
   * Gives the Session away between two inputs, where it still can go. Resolves with whether `give` says it has gone.
   */
  handOver(give: Give): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#giving?.given(false);
    this.#giving = { give, given: resolve };
    this.#mailbox.signal({ type: 'hand_over' });
    return promise;
  }

  async #handOver(): Promise<void> {
    const giving = this.#giving;
    this.#giving = undefined;
    try {
      const outcome = isMovable(this.#state) ? await giving?.give(this.#state) : undefined;
      this.#isGiven = outcome === 'given';
      if (typeof outcome === 'number') this.#epoch = outcome;
      if (this.#isGiven) {
        this.#leg?.handOver?.release();
        this.#close();
      }
    } finally {
      giving?.given(this.#isGiven);
    }
  }

  /** Tells the leg what happened in the Room or to the phone Session. */
  hear(news: RoomNews): void {
    this.#leg?.hear?.(news);
  }

  /** Adds to the timeline how the call has sounded so far. */
  async sampleQuality(): Promise<void> {
    const quality = await this.#leg?.quality?.();
    if (quality === undefined) return;
    const { packets_in, packets_lost, jitter_ms, round_trip_ms, mos } = quality;
    this.#environment.history.add(this.#state.sessionUuid, {
      kind: 'quality',
      packets_in,
      packets_lost,
      jitter_ms,
      round_trip_ms,
      mos,
    });
  }

  /** Its sound, as others in its Room need it. Undefined when there is none. */
  get audio(): LegAudio | undefined {
    return this.#leg?.audio;
  }

  /** What the leg can do for a transfer. */
  get transfers(): Leg['transfers'] {
    return this.#leg?.transfers;
  }

  /** The 409 that a command of this type would get now, before any work for it is done. */
  refusal(type: CallCommand['type']): Problem | undefined {
    return refusal(this.#state, type);
  }

  /**
   * Begins the Session. For a dial, `context` and `answer` are stored with it, and the promise tells the answer or why
   * it could not be stored; then the leg is not started, and its caller hangs it up.
   */
  begin(context: CommandContext | undefined, answer: Answer | undefined): Promise<Answer | Problem> {
    return this.#mailbox.ask({ type: 'begin' }, { context, answer });
  }

  /** Takes over `playlist`: it is played, or released when the command is refused. */
  async command(
    command: Command,
    context: CommandContext,
    playlist?: Playlist,
    answer = accepted(context.operationUuid),
  ): Promise<Answer | Problem> {
    const { operationUuid } = context;
    const result = await this.#mailbox.ask({ type: 'command', command, operationUuid }, { context, answer, playlist });
    return this.#isGiven && isProblem(result) ? problems.callMoved() : result;
  }

  /** Finds the Session that a transfer of the far end is to. What follows waits, so that it is told in order. */
  async #resolved(input: SessionInput): Promise<SessionInput> {
    if (input.type !== 'leg.transfer_requested' || input.replaces === undefined) return input;
    const { appUuid, sessionUuid } = this.#state;
    const toSessionUuid = await this.#environment.named(appUuid, sessionUuid, input.replaces);
    return toSessionUuid === undefined ? input : { ...input, toSessionUuid };
  }

  async #take(envelope: Envelope<SessionInput>): Promise<void> {
    if (envelope.input.type === 'hand_over') return await this.#handOver();
    const input = envelope.input.type === 'leg.transfer_requested' ? await this.#resolved(envelope.input) : envelope.input;
    const now = this.#environment.clock.now();
    const next = step(this.#state, input, now);
    if (next.refused !== undefined) {
      refuse(envelope, next.refused);
      return;
    }
    if (envelope.context !== undefined) this.traces.take(envelope.context);
    const change = this.#changeOf(next, envelope, now);
    const outcome = change === undefined ? 'stored' : await this.#mailbox.commit(change, envelope);
    if (outcome === 'elsewhere') {
      refuse(envelope, problems.notFound('Session'));
      this.#lateRecording(envelope.input);
      this.dropTaken();
    }
    // Its sender was told that it could not begin: where it was stored, it ends, and else it never was.
    const isGivenUp = envelope.input.type === 'begin' && outcome === 'late';
    if (envelope.input.type === 'begin' && outcome === 'refused') this.#close();
    if (outcome === 'gone') this.#environment.recordings.leftBehind(this.#state.appUuid, next.recordings ?? []);
    const before = this.#state.membership;
    // It goes on joining: the Room's next home tells when it is heard there, or that there is no place.
    if (outcome === 'room_moved' && before !== undefined) this.#environment.onRoomMoved(this.#state.sessionUuid, before);
    if (outcome !== 'stored' && outcome !== 'late') return;
    const seen = mediaEntry(envelope.input, this.#state, now);
    if (seen !== undefined) this.#environment.history.add(this.#state.sessionUuid, seen);
    const tookMs = Math.max(0, this.#environment.clock.now() - now);
    this.#state = detectedFromStored(this.#state, quietFromStored(this.#state, next.state, tookMs), tookMs);
    if (change?.session !== undefined) this.#row = change.session;
    this.#environment.recordings.committed(this.#state.appUuid, next.recordings ?? []);
    this.#recordings.settle(next.recordings ?? []);
    if (isGivenUp) this.#mailbox.signal({ type: 'shutdown' });
    else this.#perform(next.effects, envelope.playlist);
    const { membership, sessionUuid } = next.state;
    if (membership !== before) this.#environment.onMembership(sessionUuid, before, membership);
    const isSeated = envelope.input.type === 'leg.media' && envelope.input.notice.type === 'room.joined';
    if (isSeated && membership !== undefined) this.#environment.onSeated(sessionUuid, membership.roomId);
    this.#tellBots(next, before);
    if (envelope.answer !== undefined) envelope.reply?.(envelope.answer);
    else envelope.reply?.({ status: 202, body: {} });
    if (next.state.phase === 'ended') this.#close();
  }

  /** Tells the bots what a step changed: first who talks, so that nobody is heard of after the word that it left. */
  #tellBots({ state, events }: Step, before: Membership | undefined): void {
    const { membership, sessionUuid } = state;
    const { onNews } = this.#environment;
    const speech = speechNews(sessionUuid, before, membership);
    if (speech !== undefined) onNews(sessionUuid, speech.roomId, speech.news);
    const roomId = membership?.phase === 'joined' ? membership.roomId : undefined;
    for (const event of events) {
      const news = newsOf(event);
      if (news !== undefined) onNews(sessionUuid, 'room_id' in event ? event.room_id : roomId, news);
    }
  }

  /** The change that a step writes, or undefined when it writes nothing. */
  #changeOf(next: Step, envelope: Envelope<SessionInput>, now: number): Change | undefined {
    const { state } = next;
    const row = sessionRow(state, next.events, {
      nodeId: this.#environment.nodeId,
      epoch: this.#epoch,
      trunk: this.#leg?.transfers?.trunk ?? this.#row?.trunk ?? this.#trunk,
      call: this.#kept(state),
    });
    const rowChanged = isChanged(row, this.#row);
    const { payments: paymentRecords, recordings, keepsCalls } = this.#environment;
    const { sessionUuid: session_uuid, appUuid, clientState } = state;
    const about = { appUuid, clientState, traces: this.traces, now, owner: { session_uuid } };
    const payments = paymentRecords && paymentChanges(paymentRecords, state, next.payments ?? [], this.traces.latest, now);
    const change = { ...stepChange(next, envelope, about, recordings), payments, enters: this.#entry(state) };
    if (!rowChanged && isEmpty(change)) return undefined;
    // Other nodes may take the call over, so every write carries its row: the epoch tells whose the call is.
    return rowChanged || keepsCalls ? { ...change, session: row } : change;
  }

  /** The Room that it becomes a member of by a step. */
  #entry({ membership, sessionUuid }: SessionState): RoomEntry | undefined {
    if (membership?.phase !== 'joined' || this.#state.membership?.phase === 'joined') return undefined;
    const epoch = this.#environment.enteredAt(sessionUuid, membership);
    return epoch === undefined ? undefined : { roomId: membership.roomId, epoch };
  }

  /** What another node needs to go on with the call, as it is now: its numbers and addresses may have changed. */
  #kept({ phase, terms }: SessionState): string | undefined {
    if (!this.#environment.keepsCalls || phase !== 'answered') return undefined;
    const leg = this.#leg?.handOver?.kept();
    if (leg !== undefined) this.#keptCall = JSON.stringify({ leg, maxDurationMs: terms.maxDurationMs });
    return this.#keptCall;
  }

  /**
   * Another node has the call by now: the far end hears nothing of it from here. Which one may not be known (''): its
   * place in a Room of this node is kept for as long as its row has it.
   */
  dropTaken(nodeId = ''): void {
    // Its seat may be that of a later actor by now.
    if (this.#isOver) return;
    this.#environment.away()?.handedOver(this.#state, nodeId);
    const { handOver } = this.#leg ?? {};
    if (handOver === undefined || !this.#environment.keepsCalls) this.#leg?.hangup();
    else handOver.release();
    this.#close();
  }

  #perform(effects: readonly Effect[], playlist: Playlist | undefined): void {
    const leg = this.#leg;
    if (leg === undefined) return;
    for (const effect of effects) {
      switch (effect.do) {
        case 'start':
          leg.start();
          break;
        case 'ring':
          leg.ring();
          break;
        case 'early_media':
          leg.startEarlyMedia();
          break;
        case 'answer':
          leg.answer();
          break;
        case 'reject':
          leg.reject(effect.reason);
          break;
        case 'cancel':
          leg.cancel();
          break;
        case 'transfer':
          // What waits is of the one before, whose time is over.
          this.#mailbox.withdraw(({ type }) => type === 'leg.transfer');
          performOptional(leg, effect);
          break;
        case 'hold':
        case 'send_digits':
        case 'detect_machine':
          performOptional(leg, effect);
          break;
        case 'probe':
          leg.probe?.();
          break;
        case 'hangup':
          leg.hangup();
          break;
        case 'play':
          this.#mailbox.withdraw((input) => input.type === 'leg.media' && isOfPlayback(input.notice, effect.operationUuid));
          if (playlist !== undefined) play(leg, { ...effect, playlist });
          break;
        case 'stop_playback':
          leg.audio?.stopPlayback(effect.operationUuid);
          break;
        case 'control_playback':
          leg.audio?.controlPlayback(effect.operationUuid, effect.control);
          break;
        case 'secure':
          leg.secure?.(effect.on);
          break;
        case 'prompt':
          void this.#prompt(leg, effect.name, effect.urls);
          break;
        case 'member_join':
        case 'member_leave':
        case 'member_set_muted':
        case 'member_set_volume':
          performSeat(leg, effect, this.#seated);
          break;
        case 'record':
        case 'stop_recording':
        case 'mask_recording':
          this.#recordings.perform(effect, leg.audio, (notice) => this.signal({ type: 'leg.media', notice }));
          break;
      }
    }
  }

  get #seated(): Seated {
    return {
      state: this.#state,
      rooms: this.#environment,
      signal: (input) => this.signal(input),
      signalNext: (input) => this.#mailbox.signalNext(input),
    };
  }

  /** A further attempt's prompt; one that cannot be opened by now is told like every playback that fails. */
  async #prompt(leg: Leg, operationUuid: string, urls: readonly string[]): Promise<void> {
    const playlist = await this.#environment.media.openPlaylist(urls, this.#state.appUuid);
    const { collection } = this.#state;
    // A key may have come before its sound.
    const wanted = collection?.phase === 'prompting' && promptName(collection) === operationUuid;
    if (!('refused' in playlist)) {
      if (wanted) play(leg, { operationUuid, playlist, loop: 1, volume: 100 });
      else playlist.release();
    } else if (wanted)
      this.signal({ type: 'leg.media', notice: { type: 'playback.failed', operationUuid, reason: 'media_unavailable' } });
  }

  /** The end of a recording that the Session does not take any more is told of without it. */
  #lateRecording(input: SessionInput): void {
    if (input.type === 'leg.media' && 'recordingUuid' in input.notice) this.#environment.recordings.late(input.notice);
  }

  #dropped(input: SessionInput): void {
    this.#lateRecording(input);
    if (input.type === 'hand_over') this.#giving?.given(false);
    // Its time was over before it could begin.
    if (input.type === 'begin') this.#close();
  }

  /** A step under way may find so late that the Session is another node's, or is here again with another actor. */
  #close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#mailbox.close();
    this.#environment.recordings.abandoned(this.#state.recordings);
    this.#environment.onEnded(this.#state.sessionUuid);
  }
}

/** Finds the signal that is void with this one: the beginning of what is over, a hold or speech. Undefined: none is. */
function undoneBy(input: SessionInput): ((before: SessionInput) => boolean) | undefined {
  if (input.type === 'leg.resumed') return ({ type }) => type === 'leg.held';
  if (input.type !== 'leg.media' || !isSpeechEnd(input.notice)) return undefined;
  const { notice } = input;
  return (before) => before.type === 'leg.media' && beginsSpeech(before.notice, notice);
}
