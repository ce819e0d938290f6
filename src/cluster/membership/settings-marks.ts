/**
 * Compares the settings of two nodes without telling them: a node tells a mark of each, which is a MAC of its value
 * under a key that comes of MASTER_KEY.
 */
import { createHmac, hkdfSync } from 'node:crypto';

/** The marks of settings, by the names of their variables. */
export type SettingsMarks = Readonly<Record<string, string>>;

const MARK_CHARS = 16;

/** Marks settings by their values, of which `undefined` is one. */
export function marksOf(settings: Readonly<Record<string, unknown>>, masterKey: Uint8Array): SettingsMarks {
  const key = new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), 'sidetone: marks of settings', 32));
  const mark = (name: string, value: unknown) =>
    createHmac('sha256', key)
      .update(`${name} ${JSON.stringify(value) ?? ''}`)
      .digest('hex')
      .slice(0, MARK_CHARS);
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, mark(name, value)]));
}

/** The names of my settings that another node has another value of. A node of another release may not know each. */
export function settingsApart(mine: SettingsMarks, theirs: object): readonly string[] {
  const told = new Map(Object.entries(theirs));
  return Object.entries(mine).flatMap(([name, mark]) => (told.has(name) && told.get(name) !== mark ? [name] : []));
}
