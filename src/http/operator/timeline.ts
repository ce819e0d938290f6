/** One call's timeline as the operator API shows it: entries, events and webhook attempts, in order of time. */
import { timestamp } from '../../clock.ts';
import type { CallRow } from '../../database/calls.ts';
import type { LoggedEvent } from '../../database/events.ts';
import type { TimedEntry } from '../../history/entry.ts';

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

/** Everything that is known of a call, in order of time. */
export function timelineEntries(entries: readonly TimedEntry[], events: readonly LoggedEvent[]): readonly Body[] {
  const all: { readonly at: number; readonly body: Body }[] = [];
  for (const { at, ...entry } of entries) {
    // The text of a message has routes of its own.
    if (entry.kind === 'sip') all.push({ at, body: withoutText(entry) });
    else all.push({ at, body: entry });
  }
  for (const event of events) {
    const body: unknown = JSON.parse(event.body);
    all.push({
      at: event.at,
      body: { kind: 'event', name: event.name, webhook_id: event.webhookId, body: shown(event.name, body) },
    });
    for (const [index, attempt] of event.attempts.entries())
      all.push({
        at: attempt.at,
        body: {
          kind: 'webhook',
          webhook_id: event.webhookId,
          attempt: index + 1,
          status: attempt.status ?? 0,
          error: attempt.error,
          took_ms: attempt.duration_ms,
          response: attempt.response ?? '',
          next_at: attempt.retry_at === null ? '' : timestamp(attempt.retry_at),
        },
      });
  }
  // Sorting is stable: what happened in one millisecond keeps its order.
  all.sort((a, b) => a.at - b.at);
  return all.map(({ at, body }) => ({ at: timestamp(at), ...body }));
}

const withoutText = ({
  text: _,
  ...entry
}: Extract<TimedEntry, { readonly kind: 'sip' }> | (Body & { readonly text: string })): Body => entry;

/** The digits that an application sends may be a PIN or a card number, so a timeline does not show them. */
function shown(name: string, body: unknown): unknown {
  if (name !== 'dtmf.sent' || typeof body !== 'object' || body === null) return body;
  return { ...body, digits: '' };
}
