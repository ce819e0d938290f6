/** The reasons for which a Session ends, and who ended it (interface, Session events). */
export type HangupCause =
  | 'completed'
  | 'busy'
  | 'rejected'
  | 'timeout'
  | 'not_answered'
  | 'invalid_number'
  | 'cancelled'
  | 'carrier_congested'
  | 'carrier_unreachable'
  | 'failed'
  | 'number_not_found';

export type HangupBy = 'caller' | 'callee' | 'system' | 'network' | 'unknown';

/** The `reason` of the reject command (interface, Sessions). */
export type RejectReason = 'number_not_found' | 'invalid_number' | 'timeout' | 'busy' | 'rejected';
