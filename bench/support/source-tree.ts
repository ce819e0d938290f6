/** Peers that are built from a source tree that the caller has: once a tree, into `build/peers`, which git ignores. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';

const peers = join(import.meta.dir, '../../build/peers');

/**
 * Builds a copy of the tree by shell commands, in which `$PREFIX` is where to install to. Returns that folder; what was
 * built of the same tree before is used again. Throws with the end of the log where a command fails.
 */
export function builtFrom(name: string, tree: string, commands: readonly string[]): string {
  const source = resolve(tree);
  if (!existsSync(join(source, 'configure.ac')))
    throw new Error(`${source} is not a source tree of ${name}: it has no configure.ac`);
  const folder = join(peers, `${name}-${Bun.hash(source).toString(36)}`);
  const prefix = join(folder, 'installed');
  const whole = join(folder, 'whole');
  if (existsSync(whole)) return prefix;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(prefix, { recursive: true });
  console.log(`building ${name} from ${source}: some minutes, and once only`);
  const copy = join(folder, 'source');
  cpSync(source, copy, { recursive: true, filter: (from) => !from.endsWith('/.git'), verbatimSymlinks: true });
  for (const command of commands) {
    const started = performance.now();
    const { status, stdout } = spawnSync('sh', ['-c', `(${command}) 2>&1`], {
      cwd: copy,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
      env: { ...process.env, PREFIX: prefix, JOBS: String(availableParallelism()) },
    });
    if (status !== 0) throw new Error(`${name}: \`${command}\` failed:\n${stdout.slice(-3_000)}`);
    console.log(`  ${command.split('\n', 1)[0]?.slice(0, 70)}: ${((performance.now() - started) / 1000).toFixed(0)} s`);
  }
  writeFileSync(whole, '');
  rmSync(copy, { recursive: true });
  return prefix;
}
