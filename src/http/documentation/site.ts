/** What the pages for reading and the API reference have in common: the bar at the top, its style, and the icon. */
import { escaped } from './escaped.ts';
import SITE_STYLE from './site.css' with { type: 'text' };

export { SITE_STYLE };

const SHAPES =
  '<rect width="32" height="32" rx="7" fill="#0b6e6e"/><path d="M6 16h3l2-6 4 13 4-16 3 9h4" fill="none" stroke="#fff" stroke-width="2.4" stroke-linejoin="round" stroke-linecap="round"/>';

/** The icon as a URL, so that no page asks for one. */
const ICON = `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${SHAPES}</svg>`)}`;

const PLACES = [
  ['/docs', 'Documentation'],
  ['/docs/reference', 'API reference'],
  ['/console', 'Console'],
] as const;

/** The bar at the top. `here`: the place of the site in which the page is. */
export const siteBar = (here: (typeof PLACES)[number][0]): string => `<header class="site">
<a class="brand" href="/docs"><svg viewBox="0 0 32 32" aria-hidden="true">${SHAPES}</svg>Sidetone</a>
<nav aria-label="Site">${PLACES.map(([path, name]) => `<a href="${path}"${path === here ? ' aria-current="true"' : ''}>${name}</a>`).join('')}</nav>
</header>`;

/** The beginning of every page, up to what else its head holds. */
export const headOf = (title: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="icon" href="${ICON}">`;
