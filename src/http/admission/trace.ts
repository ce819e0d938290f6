/**
 * The server's own trace on every response; a valid incoming one is linked to it, a malformed one ignored (interface,
 * Errors).
 */
import { LINKED_TRACESTATE_MAX_CHARS } from '../../limits.ts';
import type { Log } from '../../log.ts';

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;
const TRACEPARENT_MAX_CHARS = 256;
/** W3C Trace Context §3.3: printable ASCII, `key=value` members between commas. */
const TRACESTATE = /^[ \t]*[a-z0-9][a-z0-9_\-*/@]*=[\x20-\x7e]*$/;

/**
 * Logs, at `info`, which trace of the caller's the response's own trace is linked to. A request without a valid
 * `traceparent` is not logged.
 */
export function linkTrace(log: Log, request: Request, response: Response): void {
  const given = request.headers.get('traceparent');
  if (given === null || given.length > TRACEPARENT_MAX_CHARS || !TRACEPARENT.test(given)) return;
  const state = request.headers.get('tracestate') ?? '';
  log.info(
    {
      traceparent: response.headers.get('traceparent') ?? '',
      linked_trace: given,
      ...(TRACESTATE.test(state) ? { linked_tracestate: state.slice(0, LINKED_TRACESTATE_MAX_CHARS) } : {}),
    },
    "linked to the caller's trace",
  );
}
