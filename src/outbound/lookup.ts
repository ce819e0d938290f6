/**
 * Looks names up in `/etc/hosts` and DNS without a thread. The `lookup` of `node:dns` calls getaddrinfo in the thread
 * pool of the runtime, which has as many threads as the machine has cores and also does all work on files. Two names
 * whose DNS server does not answer stopped every file of a two-core machine for seconds. c-ares waits on sockets.
 */
import type { SrvRecord } from 'node:dns';
import { lookup, resolveSrv } from 'node:dns/promises';
import { NameServers } from './name-servers.ts';

const nameServers = new NameServers();

export interface FoundAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Returns all addresses of a name, of one IP version or of both. Rejects when there are none. */
export async function lookUp(name: string, family: 4 | 6 | 0 = 0): Promise<readonly FoundAddress[]> {
  // Deno, which runs the API in tests, has only the other one.
  if (typeof Bun === 'undefined') {
    const found = await lookup(name, { all: true, verbatim: true, family });
    return found.map(({ address }) => ({ address, family: address.includes(':') ? 6 : 4 }));
  }
  nameServers.follow();
  return await Bun.dns.lookup(name, { backend: 'c-ares', family });
}

/** Returns the SRV records of a name. Rejects when there are none. */
export async function lookUpServices(name: string): Promise<readonly SrvRecord[]> {
  nameServers.follow();
  return await resolveSrv(name);
}
