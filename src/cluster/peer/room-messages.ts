/** The messages between nodes about Rooms that span them, over the bus. */
import type { NewHome, RoomPeers, SeatReply, SeatRequest } from '../../call/ports/room-peers.ts';
import { NODE_COMMAND_MARGIN_MS, NODE_COMMAND_TIMEOUT_MS, SEAT_ASK_TIMEOUT_MS } from '../../limits.ts';
import type { Bus } from '../bus/bus.ts';
import type { Members } from '../membership/members.ts';

interface RoomMessagesOptions {
  readonly bus: Bus;
  /** The members of the cluster, or undefined until it is started. */
  members(): Members | undefined;
  readonly pipeHost: string;
}

const SEAT = 'seat';
const RELEASE = 'room.release';
const HOME = 'room';

export class RoomMessages implements RoomPeers {
  readonly #options: RoomMessagesOptions;

  constructor(options: RoomMessagesOptions) {
    this.#options = options;
  }

  get pipeHost(): string {
    return this.#options.pipeHost;
  }

  async ask(nodeId: string, request: SeatRequest): Promise<SeatReply | undefined> {
    const { bus } = this.#options;
    const result = await bus.ask(nodeId, SEAT, { request }, SEAT_ASK_TIMEOUT_MS, SEAT_ASK_TIMEOUT_MS);
    return result.outcome === 'answered' && isReply(result.body) ? result.body : undefined;
  }

  reach(nodeId: string) {
    return this.#options.bus.ping(nodeId);
  }

  isDead(nodeId: string): boolean {
    return this.#options.members()?.isDead(nodeId) ?? false;
  }

  protocol(nodeId: string): number {
    return this.#options.members()?.get(nodeId)?.protocol ?? 0;
  }

  tellHome(home: NewHome): void {
    this.#options.bus.tell(HOME, home);
  }

  async askRelease(nodeId: string, roomId: string): Promise<boolean> {
    const timeLeft = NODE_COMMAND_TIMEOUT_MS - NODE_COMMAND_MARGIN_MS;
    const { bus } = this.#options;
    const result = await bus.ask(nodeId, RELEASE, { roomId }, NODE_COMMAND_TIMEOUT_MS, timeLeft);
    if (result.outcome !== 'answered') return false;
    const { body } = result;
    return typeof body === 'object' && body !== null && 'released' in body && body.released === true;
  }

  serve({ answer, homeChanged, giveUp }: Parameters<RoomPeers['serve']>[0]): void {
    const { bus } = this.#options;
    bus.answer(SEAT, (body, from) => (isRequest(body) ? answer(body.request, from) : {}));
    bus.answer(RELEASE, async (body) => ({ released: isRoom(body) && (await giveUp(body.roomId)) }));
    bus.hear(HOME, (body) => {
      if (isHome(body)) homeChanged(body);
    });
  }
}

// What comes here is under the cluster's own key; these say what another release may have changed.
const isRoom = (body: unknown): body is { readonly roomId: string } =>
  typeof body === 'object' && body !== null && 'roomId' in body && typeof body.roomId === 'string';
const isRequest = (body: unknown): body is { readonly request: SeatRequest } =>
  typeof body === 'object' && body !== null && 'request' in body && typeof body.request === 'object' && body.request !== null;
const isReply = (body: unknown): body is SeatReply => typeof body === 'object' && body !== null && 'type' in body;
const isHome = (body: unknown): body is NewHome =>
  isRoom(body) && 'nodeId' in body && typeof body.nodeId === 'string' && 'epoch' in body && typeof body.epoch === 'number';
