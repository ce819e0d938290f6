/** SIP devices of an application: who may register, and who is registered. */

import { type Binding, DEVICE_REALM } from '../../call/ports/devices.ts';
import { timestamp } from '../../clock.ts';
import type { ListedDevice } from '../../database/device/devices.ts';
import type { Store } from '../../database/store.ts';
import { hexHash } from '../../hash.ts';
import { DEVICE_LIST_MAX_ITEMS, DEVICE_PASSWORD_MAX_CHARS, DEVICES_MAX } from '../../limits.ts';
import { isProblem, problems } from '../../problem.ts';
import { digestSecrets } from '../../sip/message/digest-server.ts';
import { itemLimit, strayParameter } from '../list-query.ts';
import { noContent, ok, queryOf, type Route } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import { pathApp } from './apps.ts';
import type { OperatorHooks } from './hooks.ts';

/** What may stand in the user part of a SIP URI without an escape, so that a name has one spelling only. */
const USERNAME = /^[A-Za-z0-9+][A-Za-z0-9._~*+-]{0,63}$/;

const USERNAME_WORDS = '1 to 64 letters, digits, dots, dashes, underscores, ~, * or +';

const wrongUsername = () => problems.invalid(`username: must be ${USERNAME_WORDS}`);

const put = shape(() =>
  type({
    '+': 'reject',
    password: type(new RegExp(`^[\\x20-\\x7e]{1,${DEVICE_PASSWORD_MAX_CHARS}}$`)).describe(
      `1 to ${DEVICE_PASSWORD_MAX_CHARS} printable ASCII characters`,
    ),
  }),
);

const facts = {
  auth: 'operator',
  tag: 'Operator: devices',
  forms: { username: { pattern: USERNAME.source, description: USERNAME_WORDS } },
} as const;
const DEVICES = '/operator/v1/apps/:app_uuid/devices';
const DEVICE = `${DEVICES}/:username`;

export const deviceRoutes = (store: Store, hooks: Pick<OperatorHooks, 'onDeviceChanged'>): readonly Route[] => [
  listRoute(store),
  bodyRoute(
    {
      ...facts,
      resource: 'Application',
      method: 'PUT',
      path: DEVICE,
      summary: 'Set a SIP device up, or give it another password',
      success: [204, 'It may register.'],
    },
    put,
    (context, { password }) => {
      const { username = '' } = context.params;
      const appUuid = pathApp(context);
      if (!USERNAME.test(username)) return wrongUsername();
      if (appUuid === undefined) return undefined;
      return async () => {
        const secrets = digestSecrets(hexHash, username, DEVICE_REALM, password);
        const outcome = await store.devices.put({ username, appUuid, secrets });
        if (outcome === 'no_app') return problems.notFound('Application');
        if (outcome === 'taken') return problems.conflict('The user name belongs to another application');
        if (outcome === 'full') return problems.conflict(`There are at most ${DEVICES_MAX} devices`);
        await hooks.onDeviceChanged(username);
        return noContent;
      };
    },
  ),
  route(
    { ...facts, resource: 'Device', method: 'DELETE', path: DEVICE, summary: 'Take a SIP device down', success: [204, 'Gone.'] },
    async (context) => {
      const { username = '' } = context.params;
      const appUuid = pathApp(context);
      if (appUuid === undefined) return undefined;
      const isRemoved = await store.devices.remove(appUuid, username);
      // The one before this request may have removed it and failed to say so, as where the database went away between.
      await hooks.onDeviceChanged(username);
      return isRemoved ? () => noContent : undefined;
    },
  ),
];

const listRoute = (store: Store): Route =>
  route(
    {
      ...facts,
      resource: 'Application',
      method: 'GET',
      path: DEVICES,
      summary: 'List the SIP devices of an application with their registrations',
      success: [
        200,
        '`{"devices": […], "after"}`, by user name, without secrets. `after` asks for the next page; it is empty on the last one.',
      ],
      query: [
        { name: 'username', description: 'The device of that name alone.', schema: { type: 'string', pattern: USERNAME.source } },
        { name: 'after', description: 'The `after` of the page before.', schema: { type: 'string' } },
        {
          name: 'limit',
          description: `Default ${DEVICE_LIST_MAX_ITEMS}.`,
          schema: { type: 'integer', minimum: 1, maximum: DEVICE_LIST_MAX_ITEMS },
        },
      ],
    },
    (context) => {
      const appUuid = pathApp(context);
      if (appUuid === undefined) return undefined;
      const query = queryOf(context);
      const stray = strayParameter(query, ['username', 'after', 'limit']);
      if (stray !== undefined) return stray;
      const limit = itemLimit(query, DEVICE_LIST_MAX_ITEMS, DEVICE_LIST_MAX_ITEMS);
      if (isProblem(limit)) return limit;
      const after = query.get('after') || undefined;
      if (after !== undefined && !USERNAME.test(after)) return problems.invalid('after: must be the `after` of an earlier page');
      const username = query.get('username') ?? undefined;
      if (username !== undefined && !USERNAME.test(username)) return wrongUsername();
      return async () => {
        const found = await store.devices.list({ appUuid, username, after, limit: limit + 1 });
        if (found === undefined) return problems.notFound('Application');
        const page = found.slice(0, limit);
        return ok({ devices: page.map(deviceBody), after: found.length > limit ? (page.at(-1)?.username ?? '') : '' });
      };
    },
  );

const deviceBody = ({ username, createdAt, contacts }: ListedDevice) => ({
  username,
  created_at: timestamp(createdAt),
  ...registrationOf(contacts[0]),
  contacts: contacts.map((contact) => ({ uri: contact.uri, transport: contact.transport, ...registrationOf(contact) })),
});

const registrationOf = (contact: Binding | undefined): Readonly<Record<string, string>> => ({
  registered_until: contact === undefined ? '' : timestamp(contact.expiresAt),
  address:
    contact === undefined
      ? ''
      : contact.host.includes(':')
        ? `[${contact.host}]:${contact.port}`
        : `${contact.host}:${contact.port}`,
  user_agent: contact?.userAgent ?? '',
});
