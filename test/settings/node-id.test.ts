import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeNodeId } from '../../src/settings/node-id.ts';

test('each start on a DATA_DIR is a node of its own, and knows the one before it', () => {
  const dataDir = join(mkdtempSync(join(tmpdir(), 'sidetone-node-')), 'data');
  const first = takeNodeId(dataDir);
  const second = takeNodeId(dataDir);
  expect(first.before).toBeUndefined();
  expect(second.before).toBe(first.nodeId);
  expect(second.nodeId).not.toBe(first.nodeId);
  writeFileSync(join(dataDir, 'node.id'), 'no uuid');
  expect(takeNodeId(dataDir).before).toBeUndefined();
  rmSync(dataDir, { recursive: true });
});
