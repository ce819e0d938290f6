/** SIP trunks: set up, read with their state, taken down. */
import { isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { CarrierReadings, TrunkStatus } from '../../call/ports/trunks.ts';
import { timestamp } from '../../clock.ts';
import type { Store } from '../../database/store.ts';
import type { TrunkRow } from '../../database/trunk/trunks.ts';
import { APP_UUID } from '../../id.ts';
import {
  LIVE_SESSIONS_MAX,
  TRUNK_APPS_MAX,
  TRUNK_CIDRS_MAX,
  TRUNK_CPS_MAX,
  TRUNK_HOSTS_MAX,
  TRUNK_NODES_MAX,
  TRUNK_PEM_MAX_CHARS,
  TRUNKS_MAX,
} from '../../limits.ts';
import { type Problem, problems } from '../../problem.ts';
import { isEvery } from '../../settings/value.ts';
import { unescapeUser } from '../../sip/message/uri.ts';
import { characters } from '../characters.ts';
import { noContent, ok, type Route } from '../request-context.ts';
import { bareRoute, bodyRoute, route } from '../route.ts';
import { shape } from '../shape/shape.ts';
import { type } from '../shape/type.ts';
import type { OperatorHooks } from './hooks.ts';
import { tlsRefusal } from './trunk-tls.ts';

/** No domain of a carrier has an underscore, but names of containers do. */
const LABEL = '[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `${OCTET}(\\.${OCTET}){3}`;
/** The end of a name in a number: no domain has one (RFC 3696 §2), so that it is meant for an IPv4 address. */
const NUMBER_AT_END = '([^:;]*\\.)?[0-9]+\\.?($|[:;])';
const DOMAIN = `(?=.{1,253}($|[:;]))(?!${NUMBER_AT_END})${LABEL}(\\.${LABEL})*\\.?`;
const HOST = `(\\[[0-9A-Fa-f:.]{2,45}\\]|${IPV4}|${DOMAIN})`;
const URI = new RegExp(`^sip:${HOST}(:[0-9]{1,5})?(;transport=(udp|tcp|tls))?$`);
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_WORDS = '1 to 64 letters, digits, dots, dashes or underscores';
const printable = () => type(/^[\x21-\x7e]{1,128}$/).describe('1 to 128 printable ASCII characters without blanks');
const USER = 'the user part of a SIP URI, in which % begins an escape';
const user = () =>
  type(/^([A-Za-z0-9\-_.!~*'()+&=$,;?/]|%[0-9A-Fa-f]{2}){1,128}$/)
    .narrow((text, context) => unescapeUser(text) !== undefined || context.mustBe(USER))
    .describe(USER);
/** Brackets hold an IPv6 address. */
const isHost = (text: string): boolean => !text.startsWith('[') || isIPv6(text.slice(1, text.indexOf(']')));
const host = () =>
  type(new RegExp(`^${HOST}$`))
    .narrow((text, context) => isHost(text) || context.mustBe('a host'))
    .describe('a host name or an IP address');
/** A host that others are told: it cannot be the one that stands for every address of a machine. */
const TOLD_HOST = 'a host name or an IP address at which the carrier reaches the platform';
const toldHost = () =>
  host()
    .narrow((text, context) => !isEvery(text.replace(/^\[|\]$/g, '')) || context.mustBe(TOLD_HOST))
    .describe(TOLD_HOST);
const pem = () =>
  type(/^$|-----BEGIN /)
    .and(`string <= ${TRUNK_PEM_MAX_CHARS}`)
    .describe('PEM text');
const isUri = (text: string): boolean => {
  const port = Number(/:([0-9]{1,5})(;|$)/.exec(text)?.[1] ?? 5060);
  return port >= 1 && port <= 65535 && isHost(text.slice('sip:'.length));
};
const uri = () =>
  type(URI)
    .narrow((text, context) => isUri(text) || context.mustBe('a trunk URI'))
    .describe('sip:host[:port][;transport=udp|tcp|tls]');

const CIDR = 'a CIDR, as 203.0.113.0/24; a single address is 203.0.113.7/32';

/** What a setting counts as where it is left out (`carrier/` takes it for that). */
const DEFAULTS = {
  ...{ register: false, inbound_format: 'auto', outbound_format: 'plus_e164', user_phone: false },
  ...{ identity: 'none', trust_identity: false, inbound_auth: false },
  ...{ srtp: 'off', srtp_without_tls: false, session_timer: 'on', priority: 0, weight: 1, follow_redirects: false },
};

const trunk = shape(
  () =>
    type({
      '+': 'reject',
      uri: type("'loopback:'").or(uri()).describe('sip:host[:port][;transport=udp|tcp|tls] or loopback:'),
      'username?': printable(),
      'password?': characters(0, 256),
      'register?': 'boolean',
      'inbound_cidrs?': type(/^[0-9A-Fa-f:.]+\/[0-9]{1,3}$/)
        .narrow((cidr, context) => isCidr(cidr) || context.mustBe(CIDR))
        .describe(CIDR)
        .array()
        .atMostLength(TRUNK_CIDRS_MAX),
      'max_channels?': `1 <= number.integer <= ${LIVE_SESSIONS_MAX}`,
      'codecs?': type("'PCMU' | 'PCMA' | 'G722' | 'opus'")
        .describe('PCMU, PCMA, G722 or opus')
        .array()
        .atLeastLength(1)
        .atMostLength(4),
      'country_code?': type(/^[1-9][0-9]{0,2}$/).describe('the calling code of a country, without +'),
      'inbound_format?': "'auto' | 'e164' | 'national'",
      'outbound_format?': "'plus_e164' | 'e164' | 'national' | 'international_00'",
      'outbound_prefix?': type(/^[0-9*#+]{1,16}$/).describe('1 to 16 digits, *, # or +'),
      'auth_username?': printable(),
      'from_user?': user(),
      'from_domain?': host(),
      'outbound_proxy?': uri(),
      'contact_user?': user(),
      'contact_host?': toldHost(),
      'user_phone?': 'boolean',
      'identity?': "'none' | 'pai' | 'ppi' | 'rpid'",
      'trust_identity?': 'boolean',
      'inbound_auth?': 'boolean',
      'srtp?': "'off' | 'optional' | 'required'",
      'srtp_without_tls?': 'boolean',
      'tls?': { '+': 'reject', 'ca?': pem(), 'cert?': pem(), 'key?': pem() },
      'session_timer?': "'on' | 'off'",
      'max_cps?': `1 <= number.integer <= ${TRUNK_CPS_MAX}`,
      'priority?': '0 <= number.integer <= 65535',
      'weight?': '1 <= number.integer <= 65535',
      'apps?': type(APP_UUID).describe('app_<uuid-v4>').array().atMostLength(TRUNK_APPS_MAX),
      'follow_redirects?': 'boolean',
      'transfer_hosts?': host().array().atMostLength(TRUNK_HOSTS_MAX),
      'advertise?': toldHost(),
      'nodes?': type(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
        .describe('the label of a node')
        .array()
        .atMostLength(TRUNK_NODES_MAX),
    }),
  {},
  DEFAULTS,
);
type TrunkBody = Extract<ReturnType<typeof trunk.check>, { value: unknown }>['value'];

const facts = {
  auth: 'operator',
  tag: 'Operator: trunks',
  path: '/operator/v1/trunks/:name',
  resource: 'Trunk',
  forms: { name: { pattern: NAME.source, description: NAME_WORDS } },
} as const;

export const trunkRoutes = (store: Store, hooks: OperatorHooks): readonly Route[] => [
  route(
    {
      ...facts,
      method: 'GET',
      path: '/operator/v1/trunks',
      summary: 'List the trunks with their state',
      success: [200, '`{"trunks": […]}`, by name, without secrets'],
    },
    () => async () => {
      const rows = await store.trunks.list();
      return ok({ trunks: rows.map((row) => trunkBody(row, hooks.carrier)) });
    },
  ),
  route(
    { ...facts, method: 'GET', summary: 'Read a trunk with its state', success: [200, 'The trunk, without secrets.'] },
    async (context) => {
      const row = (await store.trunks.list()).find(({ name }) => name === context.params.name);
      return row === undefined ? undefined : () => ok(trunkBody(row, hooks.carrier));
    },
  ),
  bodyRoute({ ...facts, method: 'PUT', summary: 'Set a trunk up, whole', success: [204, 'In use.'] }, trunk, (context, body) => {
    const name = context.params.name ?? '';
    const refused = refusal(name, body) ?? srtpRefusal(body, hooks.carrier.hasSrtp) ?? opusRefusal(body, hooks.carrier.hasOpus);
    if (refused !== undefined) return refused;
    return async () => {
      const proving = provingField(body);
      const needsPassword = proving !== undefined && body.password === undefined;
      const stored = needsPassword || body.tls !== undefined ? await storedTrunk(store, name) : undefined;
      if (needsPassword && stored?.password === undefined) return withoutPassword(proving);
      const unusable = tlsRefusal(body.tls ?? {}, stored?.tlsKey);
      if (unusable !== undefined) return unusable;
      if (body.country_code !== undefined && !(await hooks.carrier.isCountryCode(body.country_code)))
        return problems.invalid('country_code: must be the calling code of a country, without +');
      if (!(await store.trunks.put(rowOf(name, body)))) return problems.conflict(`There are at most ${TRUNKS_MAX} trunks`);
      await hooks.onTrunksChanged(name);
      return noContent;
    };
  }),
  bareRoute(
    {
      ...facts,
      method: 'POST',
      path: '/operator/v1/trunks/:name/probe',
      summary: 'Ask a trunk at once whether it is there',
      success: [202, 'Asked; `status.last_probe` of the trunk tells the outcome.'],
    },
    async (context) => {
      const { name = '' } = context.params;
      if (!(await store.trunks.list()).some((row) => row.name === name)) return undefined;
      return () => {
        hooks.carrier.probeTrunk(name);
        return { status: 202, body: { name, status: 'probing' } };
      };
    },
  ),
  route({ ...facts, method: 'DELETE', summary: 'Take a trunk down', success: [204, 'Gone.'] }, async (context) => {
    const { name = '' } = context.params;
    const isRemoved = await store.trunks.remove(name);
    // The one before this request may have removed it and failed to say so, as where the database went away between.
    await hooks.onTrunksChanged(name);
    return isRemoved ? () => noContent : undefined;
  }),
];

/** What the shape alone cannot see: fields that need one another. */
function refusal(name: string, body: TrunkBody): Problem | undefined {
  if (!NAME.test(name)) return problems.invalid(`name: must be ${NAME_WORDS}`);
  if (body.uri !== 'loopback:' && body.inbound_cidrs === undefined) return problems.invalid('inbound_cidrs: is required');
  const proving = provingField(body);
  if (body.uri === 'loopback:' && (proving !== undefined || (body.inbound_cidrs ?? []).length > 0))
    return problems.invalid('uri: loopback: has neither inbound_cidrs nor a registration nor inbound_auth');
  const user = body.register === true ? body.username : (body.auth_username ?? body.username);
  if (proving !== undefined && (user === undefined || body.password === '')) return withoutPassword(proving);
  if (body.country_code === undefined) {
    for (const field of ['inbound_format', 'outbound_format'] as const)
      if (body[field] === 'national') return problems.invalid(`${field}: must come with country_code to be national`);
  }
  return undefined;
}

/** The field of a trunk for which it needs a user name and a password: those that one side proves to the other. */
function provingField({ register, inbound_auth }: TrunkBody): 'register' | 'inbound_auth' | undefined {
  if (register === true) return 'register';
  return inbound_auth === true ? 'inbound_auth' : undefined;
}

const withoutPassword = (field: string): Problem => problems.invalid(`${field}: must come with username and password`);

/** Why a trunk cannot have Opus. */
const opusRefusal = ({ codecs = [] }: TrunkBody, hasOpus: boolean): Problem | undefined =>
  hasOpus || !codecs.includes('opus')
    ? undefined
    : problems.invalid('codecs: this build has no Opus: install libopus-dev and pkg-config, and start again');

/** Why encrypted audio cannot be had as it is asked for. */
function srtpRefusal(
  { srtp = 'off', srtp_without_tls: bare = false, ...body }: TrunkBody,
  hasSrtp: boolean,
): Problem | undefined {
  if (srtp === 'off') return undefined;
  if (!hasSrtp) return problems.invalid('srtp: this build has none: install libsrtp2-dev and pkg-config, and start again');
  const isTls = /;transport=tls$/.test(body.outbound_proxy ?? body.uri);
  if (isTls || bare) return undefined;
  return problems.invalid('srtp: must come with transport=tls, because SIP carries the keys, or with srtp_without_tls: true');
}

const storedTrunk = async ({ trunks }: Pick<Store, 'trunks'>, name: string) =>
  (await trunks.list()).find((row) => row.name === name);

function rowOf(name: string, body: TrunkBody): TrunkRow {
  const { uri: address, username, password, register, inbound_cidrs, max_channels, codecs, tls, ...settings } = body;
  const { key, ...certificates } = tls ?? {};
  return {
    name,
    uri: address,
    username,
    password,
    register: register ?? false,
    inboundCidrs: inbound_cidrs ?? [],
    maxChannels: max_channels,
    codecs,
    settings: { ...settings, ...(Object.keys(certificates).length === 0 ? {} : { tls: certificates }) },
    tlsKey: key,
  };
}

/** A trunk as it was set up. Secrets are told only to be there. */
function trunkBody(row: TrunkRow, carrier: CarrierReadings): Readonly<Record<string, unknown>> {
  return {
    name: row.name,
    uri: row.uri,
    ...(row.username === undefined ? {} : { username: row.username }),
    has_password: row.password !== undefined,
    register: row.register,
    inbound_cidrs: row.inboundCidrs,
    ...(row.maxChannels === undefined ? {} : { max_channels: row.maxChannels }),
    ...(row.codecs === undefined ? {} : { codecs: row.codecs }),
    ...row.settings,
    has_tls_key: row.tlsKey !== undefined,
    status: statusBody(carrier.trunkStatus(row.name)),
  };
}

const statusBody = ({
  registered,
  registeredUntil,
  registerStatus,
  lastProbe,
  ...counts
}: TrunkStatus): Readonly<Record<string, unknown>> => ({
  registered,
  registered_until: registeredUntil === undefined ? '' : timestamp(registeredUntil),
  ...(registerStatus === undefined ? {} : { register_sip_status: registerStatus }),
  ...(lastProbe === undefined
    ? {}
    : {
        last_probe: {
          at: timestamp(lastProbe.at),
          ok: lastProbe.ok,
          rtt_ms: Math.round(lastProbe.rttMs),
          sip_status: lastProbe.sipStatus,
        },
      }),
  channels_in_use: counts.channelsInUse,
  calls_24h: counts.calls24h,
  failures_24h: counts.failures24h,
});

/** A leading zero would make an octet octal, and an IPv4 address within an IPv6 one is compared as what it is. */
function isCidr(text: string): boolean {
  const [address = ''] = text.split('/', 1);
  if (!ipaddr.isValidCIDR(text)) return false;
  return isIPv6(address) ? ipaddr.process(address).kind() === 'ipv6' : ipaddr.IPv4.isValidFourPartDecimal(address);
}
