/** Secrets the platform makes for itself, kept in `DATA_DIR` readable by its owner only. */
import { randomBytes, randomUUID } from 'node:crypto';
import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf } from '../error-facts.ts';

/** Gives the secret `dataDir/name` of so many bytes, which is made where there is none. */
export type KeepSecret = (dataDir: string, name: string, bytes: number, encoding: 'base64' | 'base64url') => string;

/** Reads the secret, and writes nothing: where there is none, one is made that nobody else gets to know. */
export const seenSecret: KeepSecret = (dataDir, name, bytes, encoding) =>
  read(join(dataDir, name)) || randomBytes(bytes).toString(encoding);

/**
 * The secret kept in `dataDir/name`; made from `bytes` random bytes in base64 (or base64url) when there is none, or an
 * empty file, as a full disk leaves behind. A database that was sealed under what an emptied file had refuses the start
 * later. The file appears whole or not at all. Two processes that start at once get the same secret: who loses the race
 * reads the winner's. Throws on a directory that cannot be written.
 */
export function keptSecret(dataDir: string, name: string, bytes: number, encoding: 'base64' | 'base64url'): string {
  const path = join(dataDir, name);
  const found = read(path);
  if (found) return found;
  mkdirSync(dataDir, { recursive: true });
  const fresh = `${path}.${randomUUID()}.new`;
  try {
    writeDurably(fresh, `${randomBytes(bytes).toString(encoding)}\n`);
    if (found === '') renameSync(fresh, path);
    else appear(fresh, path);
    syncDirectory(dataDir);
  } finally {
    rmSync(fresh, { force: true });
  }
  const kept = read(path);
  if (!kept) throw new Error(`${name} in DATA_DIR is empty: delete it to have a new one made`);
  return kept;
}

/** Gives the file its name, unless another process was faster. Some network file systems have no links, as SMB. */
function appear(fresh: string, path: string): void {
  if (isDone(() => linkSync(fresh, path))) return;
  try {
    copyFileSync(fresh, path, constants.COPYFILE_EXCL);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

function isDone(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

/** Writes a file that only its owner may read, down to the disk. */
function writeDurably(path: string, text: string): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Brings the names of a directory down to the disk, where its file system and its rights let us. */
function syncDirectory(path: string): void {
  isDone(() => {
    const directory = openSync(path, 'r');
    isDone(() => fsyncSync(directory));
    closeSync(directory);
  });
}

/** The text of the file, which may be empty; undefined where there is none. */
function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
