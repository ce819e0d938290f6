/** Names that applications and far ends give us, and the files that are read beside their look-ups. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookUp } from '../../src/outbound/lookup.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sidetone-dns-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

test('Names whose DNS server never answers hold up no file', () => {
  const library = join(folder, 'mute.so');
  const source = join(import.meta.dir, '../support/mute-dns.c');
  expect(spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'], { stdio: 'inherit' }).status).toBe(0);
  const program = `
    import { stat } from 'node:fs/promises';
    import { availableParallelism } from 'node:os';
    import { lookUp } from ${JSON.stringify(join(import.meta.dir, '../../src/outbound/lookup.ts'))};
    for (let each = 0; each < 4 * availableParallelism(); each++) lookUp('n' + each + '.mute.test').catch(() => {});
    console.log((await stat('/')).isDirectory());
    process.exit();
  `;
  const env = { ...process.env, LD_PRELOAD: library };
  const { stdout } = spawnSync(process.execPath, ['-e', program], { env, encoding: 'utf8', timeout: 4_000 });
  expect(stdout).toBe('true\n');
});

test('A name of /etc/hosts is found, in the IP version that is asked for', async () => {
  expect(await lookUp('localhost', 4)).toMatchObject([{ address: '127.0.0.1', family: 4 }]);
  expect((await lookUp('localhost')).map(({ address }) => address)).toContain('127.0.0.1');
});
