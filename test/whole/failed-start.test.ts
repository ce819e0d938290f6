/** What keeps the platform from starting is said in one line that names the setting, and nothing is left running. */
import { afterAll, describe, expect, test } from 'bun:test';
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import postgres from 'postgres';
import { openTestStore } from '../database/open.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { fillDataDir } from '../support/postgres-template.ts';

const NOBODY = 65_534;
const ROOT = join(import.meta.dir, '../..');
const dataDir = dataDirectory('sidetone-failed-');
const http = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() });
const udp = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0 });
const page = join(dataDir, 'page.html');
await fillDataDir(dataDir);
writeFileSync(page, '<html>');
afterAll(async () => {
  await http.stop(true);
  udp.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const environmentOf = (more: Readonly<Record<string, string>>) => ({
  PATH: process.env.PATH ?? '',
  HTTP_PORT: '0',
  SIP_LISTEN: 'udp:127.0.0.1:0',
  MEDIA_WORKERS: '1',
  DATA_DIR: dataDir,
  ...more,
});

/** What a start says on its standard error, as this user or as another one. */
function refusal(environment: Readonly<Record<string, string>>, uid = process.getuid?.()): string {
  const { status, stderr } = spawnSync(process.execPath, ['--no-env-file', 'src/main.ts'], {
    cwd: ROOT,
    env: environmentOf(environment),
    encoding: 'utf8',
    timeout: 30_000,
    uid,
  });
  return `${status} ${stderr}`;
}

describe('a start that fails', () => {
  const tls = (file: string) => ({ SIP_LISTEN: 'tls:127.0.0.1:0', SIP_TLS_CERT: file, SIP_TLS_KEY: file });
  const table: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
    [
      'an HTTP port that is taken',
      { HTTP_PORT: String(http.port) },
      `HTTP_HOST, HTTP_PORT: port ${http.port} of 127.0.0.1 cannot be bound (EADDRINUSE): another process has it`,
    ],
    [
      'HTTP at an address of another machine',
      { HTTP_HOST: '203.0.113.9' },
      'HTTP_HOST, HTTP_PORT: port 0 of 203.0.113.9 cannot be bound (EADDRNOTAVAIL): it is no address of this machine',
    ],
    [
      'a port for browsers that is taken',
      { WEBRTC_LISTEN: `127.0.0.1:${udp.port}` },
      `WEBRTC_LISTEN: port ${udp.port} of 127.0.0.1 cannot be bound (EADDRINUSE): another process has it`,
    ],
    [
      'a database that is not there',
      { DATABASE_URL: 'postgres://sidetone:geheim@127.0.0.1:1/sidetone' },
      'DATABASE_URL: the database at 127.0.0.1:1 cannot be reached (ECONNREFUSED): is PostgreSQL up there',
    ],
    [
      'HTTP at a name that nobody knows',
      { HTTP_HOST: 'nowhere.invalid' },
      'HTTP_HOST, HTTP_PORT: port 0 of nowhere.invalid cannot be bound (the name has no address)',
    ],
    [
      'a SIP port that is taken over UDP',
      { SIP_LISTEN: `udp:127.0.0.1:${udp.port}` },
      `SIP_LISTEN: port ${udp.port} of 127.0.0.1 cannot be bound for udp (EADDRINUSE): another process has it`,
    ],
    [
      'a SIP port that is taken over TCP',
      { SIP_LISTEN: `tcp:127.0.0.1:${http.port}` },
      `SIP_LISTEN: port ${http.port} of 127.0.0.1`,
    ],
    ['a certificate that is not there', tls('/nowhere'), 'SIP_TLS_CERT, SIP_TLS_KEY: the certificate'],
    ['a certificate that is none', tls(page), 'SIP_TLS_CERT, SIP_TLS_KEY: the certificate'],
    [
      'media at an address of another machine',
      { RTP_HOST: '203.0.113.9' },
      'RTP_HOST (by default the host of SIP_LISTEN): no port of 203.0.113.9 can be bound (EADDRNOTAVAIL): it is no address of this machine: `ip address` lists those; one that a router or a cloud maps to this machine belongs into SIP_ADVERTISE',
    ],
    ['media at a name', { SIP_LISTEN: 'udp:voice.example:0' }, 'RTP_HOST: expected an IP address of this machine'],
  ];
  test.each(table)(
    'says which setting it was: %s',
    (_, environment, wanted) => {
      expect(refusal(environment)).toStartWith(`1 sidetone: ${wanted}`);
      expect(existsSync(join(dataDir, 'postgres/postmaster.pid'))).toBe(false);
    },
    40_000,
  );

  test('is stopped by SIGTERM before it is over, with its database', async () => {
    const marker = join(dataDir, 'postgres/postmaster.pid');
    const child = spawn(process.execPath, ['--no-env-file', 'src/main.ts'], {
      cwd: ROOT,
      env: environmentOf({}),
      stdio: 'ignore',
    });
    const ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
    while (!existsSync(marker) && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
    expect(existsSync(marker)).toBe(false);
  }, 40_000);

  test('says that it was DATABASE_URL where the role there may not make tables', async () => {
    const database = await openTestStore();
    const sql = postgres({
      path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`,
      user: 'sidetone',
      database: 'postgres',
      max: 1,
    });
    for (const statement of ['CREATE ROLE poor LOGIN', 'CREATE DATABASE empty']) await sql.unsafe(statement);
    await sql.end();
    const url = database.url.replace('sidetone@', 'poor@').replace('/postgres?', '/empty?');
    expect(refusal({ DATABASE_URL: url })).toStartWith(
      '1 sidetone: DATABASE_URL: the database refused: permission denied for schema public (42501): give the role the right',
    );
    expect(refusal({ DATABASE_URL: database.url.replace('/postgres?', '/nowhere?') })).toStartWith(
      '1 sidetone: DATABASE_URL: the database refused: database "nowhere" does not exist (3D000): make it',
    );
    await database.close();
  }, 40_000);
});

/** Whether this is root, and another user may read the checkout and run Bun. */
const mayStartAsNobody =
  process.getuid?.() === 0 &&
  spawnSync(process.execPath, ['--version'], { cwd: ROOT, uid: NOBODY, stdio: 'ignore' }).status === 0;

test.skipIf(!mayStartAsNobody)(
  'A DATA_DIR in which root was there first is named as that of another user',
  () => {
    const keys = { MASTER_KEY: Buffer.alloc(32, 7).toString('base64'), OPERATOR_TOKEN: 'operator'.repeat(4) };
    const folder = dataDirectory('sidetone-owned-');
    mkdirSync(join(folder, 'postgres'), { mode: 0o700 });
    writeFileSync(join(folder, 'postgres/PG_VERSION'), '18');
    chownSync(folder, NOBODY, NOBODY);
    try {
      expect(refusal({ ...keys, DATA_DIR: folder }, NOBODY)).toContain(
        `DATA_DIR: the embedded PostgreSQL cannot be kept in ${folder} (EACCES): ${folder}/postgres/PG_VERSION is another user's`,
      );
      rmSync(join(folder, 'postgres'), { recursive: true });
      mkdirSync(join(folder, 'recordings'));
      expect(refusal({ ...keys, DATA_DIR: folder }, NOBODY)).toContain(
        `DATA_DIR: recordings cannot be kept in ${folder}/recordings (EPERM): ${folder}/recordings is another user's`,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  90_000,
);
