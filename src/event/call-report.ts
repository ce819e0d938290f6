/** What SIP and RTP say of a phone call, in its events (extension). A field without a value is left out. */
import { SIP_FACT_MAX_CHARS } from '../limits.ts';

/**
 * A text of the far end as events tell it: cut to SIP_FACT_MAX_CHARS, with spaces in place of control characters, and
 * U+FFFD where it was cut within a character.
 */
export const factText = (text: string): string =>
  text
    .replace(/[\x00-\x1f\x7f]/g, ' ')
    .slice(0, SIP_FACT_MAX_CHARS)
    .toWellFormed();

/** Carried by `session.created` and `session.answered`. */
export interface SipFacts {
  readonly call_id: string;
  /** The trunk of the call. Absent in calls of devices. */
  readonly trunk?: string;
  /** The device user who calls. */
  readonly device?: string;
  /** What the device has dialled, as it was sent. */
  readonly dialled?: string;
  /** The codec as SDP names it. */
  readonly codec?: string;
  /** The `X-` header fields of the far end, names as they were sent. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly p_asserted_identity?: string;
  readonly diversion?: string;
  readonly history_info?: string;
  /** The verification of the caller's number (ATIS-1000082). */
  readonly verstat?: string;
}

/** Carried by `session.ended`. */
export interface SipEnd {
  /** The status that the far end refused the call with. */
  readonly status?: number;
  /** The Q.850 cause of its Reason. */
  readonly q850?: number;
  /** The text of its Reason, else the reason phrase of the response. */
  readonly reason?: string;
}

/** Carried by `session.ended`: how the call sounded. */
export interface CallQuality {
  readonly packets_in: number;
  readonly packets_out: number;
  readonly packets_lost: number;
  readonly packets_late: number;
  readonly jitter_ms: number;
  readonly round_trip_ms: number;
  /** The delay of the jitter buffer. */
  readonly buffer_ms: number;
  /**
   * Estimated by the E-model (ITU-T G.107) from codec, delay and loss, 1 to 4.5 with one decimal. 0 when nothing was
   * heard.
   */
  readonly mos: number;
  readonly codec: string;
}
