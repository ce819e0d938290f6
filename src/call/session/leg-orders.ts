/** Orders to a leg that not every leg can take. */
import type { Effect } from '../../machine/session/input.ts';
import type { PlayOptions } from '../../media/engine.ts';
import type { Leg } from '../ports/leg.ts';

/** Plays on a leg; one without sound, now or any more, gives the playlist back. */
export function play(leg: Leg, options: PlayOptions): void {
  if (leg.audio === undefined) options.playlist.release();
  else leg.audio.play(options);
}

/** What only a leg over SIP can do; another leg never gets these, since its machine refuses the command. */
export function performOptional(
  leg: Leg,
  effect: Extract<Effect, { readonly do: 'hold' | 'send_digits' | 'detect_machine' | 'transfer' }>,
): void {
  switch (effect.do) {
    case 'hold':
      leg.hold?.(effect.on);
      break;
    case 'send_digits':
      leg.sendDigits?.(effect.operationUuid, effect.digits, effect.durationMs, effect.gapMs);
      break;
    case 'detect_machine':
      leg.detectMachine?.(effect.timeoutMs);
      break;
    case 'transfer':
      leg.transfers?.transfer(effect.target);
      break;
  }
}
