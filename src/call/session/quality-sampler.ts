/** Reads every ten seconds how each call sounds, for its timeline: each second a tenth of the calls. */
import type { Clock } from '../../clock.ts';
import { HISTORY_QUALITY_MS } from '../../limits.ts';
import type { SessionActor } from './session-actor.ts';

const TURN_MS = 1_000;

/**
 * Begins to sample. Returns what stops it. While there is no call, it looks every ten seconds: one that comes in
 * between is not to be sampled before, and each waking of an idle process costs 0.28 ms.
 */
export function sampleQuality(clock: Clock, actors: () => Iterable<Pick<SessionActor, 'state' | 'sampleQuality'>>): () => void {
  let stopped = false;
  let disarm: () => void = () => {};
  const turn = (): void => {
    const now = clock.now();
    const second = Math.floor(now / TURN_MS) * TURN_MS;
    let calls = 0;
    for (const actor of actors()) {
      calls++;
      const age = second - Math.floor(actor.state.createdAt / TURN_MS) * TURN_MS;
      // A leg whose worker is lost has nothing to say.
      if (age > 0 && age % HISTORY_QUALITY_MS === 0) actor.sampleQuality().catch(() => {});
    }
    // In the middle of a second, so that none is left out, however late the timers come by and by.
    arm(second + TURN_MS / 2 + (calls === 0 ? HISTORY_QUALITY_MS : TURN_MS));
  };
  const arm = (next: number): void => {
    if (!stopped) disarm = clock.at(next, turn);
  };
  arm(clock.now() + TURN_MS);
  return () => {
    stopped = true;
    disarm();
  };
}
