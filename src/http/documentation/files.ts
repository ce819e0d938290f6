/** Tells which pages and programs `docs/` has. Their texts are read with the first page that is asked for. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { installed } from '../../installation.ts';

const FOLDER = installed('docs');
/** Folders whose pages are served too. */
const PARTS = ['how-to', 'operations', 'decisions'] as const;
/** The folder of the programs. */
const EXAMPLES = 'examples';

/** The file of a page, by its name: `api`, `how-to/add-a-route`. */
export const pageFile = (name: string): string => join(FOLDER, `${name}.md`);

/** The file of a program, by its name: `ivr.mjs`. */
export const exampleFile = (name: string): string => join(FOLDER, EXAMPLES, name);

/** The names of all pages, in order. None where the pages are not installed. */
export const pageNames = (): readonly string[] =>
  ['', ...PARTS]
    .flatMap((part) =>
      filesOf(join(FOLDER, part))
        .filter((name) => name.endsWith('.md'))
        .map((name) => (part === '' ? name.slice(0, -3) : `${part}/${name.slice(0, -3)}`)),
    )
    .sort();

/** The names of all programs, in order. None where the pages are not installed. */
export const exampleNames = (): readonly string[] =>
  filesOf(join(FOLDER, EXAMPLES))
    .filter((name) => /^[a-z0-9-]+\.(mjs|html)$/.test(name))
    .sort();

function filesOf(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}
