/**
 * Writes what the SDKs have of each operation and event, from an OpenAPI document of the platform: types and methods of
 * TypeScript and of Python. `bun sdk/generate.ts URL` writes the files; a test holds them against the document that is
 * served.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Document } from './document.ts';
import { pythonApi } from './python-api.ts';
import { pythonTypes } from './python-types.ts';
import { typescriptApi } from './typescript-api.ts';

const document: Document = await (await fetch(process.argv[2] ?? 'http://127.0.0.1:8080/openapi.json')).json();
const FILES = {
  'typescript/src/api.ts': typescriptApi,
  'python/sidetone/_api.py': pythonApi,
  'python/sidetone/types.py': pythonTypes,
};
for (const [path, write] of Object.entries(FILES)) writeFileSync(join(import.meta.dir, path), write(document));
