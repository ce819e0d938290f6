/** The address bar: one path a page, filters in its query. */
import { useEffect, useState } from 'preact/hooks';

const changed = new Set<() => void>();
/** What is asked before the page is left; undefined: nothing would be lost by it. */
let question: string | undefined;
const asking = new Set<(isHeld: boolean) => void>();

const here = (): string => location.pathname + location.search;
/** The place that is shown: the address bar may be ahead of it. */
let shown = here();
/** How far the page was scrolled when it was left, if it is come back to. Pixels. */
let scrolledTo: number | undefined;

/** Goes to a path of the console. `replace` leaves no step to go back to. */
export function go(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  scrolledTo = undefined;
  if (replace) history.replaceState(null, '', to);
  else {
    history.replaceState({ scrolledTo: scrollY }, '');
    history.pushState(null, '', to);
  }
  tell();
}

function tell(): void {
  shown = here();
  for (const each of changed) each();
}

addEventListener('popstate', ({ state }) => {
  if (here() !== shown && !mayLeave()) {
    // The browser has gone already: it is led back to the page that is still shown.
    history.pushState(null, '', shown);
    return;
  }
  scrolledTo = typeof state === 'object' && state !== null && 'scrolledTo' in state ? Number(state.scrolledTo) : undefined;
  tell();
});
// The place that a page was scrolled to is known here, and its rows are there before that counts.
history.scrollRestoration = 'manual';

/** How far a page that is come back to by *Back* was scrolled. Undefined where it was come to in another way. */
export const scrollOfReturn = (): number | undefined => scrolledTo;

/** The present path and query. */
export function usePlace(): { readonly path: string; readonly query: URLSearchParams } {
  const [place, setPlace] = useState(shown);
  useEffect(() => {
    const look = () => setPlace(shown);
    changed.add(look);
    return () => void changed.delete(look);
  }, []);
  const { pathname, searchParams } = new URL(place, location.origin);
  return { path: pathname, query: searchParams };
}

/** Asks before the page is left, by whatever way, while `what` says what would be lost. */
export function useQuestionOnLeaving(what: string | undefined): void {
  useEffect(() => {
    if (what === undefined) return;
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    ask(what);
    addEventListener('beforeunload', hold);
    return () => {
      ask(undefined);
      removeEventListener('beforeunload', hold);
    };
  }, [what]);
}

function ask(what: string | undefined): void {
  question = what;
  for (const each of asking) each(what !== undefined);
}

/** Whether something would be lost by leaving the page. */
export function useIsHeld(): boolean {
  const [isHeld, setHeld] = useState(question !== undefined);
  useEffect(() => {
    asking.add(setHeld);
    return () => void asking.delete(setHeld);
  }, []);
  return isHeld;
}

/** Asks, where something would be lost, whether the page may be left. */
export const mayLeave = (): boolean => question === undefined || confirm(question);

/** Follows a click on a link of the console without loading the page anew. */
export function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || !link.pathname.startsWith('/console') || link.hasAttribute('download')) return;
  if (link.target !== '' || (link.hash !== '' && link.pathname === location.pathname)) return;
  event.preventDefault();
  if (mayLeave()) go(link.pathname + link.search);
}
