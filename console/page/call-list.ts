/**
 * The rows of the list of calls: pages of the platform's list, merged. News load anew the first page and those pages
 * that have a call which the news are about, so a long list is live too.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask } from '../platform/api.ts';
import { oneAtATime } from '../platform/in-turn.ts';
import { useNews, useRetry, wordsOf } from '../platform/live.ts';
import { scrollOfReturn } from '../platform/router.ts';
import type { Call } from '../platform/types.ts';
import { hasLive, merged, movingPages, NONE, type Page, type Rows } from './call-rows.ts';

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
  /** The cursor of the page that was not loaded yet; empty at the end. */
  readonly next: string;
  readonly error: string;
  more(): void;
}

/** The calls that match a query of `/operator/v1/sessions`, which begins with `?` or is empty. */
export function useCallList(query: string): CallList {
  const [rows, setRows] = useState(() => leftFor(query) ?? NONE);
  const [loaded, setLoaded] = useState(() => (leftFor(query) === undefined ? undefined : query));
  /** The page that could not be loaded, and why. */
  const [failed, setFailed] = useState<{ readonly cursor: string; readonly failure: unknown }>();
  /** The rows as they are by the last answer. */
  const known = useRef(rows);
  const show = (now: Rows) => {
    known.current = now;
    setRows(now);
  };
  const wanted = useRef(query);
  const busy = useRef('');
  const load: (cursor: string) => Promise<void> = useMemo(
    () =>
      oneAtATime(async (cursor) => {
        const limits = new URLSearchParams({ limit: String(PAGE_CALLS), ...(cursor === '' ? {} : { after: cursor }) });
        const url = `/sessions${query === '' ? '?' : `${query}&`}${limits}`;
        try {
          const page = await ask<Page>('GET', url);
          if (wanted.current !== query) return;
          const { cursors } = known.current;
          show(merged(known.current, cursor, page));
          setLoaded(query);
          setFailed(undefined);
          // What news were about may have been pushed off the page that was asked for.
          if (!cursors.includes(page.after) && hasLive(known.current, page.after)) void load(page.after);
        } catch (failure) {
          if (wanted.current === query) setFailed({ cursor, failure });
        }
      }),
    [query],
  );
  useEffect(() => {
    wanted.current = query;
    const before = leftFor(query);
    show(before ?? NONE);
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
  return { calls: rows.calls, isLoaded: loaded === query, next: rows.next, error: wordsOf(failed?.failure), more };
}
