/** Ranges and conditions of a GET (RFC 9110 §13, §14), for a representation with a strong entity tag and no date. */

/** Bytes `start` to `end`, exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const ONE_RANGE = /^(?:([0-9]+)-([0-9]*)|-([0-9]+))$/;

/**
 * What a `Range` header asks of `bytes` bytes. Undefined: all of it, since nothing is asked, or what is asked is
 * malformed, of another unit, or several ranges, each of which a server may ignore (§14.2). `unsatisfiable` is 416.
 */
export function rangeOf(header: string | null, bytes: number): ByteRange | 'unsatisfiable' | undefined {
  if (header === null || !/^bytes=/i.test(header)) return undefined;
  const asked = header.slice('bytes='.length).split(',');
  const [one, ...others] = asked.map((each) => each.trim()).filter((each) => each !== '');
  const match = one === undefined || others.length > 0 ? null : ONE_RANGE.exec(one);
  if (match === null) return undefined;
  const [, first, last, suffix] = match;
  if (suffix !== undefined) {
    const count = Math.min(Number(suffix), bytes);
    return count === 0 ? 'unsatisfiable' : { start: bytes - count, end: bytes };
  }
  const start = Number(first);
  const end = last === '' ? bytes : Number(last) + 1;
  if (end <= start && last !== '') return undefined;
  return start >= bytes ? 'unsatisfiable' : { start, end: Math.min(end, bytes) };
}

/** Whether `If-None-Match` names the tag, compared weakly (§13.1.2): 304. `etag` without quotes. */
export function noneMatch(header: string | null, etag: string): boolean {
  if (header === null) return false;
  if (header.trim() === '*') return true;
  return [...header.matchAll(/(?:W\/)?"([^"]*)"/g)].some(([, tag]) => tag === etag);
}

/**
 * Whether `If-Match` lets the request go on, compared strongly (§13.1.1); otherwise it is 412. `etag` without quotes.
 */
export const ifMatch = (header: string | null, etag: string): boolean =>
  header === null || header.trim() === '*' || header.split(',').some((each) => each.trim() === `"${etag}"`);

/**
 * Whether a range may be answered under `If-Range`, compared strongly (§13.1.5). A date never matches: none is told.
 */
export const rangeHolds = (header: string | null, etag: string): boolean => header === null || header.trim() === `"${etag}"`;
