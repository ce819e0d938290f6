/** A PostgreSQL that somebody else has set up: what the platform sets itself, refuses with a reason, or warns of. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { createServer } from 'node:net';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { openStore } from '../../src/database/store.ts';
import type { Log } from '../../src/log.ts';
import { masterKey, openTestStore, type TestStore } from './open.ts';

let database: TestStore;
let admin: postgres.Sql;
beforeAll(async () => {
  database = await openTestStore();
  const path = `${database.dataDir}/postgres-socket/.s.PGSQL.5432`;
  admin = postgres({ path, user: 'sidetone', database: 'postgres', max: 1, onnotice: () => {} });
});
afterAll(async () => {
  await admin.end();
  await database.close();
});

/** A role with a database of its own. Returns the URL by which it works there. */
async function tenant(name: string, role = '', options = ''): Promise<string> {
  await admin.unsafe(`CREATE ROLE ${name} LOGIN ${role}`);
  await admin.unsafe(`CREATE DATABASE ${name} OWNER ${name} ${options}`);
  return `postgres://${name}@localhost/${name}?host=${database.dataDir}/postgres-socket`;
}

const settings = (databaseUrl: string) =>
  ({ dataDir: database.dataDir, databaseUrl, databaseDriver: 'postgres', masterKey }) as const;

/** A log that keeps its warnings. */
function keepingLog(): { readonly log: Log; readonly warnings: string[] } {
  const warnings: string[] = [];
  const nothing = () => {};
  return {
    warnings,
    log: {
      error: nothing,
      info: nothing,
      debug: nothing,
      warn: (fields, text) => warnings.push(`${text} ${JSON.stringify(fields)}`),
    },
  };
}

/** What a start says that opens the database at `url`: the error that ends it, and its warnings. */
async function start(url: string): Promise<readonly string[]> {
  const { log, warnings } = keepingLog();
  const opened = openDatabase(settings(url), log);
  const ended = await opened.then(
    async (open) => void (await open.close()),
    (error: unknown) => String(error),
  );
  return ended === undefined ? warnings : [...warnings, ended];
}

describe('what a role is set to', () => {
  test('does not keep secrets from being opened, a row from being waited for or read as it is, nor a lock from being held', async () => {
    const url = await tenant('odd');
    const odd = {
      bytea_output: "'escape'",
      lock_timeout: "'1ms'",
      default_transaction_isolation: "'serializable'",
      idle_session_timeout: "'1min'",
    };
    for (const [name, value] of Object.entries(odd)) await admin.unsafe(`ALTER ROLE odd SET ${name} = ${value}`);
    const { log } = keepingLog();
    const store = await openStore(settings(url), log, systemClock());
    const { appUuid, webhookSecret } = await store.apps.create({ name: 'odd', webhookUrl: 'http://127.0.0.1/' });
    expect(await store.credentials.signingSecrets(appUuid)).toEqual([webhookSecret]);
    await store.close();
    const open = await openDatabase(settings(url), log);
    const facts = `SELECT current_setting('lock_timeout') AS longest, current_setting('transaction_isolation') AS level,
      current_setting('idle_session_timeout') AS idle`;
    expect(await open.query(facts)).toEqual([{ longest: '2147483647ms', level: 'read committed', idle: '2147483647ms' }]);
    await open.close();
  });

  test('is told where it keeps the platform from starting: it may only read, its schema is not there', async () => {
    const url = await tenant('reader');
    await admin.unsafe('ALTER ROLE reader SET default_transaction_read_only = on');
    expect(await start(url)).toEqual([
      expect.stringMatching(
        /^Error: DATABASE_URL: the database refused: .* read-only transaction \(25006\): it is a standby, or default_/,
      ),
    ]);
    await admin.unsafe("ALTER ROLE reader RESET default_transaction_read_only; ALTER ROLE reader SET search_path = 'nowhere'");
    expect(await start(url)).toEqual([expect.stringMatching(/\(3F000\): its search_path names no schema that there is/)]);
    expect(await start(`${url}&search_path=public&sslrootcert=/ca.pem`)).toEqual([
      expect.stringMatching(
        /parameter "sslrootcert" \(42704\): leave a parameter that PostgreSQL does not know out of DATABASE_URL/,
      ),
    ]);
  });

  test('is told whose the tables are that another role has restored', async () => {
    const url = await tenant('restored');
    expect(await start(url)).toEqual([]);
    const path = `${database.dataDir}/postgres-socket/.s.PGSQL.5432`;
    const restorer = postgres({ path, user: 'sidetone', database: 'restored', max: 1 });
    await restorer.unsafe('ALTER TABLE sidetone_migrations OWNER TO sidetone');
    await restorer.end();
    expect(await start(url)).toEqual([
      expect.stringMatching(/permission denied for table sidetone_migrations \(42501\): .*restored.*ALTER TABLE … OWNER TO/),
    ]);
  });
});

describe('a start that works says', () => {
  test('nothing of a database that is as it should be', async () => {
    expect(await start(await tenant('plain'))).toEqual([]);
  });

  test('that the database cannot hold every letter', async () => {
    const url = await tenant('latin', '', "ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'");
    expect(await start(url)).toEqual([expect.stringMatching(/cannot hold every letter.*ENCODING 'UTF8'.*"encoding":"LATIN1"/)]);
  });

  test('nothing of a machine that was too busy for a statement at first', async () => {
    const url = await tenant('busy');
    const own = postgres({ path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'busy', database: 'busy', max: 1 });
    await own.unsafe(`CREATE SEQUENCE asked;
      CREATE FUNCTION late() RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN IF nextval('public.asked') = 1 THEN PERFORM pg_sleep(60); END IF; RETURN true; END $$;
      CREATE VIEW public.pg_settings AS SELECT * FROM pg_catalog.pg_settings WHERE late();
      ALTER ROLE busy SET search_path = public, pg_catalog`);
    await own.end();
    expect(await start(url)).toEqual([]);
  });

  test('that a newer release has migrated the database, and goes on', async () => {
    const url = await tenant('ahead');
    expect(await start(url)).toEqual([]);
    const own = postgres({ path: `${database.dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'ahead', database: 'ahead', max: 1 });
    await own`INSERT INTO sidetone_migrations (hash, applied_at) VALUES ('of the next release', '2030-01-02T03:04:05.678Z')`;
    await own.end();
    expect(await start(url)).toEqual([
      expect.stringMatching(
        /newer release.*one release back.*start that one.*"migrations":1,"applied_at":"2030-01-02T03:04:05\.678Z"/,
      ),
    ]);
  });

  test('that there may be too few connections', async () => {
    expect(await start(await tenant('few', 'CONNECTION LIMIT 11'))).toEqual([
      expect.stringMatching(/fewer connections than a process opens.*"connections":11,"expected":12/),
    ]);
  });
});

test('A server without TLS is told as such, where the URL asks for TLS.', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write('N');
      socket.once('data', () => socket.resetAndDestroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  expect(await start(`postgres://tenant@127.0.0.1:${port}/other?sslmode=require`)).toEqual([
    expect.stringMatching(/\(ECONNRESET\): is PostgreSQL up there, with TLS as sslmode=require asks for/),
  ]);
  expect(await start(`postgres://tenant@127.0.0.1:${port}/other?sslmode=disabled`)).toEqual([
    expect.stringMatching(/\(ECONNRESET\): its sslmode is none of disable/),
  ]);
  server.close();
});

test('A pooler that refuses the settings of a connection is told as one.', async () => {
  // The very answer of PgBouncer 1.18 as it is installed.
  const fields = ['SFATAL', 'C08P01', 'Munsupported startup parameter: statement_timeout'].map((field) => `${field}\0`).join('');
  const answer = Buffer.from(`E\0\0\0\0${fields}\0`, 'latin1');
  answer.writeInt32BE(answer.length - 1, 1);
  const server = createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.end(answer)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  expect(await start(`postgres://tenant@127.0.0.1:${port}/other`)).toEqual([
    expect.stringMatching(/statement_timeout \(08P01\): a pooler stands before the database.*name PostgreSQL itself/),
  ]);
  server.close();
});
