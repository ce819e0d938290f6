/** Reads every ten seconds how each call sounds, for its timeline: each second a tenth of the calls. */
import type { Clock } from '../../clock.ts';
import { HISTORY_QUALITY_MS } from '../../limits.ts';
import type { SessionActor } from './session-actor.ts';

const TURN_MS = 1_000;

/** Begins to sample. Returns what stops it. */
export function sampleQuality(clock: Clock, actors: () => Iterable<SessionActor>): () => void {
  let stopped = false;
  let disarm: () => void = () => {};
  const turn = (): void => {
    const now = clock.now();
    const second = Math.floor(now / TURN_MS) * TURN_MS;
    for (const actor of actors()) {
      const age = second - Math.floor(actor.state.createdAt / TURN_MS) * TURN_MS;
      // A leg whose worker is lost has nothing to say.
      if (age > 0 && age % HISTORY_QUALITY_MS === 0) actor.sampleQuality().catch(() => {});
    }
    arm(now);
  };
  const arm = (now: number): void => {
    if (!stopped) disarm = clock.at(now + TURN_MS, turn);
  };
  arm(clock.now());
  return () => {
    stopped = true;
    disarm();
  };
}
