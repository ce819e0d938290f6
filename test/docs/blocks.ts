/** The code blocks and links of the documentation, read out of its pages. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dir, '../..');

export interface CodeBlock {
  /** `docs/api.md:12`. */
  readonly at: string;
  readonly page: string;
  readonly language: string;
  readonly text: string;
}

const pages = (): readonly string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: ROOT, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '');

/** Every page with its text. */
export const allPages: readonly { readonly page: string; readonly text: string }[] = pages().map((page) => ({
  page,
  text: readFileSync(join(ROOT, page), 'utf8'),
}));

/** Every code block of every page. */
export const allBlocks: readonly CodeBlock[] = allPages.flatMap(({ page, text }) =>
  [...text.matchAll(/^```([a-z]*)\n([\s\S]*?)^```$/gm)].map(([, language = '', body = ''], at, all) => ({
    at: `${page}:${text.slice(0, all[at]?.index).split('\n').length}`,
    page,
    language,
    text: body,
  })),
);

export const blocksOf = (...languages: readonly string[]): readonly CodeBlock[] =>
  allBlocks.filter(({ language }) => languages.includes(language));

/** The commands of a shell block: lines that go on are joined, comments and pipes are left out. */
export const commandsOf = ({ text }: CodeBlock): readonly string[] =>
  text
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n')
    .map((line) => line.replace(/\s+#.*$/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('#'));

/** The words of a command, as a shell takes them apart. Variables stay as they are. */
export const wordsOf = (command: string): readonly string[] =>
  [...command.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''),
  );

/** The name of a heading as GitHub and `/docs` link to it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
