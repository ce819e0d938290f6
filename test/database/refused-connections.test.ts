/** What the platform makes of a PostgreSQL that lets it in no more, and of a pooler between the two. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSecureContext, TLSSocket } from 'node:tls';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import { asUnavailable } from '../../src/database/driver/database.ts';
import { openPostgres } from '../../src/database/driver/postgres.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { STATEMENT_MAX_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { makeCertificate } from '../support/certificate.ts';
import { masterKey, openTestStore, type TestStore } from './open.ts';

let database: TestStore;
let admin: postgres.Sql;
beforeAll(async () => {
  database = await openTestStore();
  admin = postgres({ path: socket(), user: 'sidetone', database: 'postgres', max: 1 });
  await admin.unsafe('CREATE ROLE tenant LOGIN');
  await admin.unsafe('CREATE DATABASE other OWNER tenant');
});
afterAll(async () => {
  await admin.end();
  await database.close();
});

const socket = () => `${database.dataDir}/postgres-socket/.s.PGSQL.5432`;
const url = (role: string) => `postgres://${role}@localhost/other?host=${database.dataDir}/postgres-socket`;
const openAt = (databaseUrl: string) =>
  openStore({ dataDir: database.dataDir, databaseUrl, databaseDriver: 'postgres', masterKey }, silentLog, systemClock());

/** Runs SQL as the owner of the server, and ends all connections to the database of the tests. */
async function change(sql: string): Promise<void> {
  await admin.unsafe(sql);
  await admin.unsafe("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = 'other'");
}

/** What the platform says once it has asked for a new connection: a statement may still meet the end of an old one. */
async function refusalOf(store: Store): Promise<string> {
  for (let turn = 1; ; turn += 1) {
    const error: unknown = await store.apps.list().catch((refused: unknown) => refused);
    expect(error).toBeInstanceOf(StoreUnavailable);
    if (String(error).includes('(') || turn === 20) return String(error);
  }
}

describe('a database that lets the platform in no more while it runs', () => {
  const table: readonly (readonly [string, string, string, string])[] = [
    ['whose password was changed', 'ALTER ROLE tenant NOLOGIN', 'ALTER ROLE tenant LOGIN', '28000: role "tenant"'],
    [
      'that is shut for a restore',
      'ALTER DATABASE other ALLOW_CONNECTIONS false',
      'ALTER DATABASE other ALLOW_CONNECTIONS true',
      '55000: database "other"',
    ],
    [
      'that has another name for a while',
      'ALTER DATABASE other RENAME TO hidden',
      'ALTER DATABASE hidden RENAME TO other',
      '3D000: database "other" does not exist',
    ],
  ];
  test.each(table)(
    '%s is away, as in any outage, and works when it is back',
    async (_, shut, open, why) => {
      const store = await openAt(url('tenant'));
      expect(await store.apps.list()).toEqual([]);
      // A database can be renamed only while nobody is connected.
      if (shut.includes('RENAME')) await change('ALTER DATABASE other ALLOW_CONNECTIONS false');
      await change(shut);
      if (shut.includes('RENAME')) await admin.unsafe('ALTER DATABASE hidden ALLOW_CONNECTIONS true');
      expect(await refusalOf(store)).toContain(`the database is away (${why}`);
      await change(open);
      expect(await store.apps.list()).toEqual([]);
      await store.close();
    },
    30_000,
  );

  test('is told as one that refuses, with its reason, where that comes at the start', async () => {
    await expect(openAt(url('nobody_known'))).rejects.toThrow(
      'DATABASE_URL: the database refused: role "nobody_known" does not exist (28000)',
    );
  });

  test('is told as one whose certificate is not trusted, where that keeps the platform from starting', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'database-certificate-'));
    const files = { certFile: join(directory, 'crt'), keyFile: join(directory, 'key') };
    makeCertificate(files, { name: 'localhost', days: 2, altNames: ['DNS:localhost'] });
    const secureContext = createSecureContext({ cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) });
    // A server that answers an SSLRequest with yes, and then has a certificate of its own making.
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write('S');
        new TLSSocket(socket, { isServer: true, secureContext }).on('error', () => {});
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    await expect(openAt(`postgres://tenant@localhost:${port}/other?sslmode=verify-full`)).rejects.toThrow(
      /cannot be reached \(.*SIGNED.*\): its certificate is not trusted: NODE_EXTRA_CA_CERTS/,
    );
    server.close();
    rmSync(directory, { recursive: true });
  }, 60_000);

  test.each(['CERT_HAS_EXPIRED', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SELF_SIGNED_CERT_IN_CHAIN', 'ERR_TLS_CERT_ALTNAME_INVALID'])(
    'because of its certificate (%s) is away too',
    (code) => {
      const error = Object.assign(new Error('not to be trusted'), { code });
      expect(String(asUnavailable(error))).toBe(`StoreUnavailable: the database is away (${code})`);
    },
  );
});

test('what a URL says of the name and the limits of a connection gives way to what the platform needs', async () => {
  const connection = openPostgres({ url: `${database.url}&application_name=mine&statement_timeout=0&work_mem=5MB` });
  const rows = await connection.query<{ name: string; setting: string }>(
    "SELECT name, setting FROM pg_settings WHERE name IN ('application_name', 'statement_timeout', 'work_mem') ORDER BY name",
  );
  await connection.close();
  expect(rows.map(({ setting }) => setting)).toEqual([
    expect.stringMatching(/^sidetone /),
    String(STATEMENT_MAX_MS),
    String(5 * 1024),
  ]);
});

/** A pooler that knows user, database and application of a connection, as PgBouncer where it pools transactions. */
async function pooler(): Promise<{ readonly port: number; readonly server: Server }> {
  const server = createServer((client) => {
    const behind = connect({ path: socket() });
    client.once('data', (startup: Buffer) => {
      const words = startup.subarray(8).toString('latin1').split('\0');
      const kept = ['user', 'database', 'application_name'].flatMap((name) => [name, words[words.indexOf(name) + 1] ?? '']);
      const parameters = Buffer.from(`${kept.join('\0')}\0\0`, 'latin1');
      const head = Buffer.alloc(8);
      head.writeUInt32BE(8 + parameters.length, 0);
      startup.copy(head, 4, 4, 8);
      behind.write(Buffer.concat([head, parameters]));
      client.pipe(behind);
      behind.pipe(client);
    });
    for (const each of [client, behind]) each.on('error', () => {});
    client.on('close', () => behind.destroy());
    behind.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, server };
}

test('a pooler that gives each transaction another connection is refused at the start', async () => {
  const { port, server } = await pooler();
  await expect(openAt(`postgres://sidetone@127.0.0.1:${port}/postgres`)).rejects.toThrow(
    /^DATABASE_URL: a pooler stands before the database, as PgBouncer, .*: name PostgreSQL itself$/,
  );
  server.close();
});
