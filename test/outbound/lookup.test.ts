/** Names that applications and far ends give us, and the files that are read beside their look-ups. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { spawnSync } from 'node:child_process';
import dns, { getServers, type LookupOptions, setServers } from 'node:dns';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NameServers } from '../../src/outbound/dns/name-servers.ts';
import { lookUp, lookUpForeign } from '../../src/outbound/lookup.ts';
import { lookUpWithoutThreads } from '../../src/outbound/system-names.ts';
import { cpuMs } from '../support/cpu-time.ts';
import { addressRecord, NameServerPeer, reply } from '../support/name-server-peer.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sidetone-dns-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Whether a file is read beside what `begin` does with many names, `name(0)` and so on, whose DNS server never answers.
 */
function readsBeside(begin: string): boolean {
  const library = join(folder, 'mute.so');
  const source = join(import.meta.dir, '../support/mute-dns.c');
  expect(spawnSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl'], { stdio: 'inherit' }).status).toBe(0);
  const program = `
    import { createSocket } from 'node:dgram';
    import { setServers } from 'node:dns';
    import { stat } from 'node:fs/promises';
    import { availableParallelism } from 'node:os';
    const mute = createSocket('udp4');
    await new Promise((resolve) => mute.bind(0, '127.0.0.1', () => resolve()));
    setServers(['127.0.0.1:' + mute.address().port]);
    const name = (each) => 'n' + each + '.mute.test';
    for (let each = 0; each < 4 * availableParallelism(); each++) ${begin}
    // Some look names up in another thread, a moment later.
    for (let times = 0; times < 10; times++) await stat('/').then(() => new Promise((next) => setTimeout(next, 30)));
    console.log((await stat('/')).isDirectory());
    process.exit();
  `;
  const path = join(folder, 'program.ts');
  writeFileSync(path, program.replaceAll("'src/", `'${join(import.meta.dir, '../../src')}/`));
  const env = { ...process.env, LD_PRELOAD: library };
  const { stdout } = spawnSync(process.execPath, [path], { env, encoding: 'utf8', timeout: 4_000 });
  return stdout === 'true\n';
}

test('Names whose DNS server never answers hold up no file', () => {
  for (const look of ['lookUp', 'lookUpForeign'])
    expect([look, readsBeside(`(await import('src/outbound/lookup.ts')).${look}(name(each)).catch(() => {});`)]).toEqual([
      look,
      true,
    ]);
});

test('Neither do those of the database, of the object store and of what a library connects to', () => {
  expect(
    readsBeside(`{
      if (each === 0) (await import('src/outbound/system-names.ts')).lookUpWithoutThreads();
      (await import('node:net')).connect({ host: name(each), port: 9 }).on('error', () => {});
      (await import('node:http')).get('http://' + name(each)).on('error', () => {});
      const { openPostgres } = await import('src/database/driver/postgres.ts');
      openPostgres({ url: 'postgres://u@' + name(each) + '/d' }).query('SELECT 1').catch(() => {});
      const { ObjectStore } = await import('src/recording-storage/s3/object-store.ts');
      const { systemClock } = await import('src/clock.ts');
      const keys = { accessKeyId: 'a', secretAccessKey: 'b', region: 'c' };
      const store = new ObjectStore({ bucket: 'd', prefix: '', endpoint: 'http://' + name(each), ...keys }, systemClock());
      store.head('e').catch(() => {});
    }`),
  ).toBe(true);
});

test('The names that a library looks up are found as before: of one version or all, of addresses, and of none', async () => {
  lookUpWithoutThreads();
  const { lookup } = dns;
  const found = (name: string, options: LookupOptions) =>
    new Promise((resolve) => lookup(name, options, (error, address, family) => resolve(error?.code ?? [address, family])));
  expect(await found('localhost', { family: 4 })).toEqual(['127.0.0.1', 4]);
  expect(await found('::1', {})).toEqual(['::1', 6]);
  expect(await found('127.0.0.1', { all: true })).toEqual([[{ address: '127.0.0.1', family: 4 }], undefined]);
  expect(await found('unknown.invalid', {})).toMatch(/^(ENOTFOUND|EAI_AGAIN|ETIMEOUT|ECONNREFUSED)$/);
});

test('A name of thousands of addresses, which any application may name, takes no socket for each', async () => {
  const records = [Buffer.concat(Array.from({ length: 4_000 }, (_, at) => addressRecord(`10.0.${at >> 8}.${at & 0xff}`)))];
  const peer = await NameServerPeer.open();
  peer.answers = (asked) => {
    if (asked.type !== 1) return reply(asked, {});
    return asked.overTcp ? reply(asked, { records, count: 4_000 }) : reply(asked, { isCut: true });
  };
  const servers = getServers();
  await lookUpForeign('localhost', '');
  setServers([`${peer.host}:${peer.port}`]);
  try {
    expect((await lookUpForeign('first.test', 'app_first')).length).toBe(64);
    let names = 0;
    const cost = async (look: (name: string, owner: string) => Promise<unknown>) => {
      const before = cpuMs();
      for (let each = 0; each < 5; each++) await look(`n${names++}.test`, `app_${each}`);
      return cpuMs() - before;
    };
    // The name server has its part in both. What else the machine does is in some rounds only.
    const costs = { foreign: Infinity, all: Infinity };
    for (let round = 0; round < 4; round++) {
      costs.foreign = Math.min(costs.foreign, await cost(lookUpForeign));
      costs.all = Math.min(costs.all, await cost((name) => lookUp(name)));
    }
    expect(costs.foreign).toBeLessThan(costs.all / 1.5);
  } finally {
    setServers(servers);
    peer.close();
  }
});

test('A name of /etc/hosts is found, in the IP version that is asked for', async () => {
  for (const look of [lookUp, (name: string, family?: 4) => lookUpForeign(name, '', family)]) {
    expect(await look('localhost', 4)).toMatchObject([{ address: '127.0.0.1', family: 4 }]);
    expect((await look('localhost')).map(({ address }) => address)).toContain('127.0.0.1');
  }
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
  writeFileSync(
    `${path}.new`,
    'search example.test\nnameserver 10.0.0.1\n nameserver\t2001:db8::1 \nnameserver a.test\nnameserver fe80::1%eth0\n',
  );
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
