/** Applications, their keys and their webhook secrets. A secret is shown once, by the call that made it. */

import type { Recordings } from '../../call/ports/recordings.ts';
import { timestamp } from '../../clock.ts';
import type { App, RoomLimits } from '../../database/app/apps.ts';
import type { Store } from '../../database/store.ts';
import { DESTINATION_PREFIX, type Destinations } from '../../destinations.ts';
import { isAppUuid, isUuid } from '../../id.ts';
import { API_KEYS_PER_APP_MAX, DESTINATIONS_MAX, WEBHOOK_SECRETS_REPLACED_MAX } from '../../limits.ts';
import { problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { created, noContent, ok, type RequestContext } from '../request-context.ts';
import { appBody, blockedEvents, storeUse, webhookUrl } from '../route/application.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';

const name = () => type(/^[^\x00-\x1f\x7f]{1,100}$/u).describe('1 to 100 printable characters');
const roomLimits = () =>
  type({
    '+': 'reject',
    'max_rooms?': '0 <= number.integer <= 100000',
    'max_members_per_room?': '1 <= number.integer <= 100000',
  });
const destinations = () =>
  type(DESTINATION_PREFIX)
    .describe('the beginning of an E.164 number with leading +, as +972 or +1900')
    .array()
    .atMostLength(DESTINATIONS_MAX);
const optional = () => ({
  'webhook_url?': webhookUrl(),
  'blocked_webhook_events?': blockedEvents(),
  'room_limits?': roomLimits(),
  'allowed_destinations?': destinations(),
  'blocked_destinations?': destinations(),
});
const create = shape(() => type({ '+': 'reject', name: name(), ...optional() }));
const patch = shape(() => type({ '+': 'reject', 'name?': name(), ...optional() }));

type Fields = Parameters<typeof change>[0];

/** The fields of a body, as the store names them. */
function change(body: {
  readonly webhook_url?: string;
  readonly blocked_webhook_events?: readonly string[];
  readonly room_limits?: { readonly max_rooms?: number; readonly max_members_per_room?: number };
  readonly allowed_destinations?: readonly string[];
  readonly blocked_destinations?: readonly string[];
}) {
  return {
    ...(body.webhook_url === undefined ? {} : { webhookUrl: body.webhook_url }),
    ...(body.blocked_webhook_events === undefined ? {} : { blockedWebhookEvents: body.blocked_webhook_events }),
    ...(body.room_limits === undefined ? {} : { roomLimits: limits(body.room_limits) }),
    destinations: {
      ...(body.allowed_destinations === undefined ? {} : { allowed: body.allowed_destinations }),
      ...(body.blocked_destinations === undefined ? {} : { blocked: body.blocked_destinations }),
    } satisfies Partial<Destinations>,
  };
}

const limits = (given: NonNullable<Fields['room_limits']>): Partial<RoomLimits> => ({
  ...(given.max_rooms === undefined ? {} : { maxRooms: given.max_rooms }),
  ...(given.max_members_per_room === undefined ? {} : { maxMembersPerRoom: given.max_members_per_room }),
});

const facts = { auth: 'operator', tag: 'Operator: applications', resource: 'Application' } as const;
const ONE = '/operator/v1/apps/:app_uuid';

/** The application a path names, or undefined when it is none. */
export const pathApp = (context: RequestContext): string | undefined => {
  const appUuid = context.params.app_uuid ?? '';
  return isAppUuid(appUuid) ? appUuid : undefined;
};

/** The routes by which the operator makes, reads and changes applications, their API keys and their webhook secrets. */
export const appRoutes = (store: Store, recordings: Recordings): readonly Route[] => [
  ...applicationRoutes(store, recordings),
  ...apiKeyRoutes(store),
  webhookSecretRoute(store),
];

const applicationRoutes = ({ apps, credentials }: Store, recordings: Recordings): readonly Route[] => [
  bodyRoute(
    {
      ...facts,
      method: 'POST',
      path: '/operator/v1/apps',
      summary: 'Make an application',
      success: [201, 'Its secrets, shown once.'],
    },
    create,
    (_exchange, body) => async () => {
      const made = await apps.create({ name: body.name, ...change(body) });
      return created({ app_uuid: made.appUuid, api_key: made.apiKey, webhook_secret: made.webhookSecret });
    },
  ),
  route(
    { ...facts, method: 'GET', path: '/operator/v1/apps', summary: 'List applications', success: [200, '`{"apps": […]}`'] },
    () => async () => ok({ apps: (await apps.list()).map((app) => ({ ...summary(app), ...storeUse(recordings, app.appUuid) })) }),
  ),
  route(
    { ...facts, method: 'GET', path: ONE, summary: 'Inspect one application', success: [200, 'The application.'] },
    async (context) => {
      const appUuid = pathApp(context);
      const app = appUuid === undefined ? undefined : await apps.get(appUuid);
      if (app === undefined) return undefined;
      const keys = await credentials.keyIds(app.appUuid);
      return () =>
        ok({
          ...summary(app),
          ...appBody(app),
          ...storeUse(recordings, app.appUuid),
          payment_terminals: app.paymentTerminals,
          api_keys: keys.map((key) => ({ key_id: key.keyId, created_at: timestamp(key.createdAt) })),
        });
    },
  ),
  bodyRoute(
    { ...facts, method: 'PATCH', path: ONE, summary: 'Change an application', success: [204, 'Changed.'] },
    patch,
    (context, body) => {
      const appUuid = pathApp(context);
      if (appUuid === undefined) return undefined;
      return async () => {
        const found = await apps.patch(appUuid, {
          ...(body.name === undefined ? {} : { name: body.name }),
          ...change(body),
        });
        return found ? noContent : problems.notFound('Application');
      };
    },
  ),
];

const apiKeyRoutes = ({ credentials }: Store): readonly Route[] => [
  bareRoute(
    {
      ...facts,
      method: 'POST',
      path: `${ONE}/api-keys`,
      summary: 'Make another API key',
      success: [201, 'The key, shown once.'],
    },
    (context) => {
      const appUuid = pathApp(context);
      if (appUuid === undefined) return undefined;
      return async () => {
        const made = await credentials.addKey(appUuid);
        if (made === 'no_app') return problems.notFound('Application');
        if (made === 'too_many') return problems.conflict(`An application has at most ${API_KEYS_PER_APP_MAX} API keys`);
        return created({ key_id: made.keyId, api_key: made.apiKey });
      };
    },
  ),
  route(
    {
      ...facts,
      resource: 'API key',
      method: 'DELETE',
      path: `${ONE}/api-keys/:key_id`,
      summary: 'Revoke an API key, at once',
      success: [204, 'Revoked.'],
    },
    async (context) => {
      const appUuid = pathApp(context);
      const keyId = context.params.key_id ?? '';
      if (appUuid === undefined || !isUuid(keyId)) return undefined;
      return (await credentials.removeKey(appUuid, keyId)) ? () => noContent : undefined;
    },
  ),
];

const webhookSecretRoute = ({ credentials }: Store): Route =>
  bareRoute(
    {
      ...facts,
      method: 'POST',
      path: `${ONE}/webhook-secrets`,
      summary: 'Rotate the webhook secret; each replaced one signs along for 24 h',
      success: [201, 'The secret, shown once.'],
    },
    async (context) => {
      const appUuid = pathApp(context);
      if (appUuid === undefined) return undefined;
      const secret = await credentials.rotateSecret(appUuid);
      if (secret === 'no_app') return undefined;
      if (secret === 'too_many')
        return problems.conflict(`${WEBHOOK_SECRETS_REPLACED_MAX} replaced webhook secrets still sign along; each does for 24 h`);
      return () => created({ webhook_secret: secret });
    },
  );

const summary = (app: App): Readonly<Record<string, unknown>> => ({
  app_uuid: app.appUuid,
  name: app.name,
  webhook_url: app.webhookUrl,
  webhook_disabled: app.webhookDisabled,
  blocked_webhook_events: app.blockedWebhookEvents,
  room_limits: { max_rooms: app.roomLimits.maxRooms, max_members_per_room: app.roomLimits.maxMembersPerRoom },
  allowed_destinations: app.destinations.allowed,
  blocked_destinations: app.destinations.blocked,
  created_at: timestamp(app.createdAt),
});
