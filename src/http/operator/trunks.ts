/** SIP trunks. */
import { type } from 'arktype';
import ipaddr from 'ipaddr.js';
import type { Store } from '../../database/store.ts';
import { LIVE_SESSIONS_MAX, TRUNK_CIDRS_MAX, TRUNKS_MAX } from '../../limits.ts';
import { problems } from '../../problem.ts';
import type { Route } from '../request-context.ts';
import { noContent } from '../request-context.ts';
import { bodyRoute, route } from '../route.ts';
import { shape } from '../shape.ts';
import type { OperatorHooks } from './hooks.ts';

const URI = /^sip:(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9]([A-Za-z0-9.-]{0,252}))(:[0-9]{1,5})?(;transport=(udp|tcp|tls))?$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const printable = type(/^[\x21-\x7e]{1,128}$/).describe('1 to 128 printable ASCII characters without blanks');

const trunk = shape(
  type({
    '+': 'reject',
    uri: type(URI)
      .narrow((uri, context) => Number(/:([0-9]{1,5})(;|$)/.exec(uri)?.[1] ?? 5060) <= 65535 || context.mustBe('a trunk URI'))
      .describe('sip:host[:port][;transport=udp|tcp|tls]'),
    'username?': printable,
    'password?': type('1 <= string <= 256').describe('1 to 256 characters'),
    'register?': 'boolean',
    inbound_cidrs: type('string')
      .narrow((cidr, context) => isCidr(cidr) || context.mustBe('a CIDR'))
      .describe('an IPv4 or IPv6 CIDR')
      .array()
      .atMostLength(TRUNK_CIDRS_MAX),
    'max_channels?': `1 <= number.integer <= ${LIVE_SESSIONS_MAX}`,
    'codecs?': type("'PCMU' | 'PCMA' | 'G722'").describe('PCMU, PCMA or G722').array().atLeastLength(1).atMostLength(3),
  }),
);

const facts = { auth: 'operator', tag: 'Operator: trunks', path: '/operator/v1/trunks/:name', resource: 'Trunk' } as const;

export const trunkRoutes = (store: Store, hooks: OperatorHooks): readonly Route[] => [
  bodyRoute({ ...facts, method: 'PUT', summary: 'Set a trunk up, whole', success: [204, 'In use.'] }, trunk, (context, body) => {
    const name = context.params.name ?? '';
    if (!NAME.test(name)) return problems.invalid('name: must be 1 to 64 letters, digits, dots, dashes or underscores');
    if (body.register === true && (body.username === undefined || body.password === undefined))
      return problems.invalid('register: must come with username and password');
    return async () => {
      const kept = await store.trunks.put({
        name,
        uri: body.uri,
        username: body.username,
        password: body.password,
        register: body.register ?? false,
        inboundCidrs: body.inbound_cidrs,
        maxChannels: body.max_channels,
        codecs: body.codecs,
      });
      if (!kept) return problems.conflict(`There are at most ${TRUNKS_MAX} trunks`);
      await hooks.onTrunksChanged();
      return noContent;
    };
  }),
  route({ ...facts, method: 'DELETE', summary: 'Take a trunk down', success: [204, 'Gone.'] }, async (context) => {
    if (!(await store.trunks.remove(context.params.name ?? ''))) return undefined;
    await hooks.onTrunksChanged();
    return () => noContent;
  }),
];

const isCidr = (text: string): boolean => ipaddr.isValidCIDR(text) && (text.includes(':') || /^[0-9]+(\.[0-9]+){3}\//.test(text));
