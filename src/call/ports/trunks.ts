/** The readings of the carrier that the operator API shows. */

/**
 * Requests that were refused. Repeats from one source with the same method, status and reason are one row; `at`, `from`
 * and `to` are those of the last one.
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
  /** The URIs of From and To, without passwords, cut to SIP_REFUSAL_URI_MAX_CHARS. */
  readonly from: string;
  readonly to: string;
  /**
   * The status of the response. When there were too many of them, the request was ignored in its place. 0 is the ban
   * that they led to.
   */
  readonly status: number;
  readonly reason: string;
  readonly remedy: string;
}

/** The state of one trunk. */
export interface TrunkStatus {
  readonly registered: boolean;
  /** When the registration expires, in milliseconds since the epoch. Undefined when there is none. */
  readonly registeredUntil: number | undefined;
  /** The status of the answer to the last REGISTER, 0 where none came. Undefined until then, and where none is sent. */
  readonly registerStatus: number | undefined;
  /** The last OPTIONS that was sent to it. Undefined until the first one; a trunk that carries calls is not asked. */
  readonly lastProbe:
    | { readonly at: number; readonly ok: boolean; readonly rttMs: number; readonly sipStatus: number }
    | undefined;
  readonly channelsInUse: number;
  /** Calls in both directions, and those that failed because of the carrier, in the last 24 hours of this process. */
  readonly calls24h: number;
  readonly failures24h: number;
}

export interface CarrierReadings {
  /** Whether this build can encrypt audio (SRTP). */
  readonly hasSrtp: boolean;
  /** Whether this build can do Opus. */
  readonly hasOpus: boolean;
  /** Whether `code` is the calling code of a country, whose numbering plan is known. */
  isCountryCode(code: string): Promise<boolean>;
  trunkStatus(name: string): TrunkStatus;
  /** Asks the trunk at once whether it is there; its status tells the outcome. No effect on a loopback trunk. */
  probeTrunk(name: string): void;
  /** The latest first, SIP_REFUSAL_ROWS_MAX at most. */
  refusals(): readonly Refusal[];
}
