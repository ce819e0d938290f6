#!/usr/bin/env node
/**
 * `npm run bench -- NAME` runs `bench/NAME.ts` on Bun; without a name it lists what there is. What a bench has started
 * is ended with it, also where it fails or is interrupted.
 */
import { spawn } from 'node:child_process';
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

// A process group of its own, so that all of it can be told to end.
const bench = spawn(join(root, 'node_modules/.bin/bun'), [file, ...args], {
  cwd: root,
  stdio: ['ignore', 'inherit', 'inherit'],
  detached: true,
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(signal));
bench.on('error', (error) => {
  console.error(`the bench could not be started: ${error.message}. Install what it needs with: npm ci`);
  process.exitCode = 1;
});
bench.on('exit', (code) => {
  end('SIGTERM');
  process.exitCode = code ?? 1;
});

function end(signal) {
  if (bench.pid === undefined) return;
  try {
    process.kill(-bench.pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
