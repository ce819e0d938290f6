/**
 * The names that a DATA_DIR carries: `volume.id`, its own, which outlives every process, and `node.id`, the process
 * that used it last.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isUuid, newUuid } from '../id.ts';
import { startError } from '../start-error.ts';

/** The name of the DATA_DIR, made at its first use. Throws with one line when the directory cannot be written. */
export function volumeIdOf(dataDir: string): string {
  const path = join(dataDir, 'volume.id');
  const known = readIfThere(path);
  if (known !== undefined) return known;
  const made = newUuid();
  write(dataDir, path, made);
  return made;
}

/** The process that used the DATA_DIR last; undefined at the first start. */
export const nodeBefore = (dataDir: string): string | undefined => readIfThere(join(dataDir, 'node.id'));

/** Leaves the name of this process for the next one. Throws when the directory cannot be written. */
export const leaveNodeId = (dataDir: string, nodeId: string): void => write(dataDir, join(dataDir, 'node.id'), nodeId);

function write(dataDir: string, path: string, text: string): void {
  try {
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  } catch (error) {
    throw startError('DATA_DIR', `${path} cannot be written`, error);
  }
}

function readIfThere(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return isUuid(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
