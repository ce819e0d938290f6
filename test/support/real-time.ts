/**
 * Tests whose parties speak in real time. A party that was kept from running speaks late, and what is heard then is
 * another sound than the test is about. So a test that fails is run again where the machine was too busy meanwhile, and
 * only there.
 */
import { test as once } from 'bun:test';
import { readFileSync } from 'node:fs';

/** More than the jitter buffer takes at first. */
const STEADY_MS = 100;
/** The part of the time in which something waited for a processor. One browser alone makes less of it. */
const BUSY_PART = 1 / 3;
const LOOK_MS = 10;
const TRIES_MAX = 5;
const TRY_MAX_MS = 30_000;

/** The milliseconds in which any task of the machine waited for a processor; 0 where the kernel does not count them. */
function pressureMs(): number {
  try {
    return Number(/^some .*total=(\d+)/.exec(readFileSync('/proc/pressure/cpu', 'utf8'))?.[1] ?? 0) / 1_000;
  } catch {
    return 0;
  }
}

/** Watches for how long at most this process was kept from running, and how busy the machine is. */
class Hindrance {
  #longestMs = 0;
  readonly #begunAt = performance.now();
  readonly #pressureMs = pressureMs();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor() {
    let last = performance.now();
    this.#timer = setInterval(() => {
      const now = performance.now();
      this.#longestMs = Math.max(this.#longestMs, now - last);
      last = now;
    }, LOOK_MS);
  }

  /** Says what was in the way; undefined where nothing was. */
  found(): string | undefined {
    if (this.#longestMs >= STEADY_MS) return `a pause of ${Math.round(this.#longestMs)} ms`;
    const part = (pressureMs() - this.#pressureMs) / (performance.now() - this.#begunAt);
    return part >= BUSY_PART ? `waits for a processor in ${Math.round(part * 100)} % of the time` : undefined;
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
      const hindrance = new Hindrance();
      try {
        await body();
        return;
      } catch (error) {
        const found = hindrance.found();
        if (found === undefined || left === 0) throw error;
        console.log(`run again after ${found}: ${title}: ${String(error)}`);
      } finally {
        hindrance.stop();
      }
    }
  };
  once(title, tries, tryMaxMs * TRIES_MAX);
}
