/** Secrets the platform makes for itself, kept in `DATA_DIR` readable by its owner only. */
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Gives the secret `dataDir/name` of so many bytes, which is made where there is none. */
export type KeepSecret = (dataDir: string, name: string, bytes: number, encoding: 'base64' | 'base64url') => string;

/** Reads the secret, and writes nothing: where there is none, one is made that nobody else gets to know. */
export const seenSecret: KeepSecret = (dataDir, name, bytes, encoding) =>
  read(join(dataDir, name)) ?? randomBytes(bytes).toString(encoding);

/**
 * The secret kept in `dataDir/name`; made from `bytes` random bytes in base64 (or base64url) when there is none. Two
 * processes that start at once get the same one: the file is created exclusively, and who loses the race reads the
 * winner's. Throws on a directory that cannot be written.
 */
export function keptSecret(dataDir: string, name: string, bytes: number, encoding: 'base64' | 'base64url'): string {
  const path = join(dataDir, name);
  const found = read(path);
  if (found !== undefined) return found;
  mkdirSync(dataDir, { recursive: true });
  const made = randomBytes(bytes).toString(encoding);
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      writeSync(file, `${made}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    return made;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    const theirs = read(path);
    if (theirs === undefined) throw new Error(`${name} in DATA_DIR is empty: delete it to have a new one made`);
    return theirs;
  }
}

function read(path: string): string | undefined {
  try {
    const kept = readFileSync(path, 'utf8').trim();
    return kept === '' ? undefined : kept;
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

const isCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code;
