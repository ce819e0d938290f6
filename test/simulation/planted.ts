/** Plants bugs one at a time in a copy of the tree, and counts the seeds in which the simulation finds each. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';

const ROOT = join(import.meta.dir, '../..');
/** A bug that is not found in so many seeds is not found. */
const SEEDS_MAX = 5_000;

/** Applies the bug to the copy. Returns what takes it back. */
function plant(copy: string, { file, from, to, name }: PlantedBug): () => void {
  const path = join(copy, file);
  const text = readFileSync(path, 'utf8');
  if (text.split(from).length !== 2) throw new Error(`the place of the bug is not in ${file}, or more than once: ${name}`);
  writeFileSync(
    path,
    text.replace(from, () => to),
  );
  return () => writeFileSync(path, text);
}

/** The number of seeds until the copy fails. Undefined: none of them does. */
function seedsUntilFound(copy: string, nodes: string): { readonly seeds: number; readonly breach: string } | undefined {
  const args = ['--seeds', String(SEEDS_MAX), '--until-found', '--every', '1', '--nodes', nodes];
  const { stdout, stderr } = spawnSync(process.execPath, [join(copy, 'test/simulation/simulate.ts'), ...args], {
    encoding: 'utf8',
    cwd: copy,
  });
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  if (last === '') throw new Error(`the simulation of the copy did not run: ${stderr.slice(-2_000)}`);
  const tally: { readonly seeds: number; readonly failed: readonly number[] } = JSON.parse(last);
  return tally.failed.length === 0 ? undefined : { seeds: tally.seeds, breach: stderr.split('\n')[0] ?? '' };
}

/** Plants every bug from number `first` on. Returns how many were not found. */
export function plantAll(nodes: string, first = 1): number {
  const copy = mkdtempSync(join(tmpdir(), 'sidetone-planted-'));
  let missed = 0;
  try {
    for (const folder of ['src', 'test/simulation', 'test/support', 'package.json', 'tsconfig.json'])
      cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
    for (const [at, bug] of PLANTED_BUGS.entries()) {
      if (at + 1 < first) continue;
      const takeBack = plant(copy, bug);
      const found = seedsUntilFound(copy, nodes);
      takeBack();
      if (found === undefined) missed += 1;
      const outcome =
        found === undefined ? `NOT found in ${SEEDS_MAX} seeds` : `found in ${found.seeds} seeds (${found.breach.slice(0, 110)})`;
      console.log(`${String(at + 1).padStart(2)}. ${bug.name}: ${outcome}`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  console.log(`${PLANTED_BUGS.length - first + 1 - missed} of ${PLANTED_BUGS.length - first + 1} planted bugs were found`);
  return missed;
}
