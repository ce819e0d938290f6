/** The tools that read: calls, one call's course, the event log, and the state of the platform. */

import { pageOfCalls } from '../../database/call/call-page.ts';
import { pageOfLog } from '../../database/event/event-page.ts';
import type { Store } from '../../database/store.ts';
import { isUuid } from '../../id.ts';
import { MCP_LIST_MAX_ITEMS } from '../../limits.ts';
import { problems } from '../../problem.ts';
import { pageCursor } from '../list-query.ts';
import { CALL_PARAMETERS, type CallRoutesOptions, callEnd, callQuery, recordOf } from '../operator/calls.ts';
import { EVENT_PARAMETERS, eventBody, eventQuery } from '../operator/events.ts';
import { callBody, timelineEntries } from '../operator/timeline.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { counted } from './counted.ts';
import { explanation } from './explanation.ts';
import { type Tool, type ToolUser, tool } from './tool.ts';
import { fitting, fittingEnds } from './untrusted.ts';

/** What the doctor finds of one thing. */
export interface Finding {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'fault';
  readonly found: string;
  readonly remedy: string;
}

export interface ReadingOptions {
  readonly calls: CallRoutesOptions;
  readonly store: Pick<Store, 'events'>;
  /** Examines machine, settings and platform. Undefined where nobody can. */
  readonly doctor: (() => Promise<readonly Finding[]>) | undefined;
}

const ATTEMPTS_SHOWN = 3;
/** A position beyond every event. */
const BEYOND = '999999999999999';

const text = (what: string) => type('string <= 200').describe(what);
const limit = () =>
  type.number
    .atLeast(1)
    .atMost(MCP_LIST_MAX_ITEMS)
    .divisibleBy(1)
    .describe(`a whole number from 1 to ${MCP_LIST_MAX_ITEMS}; 20 unless given`);
const ofCalls = () => ({
  'state?': text('one of new, connecting, ringing, early_media, answered, ended, or live for all but ended'),
  'number?': text('a phone number in E.164, of the caller or the called'),
  'created_after?': text('a time in RFC 3339, inclusive'),
  'created_before?': text('a time in RFC 3339, exclusive'),
  'after?': text('the `after` of an earlier answer, for the next page'),
  'limit?': limit(),
});
const ofEvents = () => ({
  'session_uuid?': text('the session_uuid of one call'),
  'status?': text('one of pending, delivered, dead, blocked, undeliverable'),
  'event?': text('the name of an event, as session.ended'),
  'after?': text('a position: only later events, oldest first'),
  'before?': text('a position: only earlier events, newest first'),
  'limit?': limit(),
});
const ofApp = () => ({ 'app_uuid?': text('the app_uuid of one application; all unless given') });

const SHAPES = {
  application: {
    calls: shape(() => type({ '+': 'reject', ...ofCalls() })),
    events: shape(() => type({ '+': 'reject', ...ofEvents() })),
  },
  operator: {
    calls: shape(() => type({ '+': 'reject', ...ofApp(), ...ofCalls() })),
    events: shape(() => type({ '+': 'reject', ...ofApp(), ...ofEvents() })),
  },
} as const;
const oneCall = shape(() => type({ '+': 'reject', session_uuid: text('the session_uuid of the call') }));
const nothing = shape(() => type({ '+': 'reject' }));

/** The tools that this user may read with. */
export const readingTools = (options: ReadingOptions, { appUuid }: ToolUser): readonly Tool[] => [
  listCalls(options, appUuid),
  explainCall(options),
  listEvents(options, appUuid),
  ...(appUuid === '' && options.doctor !== undefined ? [examination(options.doctor)] : []),
];

/** The arguments as parameters of a query. An application sees its own only. */
function parametersOf(given: object, names: readonly string[], { appUuid }: ToolUser): URLSearchParams {
  const all = new Map<string, unknown>(Object.entries({ limit: 20, ...given, ...(appUuid === '' ? {} : { app_uuid: appUuid }) }));
  return new URLSearchParams(names.flatMap((name) => (all.has(name) ? [[name, String(all.get(name))]] : [])));
}

const listCalls = ({ calls }: ReadingOptions, appUuid: string): Tool =>
  tool(
    {
      name: 'list_calls',
      title: 'List calls',
      description: 'Lists phone calls and connections to bots, live and ended, newest first.',
    },
    SHAPES[appUuid === '' ? 'operator' : 'application'].calls,
    async (given, user) => {
      const query = callQuery(parametersOf(given, CALL_PARAMETERS, user));
      if ('problem' in query) return query;
      const page = await pageOfCalls(calls.calls, query);
      const rows = fitting(page.calls);
      const last = rows.at(-1);
      const next = rows.length < page.calls.length && last !== undefined ? callEnd(last) : page.after;
      const more = next === undefined ? '' : ` The next page: after=${pageCursor(next)}`;
      return { said: [`${counted(rows.length, 'call', 'calls')}.${more}`], records: rows.map(callBody) };
    },
  );

const explainCall = ({ calls }: ReadingOptions): Tool =>
  tool(
    {
      name: 'explain_call',
      title: 'Explain a call',
      description:
        'Says how one call went: when it was answered and ended and why, what was refused, how it sounded, whether its webhooks arrived; then everything that happened in it, in order of time.',
    },
    oneCall,
    async ({ session_uuid: uuid }, { appUuid }) => {
      const call = isUuid(uuid) ? await calls.calls.get(uuid) : undefined;
      if (call === undefined || (appUuid !== '' && call.appUuid !== appUuid)) return problems.notFound('Session');
      const { entries, events } = await recordOf(calls, uuid);
      const all = await timelineEntries(entries, events, calls.hidden);
      const timeline = appUuid === '' ? all : all.map(withoutNetwork);
      const { first, last } = fittingEnds(timeline);
      const left = timeline.length - first.length - last.length;
      return {
        said: [
          ...explanation(call, entries, events),
          ...(left > 0
            ? [
                `${counted(left, 'entry from the middle is', 'entries from the middle are')} left out, because the record is long.`,
              ]
            : []),
        ],
        records: { session: callBody(call), entries: left > 0 ? [...first, { left_out: left }, ...last] : timeline },
      };
    },
  );

/** What an application is told of SIP: who answered with what, not the addresses of the operator's network. */
function withoutNetwork(entry: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (entry.kind !== 'sip') return entry;
  const { peer: _peer, first_line: line, ...rest } = entry;
  const first = typeof line === 'string' ? line : '';
  return { ...rest, first_line: first.startsWith('SIP/2.0 ') ? first : (first.split(' ')[0] ?? '') };
}

const listEvents = ({ store }: ReadingOptions, appUuid: string): Tool =>
  tool(
    {
      name: 'list_events',
      title: 'List events',
      description:
        'Lists events with the state of their delivery as webhooks, the latest first unless `after` is given. The keys that callers pressed are left out.',
    },
    SHAPES[appUuid === '' ? 'operator' : 'application'].events,
    async (given, user) => {
      const parameters = parametersOf(given, EVENT_PARAMETERS, user);
      if (!parameters.has('after') && !parameters.has('before')) parameters.set('before', BEYOND);
      const query = eventQuery(parameters);
      if ('problem' in query) return query;
      const { events: found, next } = await pageOfLog(store.events, query);
      const rows = fitting(
        found.map((event) => {
          const { attempts } = event;
          return { ...eventBody({ ...event, attempts: attempts.slice(-ATTEMPTS_SHOWN) }), attempts_made: attempts.length };
        }),
      );
      const left = found.length - rows.length;
      return {
        said: [
          `${counted(rows.length, 'event', 'events')}.${left > 0 ? ` ${left} more did not fit; ask on from the last position.` : next === undefined ? '' : ` There may be more: ask on from position ${next}.`}`,
        ],
        records: rows,
      };
    },
  );

const examination = (doctor: NonNullable<ReadingOptions['doctor']>): Tool =>
  tool(
    {
      name: 'doctor',
      title: 'Examine the platform',
      description:
        'Examines machine, settings, trunks and webhooks as `sidetone doctor` does. Each finding is ok, a warning or a fault, with what mends it. Takes up to ten seconds.',
    },
    nothing,
    async () => {
      const findings = await doctor();
      const count = (status: Finding['status']) => findings.filter((each) => each.status === status).length;
      return {
        said: [
          [
            counted(count('fault'), 'fault', 'faults'),
            counted(count('warning'), 'warning', 'warnings'),
            `${count('ok')} ok.`,
          ].join(', '),
        ],
        records: fitting(findings),
      };
    },
  );
