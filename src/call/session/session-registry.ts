/** The live Sessions of this node, and the way in for every command and call. */
import { inTurns } from '../../bounds/in-turns.ts';
import type { Clock } from '../../clock.ts';
import type { FoundSession, SessionRecord } from '../../database/call/sessions.ts';
import type { Journal, SessionRow } from '../../database/journal/journal.ts';
import { type HistorySink, NO_HISTORY } from '../../history/call-history.ts';
import { isUuid, newUuid } from '../../id.ts';
import { CALL_DURATION_DEFAULT_SEC, MACHINE_DETECTION_DEFAULT_MS, WEBSOCKET_CONNECT_DEFAULT_SEC } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Seat } from '../../machine/room/membership.ts';
import { runningOf } from '../../machine/session/operation/running.ts';
import { connecting, inbound, outbound, recovered, type SessionState } from '../../machine/session/session.ts';
import type { MediaEngine } from '../../media/engine.ts';
import { isE164 } from '../../phone-number.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { Replaces } from '../../sip/message/replaces.ts';
import { Adoption } from '../adoption.ts';
import { LiveSessions } from '../live-sessions.ts';
import { isDevice } from '../ports/devices.ts';
import type { Dialer, DialOptions, IncomingCall, Leg, LegListener, ResumedLeg, RoomNews, WebSocketDialer } from '../ports/leg.ts';
import {
  type Answer,
  accepted,
  type CommandContext,
  type ConnectWebsocketRequest,
  type DialRequest,
  type SessionCommand,
  type SessionFilter,
  type Sessions,
  type SessionView,
} from '../ports/sessions.ts';
import type { TokenBuckets } from '../rate/token-buckets.ts';
import type { RecordingRegistry } from '../recording/recording-registry.ts';
import type { RoomRegistry } from '../room/room-registry.ts';
import { AbsentSessions } from './absent-sessions.ts';
import { AudioCommands } from './audio-commands.ts';
import { Bots } from './bots.ts';
import { dialRefused, NO_CAPACITY_RETRY_SEC } from './dial-refusal.ts';
import type { OpenIngest } from './ingests.ts';
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

export interface RegistryOptions extends TransferOptions {
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
  /** A Session has a SIP dialog with that Call-ID, as the one who called or the one who was called. */
  onSipCall?(callId: string, sessionUuid: string, side: 'caller' | 'callee'): void;
  /** Origin of the URLs that are handed out. */
  readonly publicUrl: string;
  readonly orphanTimeoutMs: number;
  /** The most live Sessions of one application at this node. */
  readonly perAppMax?: number | undefined;
  /** The levels of the rate limits, which bots share with HTTP. */
  readonly tokens: TokenBuckets;
  /** The records of secure collections, or undefined when payments are off. */
  readonly payments?: PaymentRecords | undefined;
  readonly recordings: RecordingRegistry;
  /** Tells whether the application may show `from` as its caller ID. */
  mayCallFrom(appUuid: string, from: string): Promise<boolean>;
}

export class SessionRegistry implements Sessions {
  readonly #actors: LiveSessions;
  readonly #options: RegistryOptions;
  readonly #absent: AbsentSessions;
  readonly #audio: AudioCommands;
  readonly #bots: Bots;
  readonly #transfers: Transfers;
  readonly #environment: ActorEnvironment;
  /** How Sessions of other nodes become this one's. */
  readonly adoption: Adoption<SessionRow>;
  #dialer: Dialer | undefined;
  #rooms: RoomRegistry | undefined;
  #webSockets: WebSocketDialer | undefined;
  #draining = false;
  #whenEmpty: (() => void) | undefined;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#actors = new LiveSessions(options.perAppMax);
    const { records, clock, log } = options;
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
      elsewhere: options.elsewhere && ((...order) => options.elsewhere?.order(...order) ?? Promise.resolve(undefined)),
      command: (sessionUuid, command, context) => this.command(sessionUuid, command, context),
    });
    this.#environment = {
      journal: options.journal,
      clock: options.clock,
      log: options.log,
      nodeId: options.nodeId,
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
  async incoming(call: IncomingCall): Promise<string | undefined> {
    if (this.#draining || !this.#actors.hasRoomFor(call.appUuid)) {
      call.listen(() => {});
      call.refuse();
      return undefined;
    }
    const sessionUuid = newUuid();
    const { appUuid, callerId, did, sip, type: inboundType, clientState = '' } = call;
    const { orphanTimeoutMs, clock } = this.#options;
    const about = { sessionUuid, appUuid, callerId, did, orphanTimeoutMs, sip, inboundType, clientState };
    const actor = this.#begin(inbound(about, clock.now()), call.leg);
    if (call.sip !== undefined) this.#options.onSipCall?.(call.sip.call_id, sessionUuid, 'callee');
    const context = { appUuid, operationUuid: '', idempotencyKey: undefined, traceparent: '' };
    // Asked, not signalled: a call that cannot be made durable is refused at once, and the carrier can go elsewhere.
    const begun = actor.begin(context, undefined);
    call.listen(actor.listener);
    if (isProblem(await begun)) {
      call.refuse();
      return undefined;
    }
    return sessionUuid;
  }

  async dial(request: DialRequest, context: CommandContext): Promise<Answer | Problem> {
    if (this.#draining) return problems.draining();
    if (!(await this.#options.mayCallFrom(context.appUuid, request.from))) return problems.callerId();
    const mayReach = await this.#options.reachOf(context.appUuid);
    if (isE164(request.to) && !mayReach(request.to)) return problems.destination();
    if (this.#dialer === undefined) return problems.noTrunk();
    const refused = this.#refusesNew(context.appUuid);
    if (refused !== undefined) return refused;
    const sessionUuid = newUuid();
    const seat = await this.#seat(request, sessionUuid, context.appUuid, false);
    if (isProblem(seat)) return seat;
    // The leg may speak before its actor is there, never before it is started.
    let listener: LegListener = () => {};
    const order: DialOptions = {
      appUuid: context.appUuid,
      to: request.to,
      from: request.from,
      mayReach,
      ...(request.trunk === undefined ? {} : { trunk: request.trunk }),
      ...(request.display_name === undefined ? {} : { displayName: request.display_name }),
      ...(request.sip_headers === undefined ? {} : { sipHeaders: request.sip_headers }),
      listener: (signal) => listener(signal),
      onPlaced: (callId) => this.#options.onSipCall?.(callId, sessionUuid, 'caller'),
    };
    const reserved = await this.#dialer.dial(order);
    if ('unavailable' in reserved) {
      this.#unseat(seat, sessionUuid);
      return dialRefused(reserved.unavailable);
    }
    // Others may have begun while a seat and a trunk were looked for.
    const refusedNow = this.#refusesNew(context.appUuid);
    if (refusedNow !== undefined) {
      this.#unseat(seat, sessionUuid);
      reserved.leg.hangup();
      return refusedNow;
    }
    const actor = this.#begin(this.#dialled(request, context, sessionUuid, seat), reserved.leg);
    listener = actor.listener;
    const result = await actor.begin(context, accepted(context.operationUuid, { session_uuid: sessionUuid }));
    if (isProblem(result)) reserved.leg.hangup();
    return result;
  }

  async connectWebsocket(request: ConnectWebsocketRequest, context: CommandContext): Promise<Answer | Problem> {
    if (this.#webSockets === undefined) return problems.notConfigured('WebSocket');
    const refused = this.#refusesNew(context.appUuid);
    if (refused !== undefined) return refused;
    const { websocket, media_format: format, parameters = {}, phone_session_uuid: phoneSessionUuid } = request;
    const { appUuid, operationUuid, traceparent } = context;
    if (phoneSessionUuid !== undefined && !(await this.#isPhoneOf(appUuid, phoneSessionUuid)))
      return problems.notFound('Session');
    const sessionUuid = newUuid();
    const seat = await this.#seat(request, sessionUuid, appUuid, true);
    if (isProblem(seat)) return seat;
    // Others may have begun while its phone Session and a seat were looked for.
    const refusedNow = this.#refusesNew(appUuid);
    if (refusedNow !== undefined) {
      this.#unseat(seat, sessionUuid);
      return refusedNow;
    }
    let listener: LegListener = () => {};
    const leg = this.#webSockets({
      sessionUuid,
      appUuid,
      traceparent,
      url: websocket.url,
      headers: websocket.headers ?? {},
      subprotocol: websocket.subprotocol,
      connectTimeoutMs: (websocket.connect_timeout_sec ?? WEBSOCKET_CONNECT_DEFAULT_SEC) * 1000,
      fromSession: { encoding: format.from_session.encoding, rateHz: format.from_session.sample_rate },
      toSession: { encoding: format.to_session.encoding, rateHz: format.to_session.sample_rate },
      parameters,
      phoneSessionUuid,
      order: (order) => this.#bots.order(sessionUuid, order),
      listener: (signal) => listener(signal),
    });
    this.#bots.add(sessionUuid, { appUuid, traceparent, phoneSessionUuid });
    const { orphanTimeoutMs, clock } = this.#options;
    const about = { sessionUuid, appUuid, operationUuid, orphanTimeoutMs, clientState: request.client_state ?? '', seat };
    const actor = this.#begin(connecting(about, clock.now()), leg);
    listener = actor.listener;
    const result = await actor.begin(context, accepted(operationUuid, { session_uuid: sessionUuid }));
    if (isProblem(result)) leg.hangup();
    return result;
  }

  /** Why no Session of the application may begin now, or undefined. */
  #refusesNew(appUuid: string): Problem | undefined {
    if (this.#draining) return problems.draining();
    return this.#actors.hasRoomFor(appUuid) ? undefined : problems.noCapacity(NO_CAPACITY_RETRY_SEC);
  }

  /** Tells whether that is a live phone Session of the application. */
  async #isPhoneOf(appUuid: string, sessionUuid: string): Promise<boolean> {
    const here = this.find(sessionUuid)?.state;
    const { elsewhere, records } = this.#options;
    const row =
      here === undefined && elsewhere !== undefined && isUuid(sessionUuid) ? await records.find(appUuid, sessionUuid) : undefined;
    const found = here ?? (row?.endedAt === undefined ? row : undefined);
    return found?.appUuid === appUuid && found.type !== 'websocket';
  }

  /** The seat in a Room that a request asks for. */
  async #seat(
    { room_id: roomId, room_muted: muted = false }: { readonly room_id?: string; readonly room_muted?: boolean },
    sessionUuid: string,
    appUuid: string,
    isBot: boolean,
  ): Promise<Seat | Problem | undefined> {
    if (roomId === undefined) return undefined;
    return (await this.#rooms?.reserve({ roomId, sessionUuid, appUuid, muted, isBot })) ?? problems.notFound('Room');
  }

  #unseat(seat: Seat | undefined, sessionUuid: string): void {
    if (seat !== undefined) this.#rooms?.release(seat.roomId, sessionUuid);
  }

  #dialled(
    request: DialRequest,
    { appUuid, operationUuid }: CommandContext,
    sessionUuid: string,
    seat: Seat | undefined,
  ): SessionState {
    const { orphanTimeoutMs, clock } = this.#options;
    const about = {
      ...{ sessionUuid, appUuid, operationUuid, orphanTimeoutMs, seat },
      callerId: request.from,
      did: isDevice(request.to) ? '' : request.to,
      clientState: request.client_state ?? '',
      sendDigits: request.send_digits,
      detectMachineMs: detectionMs(request),
      ringTimeoutMs: request.ring_timeout_sec * 1000,
      maxDurationMs: (request.max_duration_sec ?? CALL_DURATION_DEFAULT_SEC) * 1000,
    };
    return outbound(about, clock.now());
  }

  /** Makes the actor of a Session, which is live from now on. */
  #begin(state: SessionState, leg: Leg | undefined, epoch?: number, traceparent?: string): SessionActor {
    const actor = new SessionActor(state, leg, this.#environment, epoch, traceparent);
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
    const rows = (await this.adoption.take()).filter(({ sessionUuid }) => !this.#actors.has(sessionUuid));
    for (const row of rows) this.orphan(row, seenAt);
    return rows.length;
  }

  /** A Session without its call, which can only be ended. */
  orphan(row: SessionRow, seenAt?: number): void {
    const { clock, orphanTimeoutMs } = this.#options;
    const remains = { ...row, phase: row.state, running: runningOf(row.running), orphanTimeoutMs };
    const state = recovered(remains, clock.now(), seenAt);
    this.#rooms?.find(row.roomId)?.take(row.sessionUuid);
    this.#begin(state, undefined, row.epoch).signal({ type: 'begin' });
  }

  /** The live Sessions of this node. */
  all(): Iterable<SessionActor> {
    return this.#actors.values();
  }

  /** Goes on with a Session of another node. */
  async goOn(state: SessionState, { leg, listen }: ResumedLeg, epoch: number, traceparent: string): Promise<void> {
    // A call that another node took from this one may be back before this one has let it go.
    this.#actors.get(state.sessionUuid)?.dropTaken();
    const actor = this.#begin(state, leg, epoch, traceparent);
    if (state.cutOff !== undefined) actor.signal({ type: 'begin' });
    listen(actor.listener);
    actor.storeCall();
    await this.#rooms?.span?.follow(actor);
  }

  /** Takes nothing new. Resolves when the last call has ended, or after `graceMs`, when the system ends those left. */
  async drain(graceMs: number, teardownMs: number): Promise<void> {
    this.#draining = true;
    if (await this.#emptyWithin(graceMs)) return;
    this.endAll();
    await this.#emptyWithin(teardownMs);
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

  #live(): number {
    let live = 0;
    for (const { state } of this.#actors.values()) if (state.hasLeg || state.closedAt !== undefined) live++;
    return live;
  }

  #emptyWithin(ms: number): Promise<boolean> {
    if (this.#live() === 0) return Promise.resolve(true);
    const { clock } = this.#options;
    return new Promise((resolve) => {
      const stop = clock.at(clock.now() + ms, () => {
        this.#whenEmpty = undefined;
        resolve(false);
      });
      this.#whenEmpty = () => {
        stop();
        this.#whenEmpty = undefined;
        resolve(true);
      };
    });
  }

  #forget(sessionUuid: string): void {
    this.#unseat(this.#actors.get(sessionUuid)?.seated, sessionUuid);
    this.#actors.delete(sessionUuid);
    this.#bots.forget(sessionUuid);
    this.#environment.history.ended(sessionUuid);
    if (this.#whenEmpty !== undefined && this.#live() === 0) this.#whenEmpty();
  }
}

/** The longest that answering machine detection takes, where a dial asks for it. */
const detectionMs = ({ machine_detection: asked }: DialRequest): number | undefined =>
  asked === undefined ? undefined : (asked.timeout_ms ?? MACHINE_DETECTION_DEFAULT_MS);
