#!/usr/bin/env node
/** `npm run bench -- NAME` runs `bench/NAME.ts` on Bun; without a name it lists what there is. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const [name, ...args] = process.argv.slice(2);
const file = join(root, 'bench', `${name}.ts`);
if (name === undefined || !existsSync(file)) {
  const names = readdirSync(join(root, 'bench')).filter((entry) => entry.endsWith('.ts'));
  console.log(`npm run bench -- NAME, where NAME is one of:\n${names.map((entry) => `  ${entry.slice(0, -3)}`).join('\n')}`);
  process.exit(name === undefined ? 0 : 2);
}
process.exit(spawnSync(join(root, 'node_modules/.bin/bun'), [file, ...args], { cwd: root, stdio: 'inherit' }).status ?? 1);
