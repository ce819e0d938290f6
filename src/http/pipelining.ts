/**
 * Limits how many requests one connection may have answered in one turn of the event loop. The runtime answers requests
 * that were pipelined (RFC 9112 §9.3.2) in the turn in which it read them, so a long pipeline of cheap requests would
 * hold up every other connection and the SIP sockets.
 */
import { HTTP_PIPELINED_MAX } from '../limits.ts';

/** The far end of a connection. */
export interface HttpPeer {
  readonly address: string;
  readonly port: number;
}

/**
 * Requests that are let through in a turn before anyone asks whose they are: asking costs a microsecond, and a quiet
 * turn has fewer.
 */
const UNCOUNTED = HTTP_PIPELINED_MAX / 2;

export class PipelineLimit {
  readonly #afterTurn: (done: () => void) => void;
  readonly #counts = new Map<string, number>();
  #answered = 0;

  /** `afterTurn` calls back when the present turn of the event loop is over. */
  constructor(afterTurn: (done: () => void) => void) {
    this.#afterTurn = afterTurn;
  }

  /**
   * Counts one request. Returns true when its connection has had its share of this turn and is to be closed after the
   * answer.
   */
  isSpent(peer: () => HttpPeer | undefined): boolean {
    this.#answered += 1;
    if (this.#answered === 1) this.#afterTurn(() => this.#forget());
    if (this.#answered <= UNCOUNTED) return false;
    const from = peer();
    if (from === undefined) return false;
    const name = `${from.address} ${from.port}`;
    const count = (this.#counts.get(name) ?? 0) + 1;
    this.#counts.set(name, count);
    return count >= HTTP_PIPELINED_MAX - UNCOUNTED;
  }

  #forget(): void {
    this.#answered = 0;
    this.#counts.clear();
  }
}
