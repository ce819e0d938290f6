/** The live Sessions of this node, and the way in for every command and call. */
import { inTurns } from '../../bounds/in-turns.ts';
import type { Clock } from '../../clock.ts';
import type { FoundSession, SessionRecord } from '../../database/call/sessions.ts';
import type { Journal, SessionRow } from '../../database/journal/journal.ts';
import { type HistorySink, NO_HISTORY } from '../../history/call-history.ts';
import type { Log } from '../../log.ts';
import { runningOf } from '../../machine/session/operation/running.ts';
import { recovered, type SessionState } from '../../machine/session/session.ts';
import type { MediaEngine } from '../../media/engine.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Replaces } from '../../sip/message/replaces.ts';
import { Adoption } from '../adoption.ts';
import { LiveSessions } from '../live-sessions.ts';
import type { Dialer, IncomingCall, Leg, ResumedLeg, RoomNews, WebSocketDialer } from '../ports/leg.ts';
import type {
  Answer,
  CommandContext,
  ConnectWebsocketRequest,
  DialRequest,
  SessionCommand,
  SessionFilter,
  Sessions,
  SessionView,
} from '../ports/sessions.ts';
import type { TokenBuckets } from '../rate/token-buckets.ts';
import type { RecordingRegistry } from '../recording/recording-registry.ts';
import { seatAgain } from '../room/arrivals.ts';
import type { RoomRegistry } from '../room/room-registry.ts';
import { AbsentSessions } from './absent-sessions.ts';
import { AudioCommands } from './audio-commands.ts';
import { Bots } from './bots.ts';
import type { OpenIngest } from './ingests.ts';
import { NewSessions, type NewSessionsOptions } from './new-sessions.ts';
import type { PaymentRecords } from './payment-records.ts';
import { sampleQuality } from './quality-sampler.ts';
import { type ActorEnvironment, SessionActor } from './session-actor.ts';
import { view } from './session-view.ts';
import { type Replacement, type TransferOptions, Transfers } from './transfers.ts';

/** The rows of Sessions, as the heart reads them. */
interface SessionRecords {
  find(appUuid: string, sessionUuid: string): Promise<FoundSession | undefined>;
  list(appUuid: string, filter: SessionFilter): Promise<readonly SessionRecord[] | 'too_many'>;
  /** Takes over the Sessions that processes which are gone left without an end. */
  adopt(): Promise<readonly SessionRow[]>;
  /** The live Sessions that are this node's by their rows. */
  mine(): Promise<readonly SessionRow[]>;
}

export interface RegistryOptions extends TransferOptions, NewSessionsOptions, Pick<ActorEnvironment, 'turns'> {
  readonly journal: Journal;
  readonly records: SessionRecords;
  readonly clock: Clock;
  readonly log: Log;
  readonly nodeId: string;
  readonly media: Pick<MediaEngine, 'openPlaylist' | 'openStream' | 'openPush'>;
  /** The timelines of calls. */
  readonly history?: HistorySink | undefined;
  /** Calls are stored so that another node can go on with them. */
  readonly keepsCalls?: boolean;
  /** Origin of the URLs that are handed out. */
  readonly publicUrl: string;
  /** The most live Sessions of one application at this node. */
  readonly perAppMax?: number | undefined;
  /** The levels of the rate limits, which bots share with HTTP. */
  readonly tokens: TokenBuckets;
  /** The records of secure collections, or undefined when payments are off. */
  readonly payments?: PaymentRecords | undefined;
  readonly recordings: RecordingRegistry;
}

export class SessionRegistry implements Sessions {
  readonly #actors: LiveSessions;
  readonly #options: RegistryOptions;
  readonly #absent: AbsentSessions;
  readonly #audio: AudioCommands;
  readonly #bots: Bots;
  readonly #new: NewSessions;
  readonly #transfers: Transfers;
  readonly #environment: ActorEnvironment;
  /** How Sessions of other nodes become this one's. */
  readonly adoption: Adoption<SessionRow>;
  #dialer: Dialer | undefined;
  #rooms: RoomRegistry | undefined;
  #webSockets: WebSocketDialer | undefined;
  #draining = false;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#actors = new LiveSessions(options.perAppMax);
    const { records, clock, log, elsewhere } = options;
    this.adoption = new Adoption({
      ...{ records, clock, log },
      idOf: ({ sessionUuid }) => sessionUuid,
      takeUp: () => this.recover(),
    });
    this.#absent = new AbsentSessions(options);
    this.#audio = new AudioCommands(options);
    this.#transfers = new Transfers(this.#actors, options);
    this.#bots = new Bots({
      clock: options.clock,
      tokens: options.tokens,
      find: (sessionUuid) => this.find(sessionUuid),
      joined: (roomId) => this.#rooms?.joined(roomId) ?? [],
      members: async (roomId, sessionUuid) => await this.#rooms?.present(roomId, sessionUuid),
      elsewhere: elsewhere && ((...order) => elsewhere.order(...order)),
      command: (sessionUuid, command, context) => this.command(sessionUuid, command, context),
    });
    this.#new = new NewSessions(options, {
      actors: this.#actors,
      bots: this.#bots,
      hasOthers: elsewhere !== undefined,
      begin: (state, leg) => this.#begin(state, leg),
      isDraining: () => this.#draining,
      rooms: () => this.#rooms,
      dialer: () => this.#dialer,
      webSockets: () => this.#webSockets,
    });
    this.#environment = {
      journal: options.journal,
      clock: options.clock,
      log: options.log,
      nodeId: options.nodeId,
      turns: options.turns,
      media: options.media,
      payments: options.payments,
      recordings: options.recordings,
      history: options.history ?? NO_HISTORY,
      keepsCalls: options.keepsCalls ?? false,
      mediaRoom: (roomId) => this.#rooms?.find(roomId)?.media,
      audioOf: (sessionUuid, roomId) => this.find(sessionUuid)?.audio ?? this.#rooms?.guestAudio(roomId, sessionUuid),
      away: () => this.#rooms?.span,
      onMembership: (sessionUuid, before, after) => this.#rooms?.onMembership(sessionUuid, before, after),
      enteredAt: (sessionUuid, membership) => this.#rooms?.span?.enteredAt(sessionUuid, membership),
      onRoomMoved: (sessionUuid, membership) => void this.#rooms?.span?.moved(sessionUuid, membership),
      named: (...dialog) => this.#transfers.requested(...dialog),
      onSeated: (sessionUuid, roomId) => this.#rooms?.onSeated(sessionUuid, roomId),
      onNews: (sessionUuid, roomId, news) => {
        this.#bots.tell(sessionUuid, roomId, news);
        if (roomId !== undefined) this.#rooms?.span?.tellBots(roomId, sessionUuid, news);
      },
      onEnded: (sessionUuid) => this.#forget(sessionUuid),
    };
  }

  /** Samples how calls sound, where timelines are kept. Returns what stops it. */
  sampleQuality(): () => void {
    return this.#options.history === undefined ? () => {} : sampleQuality(this.#options.clock, () => this.#actors.values());
  }

  /** The door that places calls; it needs the registry for the calls that come in, so it is named after both exist. */
  connect(dialer: Dialer): void {
    this.#dialer = dialer;
  }

  /** The door to WebSocket servers. */
  connectWebSockets(dialer: WebSocketDialer): void {
    this.#webSockets = dialer;
  }

  /** The Rooms that Sessions join; they need the Sessions in turn. */
  connectRooms(rooms: RoomRegistry): void {
    this.#rooms = rooms;
  }

  /** Tells the bots of this node that are in a Room what happened to a member on another node. */
  tellBots(sessionUuid: string, roomId: string, news: RoomNews): void {
    this.#bots.tell(sessionUuid, roomId, news);
  }

  /** A live Session of this node. */
  find(sessionUuid: string): SessionActor | undefined {
    return this.#actors.get(sessionUuid);
  }

  get size(): number {
    return this.#actors.size;
  }

  /** A call from a trunk, a device or a browser. Resolves with its Session, or undefined where it was refused. */
  incoming(call: IncomingCall): Promise<string | undefined> {
    return this.#new.incoming(call);
  }

  dial(request: DialRequest, context: CommandContext): Promise<Answer | Problem> {
    return this.#new.dial(request, context);
  }

  connectWebsocket(request: ConnectWebsocketRequest, context: CommandContext): Promise<Answer | Problem> {
    return this.#new.connectWebsocket(request, context);
  }

  /** Makes the actor of a Session, which is live from now on. */
  #begin(
    state: SessionState,
    leg: Leg | undefined,
    before?: { readonly epoch?: number; readonly traceparent?: string; readonly trunk?: string },
  ): SessionActor {
    const actor = new SessionActor(state, leg, this.#environment, before);
    this.#actors.add(actor);
    return actor;
  }

  get isDraining(): boolean {
    return this.#draining;
  }

  async owns(appUuid: string, sessionUuid: string, command: SessionCommand['type']): Promise<boolean> {
    const actor = this.#actors.get(sessionUuid);
    if (actor?.state.appUuid === appUuid) return true;
    // Another application's call is looked up like one that is not there, so that the time tells nothing.
    return await this.#absent.has(appUuid, sessionUuid, command);
  }

  async command(sessionUuid: string, command: SessionCommand, context: CommandContext): Promise<Answer | Problem> {
    const actor = this.#actors.get(sessionUuid);
    if (actor === undefined) return this.#absent.command(sessionUuid, command, context);
    const { type } = command;
    const result = await (type === 'transfer'
      ? this.#transfers.transfer(actor, command, context)
      : this.#audio.command(actor, command, context));
    // The call ended or moved while the command waited. Any other 404 names what is missing of a live Session.
    if (isProblem(result) && result.status === 404 && this.#actors.get(sessionUuid) !== actor)
      return this.#absent.command(sessionUuid, command, context);
    return result;
  }

  /** Obeys a bot of another node. */
  readonly obey = (...order: Parameters<Bots['obey']>): Promise<string | undefined> => this.#bots.obey(...order);

  readonly replacement = (appUuid: string, sessionUuid: string): Replacement | undefined =>
    this.#transfers.replacement(appUuid, sessionUuid);

  readonly named = (appUuid: string, replaces: Replaces): string | undefined => this.#transfers.named(appUuid, replaces);

  isHere(sessionUuid: string): boolean {
    return this.#actors.has(sessionUuid);
  }

  ingest(appUuid: string, ingestUuid: string): OpenIngest | undefined {
    return this.#audio.ingest(appUuid, ingestUuid);
  }

  async get(appUuid: string, sessionUuid: string): Promise<SessionView | undefined> {
    const actor = this.#actors.get(sessionUuid);
    if (actor?.state.appUuid === appUuid) {
      const { state } = actor;
      return state.phase === 'ended' ? undefined : view({ ...state, state: state.phase });
    }
    // Another application's call is looked up like one that is not there, so that the time tells nothing.
    const row = await this.#options.records.find(appUuid, sessionUuid);
    return row !== undefined && row.state !== 'ended' ? view(row) : undefined;
  }

  async list(appUuid: string, filter: SessionFilter): Promise<readonly SessionView[] | Problem> {
    const rows = await this.#options.records.list(appUuid, filter);
    return rows === 'too_many' ? problems.tooManySessions() : await inTurns(rows, (row) => view(row));
  }

  /**
   * Takes over what lost processes left without an end, and counts it. `seenAt` (ms): a buried node's last sign of
   * life.
   */
  async recover(seenAt?: number): Promise<number> {
    // One that is here may be older than its row: another node had the call meanwhile, and is lost.
    const isNew = ({ sessionUuid, epoch }: SessionRow) => (this.#actors.get(sessionUuid)?.epoch ?? -1) < epoch;
    const rows = (await this.adoption.take()).filter(isNew);
    for (const row of rows) this.orphan(row, seenAt);
    return rows.length;
  }

  /** A Session without its call, which can only be ended. */
  orphan(row: SessionRow, seenAt?: number): void {
    const { clock, orphanTimeoutMs } = this.#options;
    const remains = { ...row, phase: row.state, running: runningOf(row.running), orphanTimeoutMs };
    const state = recovered(remains, clock.now(), seenAt);
    this.#dropTaken(row.sessionUuid);
    this.#rooms?.find(row.roomId)?.take(row.sessionUuid);
    this.#begin(state, undefined, row).signal({ type: 'begin' });
  }

  /** The live Sessions of this node. */
  all(): Iterable<SessionActor> {
    return this.#actors.values();
  }

  /** Goes on with a Session of another node. */
  async goOn(state: SessionState, { leg, listen }: ResumedLeg, epoch: number, traceparent: string): Promise<void> {
    this.#dropTaken(state.sessionUuid);
    const actor = this.#begin(state, leg, { epoch, traceparent });
    if (state.cutOff !== undefined) actor.signal({ type: 'begin' });
    listen(actor.listener);
    actor.storeCall();
    const span = this.#rooms?.span;
    if (span !== undefined) await span.follow(actor);
    else this.#backInRoom(actor);
  }

  /**
   * A Session that is about to go on here, or to become an orphan, keeps its place in its Room. Where there are other
   * nodes the Room itself sees to it (`room/takeovers.ts`).
   */
  expect({ roomId, sessionUuid }: SessionRow): void {
    if (this.#rooms?.span === undefined) this.#rooms?.find(roomId)?.take(sessionUuid);
  }

  /** One that was a member of a Room here, where there is no other node, has its place in it again. */
  #backInRoom(actor: SessionActor): void {
    const { membership } = actor.state;
    if (membership === undefined) return;
    const room = this.#rooms?.find(membership.roomId);
    if (room !== undefined) seatAgain(room, actor, Infinity);
    else actor.signal({ type: 'room_closed', roomId: membership.roomId });
  }

  /** A call that another node took from this one may be back before this one has let it go. */
  #dropTaken(sessionUuid: string): void {
    this.#actors.get(sessionUuid)?.dropTaken();
  }

  /** Takes nothing new. Resolves when the last call has ended, or after `graceMs`, when the system ends those left. */
  async drain(graceMs: number, teardownMs: number): Promise<void> {
    this.#draining = true;
    const { clock } = this.#options;
    if (await this.#actors.emptyWithin(graceMs, clock)) return;
    this.endAll();
    await this.#actors.emptyWithin(teardownMs, clock);
  }

  /** Takes no new Sessions from now on, or takes them again. Those that are up go on. */
  refuseNew(on: boolean): void {
    this.#draining = on;
  }

  /** Ends every Session by the system. */
  endAll(): void {
    for (const actor of this.#actors.values()) actor.signal({ type: 'shutdown' });
  }

  /** This node was declared dead: its far ends are hung up on, and nothing more is written or told. */
  abandon(): void {
    this.#draining = true;
    for (const actor of [...this.#actors.values()]) actor.abandon();
  }

  #forget(sessionUuid: string): void {
    const seat = this.#actors.get(sessionUuid)?.seated;
    if (seat !== undefined) this.#rooms?.release(seat.roomId, sessionUuid);
    this.#actors.delete(sessionUuid);
    this.#bots.forget(sessionUuid);
    this.#environment.history.ended(sessionUuid);
  }
}
