/** What a test that was cut off leaves behind, as the suite removes it. */
import { afterAll, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbedded } from '../../src/database/embedded/embedded.ts';
import { silentLog } from '../../src/log.ts';
import { fillDataDir } from '../support/postgres-template.ts';

const parent = mkdtempSync(join(tmpdir(), 'sidetone-leftovers-'));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

test('A PostgreSQL that its platform has left behind is stopped and its directory removed; those of other suites stay', async () => {
  const [left, other] = [mkdtempSync(join(parent, 'suite-1-')), join(parent, 'suite-12-x')];
  mkdirSync(other);
  await fillDataDir(left);
  const server = await startEmbedded(left, silentLog);
  expect(server.alive()).toBe(true);
  const parents = JSON.stringify([parent, join(parent, 'nowhere')]);
  const call = `console.log(...(await removeLeftovers('suite-1-', ${parents})))`;
  const program = `import { removeLeftovers } from './bin/test-leftovers.mjs'; ${call}`;
  const said = spawnSync('node', ['--input-type=module', '-e', program], { cwd: join(import.meta.dir, '../..') });
  expect([said.stdout.toString().trim(), said.stderr.toString()]).toEqual([left, '']);
  expect([server.alive(), existsSync(left), existsSync(other)]).toEqual([false, false, true]);
});
