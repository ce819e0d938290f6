import { afterEach, describe, expect, test } from 'bun:test';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { systemClock } from '../../src/clock.ts';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { runAs } from '../../src/database/embedded/unprivileged.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { newUuid } from '../../src/id.ts';
import { CONNECT_MAX_SEC } from '../../src/limits.ts';
import { type Log, silentLog } from '../../src/log.ts';
import { eventually } from '../cluster/harness.ts';
import { FaultProxy } from '../cluster/proxy.ts';
import { fillDataDir } from '../support/postgres-template.ts';
import { masterKey } from './open.ts';
import { sessionRow } from './rows.ts';

const isRoot = process.getuid?.() === 0;
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function freshDir(parent = tmpdir()): string {
  const dir = mkdtempSync(join(parent, 'sidetone-embedded-'));
  cleanups.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
/** A directory with a database as the first start makes it, for a test that is of a later one. */
async function startedDir(): Promise<string> {
  const dir = freshDir();
  await fillDataDir(dir);
  return dir;
}
async function open(dataDir: string, databaseUrl?: string, log: Log = silentLog): Promise<Store> {
  const store = await openStore({ dataDir, databaseUrl, databaseDriver: 'postgres', masterKey }, log, systemClock());
  cleanups.push(() => store.close());
  return store;
}
async function start(dataDir: string): Promise<EmbeddedServer> {
  const server = await startEmbedded(dataDir, silentLog);
  cleanups.push(() => server.stop());
  return server;
}
/** Running; a dead one that nobody has waited for yet is not. */
const alive = (pid: number): boolean => {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
};
/** The number of a process's parent; 0 where there is no such process any more. */
function parentOf(pid: string): number {
  try {
    return Number(/\) [A-Z] ([0-9]+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}
/** Kills a process; it is gone a moment after the signal. */
async function killed(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  while (alive(pid)) await new Promise((wake) => setImmediate(wake));
}
const postmaster = (dataDir: string) => Number(readFileSync(join(dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0]);

/** Runs the platform's store in a process of its own; resolves when it has stored the Session. */
async function platform(dataDir: string, sessionUuid: string, prefix: readonly string[] = []) {
  const child = Bun.spawn([...prefix, process.execPath, join(import.meta.dir, 'embedded-platform.ts'), dataDir, sessionUuid], {
    stdout: 'pipe',
    stderr: 'inherit',
    env: { PATH: process.env.PATH ?? '', HOME: tmpdir() },
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  return { child, said: new TextDecoder().decode(value) };
}

describe('the embedded PostgreSQL', () => {
  test('outlives a kill -9 of the platform, and is adopted by the next start', async () => {
    const dataDir = await startedDir();
    const sessionUuid = newUuid();
    const { child } = await platform(dataDir, sessionUuid);
    const pid = postmaster(dataDir);
    child.kill('SIGKILL');
    await child.exited;
    expect(alive(pid)).toBe(true);
    const said: string[] = [];
    const store = await open(dataDir, undefined, { ...silentLog, info: (_, message) => void said.push(message) });
    expect(said.join()).toContain('adopted');
    expect(postmaster(dataDir)).toBe(pid);
    expect((await store.sessions.get(`app_${sessionUuid}`, sessionUuid))?.sessionUuid).toBe(sessionUuid);
    await store.close();
    expect(alive(pid)).toBe(false);
  });

  test('that was killed too, its lock now naming another process, is started again', async () => {
    const dataDir = await startedDir();
    const first = await start(dataDir);
    const lock = join(dataDir, 'postgres/postmaster.pid');
    const text = readFileSync(lock, 'utf8');
    await first.stop();
    writeFileSync(lock, text.replace(/^[0-9]+/, String(process.pid)));
    const again = await start(dataDir);
    expect(again.adopted).toBe(false);
    expect(again.pid).not.toBe(process.pid);
  });

  test('that was killed is started again where the lock of its socket names a process that lives', async () => {
    const dataDir = await startedDir();
    const first = await start(dataDir);
    const lock = join(first.socketDir, `.s.PGSQL.${first.port}.lock`);
    const text = readFileSync(lock, 'utf8');
    await killed(first.pid);
    // In a container numbers come again: the lock's number is that of a process which has nothing to do with it.
    writeFileSync(lock, text.replace(/^[0-9]+/, String(process.pid)));
    expect((await start(dataDir)).adopted).toBe(false);
  });

  test('that was killed is started again only when none of its processes is left to write', async () => {
    const dataDir = await startedDir();
    const first = await start(dataDir);
    const processes = () => readdirSync('/proc').filter((pid) => /^[0-9]+$/.test(pid) && parentOf(pid) === first.pid);
    // The last of them come a moment after it takes connections.
    await eventually(() => processes().length > 2, 'its processes');
    const workers = processes();
    // One that is stopped does not notice that its server is gone.
    process.kill(Number(workers[0]), 'SIGSTOP');
    await killed(first.pid);
    expect((await start(dataDir)).adopted).toBe(false);
    expect(workers.filter((pid) => alive(Number(pid)))).toEqual([]);
  });

  test('ends a statement that an earlier process left under way before anything is looked at, and nothing else', async () => {
    const dataDir = await startedDir();
    const { socketDir, port } = await start(dataDir);
    const connect = (application_name: string) =>
      postgres({
        path: `${socketDir}/.s.PGSQL.${port}`,
        user: 'sidetone',
        database: 'postgres',
        max: 1,
        connection: { application_name },
      });
    const [earlier, stranger, watch] = [connect('sidetone of before'), connect('psql'), connect('psql')];
    cleanups.push(async () => void (await Promise.all([earlier, stranger, watch].map((sql) => sql.end({ timeout: 1 })))));
    const [left, other] = [earlier, stranger].map((sql) =>
      sql`SELECT pg_sleep(60)`.then(
        () => 'done',
        (error: Error) => error.message,
      ),
    );
    const asleep = () => watch`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
    while ((await asleep()).length < 2);
    await openStore(
      { dataDir, databaseUrl: undefined, databaseDriver: 'postgres', masterKey },
      silentLog,
      systemClock(),
      newUuid(),
      'one',
    ).then((store) => cleanups.push(() => store.close()));
    expect(await left).toMatch(/terminating connection|CONNECTION_CLOSED/);
    expect(await Promise.race([other, Promise.resolve('under way')])).toBe('under way');
  });

  test('is whole after the first start was cut short', async () => {
    const dataDir = freshDir();
    mkdirSync(join(dataDir, 'postgres.new-1'), { recursive: true });
    writeFileSync(join(dataDir, 'postgres.new-1/PG_VERSION'), '18');
    expect((await start(dataDir)).adopted).toBe(false);
  });

  test('has a private socket and nothing on the network, and flushes before it answers', async () => {
    const dataDir = freshDir();
    const server = await start(dataDir);
    expect(statSync(server.socketDir).mode & 0o077).toBe(0);
    expect(statSync(join(dataDir, 'postgres')).mode & 0o077).toBe(0);
    const settings = readFileSync(join(dataDir, 'postgres/postgresql.conf'), 'utf8');
    for (const each of ["listen_addresses = ''", 'fsync = on', 'synchronous_commit = on']) expect(settings).toContain(each);
  });

  test('keeps its socket elsewhere when the path of DATA_DIR is too long for one', async () => {
    const dataDir = join(freshDir(), 'a'.repeat(60), 'b'.repeat(60));
    const server = await start(dataDir);
    cleanups.push(() => rmSync(server.socketDir, { recursive: true, force: true }));
    expect(server.socketDir.length).toBeLessThan(93);
    expect(server.socketDir.startsWith(dataDir)).toBe(false);
  });

  test.skipIf(!isRoot)('never runs as root, also under a directory that only root may enter', async () => {
    const closed = freshDir();
    chmodSync(closed, 0o700);
    const server = await start(join(closed, 'data'));
    expect(statSync(`/proc/${server.pid}`).uid).not.toBe(0);
    const capabilities = /CapEff:\s+([0-9a-f]+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1];
    // CAP_DAC_OVERRIDE is bit 1, and the only one.
    expect(Number.parseInt(capabilities ?? '', 16)).toBe(2);
  });

  test.skipIf(!isRoot)('finds its programs also under a directory that only root may enter, as /root is', () => {
    const closed = freshDir();
    chmodSync(closed, 0o700);
    const program = join(closed, 'initdb');
    writeFileSync(program, '', { mode: 0o755 });
    // They ask by access(2), as PostgreSQL's validate_exec() does.
    const ask = `require('node:fs').accessSync(${JSON.stringify(program)}, 5); console.log(process.getuid())`;
    const { file, args } = runAs([program]).command(process.execPath, ['-e', ask]);
    const { stdout, stderr } = Bun.spawnSync([file, ...args], { env: { HOME: tmpdir() } });
    expect([stdout.toString().trim(), stderr.toString()]).toEqual([String(runAs([program]).uid), '']);
  });

  test.skipIf(!isRoot)('runs as the plain user that starts the platform', async () => {
    const dataDir = freshDir();
    chownSync(dataDir, 65534, 65534);
    const { child, said } = await platform(dataDir, newUuid(), ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']);
    expect(said).toBe('stored as 65534\n');
    const pid = postmaster(dataDir);
    expect(statSync(`/proc/${pid}`).uid).toBe(65534);
    child.kill('SIGTERM');
    expect(await child.exited).toBe(0);
    expect(alive(pid)).toBe(false);
  });
});

describe('a database that goes away', () => {
  test('fails commits and reads as unavailable at once, and is used again as soon as it is back', async () => {
    const dataDir = await startedDir();
    const before = await start(dataDir);
    const store = await open(dataDir, `postgres://sidetone@localhost/postgres?host=${before.socketDir}`);
    const row = sessionRow();
    expect(await store.journal.commit({ session: row, events: [] })).toBe(true);
    await before.stop();
    const started = performance.now();
    const outcomes = await Promise.allSettled([
      ...Array.from({ length: 20 }, () => store.journal.commit({ session: row, events: [] })),
      ...Array.from({ length: 20 }, () => store.sessions.get(row.appUuid, row.sessionUuid)),
      store.apps.list(),
    ]);
    for (const each of outcomes) expect(each.status === 'rejected' && each.reason instanceof StoreUnavailable).toBe(true);
    expect(await store.ready()).toBe(false);
    expect(performance.now() - started).toBeLessThan(12_000);
    await start(dataDir);
    const deadline = performance.now() + 10_000;
    while (!(await store.ready()) && performance.now() < deadline) await new Promise((wake) => setTimeout(wake, 20));
    expect(await store.journal.commit({ session: row, events: [] })).toBe(true);
  }, 40_000);

  test('because its embedded server was killed is started again by itself, with all that was committed', async () => {
    const dataDir = await startedDir();
    const store = await open(dataDir);
    const row = sessionRow();
    await store.journal.commit({ session: row, events: [] });
    const pid = postmaster(dataDir);
    process.kill(pid, 'SIGKILL');
    const deadline = performance.now() + 20_000;
    let back = false;
    while (!back && performance.now() < deadline) {
      await new Promise((wake) => setTimeout(wake, 50));
      // A process of the old server may still answer a moment after its postmaster was killed.
      back = existsSync(join(dataDir, 'postgres/postmaster.pid')) && postmaster(dataDir) !== pid && (await store.ready());
    }
    expect(back).toBe(true);
    expect((await store.sessions.get(row.appUuid, row.sessionUuid))?.sessionUuid).toBe(row.sessionUuid);
    expect(await store.journal.commit({ session: { ...row, state: 'ringing' }, events: [] })).toBe(true);
  }, 40_000);

  test('starts without a temporary directory, and leaves nothing but its data behind', async () => {
    const { TMPDIR } = process.env;
    cleanups.push(() => {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    });
    const dataDir = freshDir();
    process.env.TMPDIR = join(dataDir, 'nowhere');
    await start(dataDir);
    expect(readdirSync(dataDir).sort()).toEqual(['postgres', 'postgres-socket']);
  }, 20_000);

  test('names DATA_DIR where its data cannot be kept there', async () => {
    const dataDir = freshDir();
    writeFileSync(join(dataDir, 'postgres'), 'no directory');
    await expect(start(dataDir)).rejects.toThrow(`DATA_DIR: the embedded PostgreSQL cannot be kept in ${dataDir} (ENOTDIR)`);
  }, 20_000);

  test('stops the start with one line when it cannot be reached at all', async () => {
    const url = 'postgres://nobody@127.0.0.1:1/none';
    await expect(
      openStore({ dataDir: freshDir(), databaseUrl: url, databaseDriver: 'postgres', masterKey }, silentLog, systemClock()),
    ).rejects.toThrow(/^DATABASE_URL: the database at 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\): is PostgreSQL up there/);
  });

  test('is waited for at the start when a connection to it takes longer than a connection may', async () => {
    const server = await start(await startedDir());
    const proxy = await FaultProxy.start({ path: `${server.socketDir}/.s.PGSQL.${server.port}` });
    cleanups.push(async () => proxy.stop());
    proxy.set('blackhole');
    setTimeout(() => proxy.set('pass'), CONNECT_MAX_SEC * 1_000 + 200);
    const store = await open(freshDir(), `postgres://sidetone@127.0.0.1:${proxy.port}/postgres`);
    expect(await store.ready()).toBe(true);
  }, 30_000);

  test('is asked again at the start when a connection is closed under the first question', async () => {
    const server = await start(await startedDir());
    let closed = 0;
    const busy = createServer((socket) => {
      const through = createConnection({ path: `${server.socketDir}/.s.PGSQL.${server.port}` });
      for (const each of [socket, through]) each.on('error', () => {});
      through.pipe(socket);
      let heard = 0;
      socket.on('data', (chunk) => {
        heard += 1;
        if (heard === 1 || closed >= 2) through.write(chunk);
        else {
          closed += 1;
          socket.destroy();
          through.destroy();
        }
      });
      socket.on('close', () => through.destroy());
    });
    await new Promise<void>((listening) => busy.listen(0, '127.0.0.1', listening));
    cleanups.push(async () => void busy.close());
    const address = busy.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const store = await open(freshDir(), `postgres://sidetone@127.0.0.1:${port}/postgres`);
    expect(await store.ready()).toBe(true);
    expect(closed).toBe(2);
  }, 30_000);

  test('is migrated by one of the nodes that start together, and used by all', async () => {
    const server = await start(await startedDir());
    const url = `postgres://sidetone@localhost/postgres?host=${server.socketDir}`;
    const stores = await Promise.all([1, 2, 3].map(() => open(freshDir(), url)));
    const row = sessionRow();
    await stores[0]?.journal.commit({ session: row, events: [] });
    for (const store of stores)
      expect((await store.sessions.get(row.appUuid, row.sessionUuid))?.sessionUuid).toBe(row.sessionUuid);
  });
});
