/** A request to a name that has addresses of both IP versions, of which one may lead nowhere from this machine. */
import { isIPv4 } from 'node:net';
import { codeOf } from '../error-facts.ts';

/** The first address of IPv4 and the first of IPv6, those that there are. */
export function firstOfEachVersion(addresses: readonly string[]): readonly string[] {
  const firsts = [addresses.find((address) => isIPv4(address)), addresses.find((address) => !isIPv4(address))];
  return firsts.filter((address) => address !== undefined);
}

/** What the system says where a connection was not made, so that nothing was sent. */
const UNCONNECTED = new Set(['ECONNREFUSED', 'ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL']);

/** Tells whether a request failed before there was a connection. */
export const isUnconnected = (error: unknown): boolean => UNCONNECTED.has(codeOf(error) ?? '');

/**
 * Does `work` with the first of the addresses, and with the next one where nothing was sent because there is no way to
 * it or nobody listens there, of which `goesOn` tells by the error. Otherwise it rejects with the error.
 */
export async function atFirstThatConnects<T>(
  addresses: readonly string[],
  work: (address: string) => Promise<T>,
  goesOn: (error: unknown) => boolean,
): Promise<T> {
  const [first = '', ...others] = addresses;
  try {
    return await work(first);
  } catch (error) {
    if (others.length === 0 || !goesOn(error)) throw error;
    return await atFirstThatConnects(others, work, goesOn);
  }
}
