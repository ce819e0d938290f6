/**
 * Asks the name servers for the addresses of a name. The runtime's `lookup`, on c-ares as well, opens a socket for each
 * address in an answer, to sort them: a name with 4,000, which any application may have us look up, took 48 ms of the
 * main thread there, and takes 16 here.
 */
import { resolve4, resolve6 } from 'node:dns/promises';
import { NAME_ADDRESSES_MAX } from '../../limits.ts';

/** A version of IP. */
export type Family = 4 | 6;

/** Why there is no address: ENOTFOUND is what name servers say, all else is want of their answer. */
export class NameError extends Error {
  readonly code: string;

  constructor(code: string, name: string) {
    super(`${code} ${name}`);
    this.code = code;
  }
}

/** What c-ares says of a name that has no address in this version of IP, or is none. */
const NONE = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME']);

/** The addresses of a whole name in one IP version, NAME_ADDRESSES_MAX at most. Rejects with `NameError` only. */
export async function addressesOf(name: string, family: Family): Promise<readonly string[]> {
  if (name === '') throw new NameError('ENOTFOUND', name);
  const found = await (family === 4 ? resolve4 : resolve6)(name).catch((error: unknown) => {
    const code = error instanceof Error && 'code' in error ? String(error.code).replace(/^DNS_/, '') : 'ENOTFOUND';
    throw new NameError(NONE.has(code) ? 'ENOTFOUND' : code, name);
  });
  if (found.length === 0) throw new NameError('ENOTFOUND', name);
  return found.slice(0, NAME_ADDRESSES_MAX);
}
