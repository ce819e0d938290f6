/**
 * The rows of the list of calls: pages of the platform's list, merged. News load anew the first page and those pages
 * that have a call which the news are about, so a long list is live too.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../platform/api.ts';
import { useNews, useRetry, wordsOf } from '../platform/live.ts';
import { scrollOfReturn } from '../platform/router.ts';
import type { Call } from '../platform/types.ts';
import { merged, movingPages, NONE, type Page, type Rows } from './call-rows.ts';

const PAGE_CALLS = 100;

/** The list as it was left: *Back* shows it at once, as long as it was, so that its place in it is found again. */
let left: { readonly query: string; readonly rows: Rows } | undefined;

/** Forgets the list that was left: a call of it was erased. */
export function forgetCalls(): void {
  left = undefined;
}

const leftFor = (query: string): Rows | undefined =>
  scrollOfReturn() !== undefined && left?.query === query ? left.rows : undefined;

export interface CallList {
  readonly calls: readonly Call[];
  readonly isLoaded: boolean;
  readonly hasMore: boolean;
  readonly error: string;
  more(): void;
}

/** The calls that match a query of `/operator/v1/sessions`, which begins with `?` or is empty. */
export function useCallList(query: string): CallList {
  const [rows, setRows] = useState(() => leftFor(query) ?? NONE);
  const [loaded, setLoaded] = useState(() => (leftFor(query) === undefined ? undefined : query));
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
    const before = leftFor(query);
    setRows(before ?? NONE);
    if (before !== undefined) setLoaded(query);
    setFailed(undefined);
    for (const cursor of before === undefined ? [''] : movingPages(before)) void load(cursor);
    return () => {
      if (known.current.cursors.length > 0) left = { query, rows: known.current };
    };
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
