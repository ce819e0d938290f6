/** The rows of the list of calls: pages of the platform's list, merged. */
import type { Call } from '../platform/types.ts';

/** A page of the platform's list. */
export interface Page {
  readonly sessions: readonly Call[];
  readonly after: string;
}

/** The rows of the list. */
export interface Rows {
  readonly calls: readonly Call[];
  /** The cursors at which the pages that were loaded begin; the first is "". */
  readonly cursors: readonly string[];
  /** The page in which each call was found last. */
  readonly pageOf: ReadonlyMap<string, string>;
  /** The cursor of the page that was not loaded yet; empty at the end. */
  readonly next: string;
  /** How many calls the reader has loaded, page by page. */
  readonly loaded: number;
  /** How many of the calls that are shown have been pushed off the first page by new ones. */
  readonly pushed: number;
  /** How many have been pushed off since the list began, those included that have gone since. */
  readonly pushedInAll: number;
}

/** The list begins anew after so many calls, also where its end is in view and is loaded again and again. */
const PUSHED_MOST = 2000;

export const NONE: Rows = { calls: [], cursors: [], pageOf: new Map(), next: '', loaded: 0, pushed: 0, pushedInAll: 0 };

/** Newest first, as the platform orders them. */
const order = (a: Call, b: Call): number => {
  const [left, right] = [`${a.created_at} ${a.session_uuid}`, `${b.created_at} ${b.session_uuid}`];
  return left < right ? 1 : left > right ? -1 : 0;
};

/** The pages that may be others by now: the first, and those with a call that was live. */
export function movingPages({ calls, pageOf }: Rows): ReadonlySet<string> {
  const live = calls.filter(({ state }) => state !== 'ended');
  return new Set(['', ...live.map(({ session_uuid: uuid }) => pageOf.get(uuid) ?? '')]);
}

/** Whether a call of a page was live when it was seen last. */
export const hasLive = ({ calls, pageOf }: Rows, page: string): boolean =>
  calls.some(({ session_uuid: uuid, state }) => state !== 'ended' && pageOf.get(uuid) === page);

/**
 * The rows with a page of them as it is now. Calls that are not in the page any more, though they should be, go. The
 * answer for a page of a list that has begun anew since changes nothing.
 */
export function merged(before: Rows, cursor: string, { sessions, after }: Page): Rows {
  const isNew = !before.cursors.includes(cursor);
  if (isNew && cursor !== before.next) return before;
  const last = sessions.at(-1);
  const found = new Set(sessions.map(({ session_uuid: uuid }) => uuid));
  const anew = () => merged(NONE, cursor, { sessions, after });
  // More calls have come than a page holds: some between these and the others would be missing. Of a rare number the
  // first page may have none.
  const areOther = last !== undefined && !sessions.some(({ session_uuid: uuid }) => before.pageOf.has(uuid));
  if (cursor === '' && !isNew && after !== '' && areOther) return anew();
  const kept = before.calls.filter((call) => {
    if (found.has(call.session_uuid)) return false;
    if (before.pageOf.get(call.session_uuid) !== cursor) return true;
    // It has moved to the page after this one, or it is gone.
    return after !== '' && (last === undefined || order(call, last) > 0);
  });
  const pageOf = new Map(kept.map(({ session_uuid: uuid }) => [uuid, before.pageOf.get(uuid) ?? '']));
  const pushed = cursor === '' ? pushOff(kept, pageOf, after, sessions.length) : 0;
  if (before.pushedInAll + pushed > PUSHED_MOST) return anew();
  for (const uuid of found) pageOf.set(uuid, cursor);
  const used = new Set(pageOf.values());
  const cursors = before.cursors.filter((each) => each === cursor || used.has(each));
  const more = [isNew ? cursor : [], pushed > 0 ? after : []].flat();
  return bounded({
    calls: [...kept, ...sessions].sort(order),
    pageOf,
    cursors: [...cursors, ...more],
    next: isNew ? after : before.next,
    loaded: before.loaded + (isNew ? sessions.length : 0),
    pushed: before.pushed + pushed,
    pushedInAll: before.pushedInAll + pushed,
  });
}

/**
 * The rows without their last page, where more calls were pushed down than the reader has loaded: a page that is left
 * open on a busy platform would become longer for ever. What is above stays, so that nobody loses the place in it.
 */
function bounded(rows: Rows): Rows {
  const last = rows.calls.at(-1);
  const page = last && rows.pageOf.get(last.session_uuid);
  if (rows.pushed <= rows.loaded || page === undefined || page === '') return rows;
  const calls = rows.calls.filter(({ session_uuid: uuid }) => rows.pageOf.get(uuid) !== page);
  return {
    ...rows,
    calls,
    pageOf: new Map(calls.map(({ session_uuid: uuid }) => [uuid, rows.pageOf.get(uuid) ?? ''])),
    cursors: rows.cursors.filter((each) => each !== page),
    next: page,
    pushed: Math.max(0, rows.pushed - (rows.calls.length - calls.length)),
  };
}

/**
 * Gives the calls that were pushed off the first page to the page that begins where the first one ends now, by `after`,
 * so that news of them load that one. It takes over those that were pushed off before, as long as it holds them all.
 * Returns how many were pushed off.
 */
function pushOff(kept: readonly Call[], pageOf: Map<string, string>, after: string, pageCalls: number): number {
  const calls = (page: string | undefined) => kept.filter(({ session_uuid: uuid }) => pageOf.get(uuid) === page);
  const pushed = calls('');
  const next = kept.find(({ session_uuid: uuid }) => pageOf.get(uuid) !== '');
  const beside = pushed.length === 0 || next === undefined ? [] : calls(pageOf.get(next.session_uuid));
  const taken = pushed.length + beside.length > pageCalls ? pushed : [...pushed, ...beside];
  for (const { session_uuid: uuid } of taken) pageOf.set(uuid, after);
  return pushed.length;
}
