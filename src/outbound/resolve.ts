/** A name to screened addresses, one of each IP version at most. */
import ipaddr from 'ipaddr.js';
import { remembered } from '../bounds/remembered.ts';
import { ADDRESSES_REMEMBERED_MAX } from '../limits.ts';
import { firstOfEachVersion } from './either-version.ts';
import { lookUpForeign } from './lookup.ts';
import { OutboundError } from './outbound.ts';
import { type Cidr, mayReach } from './screen.ts';

/** Resolves a name that is the owner's to its addresses. Injected in tests; the system's resolver otherwise. */
export type Resolver = (name: string, owner: string) => Promise<readonly string[]>;

export const systemResolver: Resolver = async (name, owner) => (await lookUpForeign(name, owner)).map((found) => found.address);

/**
 * The addresses to connect to for `hostname` (a URL's, so IPv6 comes in brackets), one of each IP version at most: at
 * once where it is an address itself. Every address the name has must be one we may reach: a name that answers with a
 * public and a private address is an attack, not a fallback. IPv4 first, since a host without an IPv6 route is common.
 * A name takes as long as the resolver does, which may have the owner rest before. Throws, or rejects with,
 * `OutboundError` rejected or dns.
 */
export function resolveScreened(
  hostname: string,
  owner: string,
  allow: readonly Cidr[],
  resolver: Resolver,
): readonly string[] | Promise<readonly string[]> {
  const literal = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  if (isAddress(literal)) return screened([literal], allow);
  return resolver(hostname, owner).then(
    (addresses) => screened(addresses, allow),
    () => {
      throw new OutboundError('dns', 'the name does not resolve');
    },
  );
}

/** Each webhook asks of its receiver's. */
const isAddress = remembered((literal) => ipaddr.isValid(literal), ADDRESSES_REMEMBERED_MAX);

function screened(addresses: readonly string[], allow: readonly Cidr[]): readonly string[] {
  if (addresses.length === 0) throw new OutboundError('dns', 'the name has no address');
  if (!addresses.every((address) => mayReach(address, allow)))
    throw new OutboundError('rejected', 'the address is not a public one');
  return firstOfEachVersion(addresses);
}
