import type { Answered } from './platform.ts';

/** Asks again while the machine is too busy, as a 503 with Retry-After says. For 10 s at most. */
export async function patiently(ask: () => Promise<Answered>): Promise<Answered> {
  const until = performance.now() + 10_000;
  for (;;) {
    const answered = await ask();
    if (answered.status !== 503 || !answered.headers.has('retry-after') || performance.now() > until) return answered;
    await Bun.sleep(100);
  }
}
