/** Sessions: dial, list, get, answer, reject, cancel, disconnect. */

import type { DialRequest, SessionCommand, Sessions, SessionView } from '../../call/ports/sessions.ts';
import { SENT_DIGITS, targetOf } from '../../call/ports/target.ts';
import { isUuid, UUID_V4 } from '../../id.ts';
import {
  CALL_DURATION_DEFAULT_SEC,
  CALL_DURATION_MAX_SEC,
  CALL_DURATION_MIN_SEC,
  CLIENT_STATE_MAX_CHARS,
  COMMAND_BODY_MAX_BYTES,
  DISPLAY_NAME_MAX_CHARS,
  DTMF_SEND_MAX_DIGITS,
  LIST_DEFAULT_ITEMS,
  LIST_MATCHED_MAX_ITEMS,
  MACHINE_DETECTION_DEFAULT_MS,
  MACHINE_DETECTION_MAX_MS,
  MACHINE_DETECTION_MIN_MS,
  RING_TIMEOUT_MAX_SEC,
  SIP_HEADER_MAX_CHARS,
  SIP_HEADERS_MAX,
  TRANSFER_TIMEOUT_DEFAULT_SEC,
  TRANSFER_TIMEOUT_MAX_SEC,
  TRANSFER_TIMEOUT_MIN_SEC,
  TRANSFER_URI_MAX_CHARS,
} from '../../limits.ts';
import { E164_PATTERN } from '../../phone-number.ts';
import { isProblem, problems } from '../../problem.ts';
import { characters } from '../characters.ts';
import { createdBetween, itemLimit, strayParameter } from '../list-query.ts';
import type { Route } from '../request-context.ts';
import { commandContext, ok, queryOf, type RequestContext, type Work } from '../request-context.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';

export const e164 = () => type(new RegExp(E164_PATTERN)).describe('an E.164 number with leading +');
/** Header names of our own prefix; values without CR, LF or other controls, so that no header can be smuggled. */
const sipHeaders = () =>
  type({
    '+': 'reject',
    '[/^X-[A-Za-z0-9-]{1,62}$/]': type(new RegExp(`^[\\x20-\\x7e]{0,${SIP_HEADER_MAX_CHARS}}$`)).describe(
      `at most ${SIP_HEADER_MAX_CHARS} printable ASCII characters`,
    ),
  }).narrow(
    (headers, context) => Object.keys(headers).length <= SIP_HEADERS_MAX || context.mustBe(`at most ${SIP_HEADERS_MAX} headers`),
  );
const printable = (most: number) =>
  type(new RegExp(`^[^\\x00-\\x1f\\x7f]{1,${most}}$`, 'u')).describe(`a string of 1 to ${most} printable characters`);

/** What may be dialled: a number, or a device of the application by its user name (`PUT …/devices/{username}`). */
export const target = () =>
  type(new RegExp(`${E164_PATTERN}|^sip:[A-Za-z0-9+][A-Za-z0-9._~*+-]{0,63}$`)).describe(
    'an E.164 number with leading +, or sip: and the user name of a device',
  );

const dial = shape<DialRequest>(
  () =>
    type({
      '+': 'reject',
      from: e164(),
      to: target(),
      ring_timeout_sec: `1 <= number.integer <= ${RING_TIMEOUT_MAX_SEC}`,
      'trunk?': printable(64),
      'send_digits?': type(SENT_DIGITS).describe(`1 to ${DTMF_SEND_MAX_DIGITS} of 0-9, A-D, *, #, w, W`),
      'display_name?': printable(DISPLAY_NAME_MAX_CHARS),
      'max_duration_sec?': `${CALL_DURATION_MIN_SEC} <= number.integer <= ${CALL_DURATION_MAX_SEC}`,
      'sip_headers?': sipHeaders(),
      'client_state?': characters(0, CLIENT_STATE_MAX_CHARS),
      'room_id?': characters(0, 64),
      'near?': characters(0, 64),
      'room_muted?': 'boolean',
      'machine_detection?': {
        '+': 'reject',
        'timeout_ms?': `${MACHINE_DETECTION_MIN_MS} <= number.integer <= ${MACHINE_DETECTION_MAX_MS}`,
      },
    }),
  { sip_headers: { maxProperties: SIP_HEADERS_MAX } },
  {
    max_duration_sec: CALL_DURATION_DEFAULT_SEC,
    room_muted: false,
    'machine_detection.timeout_ms': MACHINE_DETECTION_DEFAULT_MS,
  },
);

const reject = shape(() =>
  type({ '+': 'reject', reason: "'number_not_found' | 'invalid_number' | 'timeout' | 'busy' | 'rejected'" }),
);

const TRANSFER_TO = `an E.164 number with leading +, or a sip: URI of at most ${TRANSFER_URI_MAX_CHARS} characters`;
const transfer = shape(
  () =>
    type({
      '+': 'reject',
      'to?': type(new RegExp(`${E164_PATTERN}|^[sS][iI][pP]:`))
        .narrow((to, context) => targetOf(to) !== undefined || context.mustBe(TRANSFER_TO))
        .describe(TRANSFER_TO),
      'to_session_uuid?': type(UUID_V4).describe('a lowercase UUID v4'),
      'timeout_sec?': `${TRANSFER_TIMEOUT_MIN_SEC} <= number.integer <= ${TRANSFER_TIMEOUT_MAX_SEC}`,
    }),
  {
    '': {
      minProperties: 1,
      // A choice of two schemas would be the same, but generators make two types of nothing of that.
      dependentSchemas: { timeout_sec: { minProperties: 2 } },
      not: { required: ['to', 'to_session_uuid'] },
      description: 'Exactly one of `to` and `to_session_uuid` is given.',
    },
  },
  { timeout_sec: TRANSFER_TIMEOUT_DEFAULT_SEC },
);

const facts = { auth: 'application', tag: 'Sessions', resource: 'Session' } as const;
const command = {
  ...facts,
  command: true,
  answerStoredBy: 'journal',
  maxBytes: COMMAND_BODY_MAX_BYTES,
  success: [202, 'Admitted; the outcome is an event.'],
} as const;

/** The work of a command, where the Session is the application's. */
export async function onSession(sessions: Sessions, context: RequestContext, order: SessionCommand): Promise<Work | undefined> {
  const uuid = context.params.uuid ?? '';
  if (!isUuid(uuid) || !(await sessions.owns(context.appUuid, uuid, order.type))) return undefined;
  return () => sessions.command(uuid, order, commandContext(context));
}

/** The routes of Sessions: dialling, reading, and the commands to a call as a whole. */
export const sessionRoutes = (sessions: Sessions): readonly Route[] => [
  dialRoute(sessions),
  ...readRoutes(sessions),
  ...setupRoutes(sessions),
  ...callRoutes(sessions),
];

const dialRoute = (sessions: Sessions): Route =>
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/v1/sessions:dial',
      summary: 'Place an outbound call',
      success: [202, 'The Session, and the operation that dials.'],
      command: true,
      answerStoredBy: 'journal',
      starts: true,
      shapeStatus: 422,
      buckets: ['dial'],
    },
    dial,
    (context, request) => () => sessions.dial(request, commandContext(context)),
  );

const readRoutes = (sessions: Sessions): readonly Route[] => [
  route(
    {
      ...facts,
      method: 'GET',
      path: '/v1/sessions',
      summary: 'List live Sessions, newest first',
      success: [200, '`{"sessions": […]}`'],
      buckets: ['session_list'],
      isList: true,
      query: [
        { name: 'state', description: 'Repeatable.', schema: { type: 'array', items: { enum: STATES } } },
        { name: 'created_after', description: 'Inclusive.', schema: { type: 'string', format: 'date-time' } },
        { name: 'created_before', description: 'Exclusive.', schema: { type: 'string', format: 'date-time' } },
        { name: 'limit', description: 'Default 1000.', schema: { type: 'integer', minimum: 1, maximum: LIST_MATCHED_MAX_ITEMS } },
      ],
    },
    (context) => {
      const filter = sessionFilter(queryOf(context));
      if (isProblem(filter)) return filter;
      return async () => {
        const found = await sessions.list(context.appUuid, filter);
        return isProblem(found) ? found : ok({ sessions: found });
      };
    },
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: '/v1/sessions/:uuid',
      summary: 'Inspect one live Session',
      success: [200, 'The Session; its state is named `status` here.'],
      buckets: ['session_get'],
    },
    async (context) => {
      const uuid = context.params.uuid ?? '';
      const view = isUuid(uuid) ? await sessions.get(context.appUuid, uuid) : undefined;
      return view === undefined ? undefined : () => ok(asStatus(view));
    },
  ),
];

/** The commands to a call that is not answered yet. */
const setupRoutes = (sessions: Sessions): readonly Route[] => [
  bareRoute(
    { ...command, method: 'POST', path: '/v1/sessions/:uuid/answer', summary: 'Answer an incoming call', buckets: ['answer'] },
    (context) => onSession(sessions, context, { type: 'answer' }),
  ),
  bodyRoute(
    {
      ...command,
      method: 'POST',
      path: '/v1/sessions/:uuid/reject',
      summary: 'Refuse an unanswered incoming call',
      buckets: ['reject'],
    },
    reject,
    (context, { reason }) => onSession(sessions, context, { type: 'reject', reason }),
  ),
  bareRoute(
    {
      ...command,
      method: 'POST',
      path: '/v1/sessions/:uuid/cancel',
      summary: 'Cancel an unanswered outbound call',
      buckets: ['cancel'],
    },
    (context) => onSession(sessions, context, { type: 'cancel' }),
  ),
];

/** The commands to a call that is up; `DELETE` also ends one that is not answered yet. */
const callRoutes = (sessions: Sessions): readonly Route[] => [
  bareRoute(
    { ...command, method: 'POST', path: '/v1/sessions/:uuid/hold', summary: 'Hold the far end of a call', buckets: ['hold'] },
    (context) => onSession(sessions, context, { type: 'hold' }),
  ),
  bareRoute(
    { ...command, method: 'POST', path: '/v1/sessions/:uuid/unhold', summary: 'Go on with a call on hold', buckets: ['unhold'] },
    (context) => onSession(sessions, context, { type: 'unhold' }),
  ),
  bodyRoute(
    { ...command, method: 'POST', path: '/v1/sessions/:uuid/transfer', summary: 'Transfer a call', buckets: ['transfer'] },
    transfer,
    (context, { to, to_session_uuid: sessionUuid, timeout_sec: timeoutSec = TRANSFER_TIMEOUT_DEFAULT_SEC }) => {
      const target = sessionUuid !== undefined ? { sessionUuid } : targetOf(to ?? '');
      if (target === undefined || (to === undefined) === (sessionUuid === undefined))
        return problems.invalid('to: must be given, or to_session_uuid, and not both');
      return onSession(sessions, context, { type: 'transfer', target, timeoutMs: timeoutSec * 1000 });
    },
  ),
  route(
    { ...command, method: 'DELETE', path: '/v1/sessions/:uuid', summary: 'Disconnect, answered or not', buckets: ['hangup'] },
    (context) => onSession(sessions, context, { type: 'hangup' }),
  ),
];

const STATES = ['new', 'connecting', 'ringing', 'early_media', 'answered', 'ended'];

const asStatus = ({ state, ...rest }: SessionView): Readonly<Record<string, unknown>> => ({ ...rest, status: state });

/** Contract §2, list filters. An unknown parameter or a bad value is 400. */
function sessionFilter(query: URLSearchParams) {
  const stray = strayParameter(query, ['state', 'created_after', 'created_before', 'limit'], ['state']);
  if (stray !== undefined) return stray;
  const states = [...new Set(query.getAll('state'))];
  if (!states.every((state) => STATES.includes(state))) return problems.invalid(`state: must be one of ${STATES.join(', ')}`);
  const between = createdBetween(query);
  const limit = itemLimit(query, LIST_DEFAULT_ITEMS, LIST_MATCHED_MAX_ITEMS);
  if (isProblem(between)) return between;
  if (isProblem(limit)) return limit;
  return { states, ...between, limit };
}
