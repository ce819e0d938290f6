/**
 * The entries of a call's timeline: what the platform keeps of a Session beside its events, so that a person can read
 * afterwards what happened. Events and webhook attempts are not among them, because the event log has them.
 */

/** An answered HTTP command. The query and the body are not kept. */
interface CommandEntry {
  readonly kind: 'command';
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly operation_uuid: string;
  readonly took_ms: number;
}

/** A SIP message. `text` is redacted; it is left out when `SIP_TRACE` keeps no text. */
export interface SipEntry {
  readonly kind: 'sip';
  readonly direction: 'in' | 'out';
  readonly transport: string;
  /** `address:port` of the far end. */
  readonly peer: string;
  readonly first_line: string;
  readonly call_id: string;
  readonly cseq: string;
  readonly text: string;
}

/** Something in the call's audio: `what` names it, the other fields depend on it. */
export interface MediaEntry {
  readonly kind: 'media';
  readonly what: string;
  readonly [detail: string]: string | number | boolean;
}

/** How the call has sounded so far. */
interface QualityEntry {
  readonly kind: 'quality';
  readonly packets_in: number;
  readonly packets_lost: number;
  readonly jitter_ms: number;
  readonly round_trip_ms: number;
  readonly mos: number;
}

export type Entry = CommandEntry | SipEntry | MediaEntry | QualityEntry;

/** An entry with its time, in milliseconds since the epoch. */
export type TimedEntry = Entry & { readonly at: number };
