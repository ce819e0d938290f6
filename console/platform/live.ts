/**
 * News of the platform as they come: one stream of server-sent events for the whole console. A page loads its data when
 * it is opened and again when an event concerns it.
 *
 * A browser opens six connections to a host over HTTP/1.1, for all of its tabs together, and a stream holds one. So a
 * tab that nobody sees has none, and loads its data anew when it is shown.
 */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { EVENT_NAMES } from '../../src/event/names.ts';
import { lookForSession, Refused } from './api.ts';

/** An event as the stream tells it. */
export interface News {
  readonly name: string;
  /** The Session that it is about; empty where it is about none. */
  readonly sessionUuid: string;
}

/** The stream is opened again after this, and a page that could not be loaded is asked for again. */
const RETRY_MS = 5000;
const GATHER_MS = 30;
const PAUSE_MS = 300;

const followers = new Set<(news: News) => void>();
const watchers = new Set<(isLive: boolean) => void>();
let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let live = false;

/** Opens the stream, and keeps it open until `stopLive`, while the page can be seen. */
export function startLive(): void {
  stopLive();
  document.addEventListener('visibilitychange', openIfSeen);
  openIfSeen();
}

export function stopLive(): void {
  document.removeEventListener('visibilitychange', openIfSeen);
  closeStream();
}

function openIfSeen(): void {
  if (document.hidden) closeStream();
  else if (source === undefined) openStream();
}

function openStream(): void {
  const opened = new EventSource('/operator/v1/events/stream');
  source = opened;
  opened.addEventListener('open', () => tellLive(true));
  opened.addEventListener('error', () => {
    tellLive(false);
    // It comes back by itself after a lost connection, but not after a refusal: too many streams, or no session.
    if (opened.readyState !== EventSource.CLOSED) return;
    closeStream();
    void lookForSession();
    retry = setTimeout(openIfSeen, RETRY_MS);
  });
  for (const name of [...EVENT_NAMES, 'gap'])
    opened.addEventListener(name, (event) => {
      const news = { name, sessionUuid: sessionOf(event.data) };
      for (const follower of followers) follower(news);
    });
}

function closeStream(): void {
  clearTimeout(retry);
  source?.close();
  source = undefined;
  tellLive(false);
}

function sessionOf(data: unknown): string {
  const body: unknown = JSON.parse(String(data));
  return typeof body === 'object' && body !== null && 'session_uuid' in body ? String(body.session_uuid) : '';
}

function tellLive(isLive: boolean): void {
  live = isLive;
  for (const watcher of watchers) watcher(isLive);
}

/** Whether the stream is up. */
export function useIsLive(): boolean {
  const [isLive, setLive] = useState(live);
  useEffect(() => {
    watchers.add(setLive);
    return () => void watchers.delete(setLive);
  }, []);
  return isLive;
}

/**
 * Hands news to `hear`, at most three times a second, so that a burst is one. The list is empty when the stream is
 * up again after a break, in which anything may have happened.
 */
export function useNews(hear: (news: readonly News[]) => void): void {
  const latest = useRef(hear);
  latest.current = hear;
  useEffect(() => {
    let gathered: News[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const wake = () => {
      const waitMs = Math.max(GATHER_MS, last + PAUSE_MS - Date.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        last = Date.now();
        const news = gathered;
        gathered = [];
        latest.current(news);
      }, waitMs);
    };
    const follow = (news: News) => {
      gathered.push(news);
      wake();
    };
    let wasLive = live;
    const watch = (isLive: boolean) => {
      if (isLive && !wasLive) wake();
      wasLive = isLive;
    };
    followers.add(follow);
    watchers.add(watch);
    return () => {
      followers.delete(follow);
      watchers.delete(watch);
      clearTimeout(timer);
    };
  }, []);
}

export interface Loaded<T> {
  /** What was loaded, or undefined until the first answer. */
  readonly data: T | undefined;
  /** Why the last attempt failed; empty when it did not. */
  readonly error: string;
  reload(): void;
}

interface State<T> {
  readonly key: string;
  readonly data: T | undefined;
  /** What the last attempt failed with; undefined when it did not. */
  readonly failure: unknown;
}

/** A request that runs. `isOutdated`: something has happened since it was sent. */
interface Loading {
  readonly controller: AbortController;
  isOutdated: boolean;
}

/**
 * Loads data at once, when `key` changes, when news concern it, and every `everyMs` if given. What is asked for while
 * it loads is loaded after that, so that slow answers are shown however fast news come.
 */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  options: { readonly on?: (news: News) => boolean; readonly everyMs?: number } = {},
): Loaded<T> {
  const [state, setState] = useState<State<T>>({ key, data: undefined, failure: undefined });
  const loader = useRef(load);
  loader.current = load;
  const running = useRef<Loading | undefined>(undefined);
  const reload = useCallback(() => {
    if (running.current !== undefined) {
      running.current.isOutdated = true;
      return;
    }
    const own: Loading = { controller: new AbortController(), isOutdated: false };
    running.current = own;
    const show = (change: (before: State<T>) => State<T>) => {
      if (own.controller.signal.aborted) return;
      running.current = undefined;
      setState(change);
      if (own.isOutdated) reload();
    };
    loader.current(own.controller.signal).then(
      (data) => show(() => ({ key, data, failure: undefined })),
      // What was loaded by another key does not answer this one.
      (failure: unknown) => show((before) => ({ key, data: before.key === key ? before.data : undefined, failure })),
    );
  }, [key]);
  useEffect(() => {
    reload();
    const { everyMs } = options;
    const poll = () => {
      if (running.current === undefined && !document.hidden) reload();
    };
    const timer = everyMs === undefined ? undefined : setInterval(poll, everyMs);
    if (everyMs !== undefined) document.addEventListener('visibilitychange', poll);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', poll);
      running.current?.controller.abort();
      running.current = undefined;
    };
  }, [reload, options.everyMs]);
  useRetry(state.failure, reload);
  useNews((news) => {
    const { on } = options;
    if (on !== undefined && (news.length === 0 || news.some((each) => each.name === 'gap' || on(each)))) reload();
  });
  // Whoever has it may call it when the page has gone on to another key: it loads what is shown then.
  const latest = useRef(reload);
  latest.current = reload;
  const reloadShown = useCallback(() => latest.current(), []);
  const isPresent = state.key === key;
  const data = isPresent ? state.data : undefined;
  return { data, error: isPresent ? wordsOf(state.failure) : '', reload: reloadShown };
}

/**
 * Loads again a little later what failed for a reason that passes: the platform is away, busy, or without its database.
 */
export function useRetry(failure: unknown, again: () => void): void {
  const latest = useRef(again);
  latest.current = again;
  useEffect(() => {
    if (!(failure instanceof Refused && (failure.status === 0 || failure.status === 429 || failure.status >= 500))) return;
    const timer = setTimeout(() => latest.current(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [failure]);
}

/** What stands where a count will be: it is being loaded, or could not be. */
export const whileLoading = (error: string): string => (error === '' ? 'Loading …' : 'not loaded');

/** What a failure says; empty for none. */
export const wordsOf = (failure: unknown): string =>
  failure === undefined ? '' : failure instanceof Refused ? failure.message : String(failure);
