/** Renders Markdown. Links to other pages lead to where those are read, and each heading can be linked to. */
import { Marked, Renderer } from 'marked';
import { escaped } from './escaped.ts';

interface Heading {
  readonly anchor: string;
  /** HTML. */
  readonly title: string;
}

export interface Reading {
  readonly html: string;
  /** The headings of the second level. */
  readonly headings: readonly Heading[];
}

/** Renders the page of the name (`api`, `how-to/add-a-route`). */
export function readingOf(markdown: string, name: string): Reading {
  const folder = name.includes('/') ? `${name.split('/')[0]}/` : '';
  const anchors = new Map<string, number>();
  const headings: Heading[] = [];
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const words = anchorOf(text);
        const before = anchors.get(words) ?? 0;
        anchors.set(words, before + 1);
        const anchor = before === 0 ? words : `${words}-${before}`;
        const title = this.parser.parseInline(tokens);
        if (depth === 2) headings.push({ anchor, title });
        return `<h${depth} id="${anchor}">${title}</h${depth}>\n`;
      },
      // What is too wide for a telephone is scrolled by itself, also by keyboard.
      code({ text, lang = '' }) {
        const kind = lang === '' ? '' : ` class="language-${escaped(lang)}"`;
        return `<pre tabindex="0"><code${kind}>${escaped(text)}\n</code></pre>\n`;
      },
      table(token) {
        const table = Renderer.prototype.table.call(this, token);
        return `<div class="scroll" tabindex="0" role="group" aria-label="Table">${table}</div>\n`;
      },
      tablecell({ header, align, tokens }) {
        const text = this.parser.parseInline(tokens);
        // A column without a name has no heading.
        const [name, scope] = header && text !== '' ? ['th', ' scope="col"'] : ['td', ''];
        return `<${name}${scope}${align === null ? '' : ` align="${align}"`}>${text}</${name}>\n`;
      },
      link({ href, tokens }) {
        const target = servedAt(href, folder);
        const text = this.parser.parseInline(tokens);
        return target === undefined ? text : `<a href="${escaped(target)}">${text}</a>`;
      },
    },
  });
  return { html: marked.parse(markdown, { async: false }), headings };
}

/** The place to which a link of a page in `folder` (`""`, `how-to/`) leads, or undefined when that is not served. */
function servedAt(href: string, folder: string): string | undefined {
  if (/^(https?:|mailto:|#|\/)/.test(href)) return href;
  const [, example] = /^(?:\.\.\/)?examples\/([a-z0-9-]+\.(?:mjs|html))$/.exec(href) ?? [];
  if (example !== undefined) return `/docs/examples/${example}`;
  const [, up = '', target = '', anchor = ''] = /^((?:\.\.\/)*)([A-Za-z0-9/_-]+)\.md(#.*)?$/.exec(href) ?? [];
  const levels = up.length / 3;
  if (target === '' || levels > (folder === '' ? 0 : 1)) return undefined;
  return `/docs/${levels === 0 ? folder : ''}${target}${anchor}`;
}

/** The anchor of a heading, as it is where the sources are read. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');
