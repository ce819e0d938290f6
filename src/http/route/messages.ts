/** Short messages (contract §7): send, read, list. */

import { inTurns } from '../../bounds/in-turns.ts';
import type { MessageRequest, Messages } from '../../call/ports/messages.ts';
import { timestamp } from '../../clock.ts';
import type { MessageQuery } from '../../database/messages.ts';
import { isUuid } from '../../id.ts';
import { LIST_DEFAULT_ITEMS, LIST_MATCHED_MAX_ITEMS, MESSAGE_TEXT_MAX_CHARS } from '../../limits.ts';
import { errorOf, MESSAGE_STATUSES, type MessageState } from '../../machine/message/message.ts';
import { E164_PATTERN } from '../../phone-number.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { characters } from '../characters.ts';
import { createdBetween, itemLimit, strayParameter } from '../list-query.ts';
import type { Route } from '../request-context.ts';
import { commandContext, ok, queryOf } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { e164 } from './sessions.ts';

const send = shape<MessageRequest>(() =>
  type({ '+': 'reject', from: e164(), to: e164(), text: characters(1, MESSAGE_TEXT_MAX_CHARS) }),
);

const facts = { auth: 'application', tag: 'Messages', resource: 'Message' } as const;
const date = { type: 'string', format: 'date-time' } as const;

export const messageRoutes = (messages: Messages): readonly Route[] => [
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/v1/messages',
      summary: 'Send a short message',
      success: [202, 'Queued; each further status is an event.'],
      command: true,
      answerStoredBy: 'journal',
      starts: true,
      buckets: ['message_send'],
    },
    send,
    (context, request) => () => messages.send(request, commandContext(context)),
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: '/v1/messages',
      summary: 'List messages, newest first',
      success: [200, '`{"messages": […]}`'],
      buckets: ['message_get'],
      isList: true,
      query: [
        { name: 'status', description: 'One status.', schema: { enum: MESSAGE_STATUSES } },
        { name: 'to', description: 'E.164.', schema: { type: 'string', pattern: E164_PATTERN } },
        { name: 'from', description: 'E.164.', schema: { type: 'string', pattern: E164_PATTERN } },
        { name: 'created_after', description: 'Inclusive.', schema: date },
        { name: 'created_before', description: 'Exclusive.', schema: date },
        { name: 'limit', description: 'Default 1000.', schema: { type: 'integer', minimum: 1, maximum: LIST_MATCHED_MAX_ITEMS } },
      ],
    },
    (context) => {
      const query = messageQuery(queryOf(context));
      if (isProblem(query)) return query;
      return async () => {
        const found = await messages.list(context.appUuid, query);
        return isProblem(found) ? found : ok({ messages: await inTurns(found, messageBody) });
      };
    },
  ),
  route(
    {
      ...facts,
      method: 'GET',
      path: '/v1/messages/:message_uuid',
      summary: 'Read one message and its latest status',
      success: [200, 'The message.'],
      buckets: ['message_get'],
    },
    async (context) => {
      const uuid = context.params.message_uuid ?? '';
      const message = isUuid(uuid) ? await messages.get(context.appUuid, uuid) : undefined;
      return message === undefined ? undefined : () => ok(messageBody(message));
    },
  ),
];

const time = (at: number | undefined): string => (at === undefined ? '' : timestamp(at));

/** A message as the API shows it. */
export const messageBody = (message: MessageState): Readonly<Record<string, unknown>> => ({
  message_uuid: message.messageUuid,
  direction: 'outbound',
  from: message.from,
  to: message.to,
  text: message.text,
  status: message.status,
  segments: message.segments,
  encoding: message.encoding,
  ...errorOf(message),
  created_at: time(message.createdAt),
  updated_at: time(message.updatedAt),
  sent_at: time(message.sentAt),
  delivered_at: time(message.deliveredAt),
});

const KNOWN = ['status', 'to', 'from', 'created_after', 'created_before', 'limit'];

function messageQuery(query: URLSearchParams): MessageQuery | Problem {
  const stray = strayParameter(query, KNOWN);
  if (stray !== undefined) return stray;
  const status = query.get('status') ?? undefined;
  if (status !== undefined && !MESSAGE_STATUSES.some((each) => each === status))
    return problems.invalid(`status: must be one of ${MESSAGE_STATUSES.join(', ')}`);
  const to = number(query, 'to');
  const from = number(query, 'from');
  const between = createdBetween(query);
  const limit = itemLimit(query, LIST_DEFAULT_ITEMS, LIST_MATCHED_MAX_ITEMS);
  if (isProblem(to)) return to;
  if (isProblem(from)) return from;
  if (isProblem(between)) return between;
  if (isProblem(limit)) return limit;
  return { status, to, from, ...between, limit };
}

const E164 = new RegExp(E164_PATTERN);

function number(query: URLSearchParams, name: string): string | undefined | Problem {
  // An unescaped + in a query string is a blank.
  const given = query.get(name)?.replace(/^ /, '+');
  if (given === undefined) return undefined;
  return E164.test(given) ? given : problems.invalid(`${name}: must be an E.164 number with leading +`);
}
