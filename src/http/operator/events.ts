/** The event log, and the replay of what was set aside. */

import type { Answer } from '../../call/ports/sessions.ts';
import { type Clock, sleep, timestamp } from '../../clock.ts';
import { pageOfLog } from '../../database/event/event-page.ts';
import { EVENT_STATUSES, type EventLog, type EventQuery, type LoggedEvent } from '../../database/event/events.ts';
import type { Store } from '../../database/store.ts';
import { EVENT_NAMES, isEventName } from '../../event/names.ts';
import { type Circumstances, testEvent } from '../../event/platform-event.ts';
import { sampleOf } from '../../event/samples.ts';
import { isAppUuid, isUuid, newUuid, newWebhookId, UUID_V4 } from '../../id.ts';
import { EVENT_LIST_MAX_ITEMS, EVENT_PENDING_LOOK_MS, EVENT_PENDING_LOOKS, PAGE_DEFAULT_ITEMS } from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { characters } from '../characters.ts';
import { itemLimit, OF_ONE_APP, strayParameter } from '../list-query.ts';
import type { RequestContext, Route } from '../request-context.ts';
import { ok, queryOf } from '../request-context.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { pathApp } from './apps.ts';
import type { EventStreams, StreamRequest } from './event-stream.ts';

/** The Retry-After of a reader for whom no stream is free. */
const STREAMS_RETRY_SEC = 5;
/** A place in the log, as JSON writes a whole number; 0 is before the first event. */
const POSITION = /^(0|[1-9][0-9]{0,14})$/;
const facts = { auth: 'operator', tag: 'Operator: events' } as const;
const sample = shape(() => type({ '+': 'reject', event: characters(1, 100) }), { event: { enum: EVENT_NAMES } });
/** The parameters of the list. */
export const EVENT_PARAMETERS = ['app_uuid', 'after', 'before', 'event', 'session_uuid', 'status', 'limit'] as const;

/** The routes by which the operator reads and follows the event log, and sends an event again. */
export const eventRoutes = (store: Store, clock: Clock, streams: EventStreams): readonly Route[] => [
  logRoute(store),
  streamRoute(streams),
  replayRoute(store, clock),
];

const logRoute = ({ events }: Store): Route =>
  route(
    {
      ...facts,
      method: 'GET',
      path: '/operator/v1/events',
      summary: 'Read the event log, in order of emission, with delivery attempts',
      success: [
        200,
        '`{"events": […], "next"}`. `next` is the `after`, or the `before`, of the next page; it is empty on the last one. A page of large events, or of such as are rare in the log, ends before its `limit`, and may be empty.',
      ],
      query: [
        OF_ONE_APP,
        { name: 'session_uuid', description: 'Of one Session.', schema: { type: 'string', pattern: UUID_V4.source } },
        { name: 'status', description: 'With one status.', schema: { enum: EVENT_STATUSES } },
        {
          name: 'after',
          description: 'After this `position`.',
          schema: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 },
        },
        {
          name: 'before',
          description: 'Before this `position`, newest first. A position beyond the end asks for the latest.',
          schema: { type: 'integer', minimum: 1, maximum: 999_999_999_999_999 },
        },
        { name: 'event', description: 'Of one name.', schema: { enum: EVENT_NAMES } },
        { name: 'limit', description: 'Default 100.', schema: { type: 'integer', minimum: 1, maximum: EVENT_LIST_MAX_ITEMS } },
      ],
    },
    (context) => {
      const query = eventQuery(queryOf(context));
      if ('problem' in query) return query;
      return async () => {
        const page = await pageOfLog(events, query);
        return ok({ events: page.events.map(eventBody), next: page.next === undefined ? '' : String(page.next) });
      };
    },
  );

const streamRoute = (streams: EventStreams): Route =>
  route(
    {
      ...facts,
      method: 'GET',
      path: '/operator/v1/events/stream',
      summary: 'Follow the event log as server-sent events',
      success: [200, '`text/event-stream`: `id` is the position, `event` the name, `data` the body with its `webhook_id`'],
      query: [
        OF_ONE_APP,
        {
          name: 'signed',
          description: 'With the header fields of a delivery. Not for the reading token.',
          schema: { enum: ['true'] },
        },
      ],
    },
    (context) => {
      const request = streamRequest(context);
      if ('problem' in request) return request;
      return async () => {
        const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' };
        // Nobody reads the body of a HEAD, so nobody would ever end it.
        if (context.request.method === 'HEAD') return new Response(null, { headers });
        const body = await streams.open(request);
        if (body === undefined) return problems.unavailable('Too many event streams. See Retry-After header.', STREAMS_RETRY_SEC);
        return new Response(body, { headers });
      };
    },
  );

const replayRoute = ({ events }: Store, clock: Clock): Route =>
  bareRoute(
    {
      ...facts,
      resource: 'Event',
      method: 'POST',
      path: '/operator/v1/events/:webhook_id/replay',
      summary: 'Send an event again, at the tail of its lanes',
      success: [202, 'Queued.'],
    },
    async (context) => {
      const outcome = await replayed(events, clock, context.params.webhook_id ?? '');
      return outcome === undefined || isProblem(outcome) ? outcome : () => outcome;
    },
  );

/** `links` signs the URLs of a recording, so that a sample has those that a real event has. */
export const sampleEventRoutes = (
  { apps, journal }: Pick<Store, 'apps' | 'journal'>,
  clock: Clock,
  links: Circumstances['links'],
): readonly Route[] => [
  bodyRoute(
    {
      ...facts,
      resource: 'Application',
      method: 'POST',
      path: '/operator/v1/apps/:app_uuid/events',
      summary: "Send a sample of an event to the application's webhook, marked `test`",
      success: [202, 'Queued.'],
    },
    sample,
    async (context, { event }) => {
      const made = sampleOf(event, newUuid);
      if (made === undefined)
        return problems.invalid('event: must be the name of an event, as session.ended (GET /docs/webhooks)');
      const appUuid = pathApp(context);
      if (appUuid === undefined || (await apps.settings(appUuid)) === undefined) return undefined;
      return async () => {
        const webhookId = newWebhookId();
        const about = { appUuid, clientState: '', traceparent: context.traceparent, webhookId, now: clock.now(), links };
        await journal.commit({ events: [testEvent(made, about)] });
        return { status: 202, body: { webhook_id: webhookId, event, status: 'pending' } };
      };
    },
  ),
];

/** Sends an event again. `appUuid`: only an event of that application. Undefined when there is no such event. */
export async function replayed(
  events: EventLog,
  clock: Clock,
  webhookId: string,
  appUuid?: string,
): Promise<Answer | Problem | undefined> {
  if (!webhookId.startsWith('evt_') || !isUuid(webhookId.slice(4))) return undefined;
  if (appUuid !== undefined && (await events.owner(webhookId)) !== appUuid) return undefined;
  const outcome = await notPending(clock, () => events.replay(webhookId));
  if (outcome === 'unknown') return undefined;
  if (outcome === 'pending') return problems.conflict('The event is still being delivered');
  return { status: 202, body: { webhook_id: webhookId, status: 'pending' } };
}

/**
 * Does what an event that is being delivered is in the way of. Whoever hears of an event asks at once, while the
 * outcome of its delivery is being stored: so it is tried again for two seconds.
 */
export async function notPending<T>(clock: Clock, work: () => Promise<T | 'pending'>): Promise<T | 'pending'> {
  for (let looks = 1; ; looks++) {
    const outcome = await work();
    if (outcome !== 'pending' || looks === EVENT_PENDING_LOOKS) return outcome;
    await sleep(clock, EVENT_PENDING_LOOK_MS);
  }
}

function streamRequest(context: RequestContext): StreamRequest | Problem {
  const { request } = context;
  const query = queryOf(context);
  const stray = strayParameter(query, ['app_uuid', 'signed']);
  if (stray !== undefined) return stray;
  const appUuid = query.get('app_uuid') ?? undefined;
  const signed = query.get('signed');
  const after = request.headers.get('last-event-id') ?? undefined;
  if (appUuid !== undefined && !isAppUuid(appUuid)) return problems.invalid('app_uuid: must be app_<uuid-v4>');
  if (signed !== null && signed !== 'true') return problems.invalid('signed: must be true');
  if (signed !== null && context.mayOnlyRead) return problems.forbidden('This operator token may only read');
  if (after !== undefined && !POSITION.test(after)) return problems.invalid('Last-Event-ID: must be a position');
  const { isStillAdmitted = () => Promise.resolve(true) } = context;
  return { appUuid, after: after === undefined ? undefined : Number(after), signed: signed !== null, isStillAdmitted };
}

/** The query of the list, from its parameters. */
export function eventQuery(query: URLSearchParams): EventQuery | Problem {
  const stray = strayParameter(query, EVENT_PARAMETERS);
  if (stray !== undefined) return stray;
  const appUuid = query.get('app_uuid') ?? undefined;
  const sessionUuid = query.get('session_uuid') ?? undefined;
  const status = query.get('status') ?? undefined;
  const known = EVENT_STATUSES.find((each) => each === status);
  const after = query.get('after') ?? '0';
  const before = query.get('before') ?? undefined;
  const name = query.get('event') ?? undefined;
  const limit = itemLimit(query, PAGE_DEFAULT_ITEMS, EVENT_LIST_MAX_ITEMS);
  if (appUuid !== undefined && !isAppUuid(appUuid)) return problems.invalid('app_uuid: must be app_<uuid-v4>');
  if (sessionUuid !== undefined && !isUuid(sessionUuid)) return problems.invalid('session_uuid: must be a lowercase UUID v4');
  if (status !== undefined && known === undefined) return problems.invalid(`status: must be one of ${EVENT_STATUSES.join(', ')}`);
  if (!POSITION.test(after)) return problems.invalid('after: must be a position');
  if (before !== undefined && (before === '0' || !POSITION.test(before))) return problems.invalid('before: must be a position');
  if (name !== undefined && !isEventName(name))
    return problems.invalid('event: must be the name of an event, as session.ended (GET /docs/webhooks)');
  if (isProblem(limit)) return limit;
  const place = { after: Number(after), before: before === undefined ? undefined : Number(before) };
  return { appUuid, sessionUuid, status: known, ...place, name, limit: Number(limit) };
}

/** An event as the list shows it. */
export const eventBody = (event: LoggedEvent): Readonly<Record<string, unknown>> => ({
  position: event.eventId,
  webhook_id: event.webhookId,
  app_uuid: event.appUuid,
  event: event.name,
  session_uuid: event.sessionUuid ?? '',
  status: event.status,
  created_at: timestamp(event.at),
  payload: JSON.parse(event.body),
  attempts: event.attempts.map((each) => ({
    at: timestamp(each.at),
    status: each.status ?? 0,
    error: each.error,
    duration_ms: each.duration_ms,
    next_attempt_at: each.retry_at === null ? '' : timestamp(each.retry_at),
  })),
});
