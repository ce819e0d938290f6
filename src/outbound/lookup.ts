/**
 * Looks names up in `/etc/hosts` and DNS without a thread. The `lookup` of `node:dns` calls getaddrinfo in the thread
 * pool of the runtime, which has as many threads as the machine has cores and also does all work on files. Two names
 * whose DNS server does not answer stopped every file of a two-core machine for seconds.
 */
import type { SrvRecord } from 'node:dns';
import { lookup, resolveSrv } from 'node:dns/promises';
import type { Family } from './dns/addresses.ts';
import { NameServers } from './dns/name-servers.ts';
import { type FoundAddress, foundAt, Names } from './dns/names.ts';

const resolvConf = new NameServers();
const names = new Names({ resolvConf });

/**
 * Returns all addresses of a name that the operator or a carrier gives, of one IP version or of both, those first that
 * this machine has a way to (RFC 6724). Rejects when there are none. It takes a socket for each address.
 */
export async function lookUp(name: string, family: Family | 0 = 0): Promise<readonly FoundAddress[]> {
  if (typeof Bun === 'undefined') return await askRuntime(name, family);
  resolvConf.follow();
  return await Bun.dns.lookup(name, { backend: 'c-ares', family });
}

/**
 * Returns addresses of a name that an application or a far end, the `owner`, gives: NAME_ADDRESSES_MAX of each IP
 * version at most, IPv4 first. Rejects when there are none, and where the owner has asked for too many names with
 * thousands of addresses.
 */
export async function lookUpForeign(name: string, owner: string, family: Family | 0 = 0): Promise<readonly FoundAddress[]> {
  if (typeof Bun === 'undefined') return await askRuntime(name, family);
  return await names.find(name, family === 0 ? [4, 6] : [family], owner);
}

/** Deno, which runs the API in tests, has neither. */
async function askRuntime(name: string, family: Family | 0): Promise<readonly FoundAddress[]> {
  const found = await lookup(name, { all: true, verbatim: true, family });
  return found.map(({ address }) => foundAt(address));
}

/** Returns the SRV records of a name. Rejects when there are none. */
export async function lookUpServices(name: string): Promise<readonly SrvRecord[]> {
  resolvConf.follow();
  return await resolveSrv(name);
}
