import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Every regular file under a directory, with what is in it. */
export function* filesBelow(directory: string): Generator<readonly [path: string, bytes: Buffer]> {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) yield* filesBelow(path);
    else if (stat?.isFile()) yield [path, readFileSync(path)];
  }
}
