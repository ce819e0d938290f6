/** A name to one screened address. */
import ipaddr from 'ipaddr.js';
import { withTimeLimit } from '../bounds/time-limit.ts';
import { lookUp } from './lookup.ts';
import { OutboundError } from './outbound.ts';
import { type Cidr, mayReach } from './screen.ts';

/** Resolves a name to all of its addresses. Injected in tests; the system's resolver otherwise. */
export type Resolver = (name: string) => Promise<readonly string[]>;

export const systemResolver: Resolver = async (name) => (await lookUp(name)).map((found) => found.address);

/**
 * The address to connect to for `hostname` (a URL's, so IPv6 comes in brackets). Every address the name has must be one
 * we may reach: a name that answers with a public and a private address is an attack, not a fallback. IPv4 first, since
 * a host without an IPv6 route is common. Rejects with `OutboundError` rejected, dns or timeout.
 */
export async function resolveScreened(
  hostname: string,
  allow: readonly Cidr[],
  resolver: Resolver,
  timeoutMs: number,
): Promise<string> {
  const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  const addresses = ipaddr.isValid(literal) ? [literal] : await inTime(resolver(hostname), timeoutMs);
  const first = addresses.find((address) => ipaddr.IPv4.isValid(address)) ?? addresses[0];
  if (first === undefined) throw new OutboundError('dns', 'the name has no address');
  if (!addresses.every((address) => mayReach(address, allow)))
    throw new OutboundError('rejected', 'the address is not a public one');
  return first;
}

async function inTime(lookup: Promise<readonly string[]>, timeoutMs: number): Promise<readonly string[]> {
  try {
    return await withTimeLimit(lookup, timeoutMs, () => {
      throw new OutboundError('timeout', 'the name was not resolved in time');
    });
  } catch (error) {
    throw error instanceof OutboundError ? error : new OutboundError('dns', 'the name does not resolve');
  }
}
