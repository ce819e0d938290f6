/**
 * Every connection the platform makes for an application goes through here: webhooks, playback sources, WebSockets. A
 * name is resolved, every address is screened, and the connection is made to the address that was screened, so that DNS
 * which changes its answer gains nothing.
 */

export type OutboundFailure =
  /** Our own rules forbid it: a private address, a port we do not reach, a scheme, userinfo, too many redirects. */
  | 'rejected'
  | 'timeout'
  /** The connection was refused or reset, or there is no route. */
  | 'unreachable'
  | 'dns'
  | 'tls'
  /** The far end does not speak HTTP. */
  | 'invalid_response';

export class OutboundError extends Error {
  override readonly name = 'OutboundError';
  readonly failure: OutboundFailure;
  /** The status of the last answer before the failure, a redirect; undefined when none came. */
  readonly status: number | undefined;
  constructor(failure: OutboundFailure, message: string, status?: number) {
    super(message);
    this.failure = failure;
    this.status = status;
  }
}

export interface OutboundRequest {
  readonly url: string;
  /** What the connection is for, which rests between look-ups (`LookUpRests`). Absent: the platform itself. */
  readonly owner?: string;
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** Ends it at any time, the look-up of the name and the body included: it is the caller's limit of time. */
  readonly signal: AbortSignal;
}

export interface OutboundResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The body of the response. Undefined when there is none. It must be read to its end or cancelled. */
  readonly body: ReadableStream<Uint8Array> | undefined;
}

export interface Outbound {
  /** A redirect is returned as it is. Rejects with `OutboundError` only. */
  fetch(request: OutboundRequest): Promise<OutboundResponse>;
}
