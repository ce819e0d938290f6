/**
 * Resolves names to addresses (RFC 3263, without NAPTR): SRV when no port is given, then A and AAAA. Results are cached
 * for SIP_RESOLVED_TTL_MS. Among SRV records of one priority the order is drawn by weight each time (RFC 2782).
 */
import type { SrvRecord } from 'node:dns';
import { isIP } from 'node:net';
import { withTimeLimit } from '../../bounds/time-limit.ts';
import type { Clock } from '../../clock.ts';
import { SIP_RESOLVE_TIMEOUT_MS, SIP_RESOLVED_MAX, SIP_RESOLVED_TTL_MS, SIP_TARGETS_MAX } from '../../limits.ts';
import { lookUp, lookUpServices } from '../../outbound/lookup.ts';
import { defaultPort } from '../../sip/flow.ts';
import type { TransportName } from '../../sip/message/via.ts';
import { lotOf } from '../draw.ts';
import { systemEntropy } from '../entropy.ts';
import type { Families } from './own-address.ts';

/** The addresses of one SRV record. A name without such records is one of its own. */
interface Service {
  readonly priority: number;
  readonly weight: number;
  readonly addresses: readonly Resolved[];
}

interface Resolved {
  readonly host: string;
  readonly port: number;
}

export interface Resolver {
  /** The address to send to, the same for SIP_RESOLVED_TTL_MS. Undefined when the name has none. Never rejects. */
  resolve(host: string, port: number | undefined, transport: TransportName): Promise<Resolved | undefined>;
  /** The addresses to try one after the other, SIP_TARGETS_MAX at most (RFC 3263 §4.3). Never rejects. */
  targets(host: string, port: number | undefined, transport: TransportName): Promise<readonly Resolved[]>;
}

/** What names stand for. */
interface Names {
  addresses(name: string): Promise<readonly { readonly address: string; readonly family: number }[]>;
  services(name: string): Promise<readonly SrvRecord[]>;
}

const SYSTEM_NAMES: Names = { addresses: (name) => lookUp(name), services: lookUpServices };

/** Sorts by priority, and draws the order among those of one priority by weight. */
function drawn<T extends Pick<SrvRecord, 'priority' | 'weight'>>(records: readonly T[], random: () => number): readonly T[] {
  const lots = records.map((record) => ({ record, lot: lotOf(record.weight, random) }));
  return lots.sort((a, b) => a.record.priority - b.record.priority || b.lot - a.lot).map(({ record }) => record);
}

/**
 * `families` are the IP versions that our sockets speak, the preferred one first, or `any` where they speak both and
 * the order of the system counts. `random` gives numbers in [0, 1).
 */
export function createResolver(
  clock: Clock,
  families: () => Families,
  names = SYSTEM_NAMES,
  random: () => number = systemEntropy().fraction,
): Resolver {
  const kept = new Map<string, { readonly until: number; readonly found: Promise<readonly Service[]> }>();

  /** The addresses of a name in the preferred version of IP that it has, `most` at most. */
  const addressesOf = async (name: string, port: number, most: number): Promise<readonly Resolved[]> => {
    const addresses = (await within(names.addresses(name)).catch(() => undefined)) ?? [];
    const ours = families();
    const family = ours === 'any' ? addresses[0]?.family : ours.find((each) => addresses.some((found) => found.family === each));
    const usable = addresses.filter((address) => address.family === family);
    return [...new Set(usable.map(({ address }) => address))].slice(0, most).map((host) => ({ host, port }));
  };
  /** The SRV records of a domain: where they are too many, those that are drawn first. */
  const servicesOf = async (host: string, transport: TransportName): Promise<readonly SrvRecord[]> => {
    const service = transport === 'tls' ? `_sips._tcp.${host}` : `_sip._${transport}.${host}`;
    const records = (await within(names.services(service)).catch(() => undefined)) ?? [];
    return drawn(records, random).slice(0, SIP_TARGETS_MAX);
  };
  const find = async (host: string, port: number | undefined, transport: TransportName): Promise<readonly Service[]> => {
    const records = port === undefined && host.includes('.') ? await servicesOf(host, transport) : [];
    if (records.length === 0) {
      const addresses = await addressesOf(host, port ?? defaultPort(transport), SIP_TARGETS_MAX);
      return [{ priority: 0, weight: 0, addresses }];
    }
    const most = Math.floor(SIP_TARGETS_MAX / records.length);
    const service = async ({ name, port: at, priority, weight }: SrvRecord): Promise<Service> => ({
      priority,
      weight,
      addresses: await addressesOf(name, at, most),
    });
    return Promise.all(records.map(service));
  };
  const services = (host: string, port: number | undefined, transport: TransportName): Promise<readonly Service[]> => {
    const key = `${transport} ${host} ${port ?? ''}`;
    const known = kept.get(key);
    if (known !== undefined && known.until > clock.now()) return known.found;
    if (kept.size >= SIP_RESOLVED_MAX) kept.clear();
    const found = find(host, port, transport);
    kept.set(key, { until: clock.now() + SIP_RESOLVED_TTL_MS, found });
    // A failure is not cached. The next call asks again.
    void found.then((result) => {
      if (result.every(({ addresses }) => addresses.length === 0) && kept.get(key)?.found === found) kept.delete(key);
    });
    return found;
  };
  const targets: Resolver['targets'] = async (host, port, transport) => {
    if (isIP(host) !== 0) return [{ host, port: port ?? defaultPort(transport) }];
    return drawn(await services(host, port, transport), random).flatMap(({ addresses }) => addresses);
  };
  /**
   * What is sent again, and the ACK of a refusal, go where the request went: the order drawn with the lookup is kept.
   */
  const resolve: Resolver['resolve'] = async (host, port, transport) => {
    if (isIP(host) !== 0) return { host, port: port ?? defaultPort(transport) };
    return (await services(host, port, transport)).flatMap(({ addresses }) => addresses)[0];
  };
  return { targets, resolve };
}

const within = <T>(work: Promise<T>): Promise<T | undefined> =>
  withTimeLimit<T | undefined>(work, SIP_RESOLVE_TIMEOUT_MS, () => undefined);
