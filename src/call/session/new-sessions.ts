/**
 * Makes Sessions: of a call that comes in, of a dial, and of a connection to a WebSocket server. What can refuse one is
 * asked here before its first step: the limits of the node, the seat in a Room, the trunks.
 */
import type { Clock } from '../../clock.ts';
import type { FoundSession } from '../../database/call/sessions.ts';
import { isUuid, newSessionUuid } from '../../id.ts';
import { CALL_DURATION_DEFAULT_SEC, MACHINE_DETECTION_DEFAULT_MS, WEBSOCKET_CONNECT_DEFAULT_SEC } from '../../limits.ts';
import type { Seat } from '../../machine/room/membership.ts';
import { connecting, inbound, outbound, type SessionState } from '../../machine/session/session.ts';
import { isE164 } from '../../phone-number.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import type { LiveSessions } from '../live-sessions.ts';
import { isDevice } from '../ports/devices.ts';
import type { Dialer, DialOptions, DialRefused, IncomingCall, Leg, LegListener, WebSocketDialer } from '../ports/leg.ts';
import { type Answer, accepted, type CommandContext, type ConnectWebsocketRequest, type DialRequest } from '../ports/sessions.ts';
import type { RoomRegistry } from '../room/room-registry.ts';
import type { Bots } from './bots.ts';
import type { SessionActor } from './session-actor.ts';
import type { TransferOptions } from './transfers.ts';

const NO_CAPACITY_RETRY_SEC = 5;

export interface NewSessionsOptions extends Pick<TransferOptions, 'reachOf'> {
  readonly clock: Clock;
  readonly orphanTimeoutMs: number;
  readonly records: { find(appUuid: string, sessionUuid: string): Promise<FoundSession | undefined> };
  /** A Session has a SIP dialog with that Call-ID, as the one who called or the one who was called. */
  onSipCall?(callId: string, sessionUuid: string, side: 'caller' | 'callee'): void;
  /** Tells whether the application may show `from` as its caller ID. */
  mayCallFrom(appUuid: string, from: string): Promise<boolean>;
}

/** The registry as it is needed here: its live Sessions, and the doors and Rooms that it was connected with. */
interface Registry {
  readonly actors: Pick<LiveSessions, 'get' | 'hasRoomFor'>;
  readonly bots: Pick<Bots, 'add' | 'order'>;
  /** Whether Sessions may be at other nodes. */
  readonly hasOthers: boolean;
  /** Makes the actor of a Session, which is live from then on. */
  begin(state: SessionState, leg: Leg): Pick<SessionActor, 'begin' | 'listener'>;
  isDraining(): boolean;
  rooms(): Pick<RoomRegistry, 'reserve' | 'release'> | undefined;
  dialer(): Dialer | undefined;
  webSockets(): WebSocketDialer | undefined;
}

export class NewSessions {
  readonly #options: NewSessionsOptions;
  readonly #registry: Registry;

  constructor(options: NewSessionsOptions, registry: Registry) {
    this.#options = options;
    this.#registry = registry;
  }

  /** A call from a trunk, a device or a browser. Resolves with its Session, or undefined where it was refused. */
  async incoming(call: IncomingCall): Promise<string | undefined> {
    const isDraining = this.#registry.isDraining();
    if (isDraining || !this.#registry.actors.hasRoomFor(call.appUuid)) {
      call.listen(() => {});
      call.refuse(isDraining ? 'away' : 'full');
      return undefined;
    }
    const sessionUuid = newSessionUuid();
    const { appUuid, callerId, did, sip, type: inboundType, clientState = '' } = call;
    const { orphanTimeoutMs, clock } = this.#options;
    const about = { sessionUuid, appUuid, callerId, did, orphanTimeoutMs, sip, inboundType, clientState };
    const actor = this.#registry.begin(inbound(about, clock.now()), call.leg);
    if (call.sip !== undefined) this.#options.onSipCall?.(call.sip.call_id, sessionUuid, 'callee');
    const context = { appUuid, operationUuid: '', idempotencyKey: undefined, traceparent: '' };
    // Asked, not signalled: a call that cannot be made durable is refused at once, and the carrier can go elsewhere.
    const begun = actor.begin(context, undefined);
    call.listen(actor.listener);
    if (isProblem(await begun)) {
      call.refuse('away');
      return undefined;
    }
    return sessionUuid;
  }

  async dial(request: DialRequest, context: CommandContext): Promise<Answer | Problem> {
    if (!(await this.#options.mayCallFrom(context.appUuid, request.from))) return problems.callerId();
    const mayReach = await this.#options.reachOf(context.appUuid);
    if (isE164(request.to) && !mayReach(request.to)) return problems.destination();
    const dialer = this.#registry.dialer();
    if (dialer === undefined) return problems.noTrunk();
    const refused = this.#refusesNew(context.appUuid);
    if (refused !== undefined) return refused;
    const sessionUuid = newSessionUuid();
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
    const reserved = await dialer.dial(order);
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
    const actor = this.#registry.begin(this.#dialled(request, context, sessionUuid, seat), reserved.leg);
    listener = actor.listener;
    const result = await actor.begin(context, accepted(context.operationUuid, { session_uuid: sessionUuid }));
    if (isProblem(result)) reserved.leg.hangup();
    return result;
  }

  async connectWebsocket(request: ConnectWebsocketRequest, context: CommandContext): Promise<Answer | Problem> {
    const webSockets = this.#registry.webSockets();
    if (webSockets === undefined) return problems.notConfigured('WebSocket');
    const refused = this.#refusesNew(context.appUuid);
    if (refused !== undefined) return refused;
    const { websocket, media_format: format, parameters = {}, phone_session_uuid: phoneSessionUuid } = request;
    const { appUuid, operationUuid, traceparent } = context;
    if (phoneSessionUuid !== undefined && !(await this.#isPhoneOf(appUuid, phoneSessionUuid)))
      return problems.notFound('Session');
    const sessionUuid = newSessionUuid();
    const seat = await this.#seat(request, sessionUuid, appUuid, true);
    if (isProblem(seat)) return seat;
    // Others may have begun while its phone Session and a seat were looked for.
    const refusedNow = this.#refusesNew(appUuid);
    if (refusedNow !== undefined) {
      this.#unseat(seat, sessionUuid);
      return refusedNow;
    }
    let listener: LegListener = () => {};
    const leg = webSockets({
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
      order: (order) => this.#registry.bots.order(sessionUuid, order),
      listener: (signal) => listener(signal),
    });
    this.#registry.bots.add(sessionUuid, { appUuid, traceparent, phoneSessionUuid });
    const { orphanTimeoutMs, clock } = this.#options;
    const about = { sessionUuid, appUuid, operationUuid, orphanTimeoutMs, clientState: request.client_state ?? '', seat };
    const actor = this.#registry.begin(connecting(about, clock.now()), leg);
    listener = actor.listener;
    const result = await actor.begin(context, accepted(operationUuid, { session_uuid: sessionUuid }));
    if (isProblem(result)) leg.hangup();
    return result;
  }

  /** Why no Session of the application may begin now, or undefined. */
  #refusesNew(appUuid: string): Problem | undefined {
    if (this.#registry.isDraining()) return problems.draining();
    return this.#registry.actors.hasRoomFor(appUuid) ? undefined : problems.noCapacity(NO_CAPACITY_RETRY_SEC);
  }

  /** Tells whether that is a live phone Session of the application. */
  async #isPhoneOf(appUuid: string, sessionUuid: string): Promise<boolean> {
    const here = this.#registry.actors.get(sessionUuid)?.state;
    const isElsewhere = here === undefined && this.#registry.hasOthers && isUuid(sessionUuid);
    const row = isElsewhere ? await this.#options.records.find(appUuid, sessionUuid) : undefined;
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
    return (await this.#registry.rooms()?.reserve({ roomId, sessionUuid, appUuid, muted, isBot })) ?? problems.notFound('Room');
  }

  #unseat(seat: Seat | undefined, sessionUuid: string): void {
    if (seat !== undefined) this.#registry.rooms()?.release(seat.roomId, sessionUuid);
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
}

/** The longest that answering machine detection takes, where a dial asks for it. */
const detectionMs = ({ machine_detection: asked }: DialRequest): number | undefined =>
  asked === undefined ? undefined : (asked.timeout_ms ?? MACHINE_DETECTION_DEFAULT_MS);

/** The response to a dial that no trunk can carry now. */
function dialRefused(why: DialRefused): Problem {
  switch (why) {
    case 'unknown_device':
      return problems.notFound('Device');
    case 'no_trunk':
      return problems.noTrunk();
    case 'unknown_trunk':
      return problems.invalid('trunk: must be the name of a trunk that this application may use');
    case 'no_node':
      return problems.nodeAway('this trunk');
    case 'no_capacity':
      return problems.noCapacity(NO_CAPACITY_RETRY_SEC);
    case 'no_ports':
      return problems.unavailable('No RTP ports are free.', NO_CAPACITY_RETRY_SEC);
    case 'draining':
      return problems.draining();
  }
}
