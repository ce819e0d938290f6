/**
 * The server's own trace on every response; a valid incoming one is linked to it, a malformed one ignored (interface,
 * Errors).
 */
import { ThrottledLog } from '../../bounds/throttled-log.ts';
import type { Clock } from '../../clock.ts';
import {
  LINKED_STRANGERS_AT_ONCE,
  LINKED_STRANGERS_LOG_MS,
  LINKED_STRANGERS_PER_SEC,
  LINKED_TRACESTATE_MAX_CHARS,
} from '../../limits.ts';
import type { Log } from '../../log.ts';

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;
const TRACEPARENT_MAX_CHARS = 256;
/** W3C Trace Context §3.3: printable ASCII, `key=value` members between commas. */
const TRACESTATE = /^[ \t]*[a-z0-9][a-z0-9_\-*/@]*=[\x20-\x7e]*$/;

/**
 * Logs, at `info`, which trace of the caller's the response's own trace is linked to. A request without a valid
 * `traceparent` is not logged. Of callers that have shown no key, or are over their rate, LINKED_STRANGERS_PER_SEC are
 * logged a second: anybody could fill the disk otherwise.
 */
export class TraceLinks {
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #throttled: ThrottledLog;
  /** The requests that are under way whose keys were right. */
  readonly #known = new WeakSet<Request>();
  #allowed = LINKED_STRANGERS_AT_ONCE;
  #lookedAt = -Infinity;

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
    this.#throttled = new ThrottledLog(log, clock, LINKED_STRANGERS_LOG_MS);
  }

  /** The key of the request was right. */
  know(request: Request): void {
    if (request.headers.has('traceparent')) this.#known.add(request);
  }

  /** Links the caller's trace, if there is one, to that of the response. */
  link(request: Request, response: Response): void {
    const given = request.headers.get('traceparent');
    if (given === null || given.length > TRACEPARENT_MAX_CHARS || !TRACEPARENT.test(given)) return;
    if ((!this.#known.has(request) || response.status === 429) && !this.#mayLog()) {
      this.#throttled.say('warn', 'links', {}, 'too many traces of callers without a key: not all are logged');
      return;
    }
    const state = request.headers.get('tracestate') ?? '';
    this.#log.info(
      {
        traceparent: response.headers.get('traceparent') ?? '',
        linked_trace: given,
        ...(TRACESTATE.test(state) ? { linked_tracestate: state.slice(0, LINKED_TRACESTATE_MAX_CHARS) } : {}),
      },
      "linked to the caller's trace",
    );
  }

  #mayLog(): boolean {
    const now = this.#clock.now();
    const more = ((now - this.#lookedAt) * LINKED_STRANGERS_PER_SEC) / 1000;
    this.#lookedAt = now;
    this.#allowed = Math.min(LINKED_STRANGERS_AT_ONCE, this.#allowed + more);
    if (this.#allowed < 1) return false;
    this.#allowed -= 1;
    return true;
  }
}
