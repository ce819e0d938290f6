/**
 * The documentation, as it stands in `docs/`: each page for reading at `/docs/NAME`, as Markdown at `/docs/NAME.md`,
 * each program at `/docs/examples/NAME` as text, and the list of them for programs at `/llms.txt` (llmstxt.org).
 */
import { readFileSync } from 'node:fs';
import { Marked, Renderer } from 'marked';
import { styleSource } from '../style-source.ts';
import { exampleFile, pageFile } from './documentation-files.ts';

/** What a newcomer reads comes before the rest, which is in order of name. */
const FIRST = ['getting-started', 'first-call'];
const turn = (name: string): number => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);

interface Page {
  /** `api`, `how-to/add-a-route`. */
  readonly name: string;
  readonly title: string;
  readonly markdown: string;
}

interface Example {
  /** `ivr.mjs`. */
  readonly name: string;
  /** What it does: the first sentence of its head. */
  readonly about: string;
  readonly text: string;
}

/**
 * All pages and programs, read at once. Each page is rendered once: the longest takes 20 ms, in which nothing else is
 * done, and anybody may ask for it.
 */
export class Documentation {
  /** What its pages for reading may load. */
  readonly policy = DOCUMENTATION_POLICY;
  readonly #pages: ReadonlyMap<string, Page>;
  readonly #examples: ReadonlyMap<string, Example>;
  readonly #rendered = new Map<string, string>();

  /** Throws where a file of these is gone. */
  constructor(pages: readonly string[], examples: readonly string[]) {
    const inTurn = [...pages].sort((one, other) => turn(one) - turn(other));
    this.#pages = new Map(inTurn.map((name) => [name, readPage(name)]));
    this.#examples = new Map(examples.map((name) => [name, readExample(name)]));
  }

  /** The list of the pages for reading. */
  index(): string {
    return this.#once('', () => documentationIndex([...this.#pages.values()], [...this.#examples.values()]));
  }

  /** The list of the pages and of the programs, for programs that read documentation. */
  list(): string {
    return llmsText([...this.#pages.values()], [...this.#examples.values()]);
  }

  /** A page for reading, by its name. Throws where there is none, as all that follow do. */
  html(name: string): string {
    return this.#once(name, () => documentationHtml(named(this.#pages, name)));
  }

  markdown(name: string): string {
    return named(this.#pages, name).markdown;
  }

  /** The text of a program, by its name. */
  example(name: string): string {
    return named(this.#examples, name).text;
  }

  #once(name: string, render: () => string): string {
    const text = this.#rendered.get(name) ?? render();
    this.#rendered.set(name, text);
    return text;
  }
}

function named<T>(all: ReadonlyMap<string, T>, name: string): T {
  const found = all.get(name);
  if (found === undefined) throw new Error(`the documentation has no ${name}`);
  return found;
}

function readPage(name: string): Page {
  const markdown = readFileSync(pageFile(name), 'utf8');
  return { name, markdown, title: /^# (.+)$/m.exec(markdown)?.[1] ?? name };
}

function readExample(name: string): Example {
  const text = readFileSync(exampleFile(name), 'utf8');
  const head = /^(?:\/\/ .*\n)+/.exec(text)?.[0].replaceAll(/^\/\/ /gm, '') ?? '';
  const title = /<title>(.+)<\/title>/.exec(text)?.[1] ?? '';
  return { name, text, about: head.replaceAll('\n', ' ').split(/(?<=\.) /)[0] || title };
}

const llmsText = (pages: readonly Page[], examples: readonly Example[]): string => `# Sidetone

> A programmable voice platform that a team runs by itself: calls, rooms, recordings, bots and messages through an
> HTTP/JSON API, and signed, ordered webhooks.

## Documentation

${pages.map(({ name, title }) => `- [${title}](/docs/${name}.md)`).join('\n')}

## Examples

${examples.map(({ name, about }) => `- [${name}](/docs/examples/${name}): ${about}`).join('\n')}

## Reference

- [OpenAPI 3.1](/openapi.json)
`;

const STYLE = `:root{color-scheme:light dark}body{background:Canvas;color:CanvasText;font:16px/1.6 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1rem 1.5rem 4rem}
pre,code{font:14px/1.5 ui-monospace,monospace}pre{overflow:auto;padding:.8rem;border:1px solid color-mix(in srgb,currentColor 20%,transparent);border-radius:.4rem}
:is(h1,h2,h3,h4,p,li,a) code,h1,h2,h3,h4,a{overflow-wrap:anywhere}.scroll{overflow:auto}:focus-visible{outline:2px solid;outline-offset:2px}
table{border-collapse:collapse}td,th{border:1px solid color-mix(in srgb,currentColor 20%,transparent);padding:.3rem .6rem;text-align:left;vertical-align:top}
nav a{margin-right:1rem}`;

/** What a page of the documentation may load: its style, and pictures. */
const DOCUMENTATION_POLICY = `default-src 'none'; style-src ${styleSource(STYLE)}; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** The page for reading. Links to other pages lead to their pages for reading, and each heading can be linked to. */
function documentationHtml({ title, markdown, name }: Page): string {
  const folder = name.includes('/') ? `${name.split('/')[0]}/` : '';
  const anchors = new Map<string, number>();
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading({ tokens, depth, text }) {
        const words = anchorOf(text);
        const before = anchors.get(words) ?? 0;
        anchors.set(words, before + 1);
        const id = before === 0 ? words : `${words}-${before}`;
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
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
  return page(title, marked.parse(markdown, { async: false }));
}

/** The place to which a link of a page in `folder` (`""`, `how-to/`) leads, or undefined when that is not served. */
function servedAt(href: string, folder: string): string | undefined {
  if (/^(https?:|mailto:|#|\/)/.test(href)) return href;
  const [, example] = /^(?:\.\.\/)?examples\/([a-z0-9-]+\.(?:mjs|html))$/.exec(href) ?? [];
  if (example !== undefined) return `/docs/examples/${example}`;
  const [, up = '', target = '', anchor = ''] = /^((?:\.\.\/)*)([A-Za-z0-9/_-]+)\.md(#.*)?$/.exec(href) ?? [];
  const levels = up.length / 3;
  if (target === '' || levels > (folder === '' ? 0 : 1)) return undefined;
  if (target === 'README' || target.endsWith('/README')) return `/docs${anchor}`;
  return `/docs/${levels === 0 ? folder : ''}${target}${anchor}`;
}

/** The anchor of a heading, as it is where the sources are read. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');

function documentationIndex(pages: readonly Page[], examples: readonly Example[]): string {
  const listed = (part: string, isListed: (name: string) => boolean = () => true) =>
    pages
      .filter(({ name }) => (part === '' ? !name.includes('/') : name.startsWith(part)) && isListed(name))
      .map(({ name, title }) => `<li><a href="/docs/${name}">${escaped(title)}</a></li>`)
      .join('\n');
  const programs = examples
    .map(({ name, about }) => `<li><a href="/docs/examples/${name}">${name}</a>: ${escaped(about)}</li>`)
    .join('\n');
  return page(
    'Documentation',
    `<h1>Documentation</h1>
<p><a href="/console">Console</a>, for whoever runs the platform</p>
<ul><li><a href="/docs/reference">API reference</a>, from <a href="/openapi.json">OpenAPI 3.1</a></li>
${listed('')}</ul>
<h2>How to</h2><ul>${listed('how-to/', (name) => !name.startsWith('how-to/add-'))}</ul>
<h2>Operations</h2><ul>${listed('operations/')}</ul>
<h2>Examples</h2><ul>${programs}</ul>
<h2>How to change the platform</h2><ul>${listed('how-to/add-')}</ul>
<h2>Decisions</h2><ul>${listed('decisions/')}</ul>`,
  );
}

const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)} · Sidetone</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body>
<nav><a href="/docs">Documentation</a><a href="/docs/reference">API reference</a></nav>
<main>
${body}
</main>
</body>
</html>
`;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
