/**
 * INVITE client transaction (RFC 3261 §17.1.1, with the Accepted state of RFC 6026 §7.2).
 *
 *   calling --1xx--> proceeding --300..699--> completed --D--> terminated
 *      |  \____________2xx____________\
 *      B → timeout                     accepted --M--> terminated
 *
 * A retransmits over unreliable transports, B gives up. RFC 3261 leaves proceeding without a timer; here P ends what
 * the far end forgot.
 */
import { SIP_PROCEEDING_MAX_MS, SIP_T1_MS } from '../../limits.ts';

export interface InviteClient {
  state: 'calling' | 'proceeding' | 'completed' | 'accepted' | 'terminated';
  readonly reliable: boolean;
  /** Deadlines of the RFC's timers, ms; Infinity when not running. */
  A: number;
  B: number;
  D: number;
  M: number;
  P: number;
  intervalA: number;
}

export type InviteClientInput = 'provisional' | 'success' | 'failure' | 'clock' | 'unreachable';
/**
 * `send`: the request again. `ack`: ACK this response. `ack again`: repeat the stored ACK. `pass`: hand the response
 * up. `done`: forget it.
 */
export type InviteClientEffect = 'send' | 'ack' | 'ack again' | 'pass' | 'timeout' | 'unreachable' | 'done';

const NOTHING: readonly InviteClientEffect[] = [];

/** A transaction whose request has just been sent. */
export const startInviteClient = (reliable: boolean, now: number): InviteClient => ({
  state: 'calling',
  reliable,
  A: reliable ? Infinity : now + SIP_T1_MS,
  B: now + 64 * SIP_T1_MS,
  D: Infinity,
  M: Infinity,
  P: Infinity,
  intervalA: SIP_T1_MS,
});

export const inviteClientDeadline = (t: InviteClient): number => Math.min(t.A, t.B, t.D, t.M, t.P);

/** Moves `t` and says what is to be done, in order. */
export function stepInviteClient(t: InviteClient, input: InviteClientInput, now: number): readonly InviteClientEffect[] {
  switch (input) {
    case 'provisional':
      if (t.state !== 'calling' && t.state !== 'proceeding') return NOTHING;
      t.state = 'proceeding';
      t.A = Infinity;
      t.B = Infinity;
      t.P = now + SIP_PROCEEDING_MAX_MS;
      return ['pass'];
    case 'success':
      if (t.state === 'accepted') return ['pass'];
      if (t.state !== 'calling' && t.state !== 'proceeding') return NOTHING;
      enter(t, 'accepted');
      t.M = now + 64 * SIP_T1_MS;
      return ['pass'];
    case 'failure':
      if (t.state === 'completed') return ['ack again'];
      if (t.state !== 'calling' && t.state !== 'proceeding') return NOTHING;
      if (t.reliable) {
        enter(t, 'terminated');
        return ['ack', 'pass', 'done'];
      }
      enter(t, 'completed');
      t.D = now + 64 * SIP_T1_MS;
      return ['ack', 'pass'];
    case 'unreachable':
      if (t.state === 'calling' || t.state === 'proceeding') {
        enter(t, 'terminated');
        return ['unreachable', 'done'];
      }
      return NOTHING;
    case 'clock':
      if (t.B <= now || t.P <= now) {
        enter(t, 'terminated');
        return ['timeout', 'done'];
      }
      if (t.D <= now || t.M <= now) {
        enter(t, 'terminated');
        return ['done'];
      }
      if (t.A <= now) {
        t.intervalA *= 2;
        t.A = now + t.intervalA;
        return ['send'];
      }
      return NOTHING;
  }
}

function enter(t: InviteClient, state: InviteClient['state']): void {
  t.state = state;
  t.A = Infinity;
  t.B = Infinity;
  t.D = Infinity;
  t.M = Infinity;
  t.P = Infinity;
}
