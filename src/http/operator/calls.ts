/** Calls, live and ended, for the operator: the list, one call's timeline, its SIP, and its erasure. */
import { type Clock, timestamp } from '../../clock.ts';
import { pageOfCalls } from '../../database/call/call-page.ts';
import type { CallQuery, CallRow, CallStore } from '../../database/call/calls.ts';
import type { EventLog, LoggedEvent } from '../../database/event/events.ts';
import type { PageEnd } from '../../database/newest-first.ts';
import type { Store } from '../../database/store.ts';
import type { TimedEntry } from '../../history/entry.ts';
import { pcap, sipMessages } from '../../history/pcap.ts';
import { isAppUuid, isUuid } from '../../id.ts';
import {
  CALL_LIST_MAX_ITEMS,
  EVENT_LIST_MAX_ITEMS,
  PAGE_DEFAULT_ITEMS,
  TIMELINE_EVENTS_MAX_CHARS,
  TIMELINE_MAX_EVENTS,
} from '../../limits.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { createdBetween, itemLimit, OF_ONE_APP, pageAfter, pageCursor, strayParameter } from '../list-query.ts';
import { noContent, ok, queryOf, type Route, type RouteFacts, type Work } from '../request-context.ts';
import { longResponse } from '../response.ts';
import { route } from '../route.ts';
import { notPending } from './events.ts';
import type { OperatorHooks } from './hooks.ts';
import { callBody, timelineEntries } from './timeline.ts';

export interface CallRoutesOptions {
  readonly calls: CallStore;
  readonly events: EventLog;
  readonly clock: Clock;
  /** The entries of a live call's timeline that are not stored yet. */
  unsaved(sessionUuid: string): readonly TimedEntry[];
  /** Names of `X-` header fields that timelines do not show, in lower case. */
  readonly hidden: readonly string[];
}

export const callRoutesOptions = (
  { calls, events }: Pick<Store, 'calls' | 'events'>,
  clock: Clock,
  { history, sipTraceHide: hidden = [] }: Pick<OperatorHooks, 'history' | 'sipTraceHide'>,
): CallRoutesOptions => ({ calls, events, clock, unsaved: (uuid) => history?.unsaved(uuid) ?? [], hidden });

const facts = { auth: 'operator', tag: 'Operator: calls' } as const;
/** The parameters of the list. */
export const CALL_PARAMETERS = ['app_uuid', 'state', 'number', 'created_after', 'created_before', 'after', 'limit'] as const;
const STATES = ['new', 'connecting', 'ringing', 'early_media', 'answered', 'ended', 'live'] as const;
/** What may be asked for: a number, or what else a far end has for one. */
const NUMBER = /^[^\x00-\x1f\x7f]{1,64}$/u;
const date = { type: 'string', format: 'date-time' } as const;

/** The routes by which the operator reads and erases calls. */
export const callRoutes = (options: CallRoutesOptions): readonly Route[] => [
  listRoute(options),
  timelineRoute(options),
  ...sipRoutes(options),
  eraseRoute(options),
];

const listRoute = ({ calls }: CallRoutesOptions): Route =>
  route(
    {
      ...facts,
      method: 'GET',
      path: '/operator/v1/sessions',
      summary: 'List calls, live and ended, newest first',
      success: [
        200,
        '`{"sessions": […], "after"}`. `after` asks for the next page; it is empty on the last one. A page of a rare number may have few calls, or none, and `after`.',
      ],
      query: [
        OF_ONE_APP,
        { name: 'state', description: 'In one state. `live`: in any but `ended`.', schema: { enum: STATES } },
        { name: 'number', description: 'From or to this number.', schema: { type: 'string', pattern: NUMBER.source } },
        { name: 'created_after', description: 'Inclusive.', schema: date },
        { name: 'created_before', description: 'Exclusive.', schema: date },
        { name: 'after', description: 'The `after` of the page before.', schema: { type: 'string' } },
        { name: 'limit', description: 'Default 100.', schema: { type: 'integer', minimum: 1, maximum: CALL_LIST_MAX_ITEMS } },
      ],
    },
    (context) => {
      const query = callQuery(queryOf(context));
      if ('problem' in query) return query;
      return async () => {
        const page = await pageOfCalls(calls, query);
        return ok({ sessions: page.calls.map(callBody), after: page.after === undefined ? '' : pageCursor(page.after) });
      };
    },
  );

const timelineRoute = (options: CallRoutesOptions): Route =>
  callRoute(
    options,
    {
      path: '/operator/v1/sessions/:uuid/timeline',
      summary: 'Read all that happened in a call, in order of time',
      success: [200, '`{"session", "entries": [{"at", "kind", …}]}`: commands, SIP, media, events, webhook attempts, quality'],
    },
    async (call, traceparent) => {
      const record = await recordOf(options, call.sessionUuid);
      const entries = await timelineEntries(record.entries, record.events, options.hidden);
      return await longResponse(ok({ session: callBody(call), entries }), traceparent);
    },
  );

/** The SIP of a call, as text and as a capture file. */
const sipRoutes = (options: CallRoutesOptions): readonly Route[] => [
  callRoute(
    options,
    {
      path: '/operator/v1/sessions/:uuid/sip.txt',
      summary: 'Read the SIP of a call as text, without credentials and keys',
      success: [200, '`text/plain`'],
    },
    async ({ sessionUuid }, traceparent) => {
      const messages = sipMessages(await entriesOf(options, sessionUuid));
      const text = messages.map((each) => {
        const arrow = each.direction === 'in' ? '<-' : '->';
        return `${timestamp(each.at)} ${arrow} ${each.transport} ${each.peer}\n${each.text === '' ? each.first_line : each.text.trimEnd()}\n`;
      });
      // A kept message has one character for each byte that was sent (UTF-8, RFC 3261 §7).
      return file(new Uint8Array(Buffer.from(text.join('\n'), 'latin1')), 'text/plain; charset=utf-8', traceparent);
    },
  ),
  callRoute(
    options,
    {
      path: '/operator/v1/sessions/:uuid/sip.pcap',
      summary: 'Download the SIP of a call as a capture file, written from the redacted text',
      success: [200, '`application/vnd.tcpdump.pcap`'],
    },
    async ({ sessionUuid }, traceparent) => {
      const messages = sipMessages(await entriesOf(options, sessionUuid));
      return file(pcap(messages), 'application/vnd.tcpdump.pcap', traceparent, `${sessionUuid}.pcap`);
    },
  ),
];

const eraseRoute = ({ calls, clock }: CallRoutesOptions): Route =>
  route(
    {
      ...facts,
      resource: 'Session',
      method: 'DELETE',
      path: '/operator/v1/sessions/:uuid',
      summary: 'Erase an ended call: its record, its timeline and its events',
      success: [204, 'Erased.'],
    },
    (context) => {
      const { uuid = '' } = context.params;
      if (!isUuid(uuid)) return undefined;
      return async () => {
        const outcome = await notPending(clock, () => calls.erase(uuid));
        if (outcome === 'unknown') return problems.notFound('Session');
        if (outcome === 'live') return problems.conflict('The Session has not ended');
        if (outcome === 'pending') return problems.conflict('An event of the Session is still to come, or being delivered');
        return noContent;
      };
    },
  );

/** A route that reads of one call, live or ended. */
const callRoute = (
  { calls }: CallRoutesOptions,
  about: Pick<RouteFacts, 'path' | 'summary' | 'success'>,
  answer: (call: CallRow, traceparent: string) => ReturnType<Work>,
): Route =>
  route({ ...facts, method: 'GET', resource: 'Session', ...about }, async ({ params: { uuid = '' }, traceparent }) => {
    const call = isUuid(uuid) ? await calls.get(uuid) : undefined;
    return call === undefined ? undefined : () => answer(call, traceparent);
  });

async function entriesOf({ calls, unsaved }: CallRoutesOptions, sessionUuid: string): Promise<readonly TimedEntry[]> {
  // What is stored between the two readings is found twice rather than not at all.
  const left = unsaved(sessionUuid);
  const stored = await calls.timeline(sessionUuid);
  const since = Math.min(...left.map(({ at }) => at));
  const seen = new Set(stored.filter(({ at }) => at >= since).map((entry) => JSON.stringify(entry)));
  return [...stored, ...left.filter((entry) => !seen.has(JSON.stringify(entry)))];
}

/** Everything that is kept of a call: the entries of its timeline, and its events with their attempts. */
export async function recordOf(
  options: CallRoutesOptions,
  sessionUuid: string,
): Promise<{ readonly entries: readonly TimedEntry[]; readonly events: readonly LoggedEvent[] }> {
  const entries = await entriesOf(options, sessionUuid);
  return { entries, events: await eventsOf(options, sessionUuid) };
}

/** The events of a call, from the first one on, as many as a timeline shows. */
async function eventsOf({ events }: CallRoutesOptions, sessionUuid: string): Promise<readonly LoggedEvent[]> {
  const all: LoggedEvent[] = [];
  let chars = 0;
  while (all.length < TIMELINE_MAX_EVENTS && chars < TIMELINE_EVENTS_MAX_CHARS) {
    const after = all.at(-1)?.eventId ?? 0;
    const found = await events.list({ appUuid: undefined, sessionUuid, status: undefined, after, limit: EVENT_LIST_MAX_ITEMS });
    if (found.length === 0) break;
    all.push(...found);
    for (const event of found) chars += charsOf(event);
  }
  return all;
}

const charsOf = ({ body, attempts }: LoggedEvent): number =>
  attempts.reduce((sum, { response }) => sum + (response?.length ?? 0), body.length);

function file(body: string | Uint8Array<ArrayBuffer>, type: string, traceparent: string, name?: string): Response {
  const response = new Response(body, {
    headers: { 'content-type': type, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', traceparent },
  });
  if (name !== undefined) response.headers.set('content-disposition', `attachment; filename="${name}"`);
  return response;
}

/** The query of the list, from its parameters. */
export function callQuery(query: URLSearchParams): CallQuery | Problem {
  const stray = strayParameter(query, CALL_PARAMETERS);
  if (stray !== undefined) return stray;
  const appUuid = query.get('app_uuid') ?? undefined;
  const state = query.get('state') ?? undefined;
  // A `+` that was not escaped comes as a space, and many leave it out.
  const number = query.get('number')?.replace(/^ |^(?=[0-9]{7,15}$)/, '+');
  const limit = itemLimit(query, PAGE_DEFAULT_ITEMS, CALL_LIST_MAX_ITEMS);
  const between = createdBetween(query);
  const after = pageAfter(query, isUuid);
  if (appUuid !== undefined && !isAppUuid(appUuid)) return problems.invalid('app_uuid: must be app_<uuid-v4>');
  if (state !== undefined && !STATES.some((each) => each === state))
    return problems.invalid(`state: must be one of ${STATES.join(', ')}`);
  if (number !== undefined && !NUMBER.test(number)) return problems.invalid('number: must have 1 to 64 printable characters');
  if (isProblem(limit)) return limit;
  if (isProblem(between)) return between;
  if (isProblem(after)) return after;
  return { appUuid, state, number, ...between, after, limit };
}

/** The item of a page that ends with this call. */
export const callEnd = ({ createdAt, sessionUuid }: CallRow): PageEnd => ({ createdAt, id: sessionUuid });
