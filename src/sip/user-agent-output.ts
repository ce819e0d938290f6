/**
 * What comes out of the user agent: bytes to send, calls that arrive, and what happens to calls, registrations and
 * probes.
 */
import type { Call } from './call/call.ts';
import type { CallEvent } from './call/call-event.ts';
import type { Peer } from './flow.ts';
import type { SipRequest } from './message/message.ts';
import type { RegistrationState } from './registration.ts';

/** The kind of far end that a probe asks, and the name that its sender has given to the probe. */
export interface Probed {
  readonly whom: 'trunk' | 'device';
  readonly name: string;
}

export type UserAgentOutput =
  /** Bytes for a peer. `ticket` (unless `""`) is given to `sendFailed` when they cannot be delivered. */
  | { readonly type: 'send'; readonly bytes: Uint8Array; readonly peer: Peer; readonly ticket: string }
  /** A new call arrived, and 100 has been sent. */
  | { readonly type: 'invite'; readonly call: Call; readonly request: SipRequest; readonly source: Peer }
  /** A new INVITE was refused before it became a call; `isLate`: because it had waited for too long. */
  | {
      readonly type: 'refused';
      readonly request: SipRequest;
      readonly source: Peer;
      readonly status: number;
      readonly isLate: boolean;
    }
  | { readonly type: 'call'; readonly call: Call; readonly event: CallEvent }
  | { readonly type: 'registration'; readonly name: string; readonly state: RegistrationState; readonly status: number }
  /** The answer to `probe`. Status 0 means that none came. */
  | ({ readonly type: 'probed'; readonly status: number; readonly tookMs: number; readonly seenAt: string } & Probed);
