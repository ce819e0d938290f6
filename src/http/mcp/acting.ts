/**
 * The tools that act. What they do is a request of the API, made with the credentials that came: so the rights, limits
 * and refusals of the API are theirs.
 */

import type { Clock } from '../../clock.ts';
import type { Store } from '../../database/store.ts';
import { isUuid } from '../../id.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_WORDS } from '../admission/idempotency.ts';
import { replayed } from '../operator/events.ts';
import { e164 } from '../route/sessions.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { type Told, type Tool, type ToolUser, tool } from './tool.ts';

export interface ActingOptions {
  readonly store: Pick<Store, 'events' | 'calls'>;
  readonly clock: Clock;
  /** Serves a request as if it had come over the network. */
  serve(request: Request): Promise<Response>;
}

const RING_TIMEOUT_SEC = 60;

const text = (what: string) => type('0 < string <= 200').describe(what);
const replay = shape(() => type({ '+': 'reject', webhook_id: text('the webhook_id of the event') }));
const hangUp = shape(() => type({ '+': 'reject', session_uuid: text('the session_uuid of the call') }));
const call = () => ({ from: e164(), to: e164(), 'trunk?': text('the name of a trunk') });
const dialOfApplication = shape(() =>
  type({
    '+': 'reject',
    ...call(),
    'idempotency_key?': type(IDEMPOTENCY_KEY).describe(
      `${IDEMPOTENCY_KEY_WORDS}, as a name of the request: a second one with it dials nobody`,
    ),
  }),
);
const dialOfOperator = shape(() => type({ '+': 'reject', app_uuid: text('the application that calls'), ...call() }));

/** The tools that this user may act with. */
export const actingTools = (options: ActingOptions, user: ToolUser): readonly Tool[] =>
  user.mayOnlyRead ? [] : [replayTool(options), user.appUuid === '' ? operatorDial(options) : dial(options), hangUpTool(options)];

const replayTool = ({ store, clock }: ActingOptions): Tool =>
  tool(
    {
      name: 'replay_event',
      title: 'Send an event again',
      description: "Delivers an event to the application's webhook once more, behind the events that wait.",
      acts: true,
    },
    replay,
    async ({ webhook_id: webhookId }, { appUuid }) => {
      const outcome = await replayed(store.events, clock, webhookId, appUuid === '' ? undefined : appUuid);
      if (outcome === undefined) return problems.notFound('Event');
      return isProblem(outcome) ? outcome : { said: ['The event waits for its delivery.'] };
    },
  );

const DIAL = {
  name: 'dial',
  title: 'Place a call',
  description: 'Calls a real phone. It rings at once, and the carrier may charge for it. What becomes of it is told by events.',
  acts: true,
} as const;

const dial = (options: ActingOptions): Tool =>
  tool(DIAL, dialOfApplication, ({ idempotency_key: key, ...body }, user) =>
    asked(options, user, 'POST', '/v1/sessions:dial', { ...body, ring_timeout_sec: RING_TIMEOUT_SEC }, key),
  );

const operatorDial = (options: ActingOptions): Tool =>
  tool(DIAL, dialOfOperator, ({ app_uuid: appUuid, ...body }, user) =>
    asked(options, user, 'POST', `/operator/v1/apps/${encodeURIComponent(appUuid)}/dial`, body),
  );

const hangUpTool = (options: ActingOptions): Tool =>
  tool(
    { name: 'hang_up', title: 'Hang up', description: 'Ends one call, whoever is talking.', acts: true },
    hangUp,
    async ({ session_uuid: uuid }, user) => {
      if (!isUuid(uuid)) return problems.notFound('Session');
      if (user.appUuid !== '') return await asked(options, user, 'DELETE', `/v1/sessions/${uuid}`);
      const row = await options.store.calls.get(uuid);
      if (row === undefined) return problems.notFound('Session');
      return await asked(options, user, 'POST', `/operator/v1/apps/${row.appUuid}/sessions/${uuid}/hangup`, {});
    },
  );

/** Makes a request of the API and tells its answer. A refusal is told as it is. */
async function asked(
  { serve }: ActingOptions,
  { authorization }: ToolUser,
  method: string,
  path: string,
  body?: object,
  key?: string,
): Promise<Told | Problem> {
  const response = await serve(
    new Request(`http://mcp.invalid${path}`, {
      method,
      headers: {
        authorization,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }),
  );
  const answer = await response.json();
  const { code, message } = { code: '', message: '', ...answer };
  if (response.ok) return { said: ['Admitted; what becomes of it is told by events.'], records: answer };
  const retryAfter = response.headers.get('retry-after');
  return {
    ...problems.invalid(String(message)),
    problem: code,
    status: response.status,
    ...(retryAfter === null ? {} : { retryAfterSec: Number(retryAfter) }),
  };
}
