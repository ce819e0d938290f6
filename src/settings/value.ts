/**
 * One environment variable at a time: its text in, a value out, or a `SettingError` that names it and what was
 * expected, never what was given.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { SipListen } from '../config.ts';
import { isDestinationPrefix } from '../destinations.ts';
import { DESTINATIONS_MAX } from '../limits.ts';

/** A malformed variable. The message is the one line that stops the start. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
  readonly variable: string;
  readonly expected: string;

  constructor(variable: string, expected: string) {
    super(`${variable}: expected ${expected}`);
    this.variable = variable;
    this.expected = expected;
  }
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The text of a variable. Empty counts as unset, as compose files write it. */
export const text = (env: Environment, variable: string): string | undefined => {
  const value = env[variable]?.trim();
  return value === '' ? undefined : value;
};

/** Tells whether quotes stand around a value: Docker's `--env-file` takes them as part of it. */
export const isQuoted = (env: Environment, variable: string): boolean => /^(["']).*\1$/.test(text(env, variable) ?? '');

/** A whole number in `[least, most]`. */
export function whole(env: Environment, variable: string, fallback: number, least: number, most: number): number {
  const given = text(env, variable);
  if (given === undefined) return fallback;
  const value = /^[0-9]{1,12}$/.test(given) ? Number(given) : Number.NaN;
  if (!(value >= least && value <= most)) throw new SettingError(variable, `a whole number from ${least} to ${most}`);
  return value;
}

/** A decimal number in `[least, most]`. */
export function decimal(env: Environment, variable: string, fallback: number, least: number, most: number): number {
  const given = text(env, variable);
  if (given === undefined) return fallback;
  const value = /^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(given) ? Number(given) : Number.NaN;
  if (!(value >= least && value <= most)) throw new SettingError(variable, `a number from ${least} to ${most}`);
  return value;
}

/** One of a closed list of words. */
export function word<const W extends string>(env: Environment, variable: string, fallback: W, words: readonly W[]): W {
  const given = text(env, variable);
  if (given === undefined) return fallback;
  const found = words.find((each) => each === given);
  if (found === undefined) throw new SettingError(variable, `one of ${words.join(', ')}`);
  return found;
}

const HOST_NAME = /^(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}))*\.?$/;

/** Tells whether `host` is an IP address (IPv6 without brackets) or a host name. */
const isHost = (host: string): boolean =>
  /^[0-9.]+$/.test(host) ? ipaddr.IPv4.isValidFourPartDecimal(host) : ipaddr.IPv6.isValid(host) || HOST_NAME.test(host);

/** A host to listen on or to write into messages. */
export function host(env: Environment, variable: string, fallback: string): string {
  const given = text(env, variable)?.replace(/^\[(.*)\]$/, '$1');
  if (given === undefined) return fallback;
  if (!isHost(given)) throw new SettingError(variable, 'an IP address or a host name');
  return given;
}

/** A host that others are told: it cannot be the one that stands for every address of a machine. */
export function toldHost(env: Environment, variable: string): string | undefined {
  const given = text(env, variable);
  if (given === undefined) return undefined;
  const told = host(env, variable, '');
  if (isEvery(told))
    throw new SettingError(variable, 'the address at which others reach this machine, not that of every interface');
  return told;
}

/**
 * The hosts that others are told, separated by commas: one of each IP version at most, or one name in place of an
 * address.
 */
export function toldHosts(env: Environment, variable: string): readonly string[] {
  const given = text(env, variable);
  if (given === undefined) return [];
  const hosts = given.split(',').map((part) => toldHost({ [variable]: part }, variable) ?? '');
  const versions = hosts.map((each) => isIP(each));
  if (hosts.includes('') || hosts.length > 2 || new Set(versions).size < hosts.length)
    throw new SettingError(variable, 'an address or a name, or two separated by commas: one of IPv4 and one of IPv6');
  return hosts;
}

/** Tells whether an address stands for every address of a machine. */
export const isEvery = (address: string): boolean => ipaddr.isValid(address) && ipaddr.parse(address).range() === 'unspecified';

/** An absolute URL of one of the `schemes` (with their colon). */
export function url(env: Environment, variable: string, schemes: readonly string[]): string | undefined {
  const given = text(env, variable);
  if (given === undefined) return undefined;
  const parsed = URL.canParse(given) ? new URL(given) : undefined;
  if (parsed === undefined || !schemes.includes(parsed.protocol) || parsed.hostname === '' || isCutShort(parsed)) {
    // A `#`, `/` or `?` in a password ends what comes before the host, so that the URL is none, or another one.
    const escapes = given.includes('@') ? ', with what is special in a password percent-encoded (# is %23)' : '';
    throw new SettingError(variable, `a URL starting with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}${escapes}`);
  }
  if (parsed.port === '0') throw new SettingError(variable, 'a URL whose port is from 1 to 65535');
  if (!isDecodable(parsed.username + parsed.password + parsed.pathname))
    throw new SettingError(variable, 'a URL in which each % begins an escape (% itself is %25)');
  return given;
}

/**
 * Whether a password of digits was taken for a port, as in `nats://user:12/34@host`: then an `@` stands behind the
 * host. The value of a parameter may have one: databases have users such as `me@server`.
 */
export const isCutShort = ({ username, pathname, search, hash }: URL): boolean =>
  username === '' && `${pathname}${search.split('=', 1)[0]}${hash}`.includes('@');

function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

/** `a-b`, both ports, `a` the lower, room for at least one RTP and RTCP pair. */
export function portRange(env: Environment, variable: string, fallback: readonly [number, number]): readonly [number, number] {
  const given = text(env, variable);
  if (given === undefined) return fallback;
  const [, first, last] = /^([0-9]{1,5})-([0-9]{1,5})$/.exec(given) ?? [];
  const range = [Number(first), Number(last)] as const;
  // RFC 3550 §11: RTP has the even port of a pair.
  if (!(range[0] >= 1024 && range[1] <= 65535 && range[1] > range[0] + (range[0] & 1)))
    throw new SettingError(
      variable,
      'FIRST-LAST, two ports from 1024 to 65535 in rising order, with a pair of them that begins with an even one, as 40000-49999',
    );
  return range;
}

const LISTEN = /^(udp|tcp|tls):(\[[0-9a-fA-F:.]+\]|[^:[\]]+):([0-9]{1,5})$/;

/** `transport:host:port`, comma-separated; IPv6 in brackets. */
export function sipListen(env: Environment, variable: string, fallback: string): SipListen[] {
  return (text(env, variable) ?? fallback).split(',').map((part) => {
    const [, transport, address, port] = LISTEN.exec(part.trim()) ?? [];
    const bare = address?.replace(/^\[(.*)\]$/, '$1') ?? '';
    const known = transport === 'udp' || transport === 'tcp' || transport === 'tls' ? transport : undefined;
    if (known === undefined || !isHost(bare) || Number(port) > 65535)
      throw new SettingError(
        variable,
        'a comma list of udp:HOST:PORT, tcp:HOST:PORT or tls:HOST:PORT, as udp:0.0.0.0:5060,tcp:[::]:5060',
      );
    return { transport: known, host: bare, port: Number(port) };
  });
}

/**
 * A comma list of CIDRs; a bare address is a network of one. Written back in one spelling, `address/length`.
 * `more` says what else the variable may be, for the error.
 */
export function cidrs(env: Environment, variable: string, more = ''): string[] {
  const given = text(env, variable);
  if (given === undefined) return [];
  return given.split(',').map((part) => {
    const cidr = normalCidr(part.trim());
    if (cidr === undefined) throw new SettingError(variable, `a comma list of CIDRs, as 10.0.0.0/8,fd00::/8${more}`);
    return cidr;
  });
}

/** A comma list of beginnings of E.164 numbers. */
export function destinationPrefixes(env: Environment, variable: string): readonly string[] {
  const given =
    text(env, variable)
      ?.split(',')
      .map((part) => part.trim()) ?? [];
  if (given.length > DESTINATIONS_MAX || !given.every(isDestinationPrefix))
    throw new SettingError(variable, `a comma list of at most ${DESTINATIONS_MAX} beginnings of E.164 numbers, as +972,+1`);
  return given;
}

/** `address/length` of a CIDR or of a bare address; undefined when it is neither. */
function normalCidr(given: string): string | undefined {
  const [address = '', length, ...rest] = given.split('/');
  if (rest.length > 0 || (!ipaddr.IPv4.isValidFourPartDecimal(address) && !ipaddr.IPv6.isValid(address))) return undefined;
  // An IPv4 address that came as one of IPv6 is compared as what it is, so that no such network would ever be met.
  if (address.includes(':') && ipaddr.process(address).kind() === 'ipv4') return undefined;
  const bits = address.includes(':') ? 128 : 32;
  if (length !== undefined && (!/^[0-9]{1,3}$/.test(length) || Number(length) > bits)) return undefined;
  return `${address}/${length ?? bits}`;
}

/** Tells whether a host is the machine itself. */
export function isLoopback(httpHost: string): boolean {
  if (httpHost === 'localhost') return true;
  return ipaddr.isValid(httpHost) && ipaddr.process(httpHost).range() === 'loopback';
}
