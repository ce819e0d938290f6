/**
 * Resolves names to addresses (RFC 3263, without NAPTR): SRV when no port is given, then A and AAAA. Results are cached
 * for SIP_RESOLVED_TTL_MS.
 */
import type { SrvRecord } from 'node:dns';
import { lookup, resolveSrv } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { Clock } from '../../clock.ts';
import { SIP_RESOLVE_TIMEOUT_MS, SIP_RESOLVED_MAX, SIP_RESOLVED_TTL_MS, SIP_TARGETS_MAX } from '../../limits.ts';
import { defaultPort } from '../../sip/flow.ts';
import type { TransportName } from '../../sip/message/via.ts';
import { withTimeLimit } from '../../time-limit.ts';

interface Resolved {
  readonly host: string;
  readonly port: number;
}

export interface Resolver {
  /** The address to send to. Undefined when the name has none. Never rejects. */
  resolve(host: string, port: number | undefined, transport: TransportName): Promise<Resolved | undefined>;
  /** The addresses to try one after the other, SIP_TARGETS_MAX at most (RFC 3263 §4.3). Never rejects. */
  targets(host: string, port: number | undefined, transport: TransportName): Promise<readonly Resolved[]>;
}

/** What names stand for. */
interface Names {
  addresses(name: string): Promise<readonly { readonly address: string; readonly family: number }[]>;
  services(name: string): Promise<readonly SrvRecord[]>;
}

const SYSTEM_NAMES: Names = { addresses: (name) => lookup(name, { all: true }), services: resolveSrv };

/** `families` are the IP versions that our sockets speak, the preferred one first. */
export function createResolver(clock: Clock, families: () => readonly (4 | 6)[], names = SYSTEM_NAMES): Resolver {
  const kept = new Map<string, { readonly until: number; readonly found: Promise<readonly Resolved[]> }>();

  /** The addresses of a name in the preferred version of IP that it has, `most` at most. */
  const addressesOf = async (name: string, port: number, most: number): Promise<readonly Resolved[]> => {
    const addresses = (await within(names.addresses(name)).catch(() => undefined)) ?? [];
    const family = families().find((each) => addresses.some((address) => address.family === each));
    const usable = addresses.filter((address) => address.family === family);
    return [...new Set(usable.map(({ address }) => address))].slice(0, most).map((host) => ({ host, port }));
  };
  /** The SRV records of a domain, in the order in which they are tried: by priority, then the heavier first. */
  const servicesOf = async (host: string, transport: TransportName): Promise<readonly SrvRecord[]> => {
    const service = transport === 'tls' ? `_sips._tcp.${host}` : `_sip._${transport}.${host}`;
    const records = (await within(names.services(service)).catch(() => undefined)) ?? [];
    return records.toSorted((a, b) => a.priority - b.priority || b.weight - a.weight).slice(0, SIP_TARGETS_MAX);
  };
  const find = async (host: string, port: number | undefined, transport: TransportName): Promise<readonly Resolved[]> => {
    const records = port === undefined && host.includes('.') ? await servicesOf(host, transport) : [];
    if (records.length === 0) return addressesOf(host, port ?? defaultPort(transport), SIP_TARGETS_MAX);
    const most = Math.floor(SIP_TARGETS_MAX / records.length);
    return (await Promise.all(records.map((record) => addressesOf(record.name, record.port, most)))).flat();
  };
  const targets: Resolver['targets'] = (host, port, transport) => {
    if (isIP(host) !== 0) return Promise.resolve([{ host, port: port ?? defaultPort(transport) }]);
    const key = `${transport} ${host} ${port ?? ''}`;
    const known = kept.get(key);
    if (known !== undefined && known.until > clock.now()) return known.found;
    if (kept.size >= SIP_RESOLVED_MAX) kept.clear();
    const found = find(host, port, transport);
    kept.set(key, { until: clock.now() + SIP_RESOLVED_TTL_MS, found });
    // A failure is not cached. The next call asks again.
    void found.then((result) => {
      if (result.length === 0 && kept.get(key)?.found === found) kept.delete(key);
    });
    return found;
  };
  return { targets, resolve: async (host, port, transport) => (await targets(host, port, transport))[0] };
}

const within = <T>(work: Promise<T>): Promise<T | undefined> =>
  withTimeLimit<T | undefined>(work, SIP_RESOLVE_TIMEOUT_MS, () => undefined);
