/**
 * The closed table of expected errors (interface, Errors). A problem is a value: machines return it, admission returns
 * it, and the HTTP door writes it as `{code, message}`. It never carries what the caller submitted.
 */
import { DRAINING_RETRY_SEC, NODE_RETRY_AFTER_SEC } from './limits.ts';

type ProblemCode =
  | 'invalid_request'
  | 'invalid_authorization_header'
  | 'payload_too_large'
  | 'result_set_too_large'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'conflict'
  | 'recording_not_active'
  | 'room_full'
  | 'rate_limited'
  | 'playback_source_error'
  | 'unavailable';

export type SourceReason =
  | 'unsupported'
  | 'not_found'
  | 'access_denied'
  | 'timeout'
  | 'unreachable'
  | 'rejected'
  | 'invalid_response'
  | 'preparation_failed';

/** The `detail` of a 502 (interface, 502 detail object). */
export interface SourceDetail {
  readonly reason: SourceReason;
  readonly source_index?: number;
  readonly retryable: boolean;
  readonly upstream_status?: number;
}

export interface Problem {
  readonly problem: ProblemCode;
  readonly status: number;
  readonly message: string;
  /** Whole seconds; only in the `Retry-After` header, never in the body. */
  readonly retryAfterSec?: number;
  /** The `Allow` header of a 405. */
  readonly allow?: string;
  readonly detail?: SourceDetail;
  /** The command may be stored all the same: its Idempotency-Key stays marked until that is known. */
  readonly isInDoubt?: true;
  /** It passes without a change of the request or of a setting, so it is never kept under an Idempotency-Key. */
  readonly isPassing?: true;
}

const make = (problem: ProblemCode, status: number, message: string, more: Partial<Problem> = {}): Problem => ({
  problem,
  status,
  message,
  ...more,
});

export const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' && value !== null && 'problem' in value && 'status' in value;

/** The hand-over of a call is over in a moment. */
const CALL_MOVED_RETRY_SEC = 1;
/** It tells a client that this 409 is no state's: the same request gets the answer of the first one later. */
const IN_PROGRESS_RETRY_SEC = 1;
const SEE_HEADER = 'See Retry-After header.';

export const problems = {
  invalid: (message: string) => make('invalid_request', 400, message),
  unprocessable: (message: string) => make('invalid_request', 422, message),
  methodNotAllowed: (allow: string) => make('invalid_request', 405, 'Method not allowed on this path', { allow }),
  preconditionFailed: (message = 'If-Match does not name the recording') => make('invalid_request', 412, message),
  preconditionRequired: () => make('invalid_request', 428, 'If-Match: must name the ICE session, or be *'),
  unsatisfiable: () => make('invalid_request', 416, 'Range is beyond the end of the recording'),
  unsupportedMediaType: (type = 'application/json') => make('invalid_request', 415, `Content-Type must be ${type}`),
  unsupportedCoding: () => make('invalid_request', 415, 'Content-Encoding: must be absent, as the body is read as it is'),
  keyReused: () => make('invalid_request', 422, 'Idempotency-Key was already used with a different request'),
  malformedAuthorization: () => make('invalid_authorization_header', 400, 'Authorization must be: Bearer <app_uuid>:<api_key>'),
  missingCredentials: () =>
    make('unauthorized', 401, 'Authorization must be: Bearer <app_uuid>:<api_key>, or Bearer <operator_token>'),
  missingApiKey: () => make('unauthorized', 401, 'Missing API key'),
  invalidApiKey: () => make('unauthorized', 401, 'Invalid API key'),
  missingWebrtcToken: () => make('unauthorized', 401, 'Authorization must be: Bearer <token>'),
  invalidWebrtcToken: () => make('unauthorized', 401, 'Invalid, expired or revoked token'),
  invalidOperatorToken: () => make('unauthorized', 401, 'Invalid operator token'),
  /** `hint` says how to stay below the limit. */
  tooLarge: (limitBytes: number, hint = '') =>
    make('payload_too_large', 413, `Request body is larger than ${limitBytes} bytes${hint === '' ? '' : `: ${hint}`}`),
  tooManyPieces: () => make('invalid_request', 400, 'body: must not come in so many small chunks'),
  tooManySessions: () => make('result_set_too_large', 413, 'Too many results to return; narrow your query using filters.'),
  tooManyResults: () => make('result_set_too_large', 413, 'Too many results to return.'),
  forbidden: (message: string) => make('forbidden', 403, message),
  callerId: () =>
    make('forbidden', 403, 'Caller ID is not permitted for this application; GET /api/v1/app lists its outbound_caller_ids'),
  sender: () =>
    make('forbidden', 403, 'Sender is not permitted for this application; GET /api/v1/app lists its outbound_caller_ids'),
  destination: () => make('forbidden', 403, 'That number may not be reached: the operator sets which ones this application may'),
  /** The cap is a policy, but how many Rooms there are is a state: a place is free again when one has closed. */
  tooManyRooms: () => make('forbidden', 403, 'Maximum number of rooms reached for this application', { isPassing: true }),
  noRoute: () => make('not_found', 404, 'No route matches this path'),
  notFound: (what: string) => make('not_found', 404, `${what} not found`),
  notLive: () => make('not_found', 404, 'Recording is not live'),
  /** 410: past its retention. The set of codes is closed and has none of its own for it. */
  removed: (what: string) => make('not_found', 410, `${what} was removed`),
  conflict: (message: string) => make('conflict', 409, message),
  recordingNotActive: () => make('recording_not_active', 409, 'No recording of the room is active'),
  roomFull: () => make('room_full', 409, 'Room is full'),
  requestInProgress: () =>
    make('conflict', 409, 'Request already in progress: another request with the same Idempotency-Key is still processing', {
      retryAfterSec: IN_PROGRESS_RETRY_SEC,
    }),
  rateLimited: (retryAfterSec: number) =>
    make('rate_limited', 429, `Command rate limit exceeded. ${SEE_HEADER}`, { retryAfterSec }),
  /** `sources`: how many were sent; of a single one no index is told. */
  source: ({ source_index, ...detail }: SourceDetail, sources = 1) =>
    make('playback_source_error', 502, 'A playback source could not be admitted', {
      detail: sources > 1 && source_index !== undefined ? { ...detail, source_index } : detail,
    }),
  /** 503: what is missing is a setting; waiting does not help. */
  notConfigured: (what: string) => make('unavailable', 503, `${what} is not configured`),
  /** 503: no carrier takes calls of the application. */
  noTrunk: () =>
    make('unavailable', 503, 'No trunk takes calls of this application: the operator sets one up by `bin/sidetone trunks set`'),
  /** 503: temporary; `Retry-After` says when to come back. */
  unavailable: (message: string, retryAfterSec: number) => make('unavailable', 503, message, { retryAfterSec }),
  /** 503: the node takes no new work, since it is drained by order, or is ending. */
  draining: () =>
    make('unavailable', 503, `This node takes nothing new, because it is being drained or stopped. ${SEE_HEADER}`, {
      retryAfterSec: DRAINING_RETRY_SEC,
    }),
  /** A live call is not at this node any more, or not yet. */
  callMoved: () => make('unavailable', 503, 'The call has just moved to another node.', { retryAfterSec: CALL_MOVED_RETRY_SEC }),
  /** 503: no node that has what the request is about can be asked: `this call`, `this Room`, `this trunk`. */
  nodeAway: (what: string) =>
    make('unavailable', 503, `The node of ${what} cannot be reached. ${SEE_HEADER}`, { retryAfterSec: NODE_RETRY_AFTER_SEC }),
  /** 529: no outbound capacity. */
  noCapacity: (retryAfterSec: number) => make('unavailable', 529, `No outbound capacity. ${SEE_HEADER}`, { retryAfterSec }),
} as const;
