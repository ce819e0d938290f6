/** How a page for reading looks: the bar, the text, and beside it the list of all pages. It has no script. */
import { styleSource } from '../style-source.ts';
import { escaped } from './escaped.ts';
import READING_STYLE from './reading.css' with { type: 'text' };
import type { Reading } from './reading.ts';
import type { PageEntry, Section } from './sections.ts';
import { headOf, SITE_STYLE, siteBar } from './site.ts';

const STYLE = `${SITE_STYLE}${READING_STYLE}`;

/** What a page for reading may load: its style, and pictures. */
export const READING_POLICY = `default-src 'none'; style-src ${styleSource(STYLE)}; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** A whole page, with the list of all pages beside it, in which it is marked and shows its headings. */
export const readingPage = (page: PageEntry, { html, headings }: Reading, sections: readonly Section<PageEntry>[]): string =>
  whole(
    page.title,
    `<div class="columns">
<main id="text">
<p class="all"><a href="#pages">All pages</a></p>
${html}
</main>
<nav id="pages" class="pages" aria-label="Pages">
${sections.map((section) => listed(section, page.name, headings)).join('\n')}
</nav>
</div>`,
  );

export interface ExampleEntry {
  /** `ivr.mjs`. */
  readonly name: string;
  /** What it does: the first sentence of its head. */
  readonly about: string;
}

/** The first page: all others by section, and the programs. */
export const indexPage = (sections: readonly Section<PageEntry>[], examples: readonly ExampleEntry[]): string =>
  whole(
    'Documentation',
    `<main id="text" class="wide">
<h1>Documentation</h1>
<p>Your application places and takes calls by HTTP and hears of each step by webhooks. Begin under
<em>Start</em>, or with the <a href="/docs/reference">API reference</a>. For programs:
<a href="/openapi.json">OpenAPI 3.1</a> and <a href="/llms.txt">the list of all pages as Markdown</a>.</p>
<div class="cards">
${sections.map(({ title, pages }) => `<section><h2>${title}</h2><ul>\n${pages.map((page) => `<li>${linkTo(page)}</li>`).join('\n')}</ul></section>`).join('\n')}
<section class="programs"><h2>Examples</h2><ul>
${examples.map(({ name, about }) => `<li><a href="/docs/examples/${name}">${name}</a>: ${escaped(about)}</li>`).join('\n')}</ul></section>
</div>
</main>`,
  );

const linkTo = ({ name, title }: PageEntry): string => `<a href="/docs/${name}">${escaped(title)}</a>`;

function listed({ title, pages }: Section<PageEntry>, here: string, headings: Reading['headings']): string {
  const within = headings.map((each) => `<li><a href="#${each.anchor}">${each.title}</a></li>`).join('\n');
  const items = pages.map((page) =>
    page.name === here
      ? `<li><a href="/docs/${page.name}" aria-current="page">${escaped(page.title)}</a>${within === '' ? '' : `<ul>${within}</ul>`}</li>`
      : `<li>${linkTo(page)}</li>`,
  );
  return `<p>${title}</p><ul>\n${items.join('\n')}</ul>`;
}

const whole = (title: string, body: string): string => `${headOf(`${title} · Sidetone`)}
<style>${STYLE}</style>
</head>
<body>
<a class="skip" href="#text">Skip to the text</a>
${siteBar('/docs')}
${body}
</body>
</html>
`;
