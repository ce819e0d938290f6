/** What a step of a Session or Room stores: its events, its recordings, and the answer to the command that it took. */
import type { Change, StoredAnswer } from '../database/journal/journal.ts';
import type { Event } from '../event/event.ts';
import { platformEvent } from '../event/platform-event.ts';
import { newWebhookId } from '../id.ts';
import type { RecordingRecord } from '../machine/recording/recording.ts';
import type { Enclosed } from './mailbox.ts';
import type { Answer, CommandContext } from './ports/sessions.ts';
import type { RecordingAbout, RecordingRegistry } from './recording/recording-registry.ts';
import type { Traces } from './traces.ts';

/** The answer of an admitted command as it is kept under its Idempotency-Key. Undefined when it came without one. */
export const storedAnswer = (
  { appUuid, idempotencyKey: key }: CommandContext,
  { status, body }: Answer,
): StoredAnswer | undefined => (key === undefined ? undefined : { appUuid, key, status, body });

/** The change of a step, without the row. */
export const stepChange = (
  { events, recordings = [] }: { readonly events: readonly Event[]; readonly recordings?: readonly RecordingRecord[] },
  { context, answer }: Enclosed,
  { traces, ...about }: Omit<RecordingAbout, 'traceparent'> & { readonly traces: Traces },
  recorder: RecordingRegistry,
): Change => ({
  events: events.map((event) =>
    platformEvent(event, { ...about, traceparent: traces.behind(event), links: recorder.links, webhookId: newWebhookId() }),
  ),
  answer: context && answer && storedAnswer(context, answer),
  recordings: recorder.changes(recordings, { ...about, traceparent: traces.latest }),
});

/** Tells whether a change stores nothing, but for a row that is as it was. */
export const isEmpty = ({ events, answer, recordings = [], payments = [] }: Change): boolean =>
  events.length === 0 && answer === undefined && recordings.length === 0 && payments.length === 0;
