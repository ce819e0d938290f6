/**
 * The documentation, as it stands in `docs/`: each page for reading at `/docs/NAME`, as Markdown at `/docs/NAME.md`,
 * each program at `/docs/examples/NAME` as text, and the list of them for programs at `/llms.txt` (llmstxt.org).
 */
import { readFileSync } from 'node:fs';
import { exampleFile, pageFile } from './files.ts';
import { type ExampleEntry, indexPage, READING_POLICY, readingPage } from './layout.ts';
import { readingOf } from './reading.ts';
import { type PageEntry, type Section, sectionsOf } from './sections.ts';

interface Page extends PageEntry {
  readonly markdown: string;
}

interface Example extends ExampleEntry {
  readonly text: string;
}

/** All pages and programs, read at once. */
export class Documentation {
  /** What its pages for reading may load. */
  readonly policy = READING_POLICY;
  readonly #sections: readonly Section<Page>[];
  readonly #pages: ReadonlyMap<string, Page>;
  readonly #examples: ReadonlyMap<string, Example>;

  /** Throws where a file of these is gone. */
  constructor(pages: readonly string[], examples: readonly string[]) {
    this.#sections = sectionsOf(pages.map(readPage));
    this.#pages = new Map(this.#sections.flatMap((section) => section.pages).map((page) => [page.name, page]));
    this.#examples = new Map(examples.map((name) => [name, readExample(name)]));
  }

  /** The list of the pages for reading. */
  index(): string {
    return indexPage(this.#sections, [...this.#examples.values()]);
  }

  /** The list of the pages and of the programs, for programs that read documentation. */
  list(): string {
    return llmsText([...this.#pages.values()], [...this.#examples.values()]);
  }

  /**
   * A page for reading, by its name. The longest takes 20 ms, in which nothing else is done. Throws where there is
   * none, as all that follow do.
   */
  html(name: string): string {
    const page = named(this.#pages, name);
    return readingPage(page, readingOf(page.markdown, name), this.#sections);
  }

  markdown(name: string): string {
    return named(this.#pages, name).markdown;
  }

  /** The text of a program, by its name. */
  example(name: string): string {
    return named(this.#examples, name).text;
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
