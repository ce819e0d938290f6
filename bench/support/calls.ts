/** Many answered calls at once, and requests that a rate limit slows down. */
import type { Answered } from '../../test/support/platform.ts';
import type { Stage } from '../../test/support/room-call.ts';
import { type Sipp, sipp } from '../../test/support/sipp.ts';

export interface CallsOptions {
  readonly calls: number;
  /** How many of them are not up yet; all by default. */
  readonly new?: number;
  /** Calls that begin in a second. */
  readonly rate: number;
  /** The port that all of them hear at. */
  readonly rtpPort: number;
  /** How long they stay at the most. */
  readonly timeoutSec: number;
}

/** Places calls and has the application answer each; resolves with their Sessions when all are up. */
export async function answeredCalls(
  { platform, app, receiver }: Stage,
  { calls, new: fresh = calls, rate, rtpPort, timeoutSec }: CallsOptions,
): Promise<{ readonly sessions: readonly string[]; readonly caller: Sipp }> {
  receiver.misbehave = (event) => {
    if (event.event === 'session.created') void platform.api(app, 'POST', `/v1/sessions/${event.session_uuid}/answer`);
    return undefined;
  };
  const caller = await sipp({
    scenario: 'caller-waits',
    to: platform.sipUdp,
    calls: fresh,
    rate,
    timeoutSec,
    keys: { rtp_port: `${rtpPort}` },
  });
  await receiver.until(() => receiver.count('session.answered') === calls, 'all calls', 120_000);
  const answers = receiver.events.filter(({ event }) => event === 'session.answered');
  return { sessions: answers.map(({ body }) => String(body.session_uuid)), caller };
}

/** Asks again while the rate limit says so, each time after about as long, so that many do not ask at once. */
export async function pastRateLimit(ask: () => Promise<Answered>): Promise<Answered> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 429) return answer;
    await Bun.sleep(Number(answer.headers.get('retry-after') ?? 1) * 1000 * (0.5 + Math.random()));
  }
}
