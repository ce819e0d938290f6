/**
 * Reads how each call sounds, for its timeline: every ten seconds in its first half hour, and half as often each time
 * that its age has doubled. A timeline has so many entries: those of a call of a day are left to what happens in it.
 */
import type { Clock } from '../../clock.ts';
import { HISTORY_QUALITY_FULL_MS, HISTORY_QUALITY_MS } from '../../limits.ts';
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
      if (age > 0 && age % pauseAt(age) === 0) actor.sampleQuality().catch(() => {});
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

/** The pause between two readings of a call of that age, in milliseconds. */
function pauseAt(age: number): number {
  let pause = HISTORY_QUALITY_MS;
  for (let until = HISTORY_QUALITY_FULL_MS; until < age; until *= 2) pause *= 2;
  return pause;
}
