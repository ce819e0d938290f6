/**
 * Non-INVITE server transaction (RFC 3261 §17.2.2).
 *
 *   trying --1xx--> proceeding --200..699--> completed --J--> terminated
 */
import { SIP_T1_MS } from '../../limits.ts';
import type { InviteServerInput } from './invite-server.ts';

export interface NonInviteServer {
  state: 'trying' | 'proceeding' | 'completed' | 'terminated';
  readonly reliable: boolean;
  J: number;
}

type NonInviteServerEffect = 'send' | 'done';

const NOTHING: readonly NonInviteServerEffect[] = [];

export const startNonInviteServer = (reliable: boolean): NonInviteServer => ({ state: 'trying', reliable, J: Infinity });

/** Moves `t` and says what is to be done, in order. For a response input, `send` means that it may go out. */
export function stepNonInviteServer(t: NonInviteServer, input: InviteServerInput, now: number): readonly NonInviteServerEffect[] {
  switch (input) {
    case 'request':
      return t.state === 'proceeding' || t.state === 'completed' ? ['send'] : NOTHING;
    case 'provisional':
      if (t.state !== 'trying' && t.state !== 'proceeding') return NOTHING;
      t.state = 'proceeding';
      return ['send'];
    case 'success':
    case 'failure':
      if (t.state !== 'trying' && t.state !== 'proceeding') return NOTHING;
      if (t.reliable) {
        t.state = 'terminated';
        return ['send', 'done'];
      }
      t.state = 'completed';
      t.J = now + 64 * SIP_T1_MS;
      return ['send'];
    case 'ack':
      return NOTHING;
    case 'clock':
      if (t.J > now) return NOTHING;
      t.state = 'terminated';
      t.J = Infinity;
      return ['done'];
  }
}
