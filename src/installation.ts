/**
 * Tells where the platform's own files are: beside the sources, or inside the one file that `npm run binary` makes. Bun
 * shows what such a file carries under a path of its own, in the folders of the repository.
 */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const CARRIED = '/$bunfs/root';

/** The platform runs from one file. */
export const isOneFile: boolean = fileURLToPath(import.meta.url).startsWith(`${CARRIED}/`);

const root = isOneFile ? CARRIED : join(dirname(fileURLToPath(import.meta.url)), '..');

/** The path of a file or folder of the repository: `drizzle`, `build/console`. */
export const installed = (name: string): string => join(root, name);

/** The script of a thread, by its path in the repository. It is compiled in the one file. */
export const threadScript = (name: string): URL => pathToFileURL(join(root, isOneFile ? name.replace(/\.ts$/, '.js') : name));

/** The path of a file of an npm package: `swagger-ui-dist/swagger-ui.css`. */
export const ofPackage = (name: string): string =>
  isOneFile ? join(root, 'node_modules', name) : createRequire(import.meta.url).resolve(name);
