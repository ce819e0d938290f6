/** Calls into nodes of a cluster, answered as they come. */
import type { Credentials, Platform } from '../support/platform.ts';
import type { Receiver } from '../support/receiver.ts';
import { type Sipp, sipp } from '../support/sipp.ts';

export interface LiveCalls {
  readonly sessions: readonly string[];
  readonly sipp: Sipp;
}

/** So many calls to a node, all answered, by commands to `through`. */
export async function callsTo(
  platform: Platform,
  app: Credentials,
  receiver: Receiver,
  calls: number,
  through: Platform = platform,
): Promise<LiveCalls> {
  const known = new Set(receiver.names().length === 0 ? [] : receiver.events.map(({ body }) => String(body.session_uuid)));
  const caller = await sipp({ scenario: 'caller-waits', to: platform.sipUdp, calls, rate: 50, timeoutSec: 300 });
  const answers = new Map<string, Promise<number>>();
  await receiver.until(() => {
    for (const { event, body } of receiver.events) {
      const sessionUuid = String(body.session_uuid);
      if (event !== 'session.created' || known.has(sessionUuid) || answers.has(sessionUuid)) continue;
      answers.set(
        sessionUuid,
        through.api(app, 'POST', `/v1/sessions/${sessionUuid}/answer`).then(({ status }) => status),
      );
    }
    return answers.size === calls;
  }, 'all calls');
  const wrong = (await Promise.all(answers.values())).filter((status) => status !== 202);
  if (wrong.length > 0) throw new Error(`answers: ${wrong.join(', ')}`);
  const sessions = [...answers.keys()];
  await receiver.until(
    () => sessions.every((sessionUuid) => receiver.names(sessionUuid).includes('session.answered')),
    'the answers',
  );
  return { sessions, sipp: caller };
}
