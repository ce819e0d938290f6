/** The name of this process, new at each start, and the name of the process that used the same DATA_DIR before. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isUuid, newUuid } from '../id.ts';

export interface NodeIds {
  readonly nodeId: string;
  /** Undefined at the first start on this DATA_DIR. */
  readonly before: string | undefined;
}

/**
 * Names this process and leaves the name in `DATA_DIR/node.id` for the next one. Throws when the directory cannot be
 * written.
 */
export function takeNodeId(dataDir: string): NodeIds {
  const path = join(dataDir, 'node.id');
  const nodeId = newUuid();
  mkdirSync(dataDir, { recursive: true });
  const before = readIfThere(path);
  writeFileSync(`${path}.new`, nodeId);
  renameSync(`${path}.new`, path);
  return { nodeId, before };
}

function readIfThere(path: string): string | undefined {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return isUuid(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
