/** What the programs that look for faults say to an option that is no number. */
import { expect, test } from 'bun:test';
import { join } from 'node:path';

const PROGRAMS = [
  ['fuzz/fuzz.ts', 'sip', '--seconds'],
  ['fuzz/fuzz.ts', 'sip', '--seed'],
  ['faults/crash.ts', '--rounds'],
  ['faults/outages.ts', '--seconds'],
  ['simulation/simulate.ts', '--seeds'],
  ['simulation/simulate.ts', '--seed'],
  ['simulation/simulate.ts', '--jobs'],
] as const;

test('A number that is none ends a program with 2 and its option, and is not taken for a run without faults', async () => {
  for (const [file, ...options] of PROGRAMS) {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, '..', file), ...options, 'many'], {
      stdout: 'ignore',
      stderr: 'pipe',
    });
    const said = await new Response(child.stderr).text();
    expect({ file, code: await child.exited, said }).toEqual({ file, code: 2, said: `${options.at(-1)}: expected a number\n` });
  }
}, 60_000);
