/** One call's timeline as the operator API shows it: entries, events and webhook attempts, in order of time. */
import { inTurns } from '../../bounds/in-turns.ts';
import { timestamp } from '../../clock.ts';
import type { CallRow } from '../../database/call/calls.ts';
import type { LoggedEvent } from '../../database/event/events.ts';
import type { SipEntry, TimedEntry } from '../../history/entry.ts';

type Body = Readonly<Record<string, unknown>>;

/** A call as the list and the timeline show it. Empty strings stand for what is not known yet. */
export function callBody(call: CallRow): Body {
  const { summary } = call;
  const time = (at: number | undefined): string => (at === undefined ? '' : timestamp(at));
  return {
    session_uuid: call.sessionUuid,
    app_uuid: call.appUuid,
    type: call.type,
    state: call.state,
    caller_id: call.callerId,
    did: call.did,
    trunk: call.trunk,
    created_at: timestamp(call.createdAt),
    answered_at: time(call.answeredAt),
    ended_at: time(call.endedAt),
    duration_seconds: summary?.duration_seconds ?? 0,
    hangup_cause: summary?.hangup_cause ?? '',
    hangup_by: summary?.hangup_by ?? '',
    ...(summary?.quality === undefined ? {} : { quality: summary.quality }),
  };
}

/** A piece of a timeline, with its time in ms since the epoch. */
interface Timed {
  readonly at: number;
  readonly body: Body;
}

/**
 * Everything that is known of a call, in order of time. `hidden` are names of `X-` header fields whose values are not
 * shown, in lower case. A long one is made some entries in a turn of the event loop.
 */
export async function timelineEntries(
  entries: readonly TimedEntry[],
  events: readonly LoggedEvent[],
  hidden: readonly string[],
): Promise<readonly Body[]> {
  // The text of a message has routes of its own.
  const seen = entries.map(({ at, ...entry }): Timed => ({ at, body: entry.kind === 'sip' ? withoutText(entry) : entry }));
  const told = await inTurns(events, (event) => [toldOf(event, hidden), ...event.attempts.map(attemptOf(event))]);
  // Sorting is stable: what happened in one millisecond keeps its order.
  const all = [...seen, ...told.flat()].sort((a, b) => a.at - b.at);
  return await inTurns(all, ({ at, body }) => ({ at: timestamp(at), ...body }));
}

function toldOf(event: LoggedEvent, hidden: readonly string[]): Timed {
  const { at, name, webhookId } = event;
  const body: unknown = JSON.parse(event.body);
  return { at, body: { kind: 'event', name, webhook_id: webhookId, body: shown(name, body, hidden) } };
}

const attemptOf =
  ({ webhookId }: LoggedEvent) =>
  (attempt: LoggedEvent['attempts'][number], index: number): Timed => ({
    at: attempt.at,
    body: {
      kind: 'webhook',
      webhook_id: webhookId,
      attempt: index + 1,
      status: attempt.status ?? 0,
      error: attempt.error,
      took_ms: attempt.duration_ms,
      response: attempt.response ?? '',
      next_at: attempt.retry_at === null ? '' : timestamp(attempt.retry_at),
    },
  });

const withoutText = ({ text: _, first_line, ...entry }: SipEntry): Body => ({
  ...entry,
  // It was kept with one character for each byte.
  first_line: Buffer.from(first_line, 'latin1').toString('utf8'),
});

const isBody = (value: unknown): value is Body => typeof value === 'object' && value !== null;

/**
 * The body of an event without what timelines do not show: the digits that an application sends, which may be a PIN or
 * a card number, and the values of hidden header fields.
 */
function shown(name: string, body: unknown, hidden: readonly string[]): unknown {
  if (!isBody(body)) return body;
  if (name === 'dtmf.sent') return { ...body, digits: '' };
  const { sip } = body;
  if (hidden.length === 0 || !isBody(sip) || !isBody(sip.headers)) return body;
  const fields = Object.entries(sip.headers).map(([field, value]) => [
    field,
    hidden.includes(field.toLowerCase()) ? '(not kept)' : value,
  ]);
  return { ...body, sip: { ...sip, headers: Object.fromEntries(fields) } };
}
