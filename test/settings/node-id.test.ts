import { expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../src/id.ts';
import { leaveNodeId, nodeBefore, volumeIdOf } from '../../src/settings/node-id.ts';

test('a DATA_DIR keeps its own name and that of the process that used it last', () => {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'sidetone-node-')), 'data');
  expect(nodeBefore(dataDir)).toBeUndefined();
  const volume = volumeIdOf(dataDir);
  const first = newUuid();
  leaveNodeId(dataDir, first);
  expect(nodeBefore(dataDir)).toBe(first);
  leaveNodeId(dataDir, newUuid());
  expect(nodeBefore(dataDir)).not.toBe(first);
  expect(volumeIdOf(dataDir)).toBe(volume);
  writeFileSync(join(dataDir, 'node.id'), 'no uuid');
  expect(nodeBefore(dataDir)).toBeUndefined();
  rmSync(dataDir, { recursive: true });
});

test('a DATA_DIR that cannot be written is named', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-node-'));
  mkdirSync(join(dataDir, 'volume.id.new'));
  expect(() => volumeIdOf(dataDir)).toThrow(`DATA_DIR: ${dataDir}/volume.id cannot be written (EISDIR)`);
  rmSync(dataDir, { recursive: true });
});
