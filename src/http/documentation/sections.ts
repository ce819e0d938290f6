/** The sections of the documentation, in the order in which they are read. */

export interface PageEntry {
  /** `api`, `how-to/add-a-route`. */
  readonly name: string;
  readonly title: string;
}

export interface Section<Page extends PageEntry> {
  readonly title: string;
  readonly pages: readonly Page[];
}

interface Rule {
  readonly title: string;
  /** The pages that come first, in their order. */
  readonly first: readonly string[];
  /** Takes pages that no section names. They follow in order of name. */
  readonly takes?: (name: string) => boolean;
}

const within = (folder: string, ...names: readonly string[]): readonly string[] => names.map((name) => `${folder}/${name}`);

const RULES: readonly Rule[] = [
  { title: 'Start', first: ['getting-started', 'first-call'] },
  { title: 'Use', first: ['api', 'webhooks', 'guarantees', 'glossary'] },
  {
    title: 'How to',
    first: within('how-to', 'build-a-bot', 'call-from-a-browser', 'connect-a-carrier', 'run-a-contact-centre', 'transfer-a-call'),
    takes: (name) => name.startsWith('how-to/') && !name.startsWith('how-to/add-'),
  },
  {
    title: 'Operations',
    first: [
      'operations',
      ...within('operations', 'install', 'settings', 'carriers', 'devices', 'messages-and-cards', 'recordings'),
      ...within('operations', 'seeing', 'monitoring', 'lifecycle', 'backup', 'clusters'),
    ],
    takes: (name) => name.startsWith('operations/'),
  },
  {
    title: 'How it is built',
    first: ['architecture', 'dependencies', 'decisions/README'],
    takes: (name) => name.startsWith('decisions/') || !name.includes('/'),
  },
  { title: 'Change the platform', first: [], takes: (name) => name.startsWith('how-to/add-') },
];
const NAMED = new Set(RULES.flatMap(({ first }) => first));

/** Sorts pages into the sections, each into one. */
export const sectionsOf = <Page extends PageEntry>(pages: readonly Page[]): readonly Section<Page>[] =>
  RULES.map(({ title, first, takes }) => {
    const byName = new Map(pages.map((page) => [page.name, page]));
    const rest = pages.filter(({ name }) => !NAMED.has(name) && takes?.(name) === true);
    return { title, pages: [...first.flatMap((name) => byName.get(name) ?? []), ...rest] };
  });
