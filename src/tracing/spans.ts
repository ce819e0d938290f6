/** The spans of what the doors and the timelines of calls tell. */
import type { TimedEntry } from '../history/entry.ts';
import { childOf, type SpanRecord } from './tracing.ts';

/** An HTTP command that was answered. `traceparent` is that of its answer. */
export interface AnsweredCommand {
  readonly method: string;
  /** The path of its route, with names in place of identifiers. */
  readonly route: string;
  readonly traceparent: string;
  /** The caller's own, or what was given for it. */
  readonly link: string;
  readonly status: number;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly operationUuid: string;
  readonly sessionUuid: string;
}

export const commandSpan = (command: AnsweredCommand): SpanRecord => ({
  name: `${command.method} ${command.route}`,
  kind: 'server',
  traceparent: command.traceparent,
  parent: '',
  link: command.link,
  startedAt: command.startedAt,
  endedAt: command.endedAt,
  attributes: {
    'http.request.method': command.method,
    'http.route': command.route,
    'http.response.status_code': command.status,
    // The operator's commands have no operation, and some commands no Session.
    ...(command.operationUuid === '' ? {} : { 'sidetone.operation_uuid': command.operationUuid }),
    ...(command.sessionUuid === '' ? {} : { 'sidetone.session_uuid': command.sessionUuid }),
  },
  isFailed: command.status >= 500,
});

/** A delivery of a webhook that is over. `traceparent` is what the receiver was sent. */
export interface AttemptedDelivery {
  readonly traceparent: string;
  /** That of the command which caused the event; empty where none did. */
  readonly parent: string;
  readonly event: string;
  readonly webhookId: string;
  readonly status: number | null;
  readonly error: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

export const deliverySpan = (delivery: AttemptedDelivery): SpanRecord => ({
  name: `webhook ${delivery.event}`,
  kind: 'client',
  traceparent: delivery.traceparent,
  parent: delivery.parent,
  link: '',
  startedAt: delivery.startedAt,
  endedAt: delivery.endedAt,
  attributes: {
    'http.request.method': 'POST',
    'sidetone.event': delivery.event,
    'sidetone.webhook_id': delivery.webhookId,
    ...(delivery.status === null ? {} : { 'http.response.status_code': delivery.status }),
    ...(delivery.error === '' ? {} : { 'error.type': delivery.error }),
  },
  isFailed: delivery.error !== '',
});

/** The operation that caused an entry. Undefined where none did, and where another command has cut it short. */
export function operationBehind(entry: TimedEntry): string | undefined {
  if (entry.kind !== 'media' || entry.what === 'playback_stopped') return undefined;
  return typeof entry.operation_uuid === 'string' ? entry.operation_uuid : undefined;
}

/** The span of a SIP message or of something in the audio; `parent` is the command that caused it. */
export function entrySpan(sessionUuid: string, entry: TimedEntry, parent: string): SpanRecord | undefined {
  if (parent === '' || (entry.kind !== 'sip' && entry.kind !== 'media')) return undefined;
  const about = { traceparent: childOf(parent), parent, link: '', startedAt: entry.at, endedAt: entry.at };
  const session = { 'sidetone.session_uuid': sessionUuid };
  if (entry.kind === 'media') {
    const attributes = { ...session, 'sidetone.media': entry.what };
    return {
      ...about,
      name: `media ${entry.what}`,
      kind: 'internal',
      attributes,
      isFailed: /failed|timeout|lost/.test(entry.what),
    };
  }
  // The first line of a request names the number that is called, so only its method is told.
  const [first = '', second = ''] = entry.first_line.split(' ', 2);
  const isAnswer = first === 'SIP/2.0';
  return {
    ...about,
    name: `SIP ${isAnswer ? second : first}`,
    kind: entry.direction === 'out' ? 'client' : 'server',
    attributes: {
      ...session,
      'network.transport': entry.transport,
      'sidetone.sip.direction': entry.direction,
      'sidetone.sip.call_id': entry.call_id,
      'sidetone.sip.cseq': entry.cseq,
      ...(isAnswer ? { 'sidetone.sip.status': Number(second) } : { 'sidetone.sip.method': first }),
    },
    isFailed: isAnswer && Number(second) >= 400,
  };
}
