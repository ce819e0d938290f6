/**
 * Non-INVITE client transaction (RFC 3261 §17.1.2).
 *
 *   trying --1xx--> proceeding --200..699--> completed --K--> terminated
 *      E retransmits over unreliable transports, F gives up in both.
 */
import { SIP_T1_MS, SIP_T2_MS, SIP_T4_MS } from '../../limits.ts';
import type { InviteClientInput } from './invite-client.ts';

export interface NonInviteClient {
  state: 'trying' | 'proceeding' | 'completed' | 'terminated';
  readonly reliable: boolean;
  E: number;
  F: number;
  K: number;
  intervalE: number;
}

type NonInviteClientEffect = 'send' | 'pass' | 'timeout' | 'unreachable' | 'done';

const NOTHING: readonly NonInviteClientEffect[] = [];

/** A transaction whose request has just been sent. */
export const startNonInviteClient = (reliable: boolean, now: number): NonInviteClient => ({
  state: 'trying',
  reliable,
  E: reliable ? Infinity : now + SIP_T1_MS,
  F: now + 64 * SIP_T1_MS,
  K: Infinity,
  intervalE: SIP_T1_MS,
});

export const nonInviteClientDeadline = (t: NonInviteClient): number => Math.min(t.E, t.F, t.K);

/** Moves `t` and says what is to be done, in order. */
export function stepNonInviteClient(t: NonInviteClient, input: InviteClientInput, now: number): readonly NonInviteClientEffect[] {
  const open = t.state === 'trying' || t.state === 'proceeding';
  switch (input) {
    case 'provisional':
      if (!open) return NOTHING;
      t.state = 'proceeding';
      return ['pass'];
    case 'success':
    case 'failure':
      if (!open) return NOTHING;
      t.E = Infinity;
      t.F = Infinity;
      if (t.reliable) {
        t.state = 'terminated';
        return ['pass', 'done'];
      }
      t.state = 'completed';
      t.K = now + SIP_T4_MS;
      return ['pass'];
    case 'unreachable':
      return open ? end(t, ['unreachable', 'done']) : NOTHING;
    case 'clock':
      if (t.F <= now) return end(t, ['timeout', 'done']);
      if (t.K <= now) return end(t, ['done']);
      if (t.E <= now) {
        t.intervalE = t.state === 'proceeding' ? SIP_T2_MS : Math.min(t.intervalE * 2, SIP_T2_MS);
        t.E = now + t.intervalE;
        return ['send'];
      }
      return NOTHING;
  }
}

function end(t: NonInviteClient, effects: readonly NonInviteClientEffect[]): readonly NonInviteClientEffect[] {
  t.state = 'terminated';
  t.E = Infinity;
  t.F = Infinity;
  t.K = Infinity;
  return effects;
}
