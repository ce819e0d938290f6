/** The address bar: one path a page, filters in its query. */
import { useEffect, useState } from 'preact/hooks';

const changed = new Set<() => void>();

/** Goes to a path of the console. `replace` leaves no step to go back to. */
export function go(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  for (const each of changed) each();
}

/** The present path and query. */
export function usePlace(): { readonly path: string; readonly query: URLSearchParams } {
  const [place, setPlace] = useState(location.pathname + location.search);
  useEffect(() => {
    const look = () => setPlace(location.pathname + location.search);
    changed.add(look);
    addEventListener('popstate', look);
    return () => {
      changed.delete(look);
      removeEventListener('popstate', look);
    };
  }, []);
  const { pathname, searchParams } = new URL(place, location.origin);
  return { path: pathname, query: searchParams };
}

/** Follows a click on a link of the console without loading the page anew. */
export function followLink(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  if (link.origin !== location.origin || !link.pathname.startsWith('/console') || link.hasAttribute('download')) return;
  if (link.hash !== '' && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
