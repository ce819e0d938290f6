/**
 * Tests whose parties speak in real time. A process that was kept from running speaks late, and what is heard then is
 * another sound than the test is about. So a test that fails is run again where this process was held up meanwhile, and
 * only there.
 */
import { test as once } from 'bun:test';

/** More than the jitter buffer takes at first. */
const STEADY_MS = 100;
const LOOK_MS = 10;
const TRIES_MAX = 5;
const TRY_MAX_MS = 30_000;

/** Watches for how long at most this process was kept from running. */
class Pauses {
  longestMs = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  constructor() {
    let last = performance.now();
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.longestMs = Math.max(this.longestMs, now - last);
      last = now;
    }, LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/**
 * A test as `bun:test` has it, of parties that speak in real time. `tryMaxMs`: how long one run takes at most. All runs
 * together are ended after five times that.
 */
export function test(title: string, body: () => unknown, tryMaxMs: number = TRY_MAX_MS): void {
  const tries = async () => {
    for (let left = TRIES_MAX - 1; ; left--) {
      const pauses = new Pauses();
      try {
        await body();
        return;
      } catch (error) {
        if (pauses.longestMs < STEADY_MS || left === 0) throw error;
        console.log(`run again after a pause of ${Math.round(pauses.longestMs)} ms: ${title}`);
      } finally {
        pauses.stop();
      }
    }
  };
  once(title, tries, tryMaxMs * TRIES_MAX);
}
