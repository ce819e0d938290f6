/**
 * Joins of this node's Sessions to Rooms that other nodes mix: the seat at the Room's home comes first, then the
 * Session's own step.
 */
import { isProblem, type Problem } from '../../problem.ts';
import type { SeatWish } from '../ports/room-peers.ts';
import type { JoinRequest } from '../ports/rooms.ts';
import type { Answer, CommandContext } from '../ports/sessions.ts';
import type { SessionActor } from '../session/session-actor.ts';
import { roomIsMoving } from './room-moving.ts';
import type { RoomHomes } from './room-registry-options.ts';
import type { RoomSpan } from './room-span.ts';

export interface AwayJoinsOptions {
  readonly span: Pick<RoomSpan, 'take' | 'left'>;
  readonly homes: Pick<RoomHomes, 'home'>;
  readonly nodeId: string;
  /** A live Session of this node. */
  session(sessionUuid: string): SessionActor | undefined;
}

export class AwayJoins {
  readonly #options: AwayJoinsOptions;
  /** Joins whose outcome is open, by Room and Session. */
  readonly #open = new Set<string>();

  constructor(options: AwayJoinsOptions) {
    this.#options = options;
  }

  /**
   * Joins the Room at `home`. A Session has one seat there: a join that comes while the outcome of another is open
   * would take its seat away, and is asked to come again (`roomIsMoving`).
   */
  async join(
    home: string,
    roomId: string,
    session: SessionActor,
    request: JoinRequest,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const name = `${roomId} ${session.state.sessionUuid}`;
    if (this.#open.has(name)) return roomIsMoving;
    this.#open.add(name);
    try {
      return await this.#join(home, roomId, session, request, context);
    } finally {
      void session.settled().then(() => this.#open.delete(name));
    }
  }

  async #join(
    home: string,
    roomId: string,
    session: SessionActor,
    { muted, coach }: JoinRequest,
    context: CommandContext,
  ): Promise<Answer | Problem> {
    const { sessionUuid, appUuid, type, membership, seat: reserved } = session.state;
    const answer = { status: 202, body: { room_id: roomId, session_uuid: sessionUuid, status: 'joining' } };
    const coaching = coach === undefined ? {} : { coach };
    const join = { type: 'member_join', roomId, muted, ...coaching } as const;
    // Joining the Room it is in changes nothing. One that it was dialled into has its seat, which another would end.
    const own = [membership, reserved].find((each) => each?.roomId === roomId);
    if (own !== undefined) {
      const { room, voiceActivityEvents } = own;
      return session.command({ ...join, room, voiceActivityEvents }, context, undefined, answer);
    }
    const wish = { roomId, appUuid, sessionUuid, isBot: type === 'websocket', reserved: false, coach };
    const seat = await this.seat(home, wish);
    if (isProblem(seat)) return seat;
    const result = await session.command({ ...join, ...seat }, context, undefined, answer);
    const isIn = () => this.#options.session(sessionUuid)?.state.membership?.roomId === roomId;
    onceKnown(session, result, isIn, () => this.#options.span.left(sessionUuid, roomId));
    return result;
  }

  /**
   * Takes a seat at a Room's home, which is looked up once more where it has just moved. A Room that has moved to this
   * node is none of another: the join is to come again, and finds it here.
   */
  async seat(home: string, wish: SeatWish): ReturnType<RoomSpan['take']> {
    const { span, homes, nodeId } = this.#options;
    const seat = await span.take(home, wish);
    if (!isProblem(seat) || seat.status !== 503) return seat;
    const next = await homes.home(wish.appUuid, wish.roomId);
    if (next === nodeId) return roomIsMoving;
    return typeof next === 'string' && next !== home ? await span.take(next, wish) : seat;
  }
}

/**
 * Calls `giveBack` where a join was refused, or its Session has ended: the place is nobody's. It is kept while the
 * database does not tell whether the join is stored, and where the Session is in the Room by then (`isIn`): by another
 * join, or at another node, or here again, if its call moved while the join waited. `known` is called in any case.
 */
export function onceKnown(
  session: SessionActor,
  result: Answer | Problem,
  isIn: () => boolean,
  giveBack: () => void,
  known = () => {},
): void {
  const settle = () => {
    known();
    if (!isIn()) giveBack();
  };
  if (isProblem(result)) void session.settled().then(settle);
  else settle();
}
