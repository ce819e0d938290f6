/**
 * INVITE server transaction (RFC 3261 §17.2.1, with the Accepted state of RFC 6026 §7.1).
 *
 *   proceeding --300..699--> completed --ACK--> confirmed --I--> terminated
 *        |                      G retransmits, H gives up
 *        \--2xx--> accepted --L--> terminated        (the user agent retransmits the 2xx, §13.3.1.4)
 */
import { SIP_T1_MS, SIP_T2_MS, SIP_T4_MS } from '../../limits.ts';

export interface InviteServer {
  state: 'proceeding' | 'completed' | 'confirmed' | 'accepted' | 'terminated';
  readonly reliable: boolean;
  G: number;
  H: number;
  I: number;
  L: number;
  intervalG: number;
}

export type InviteServerInput = 'request' | 'ack' | 'provisional' | 'success' | 'failure' | 'clock';
/**
 * `send`: the last response. `timeout`: a failure response was never acknowledged. `pass ack`: an ACK of a 2xx, for the
 * dialog.
 */
export type InviteServerEffect = 'send' | 'pass ack' | 'timeout' | 'done';

const NOTHING: readonly InviteServerEffect[] = [];

export const startInviteServer = (reliable: boolean): InviteServer => ({
  state: 'proceeding',
  reliable,
  G: Infinity,
  H: Infinity,
  I: Infinity,
  L: Infinity,
  intervalG: SIP_T1_MS,
});

export const inviteServerDeadline = (t: InviteServer): number => Math.min(t.G, t.H, t.I, t.L);

/** Moves `t` and says what is to be done, in order. For a response input, `send` means that it may go out. */
export function stepInviteServer(t: InviteServer, input: InviteServerInput, now: number): readonly InviteServerEffect[] {
  switch (input) {
    case 'request':
      return t.state === 'proceeding' || t.state === 'completed' ? ['send'] : NOTHING;
    case 'provisional':
      return t.state === 'proceeding' ? ['send'] : NOTHING;
    case 'success':
      if (t.state === 'accepted') return ['send'];
      if (t.state !== 'proceeding') return NOTHING;
      t.state = 'accepted';
      t.L = now + 64 * SIP_T1_MS;
      return ['send'];
    case 'failure':
      if (t.state !== 'proceeding') return NOTHING;
      t.state = 'completed';
      t.G = t.reliable ? Infinity : now + SIP_T1_MS;
      t.H = now + 64 * SIP_T1_MS;
      return ['send'];
    case 'ack':
      if (t.state === 'accepted') return ['pass ack'];
      if (t.state !== 'completed') return NOTHING;
      t.G = Infinity;
      t.H = Infinity;
      if (t.reliable) {
        t.state = 'terminated';
        return ['done'];
      }
      t.state = 'confirmed';
      t.I = now + SIP_T4_MS;
      return NOTHING;
    case 'clock':
      if (t.H <= now) return end(t, ['timeout', 'done']);
      if (t.I <= now || t.L <= now) return end(t, ['done']);
      if (t.G <= now) {
        t.intervalG = Math.min(t.intervalG * 2, SIP_T2_MS);
        t.G = now + t.intervalG;
        return ['send'];
      }
      return NOTHING;
  }
}

function end(t: InviteServer, effects: readonly InviteServerEffect[]): readonly InviteServerEffect[] {
  t.state = 'terminated';
  t.G = Infinity;
  t.H = Infinity;
  t.I = Infinity;
  t.L = Infinity;
  return effects;
}
