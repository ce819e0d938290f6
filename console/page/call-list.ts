/**
 * The rows of the list of calls: pages of the platform's list, merged. News load anew the first page and those pages
 * that have a call which the news are about, so a long list is live too.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../platform/api.ts';
import { useNews, useRetry, wordsOf } from '../platform/live.ts';
import type { Call } from '../platform/types.ts';

interface Page {
  readonly sessions: readonly Call[];
  readonly after: string;
}

interface Rows {
  readonly calls: readonly Call[];
  /** The cursors at which the pages that were loaded begin; the first is "". */
  readonly cursors: readonly string[];
  /** The page in which each call was found last. */
  readonly pageOf: ReadonlyMap<string, string>;
  /** The cursor of the page that was not loaded yet; empty at the end. */
  readonly next: string;
}

const PAGE_CALLS = 100;
const NONE: Rows = { calls: [], cursors: [], pageOf: new Map(), next: '' };

export interface CallList {
  readonly calls: readonly Call[];
  readonly isLoaded: boolean;
  readonly hasMore: boolean;
  readonly error: string;
  more(): void;
}

/** The calls that match a query of `/operator/v1/sessions`, which begins with `?` or is empty. */
export function useCallList(query: string): CallList {
  const [rows, setRows] = useState(NONE);
  const [loaded, setLoaded] = useState<string>();
  /** The page that could not be loaded, and why. */
  const [failed, setFailed] = useState<{ readonly cursor: string; readonly failure: unknown }>();
  const known = useRef(rows);
  known.current = rows;
  const wanted = useRef(query);
  const busy = useRef('');
  const load = useCallback(
    async (cursor: string) => {
      const limits = new URLSearchParams({ limit: String(PAGE_CALLS), ...(cursor === '' ? {} : { after: cursor }) });
      const url = `/sessions${query === '' ? '?' : `${query}&`}${limits}`;
      try {
        const page = await ask<Page>('GET', url);
        if (wanted.current !== query) return;
        setRows((before) => merged(before, cursor, page));
        setLoaded(query);
        setFailed(undefined);
      } catch (failure) {
        if (wanted.current === query) setFailed({ cursor, failure });
      }
    },
    [query],
  );
  useEffect(() => {
    wanted.current = query;
    setRows(NONE);
    setFailed(undefined);
    void load('');
  }, [load]);
  useRetry(failed?.failure, () => void load(failed?.cursor ?? ''));
  useNews((news) => {
    const pages = new Set(['']);
    for (const { sessionUuid } of news) pages.add(known.current.pageOf.get(sessionUuid) ?? '');
    for (const cursor of news.length === 0 ? known.current.cursors : pages) void load(cursor);
  });
  const more = () => {
    const { next } = known.current;
    if (next === '' || busy.current === next) return;
    busy.current = next;
    void load(next).finally(() => {
      busy.current = '';
    });
  };
  return { calls: rows.calls, isLoaded: loaded === query, hasMore: rows.next !== '', error: wordsOf(failed?.failure), more };
}

/** Newest first, as the platform orders them. */
const order = (a: Call, b: Call): number => {
  const [left, right] = [`${a.created_at} ${a.session_uuid}`, `${b.created_at} ${b.session_uuid}`];
  return left < right ? 1 : left > right ? -1 : 0;
};

/** The rows with a page of them as it is now. Calls that are not in the page any more, though they should be, go. */
export function merged(before: Rows, cursor: string, { sessions, after }: Page): Rows {
  const isNew = !before.cursors.includes(cursor);
  const last = sessions.at(-1);
  const found = new Set(sessions.map(({ session_uuid: uuid }) => uuid));
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
