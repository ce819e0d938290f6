/** The messages of a planned hand-over of calls, over the bus. */
import type { MovePeers, MoveReply, MoveRequest } from '../../call/ports/session-moves.ts';
import { MOVE_PREPARED_MS, NODE_COMMAND_MARGIN_MS, NODE_COMMAND_TIMEOUT_MS } from '../../limits.ts';
import type { Bus } from '../bus/bus.ts';

interface MovesOptions {
  readonly bus: Pick<Bus, 'ask' | 'answer'>;
  place: MovePeers['place'];
}

const MOVE = 'move';

export class Moves implements MovePeers {
  readonly #options: MovesOptions;
  readonly place: MovePeers['place'];

  constructor(options: MovesOptions) {
    this.#options = options;
    this.place = options.place;
  }

  async ask(nodeId: string, request: MoveRequest): Promise<MoveReply | undefined> {
    const timeoutMs = request.type === 'prepare' ? 2 * MOVE_PREPARED_MS : NODE_COMMAND_TIMEOUT_MS;
    const result = await this.#options.bus.ask(nodeId, MOVE, { request }, timeoutMs, timeoutMs - NODE_COMMAND_MARGIN_MS);
    return result.outcome === 'answered' && isReply(result.body) ? result.body : undefined;
  }

  serve(answer: Parameters<MovePeers['serve']>[0]): void {
    this.#options.bus.answer(MOVE, (body, from) => (isRequest(body) ? answer(body.request, from, body.until) : {}));
  }
}

// What comes here is under the cluster's own key; these say what another release may have changed.
const isRequest = (body: unknown): body is { readonly request: MoveRequest; readonly until: number } =>
  typeof body === 'object' && body !== null && 'request' in body && typeof body.request === 'object' && 'until' in body;
const isReply = (body: unknown): body is MoveReply => typeof body === 'object' && body !== null && 'type' in body;
