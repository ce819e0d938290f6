/** The readings of the carrier that the operator API shows. */

/**
 * Requests that were refused. Repeats from one source with the same method, status and reason are one row; `at`, `from` and `to` are those
 * of the last one.
 */
export interface Refusal {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly firstAt: number;
  readonly count: number;
  /** The IP address that the request came from. */
  readonly source: string;
  readonly transport: string;
  readonly method: string;
  /** The URIs of From and To, cut to SIP_REFUSAL_URI_MAX_CHARS. */
  readonly from: string;
  readonly to: string;
  /** The status of the response. When there were too many of them, the request was ignored in its place. */
  readonly status: number;
  readonly reason: string;
  readonly remedy: string;
}

export interface CarrierReadings {
  /** The latest first, SIP_REFUSAL_ROWS_MAX at most. */
  refusals(): readonly Refusal[];
}
