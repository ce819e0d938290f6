/** The numbers that an application may call, transfer calls to and write to, by the beginnings of numbers. */
import { isE164 } from './phone-number.ts';

/** Beginnings of E.164 numbers with leading `+`, as `+972` and `+1900`. */
export interface Destinations {
  /** Empty: every number that is not blocked. */
  readonly allowed: readonly string[];
  readonly blocked: readonly string[];
}

export const EVERYWHERE: Destinations = { allowed: [], blocked: [] };

/** The form of the beginning of an E.164 number with leading `+`, or of a whole one. */
export const DESTINATION_PREFIX = /^\+[1-9][0-9]{0,14}$/;

/** Tells whether `text` is the beginning of an E.164 number, or a whole one. */
export const isDestinationPrefix = (text: string): boolean => DESTINATION_PREFIX.test(text);

/** Whether what is dialled may be reached: an E.164 number, or the user part of a SIP URI. */
export type MayReach = (dialled: string) => boolean;

/**
 * What all of `rules` permit. Within one of them the longest beginning of the number decides, and a block where both
 * lists have it. A user part that begins with a letter is a name and permitted, as is none at all. Anything else that
 * is not E.164 is not permitted where there is any rule: nobody can tell where a carrier takes it.
 */
export function mayReach(...rules: readonly Destinations[]): MayReach {
  const bounds = rules.filter(({ allowed, blocked }) => allowed.length + blocked.length > 0);
  return (dialled) => bounds.length === 0 || isName(dialled) || bounds.every((each) => permits(each, bare(dialled)));
}

/** The visual separators of RFC 3966 §5.1.1 and the parameters of a user part are no part of the number. */
const bare = (user: string): string => (user.split(';', 1)[0] ?? '').replace(/[-.()\s]/g, '');

const isName = (user: string): boolean => /^(\p{L}|$)/u.test(bare(user));

function permits({ allowed, blocked }: Destinations, number: string): boolean {
  if (!isE164(number)) return false;
  const [best, worst] = [longest(allowed, number), longest(blocked, number)];
  return best === 0 && worst === 0 ? allowed.length === 0 : best > worst;
}

/** The length of the longest of `prefixes` that `number` begins with, 0 where there is none. */
const longest = (prefixes: readonly string[], number: string): number =>
  prefixes.reduce((most, prefix) => (number.startsWith(prefix) ? Math.max(most, prefix.length) : most), 0);
