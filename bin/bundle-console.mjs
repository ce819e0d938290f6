#!/usr/bin/env node
/**
 * Bundles the operator's console (`console/`) into `build/console` with Bun's own bundler: one page, one script and one
 * style sheet, the latter two named by their content. It takes a fraction of a second and is done only where the
 * sources are others than those of the last time.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const built = join(root, 'build', 'console');
const stamp = join(built, 'sources.sha256');

/** Returns whether the console is there. `say` is told before it is bundled. */
export function bundleConsole(say) {
  const sources = hashOfSources();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === sources) return true;
  say('bundling the console …');
  // A platform that runs, and another build, see the old files or the new ones.
  const fresh = `${built}.${process.pid}`;
  const options = [`--outdir=${fresh}`, '--production', '--public-path=/console/'];
  const bun = join(root, 'node_modules/.bin/bun');
  const done = spawnSync(bun, ['build', join(root, 'console/index.html'), ...options], { cwd: root, encoding: 'utf8' });
  if (done.status !== 0) {
    process.stderr.write(`${done.stdout ?? ''}${done.stderr ?? ''}`);
    rmSync(fresh, { recursive: true, force: true });
    return false;
  }
  writeFileSync(join(fresh, 'sources.sha256'), sources);
  rmSync(built, { recursive: true, force: true });
  try {
    renameSync(fresh, built);
  } catch {
    // Another build was faster.
    rmSync(fresh, { recursive: true, force: true });
  }
  return existsSync(stamp);
}

/** A hash of all that the console is bundled from. */
function hashOfSources() {
  const hash = createHash('sha256');
  for (const entry of readdirSync(join(root, 'console'), { recursive: true }).sort()) {
    if (/\.(ts|tsx|css|html|svg|json)$/.test(entry)) hash.update(entry).update(readFileSync(join(root, 'console', entry)));
  }
  for (const file of ['package-lock.json', 'src/event/names.ts', 'sdk/typescript/src/browser.ts', 'bin/bundle-console.mjs'])
    hash.update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exit(bundleConsole((message) => process.stderr.write(`sidetone: ${message}\n`)) ? 0 : 1);
