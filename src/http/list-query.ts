/** The query parameters that lists have in common: which there are, times, the number of items, and the next page. */
import type { PageEnd } from '../database/newest-first.ts';
import { APP_UUID } from '../id.ts';
import { isProblem, type Problem, problems } from '../problem.ts';

/** The parameter of a list that asks for one application, in the API reference. */
export const OF_ONE_APP = {
  name: 'app_uuid',
  description: 'Of one application.',
  schema: { type: 'string', pattern: APP_UUID.source },
} as const;

/** Refuses a parameter that is not `known`, and one that is given twice without being `repeatable`. */
export function strayParameter(
  query: URLSearchParams,
  known: readonly string[],
  repeatable: readonly string[] = [],
): Problem | undefined {
  for (const name of query.keys()) {
    if (!known.includes(name)) return problems.invalid(`query: has a parameter that is not one of ${known.join(', ')}`);
    if (!repeatable.includes(name) && query.getAll(name).length > 1) return problems.invalid(`${name}: must be given once`);
  }
  return undefined;
}

/** The `limit` of a list: a whole number from 1 to `most`, as JSON writes one. */
export function itemLimit(query: URLSearchParams, normal: number, most: number): number | Problem {
  const given = query.get('limit') ?? String(normal);
  return /^[1-9][0-9]{0,4}$/.test(given) && Number(given) <= most
    ? Number(given)
    : problems.invalid(`limit: must be a whole number from 1 to ${most}`);
}

const RFC3339 =
  /^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$/;

/** A query parameter that is an RFC 3339 date-time, in ms since the epoch. */
function instant(query: URLSearchParams, name: string): number | undefined | Problem {
  const given = query.get(name);
  if (given === null) return undefined;
  // An unescaped + in a query string is a blank.
  const text = given.replace(' ', '+');
  const at = RFC3339.test(text) && hasDay(text.slice(0, 10)) ? parsed(text.toUpperCase()) : Number.NaN;
  return Number.isNaN(at) ? problems.invalid(`${name}: must be an RFC 3339 date-time`) : at;
}

/** Reads a time. A leap second ends a day in UTC (RFC 3339 §5.6), and counts as the first second of the next one. */
function parsed(text: string): number {
  if (!text.includes(':60')) return Date.parse(text);
  const at = Date.parse(text.replace(':60', ':59')) + 1_000;
  return Math.floor(at / 1_000) % 86_400 === 0 ? at : Number.NaN;
}

/** Tells whether the calendar has that day: 30 February would be read as 2 March. */
const hasDay = (day: string): boolean => new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);

/** The times between which the items of a list were created, in ms since the epoch. */
export interface CreatedBetween {
  /** Inclusive. */
  readonly createdAfter: number | undefined;
  /** Exclusive. */
  readonly createdBefore: number | undefined;
}

export function createdBetween(query: URLSearchParams): CreatedBetween | Problem {
  const createdAfter = instant(query, 'created_after');
  const createdBefore = instant(query, 'created_before');
  if (isProblem(createdAfter)) return createdAfter;
  return isProblem(createdBefore) ? createdBefore : { createdAfter, createdBefore };
}

/**
 * Makes a page of a list, and the `after` that asks for the next one: `""` on the last. `found` has one item more than
 * a page, if there is one.
 */
export function pageOf<T>(
  found: readonly T[],
  limit: number,
  endOf: (item: T) => PageEnd,
): { readonly page: readonly T[]; readonly after: string } {
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  return { page, after: last === undefined ? '' : pageCursor(endOf(last)) };
}

/** The `after` of the page that begins behind that item. */
export const pageCursor = ({ createdAt, id }: PageEnd): string => Buffer.from(`${createdAt} ${id}`).toString('base64url');

/** The item that the page before ended with, from the parameter `after`. Undefined: the first page. */
export function pageAfter(query: URLSearchParams, isId: (text: string) => boolean): PageEnd | undefined | Problem {
  const text = query.get('after') ?? '';
  if (text === '') return undefined;
  const [createdAt = '', id = ''] = Buffer.from(text, 'base64url').toString('utf8').split(' ');
  return /^[0-9]{1,15}$/.test(createdAt) && isId(id)
    ? { createdAt: Number(createdAt), id }
    : problems.invalid('after: must be the `after` of an earlier page');
}
