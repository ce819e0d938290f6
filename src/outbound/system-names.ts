/**
 * The names that the operator gives: of the database, NATS, the SMSC, the collector of traces, the object store. They
 * are looked up without a thread (`lookup.ts`), so that a DNS server that does not answer holds up no file. Only a name
 * that DNS says it does not know is asked for at the system, which has more sources: multicast DNS, its own name.
 */
import dns, { type LookupAddress, type LookupOptions } from 'node:dns';
import { isIP } from 'node:net';
import type { FoundAddress } from './dns/names.ts';
import { lookUp } from './lookup.ts';

type Found = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

const system = dns.lookup;

/**
 * Returns the addresses of a name that the operator has given. Rejects, with a code as Node has it, when there are
 * none.
 */
export async function lookUpTrusted(name: string, family: 4 | 6 | 0 = 0): Promise<readonly FoundAddress[]> {
  try {
    return await lookUp(name, family);
  } catch (error) {
    if (codeOf(error) !== 'ENOTFOUND') throw Object.assign(new Error(`${codeOf(error)} ${name}`), { code: codeOf(error) });
    return await askSystem(name, family);
  }
}

/** The code of an error of c-ares, without the prefix that the runtime gives it. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code).replace(/^DNS_/, '') : 'ENOTFOUND';

function askSystem(name: string, family: 4 | 6 | 0): Promise<readonly FoundAddress[]> {
  return new Promise((resolve, reject) => {
    system(name, { all: true, family }, (error, found) => {
      if (error !== null) reject(error);
      else resolve(found.map(({ address }) => ({ address, family: isIP(address) === 6 ? 6 : 4 })));
    });
  });
}

/**
 * Replaces `lookup` of `node:dns` in this process, by which the libraries for PostgreSQL, NATS and OTLP and the sockets
 * of `node:net` look names up.
 */
export function lookUpWithoutThreads(): void {
  const lookup = (name: string, given: LookupOptions | number | Found, callback?: Found): void => {
    const done = typeof given === 'function' ? given : callback;
    const options = typeof given === 'object' ? given : { family: typeof given === 'number' ? given : 0 };
    const { family, all } = options;
    const wanted = family === 4 || family === 'IPv4' ? 4 : family === 6 || family === 'IPv6' ? 6 : 0;
    const isLiteral = isIP(name) !== 0;
    const addresses = isLiteral ? Promise.resolve([{ address: name, family: isIP(name) }]) : lookUpTrusted(name, wanted);
    addresses.then(
      (found) => {
        const [first] = found;
        if (all === true) done?.(null, [...found]);
        else done?.(null, first?.address ?? '', first?.family);
      },
      (error: unknown) => done?.(error instanceof Error ? error : new Error(String(error)), ''),
    );
  };
  Object.defineProperty(dns, 'lookup', { value: lookup, configurable: true, writable: true });
}
