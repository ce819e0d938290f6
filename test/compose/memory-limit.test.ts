import { afterAll, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryLimit } from '../../src/compose/memory-limit.ts';

const MACHINE = 8e9;
const root = mkdtempSync(join(tmpdir(), 'sidetone-groups-'));
afterAll(() => rmSync(root, { recursive: true }));

/** What is told to a process in the group `own`, where groups have these limits. */
function told(name: string, own: string, limits: Readonly<Record<string, string>>): number {
  const groups = join(root, name);
  mkdirSync(groups);
  for (const [group, limit] of Object.entries(limits)) {
    mkdirSync(join(groups, group), { recursive: true });
    writeFileSync(join(groups, group, 'memory.max'), `${limit}\n`);
  }
  writeFileSync(join(groups, 'self'), `1:name=systemd:/other\n0::${own}\n`);
  return memoryLimit(groups, join(groups, 'self'), MACHINE);
}

test('A process is told the lowest limit of the groups that it is in, and the memory of the machine where none has one.', () => {
  expect(told('container', '/', { '': '536870912' })).toBe(536_870_912);
  expect(told('service', '/system.slice/sidetone.service', { '/system.slice/sidetone.service': '2000000000' })).toBe(2e9);
  expect(told('slice', '/a/b', { '/a': '1000000000', '/a/b': 'max', '/c': '5' })).toBe(1e9);
  expect(told('free', '/a', { '/a': 'max' })).toBe(MACHINE);
  expect(told('vast', '/', { '': '9000000000000' })).toBe(MACHINE);
  // A process of an outer namespace is shown with a path above its root.
  expect(told('above', '/../other', { '': '1000000000' })).toBe(1e9);
  expect(memoryLimit(join(root, 'none'), join(root, 'none'), MACHINE)).toBe(MACHINE);
});
