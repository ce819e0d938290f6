/** The server's own trace on every response; a valid incoming one is linked to it, a malformed one ignored (interface, Errors). */
import { randomBytes } from 'node:crypto';

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;
const POOL_BYTES = 24 * 256;

let pool = '';
let used = 0;

/** A new `traceparent` (W3C Trace Context), sampled. */
export function newTraceparent(): string {
  if (used >= pool.length) {
    pool = randomBytes(POOL_BYTES).toString('hex');
    used = 0;
  }
  const trace = pool.slice(used, used + 32);
  const span = pool.slice(used + 32, used + 48);
  used += 48;
  return `00-${trace}-${span}-01`;
}

/** The caller's `traceparent`, where it is well-formed. */
export function incomingTrace(request: Request): string | undefined {
  const given = request.headers.get('traceparent');
  return given !== null && given.length <= 256 && TRACEPARENT.test(given) ? given : undefined;
}
