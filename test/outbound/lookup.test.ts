/** Names that applications and far ends give us, and the files that are read beside their look-ups. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lookUp } from '../../src/outbound/lookup.ts';
import { NameServers } from '../../src/outbound/name-servers.ts';

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

test('Name servers that change while the platform runs are asked from then on', () => {
  const path = join(folder, 'resolv.conf');
  const asked: (readonly string[])[] = [];
  let now = 0;
  const servers = new NameServers({ path, now: () => now, ask: (some) => void asked.push(some) });
  const look = (seconds = 1) => {
    now += seconds * 1_000;
    servers.follow();
  };
  look();
  writeFileSync(path, '# none yet\n');
  look();
  expect(asked).toEqual([]);
  writeFileSync(`${path}.new`, 'search example.test\nnameserver 10.0.0.1\n nameserver\t2001:db8::1 \nnameserver fe80::1%eth0\n');
  renameSync(`${path}.new`, path);
  look(0.5);
  expect(asked).toEqual([]);
  look();
  look();
  expect(asked).toEqual([['10.0.0.1', '2001:db8::1']]);
  rmSync(path);
  look();
  writeFileSync(path, 'nameserver 10.0.0.2\n');
  look();
  expect(asked).toEqual([['10.0.0.1', '2001:db8::1'], ['10.0.0.2']]);
});
