/**
 * Which addresses and ports the platform may reach for an application (contract §1 `OUTBOUND_ALLOW`, §3 `rejected`).
 * Pure.
 */
import ipaddr from 'ipaddr.js';
import { remembered } from '../bounds/remembered.ts';
import { ADDRESSES_REMEMBERED_MAX } from '../limits.ts';

export type Cidr = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Parses one CIDR, or a bare address as the block of one. Undefined when it is neither. */
export function parseCidr(text: string): Cidr | undefined {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.parse(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** Whether the valid `address` lies in `cidr`; an IPv4-mapped IPv6 address counts as its IPv4 address. */
function inCidr(address: string, cidr: Cidr): boolean {
  const parsed = ipaddr.process(address);
  const [network, bits] = cidr;
  if (parsed.kind() === 'ipv4' && network.kind() === 'ipv4') return (parsed as ipaddr.IPv4).match(network as ipaddr.IPv4, bits);
  if (parsed.kind() === 'ipv6' && network.kind() === 'ipv6') return (parsed as ipaddr.IPv6).match(network as ipaddr.IPv6, bits);
  return false;
}

/** The IPv6 block of global unicast addresses (RFC 4291 §2.4). All that IANA has given out lies in it. */
const GLOBAL_UNICAST: Cidr = ipaddr.parseCIDR('2000::/3');
/**
 * Blocks of it that ipaddr.js counts as unicast and that lead elsewhere: documentation (RFC 9637), and what the 6bone
 * left (RFC 3701).
 */
const NOT_PUBLIC: readonly Cidr[] = [ipaddr.parseCIDR('3fff::/20'), ipaddr.parseCIDR('3ffe::/16')];

/**
 * Whether the address is public unicast, or lies in one of the allowed blocks. IPv6 addresses in which an IPv4 address
 * is hidden are not: compatible (::/96), translated (64:ff9b::/96, 64:ff9b:1::/48, ::ffff:0:0:0/96), 6to4, Teredo. The
 * host or a gateway may unpack them to a private address.
 */
export function mayReach(address: string, allow: readonly Cidr[]): boolean {
  let judge = judges.get(allow);
  if (judge === undefined) {
    judge = remembered(
      (each) => ipaddr.isValid(each) && (isPublic(each) || allow.some((cidr) => inCidr(each, cidr))),
      ADDRESSES_REMEMBERED_MAX,
    );
    judges.set(allow, judge);
  }
  return judge(address);
}

/** What was found of addresses, by the list that allows more of them. Each webhook asks of its receiver's. */
const judges = new WeakMap<readonly Cidr[], (address: string) => boolean>();

function isPublic(address: string): boolean {
  // ipaddr.js takes `::a.b.c.d` for the mapped address, which it is not; a URL spells it in hexadecimal.
  const spelt = address.includes(':') ? (URL.parse(`http://[${address}]`)?.hostname.slice(1, -1) ?? '') : address;
  if (!ipaddr.isValid(spelt)) return false;
  const parsed = ipaddr.process(spelt);
  if (parsed.range() !== 'unicast') return false;
  return parsed.kind() === 'ipv4' || (inCidr(address, GLOBAL_UNICAST) && !NOT_PUBLIC.some((cidr) => inCidr(address, cidr)));
}

// Ports where another protocol listens that could be talked into something by an HTTP request (WHATWG Fetch, "bad
// port"), the ones that matter.
const OTHER_PROTOCOLS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110, 111, 113,
  115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556,
  563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
  6668, 6669, 6679, 6697, 10080,
]);

/** Whether a TCP port may be connected to for HTTP. */
export const mayUsePort = (port: number): boolean => port >= 1 && port <= 65_535 && !OTHER_PROTOCOLS.has(port);
