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
}

export const NONE: Rows = { calls: [], cursors: [], pageOf: new Map(), next: '' };

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

/** The rows with a page of them as it is now. Calls that are not in the page any more, though they should be, go. */
export function merged(before: Rows, cursor: string, { sessions, after }: Page): Rows {
  const isNew = !before.cursors.includes(cursor);
  const last = sessions.at(-1);
  const found = new Set(sessions.map(({ session_uuid: uuid }) => uuid));
  // More calls have come than a page holds: some between these and the others would be missing.
  if (cursor === '' && !isNew && after !== '' && !sessions.some(({ session_uuid: uuid }) => before.pageOf.has(uuid)))
    return merged(NONE, cursor, { sessions, after });
  const kept = before.calls.filter((call) => {
    if (found.has(call.session_uuid)) return false;
    if (before.pageOf.get(call.session_uuid) !== cursor) return true;
    // It has moved to the page after this one, or it is gone.
    return last !== undefined && after !== '' && order(call, last) > 0;
  });
  const calls = [...kept, ...sessions].sort(order);
  const pageOf = new Map(before.pageOf);
  for (const uuid of found) pageOf.set(uuid, cursor);
  return {
    calls,
    pageOf,
    cursors: isNew ? [...before.cursors, cursor] : before.cursors,
    next: isNew ? after : before.next,
  };
}
