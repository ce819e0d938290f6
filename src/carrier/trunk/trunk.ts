/** A trunk: a carrier that we exchange calls with, as the operator set it up. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { remembered } from '../../bounds/remembered.ts';
import type { TrunkRow } from '../../database/trunk/trunks.ts';
import { hexHash } from '../../hash.ts';
import { ADDRESSES_REMEMBERED_MAX, SIP_TRUNK_CHANNELS_DEFAULT, TRUNK_CIDRS_MAX, TRUNKS_MAX } from '../../limits.ts';
import type { AudioCodec } from '../../sdp/negotiation.ts';
import type { SrtpSuite, SrtpTerms } from '../../sdp/sdes.ts';
import { defaultPort, type PeerProfile } from '../../sip/flow.ts';
import type { Credentials } from '../../sip/message/digest.ts';
import { formatHostPort, parseUri, plainHost, unescapeUser } from '../../sip/message/uri.ts';
import type { TransportName } from '../../sip/message/via.ts';

/** The secrets are open here. They go into digests and TLS handshakes, never into a log. */
export type Trunk = TrunkRow;

export interface TrunkAddress {
  readonly host: string;
  /** The port. Undefined takes it from SRV where the name has such a record, else the default of the transport. */
  readonly port: number | undefined;
  readonly transport: TransportName;
}

/** The URI of a trunk without a carrier: what is dialled through it comes back in to this platform. */
const LOOPBACK_URI = 'loopback:';
/** The domain of such a trunk in SIP messages. It is resolved to our own port. */
const LOOPBACK_ADDRESS: TrunkAddress = { host: 'loopback.invalid', port: undefined, transport: 'udp' };

/** Whether a node with these labels may use the trunk, or a process that is alone. */
export const isPinnedTo = ({ nodes }: Trunk['settings'], labels: readonly string[] | undefined): boolean =>
  nodes === undefined || labels === undefined || nodes.some((label) => labels.includes(label));

export const isLoopback = ({ uri }: Trunk): boolean => uri === LOOPBACK_URI;

/** The address that a trunk's URI names. Undefined when it is no SIP URI of the form above. */
export function trunkAddress(uri: string): TrunkAddress | undefined {
  if (uri === LOOPBACK_URI) return LOOPBACK_ADDRESS;
  const parsed = parseUri(uri);
  if (parsed === undefined || parsed.scheme === 'tel' || parsed.host === '') return undefined;
  const named = parsed.parameters.get('transport')?.toLowerCase();
  if (named !== undefined && named !== 'udp' && named !== 'tcp' && named !== 'tls') return undefined;
  return { host: plainHost(parsed.host), port: parsed.port, transport: parsed.scheme === 'sips' ? 'tls' : (named ?? 'udp') };
}

/** The host part of URIs for this trunk. A default port is left out. */
export const trunkDomain = ({ host, port, transport }: TrunkAddress): string =>
  formatHostPort(host, port === defaultPort(transport) ? undefined : port);

/** The codecs of a trunk that names none: every build of the media plane has them. Opus needs a library. */
const DEFAULT_CODECS: readonly AudioCodec[] = ['PCMU', 'PCMA', 'G722'];

/**
 * The codecs of a trunk in order. Names that are unknown, or not among those that the media plane is `able` to speak,
 * are left out. Without any it speaks the default ones.
 */
export function trunkCodecs(trunk: Trunk, able: readonly AudioCodec[]): readonly AudioCodec[] {
  const isNamed = (name: string) => (codec: AudioCodec) => codec.toUpperCase() === name.toUpperCase();
  const chosen = (trunk.codecs ?? []).flatMap((name) => able.filter(isNamed(name)));
  return chosen.length > 0 ? [...new Set(chosen)] : DEFAULT_CODECS;
}

export const trunkChannels = (trunk: Trunk): number => trunk.maxChannels ?? SIP_TRUNK_CHANNELS_DEFAULT;

/** The address that requests are sent to: the outbound proxy's where there is one, else that of the URI. */
export const nextHopOf = ({ uri, settings }: Trunk): TrunkAddress | undefined => trunkAddress(settings.outbound_proxy ?? uri);

/** The Route of the outbound proxy (RFC 3261 §8.1.2), if there is one. */
export function routeOf({ settings }: Trunk): { readonly route?: string } {
  return settings.outbound_proxy === undefined ? {} : { route: `<${settings.outbound_proxy};lr>` };
}

/** The digest credentials of a trunk. Undefined when it has none. */
export function trunkCredentials({ username, password, settings }: Trunk): Credentials | undefined {
  const name = settings.auth_username ?? username;
  return name === undefined || password === undefined ? undefined : { username: name, password };
}

/**
 * The credentials of a call, which outlives an edit of its trunk: the password is the one that the trunk has at the
 * time, as long as it is the same user at the same place. `current` is that trunk now, if it is still there.
 */
export function callCredentials(trunk: Trunk, current: () => Trunk | undefined): Credentials | undefined {
  const first = trunkCredentials(trunk);
  if (first === undefined) return undefined;
  return {
    username: first.username,
    get password() {
      const now = current();
      const newest = now?.uri === trunk.uri ? trunkCredentials(now) : undefined;
      return newest?.username === first.username ? newest.password : first.password;
    },
  };
}

/** Whether a URI leaves the transport to us: UDP, and TCP for what is too long for it. */
const namesNoTransport = (uri: string): boolean => uri.startsWith('sip:') && !/;transport=/i.test(uri);

/** A user part of the trunk's settings without its escapes: it is escaped where it is sent. */
export const plainUser = (written: string): string => unescapeUser(written) ?? written;

/** A host without the brackets of an IPv6 address. */
const unbracketed = (host: string | undefined): string | undefined => host?.replace(/^\[|\]$/g, '');

/** Our address in SDP that the far ends of the trunk are told, if it names one. */
export const advertisedHost = ({ settings }: Trunk): string | undefined => unbracketed(settings.advertise);

/** Our host in Via and Contact towards the trunk, if it names one. */
const contactHost = ({ settings }: Trunk): string | undefined => unbracketed(settings.contact_host ?? settings.advertise);

/** What the user agent does differently with the peers of a trunk. `hasTcp` tells whether we listen on TCP. */
export function trunkProfile(trunk: Trunk, hasTcp: boolean): PeerProfile {
  const { uri, settings, inboundCidrs } = trunk;
  const contactUser = settings.contact_user === undefined ? undefined : plainUser(settings.contact_user);
  const advertise = contactHost(trunk);
  const tls = tlsIdentityOf(trunk);
  return {
    ...(inboundCidrs.length === 0 ? {} : { ranges: inboundCidrs }),
    ...(advertise === undefined ? {} : { advertise }),
    ...(contactUser === undefined ? {} : { contactUser }),
    ...(hasTcp && namesNoTransport(settings.outbound_proxy ?? uri) ? { tcp: true } : {}),
    ...((settings.srtp ?? 'off') !== 'off' && settings.srtp_without_tls !== true ? { staysOnTls: true } : {}),
    ...(settings.session_timer === 'off' ? { sessionTimer: false } : {}),
    ...(tls === undefined ? {} : { tls }),
  };
}

/** The TLS identities of trunks, so that no message has them hashed again. */
const identities = new WeakMap<Trunk, string>();

/**
 * Names the certificate, key and authorities of a trunk: connections that were opened with others are not used for new
 * calls. Undefined when the trunk has none of its own.
 */
function tlsIdentityOf(trunk: Trunk): string | undefined {
  const { tls } = trunk.settings;
  if (tls === undefined && trunk.tlsKey === undefined) return undefined;
  const hash = identities.get(trunk) ?? hexHash('SHA-256', JSON.stringify([tls?.ca, tls?.cert, trunk.tlsKey]));
  identities.set(trunk, hash);
  return `${hash} ${trunk.name}`;
}

/** The name of the trunk of a TLS identity. */
export const trunkOfTlsIdentity = (identity: string): string => identity.slice(identity.indexOf(' ') + 1);

/**
 * How the audio of a call is encrypted, or undefined when it is in clear. `transport` carries the keys: without TLS
 * none are given away, unless the trunk permits it.
 */
export function srtpOf(
  { settings }: Trunk,
  transport: TransportName | undefined,
  able: readonly SrtpSuite[],
  random: SrtpTerms['random'],
): SrtpTerms | undefined {
  const { srtp: mode = 'off' } = settings;
  const suites = transport === 'tls' || settings.srtp_without_tls === true ? able : [];
  return mode === 'off' || (mode === 'optional' && suites.length === 0) ? undefined : { mode, suites, random };
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

const NOBODY: readonly string[] = [];

interface Range {
  readonly name: string;
  readonly prefix: string;
  readonly bits: number;
}

/**
 * The names that ranges of addresses belong to. An address is looked for once by each length that their prefixes have,
 * however many ranges there are: anybody may send from any address.
 */
class RangeTable {
  readonly #names = new Map<string, string[]>();
  /** The lengths of the prefixes, the longest first. */
  readonly #lengths: readonly number[];

  constructor(ranges: readonly Range[]) {
    for (const { name, prefix } of ranges) {
      const names = this.#names.get(prefix) ?? [];
      if (!names.includes(name)) names.push(name);
      this.#names.set(prefix, names);
    }
    this.#lengths = [...new Set(ranges.map(({ bits }) => bits))].sort((a, b) => b - a);
  }

  /** The names of the narrowest range with that address, in the order that they came in. Empty where none has it. */
  find(text: string): readonly string[] {
    if (isIP(text) === 0) return NOBODY;
    const address = ipaddr.process(text);
    for (const bits of this.#lengths) {
      const names = this.#names.get(prefixOf(address, bits));
      if (names !== undefined) return names;
    }
    return NOBODY;
  }
}

/** The first bits of an address, as a text that tells their number and the version of IP. */
function prefixOf(address: Address, bits: number): string {
  const bytes = address.toByteArray();
  const whole = bits >> 3;
  const rest = (bytes[whole] ?? 0) & (0xff00 >> (bits & 7)) & 0xff;
  return `${address.kind()}/${bits} ${bytes.slice(0, whole).join('.')} ${rest}`;
}

/** Finds the trunks that an address belongs to. It is made anew when the trunks change. */
export class TrunkRanges {
  readonly #table: RangeTable;
  /** The names of the trunks that calls from this address come from, the first one first. */
  readonly trunksOf = remembered((address) => this.#table.find(address), ADDRESSES_REMEMBERED_MAX);

  /** The narrowest range wins. Malformed CIDRs are skipped, although the API refuses them. */
  constructor(trunks: readonly Trunk[]) {
    this.#table = new RangeTable(trunks.flatMap(({ name, inboundCidrs }) => inboundCidrs.flatMap((cidr) => rangeOf(name, cidr))));
  }
}

/** What was found out about the ranges of trunks as they were at one time. */
const within = new WeakMap<readonly string[], (address: string) => boolean>();

/** Whether an address is in one of the ranges of a profile (sip/flow.ts). */
export function isWithin(address: string, ranges: readonly string[]): boolean {
  const known = within.get(ranges) ?? remembered(withinOf(ranges), ADDRESSES_REMEMBERED_MAX);
  within.set(ranges, known);
  return known(address);
}

function withinOf(cidrs: readonly string[]): (address: string) => boolean {
  const table = new RangeTable(cidrs.flatMap((cidr) => rangeOf('', cidr)));
  return (address) => table.find(address).length > 0;
}

function rangeOf(name: string, cidr: string): Range[] {
  const found = readCidr(cidr);
  return found === undefined ? [] : [{ name, ...found }];
}

/** What a CIDR says. The ranges of all trunks are looked at whenever one of them changes. */
const readCidr = remembered((cidr): Omit<Range, 'name'> | undefined => {
  try {
    const text = cidr.includes('/') ? cidr : `${cidr}/${isIP(cidr) === 6 ? 128 : 32}`;
    const [network, bits] = ipaddr.parseCIDR(text);
    return { prefix: prefixOf(network, bits), bits };
  } catch {
    return undefined;
  }
}, TRUNKS_MAX * TRUNK_CIDRS_MAX);
