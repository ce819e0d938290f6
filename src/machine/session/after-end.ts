import type { Command } from './input.ts';
import { isInbound } from './session.ts';

/**
 * The answer of a Session that has already ended to a terminal command (contract §2): `completed` with `already_ended`,
 * a conflict where the call it would have stopped was answered or is of the other direction, or nothing (404) for any
 * other command.
 */
export function afterEnd(
  ended: { readonly type: string; readonly answered: boolean },
  command: Command['type'],
): 'completed' | 'conflict' | 'not_found' {
  switch (command) {
    case 'hangup':
      return 'completed';
    case 'cancel':
      return ended.answered || ended.type !== 'phone_out' ? 'conflict' : 'completed';
    case 'reject':
      return ended.answered || !isInbound(ended) ? 'conflict' : 'completed';
    default:
      return 'not_found';
  }
}
