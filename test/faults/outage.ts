/** What can fail under the platform, each as something that is done to a real process and undone again. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { type EmbeddedServer, startEmbedded } from '../../src/database/embedded/embedded.ts';
import { silentLog } from '../../src/log.ts';
import { FaultProxy, type ProxyMode } from '../cluster/proxy.ts';
import { Bucket, CREDENTIALS, type Mischief } from '../recording-storage/bucket.ts';
import { LIBFAKETIME } from '../support/fake-time.ts';
import { Platform } from '../support/platform.ts';
import { QUICK } from './stage.ts';

/** A platform with something under it that can be made to fail. */
export interface Site {
  readonly platform: Platform;
  /** Fails for so many seconds, and is whole again when it resolves. */
  strike(seconds: number): Promise<void>;
  /** Ends what is not the platform's own. */
  close(): Promise<void>;
  /** Whether the platform has a wrong clock meanwhile. */
  readonly hasWrongClock?: boolean;
}

export interface Outage {
  readonly name: string;
  /** Why it cannot be tried on this machine, or undefined. */
  readonly missing: () => string | undefined;
  readonly open: () => Promise<Site>;
}

const nothing = async () => {};
const never = () => undefined;
const pause = (seconds: number) => Bun.sleep(seconds * 1000);

const folder = (): string => mkdtempSync(join(tmpdir(), 'sidetone-outage-'));

/** A database server of its own, and a platform that reaches it through a proxy. */
async function withServer(strike: (server: EmbeddedServer, proxy: FaultProxy, seconds: number) => Promise<void>): Promise<Site> {
  const dataDir = folder();
  const server = await startEmbedded(dataDir, silentLog);
  const proxy = await FaultProxy.start({ path: `${server.socketDir}/.s.PGSQL.${server.port}` });
  const platform = await Platform.start({ ...QUICK, DATABASE_URL: `postgres://sidetone@127.0.0.1:${proxy.port}/postgres` });
  return {
    platform,
    strike: (seconds) => strike(server, proxy, seconds),
    close: async () => {
      proxy.stop();
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const throughProxy = (mode: ProxyMode) => () =>
  withServer(async (_, proxy, seconds) => {
    proxy.set(mode);
    await pause(seconds);
    proxy.set('pass');
  });

/** The server and its backends stand still. */
const stopped = () =>
  withServer(async ({ pid }, _, seconds) => {
    const all = () => [
      pid,
      ...readdirSync('/proc')
        .filter((each) => parentOf(each) === pid)
        .map(Number),
    ];
    for (const each of all()) process.kill(each, 'SIGSTOP');
    await pause(seconds);
    for (const each of all()) process.kill(each, 'SIGCONT');
  });

/** Somebody else has all connections of the server, and those of the platform are cut. */
const crowded = () =>
  withServer(async ({ socketDir }, _, seconds) => {
    const others = Array.from({ length: 60 }, () =>
      postgres({ host: socketDir, user: 'sidetone', database: 'postgres', max: 1, onnotice: () => {} }),
    );
    const take = () => Promise.allSettled(others.map((each) => each`SET application_name = 'crowd'`));
    const taken = await take();
    // Whoever of the crowd came in cuts the others off; the platform may have been quicker than the first of it.
    const [inside] = others.filter((_, at) => taken[at]?.status === 'fulfilled');
    if (inside !== undefined)
      await inside`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name <> 'crowd' AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
    for (let passed = 0; passed < seconds; passed += 1) {
      await take();
      await pause(1);
    }
    await Promise.allSettled(others.map((each) => each.end({ timeout: 1 })));
  });

/** The embedded server is killed, again and again. */
async function killed(): Promise<Site> {
  const platform = await Platform.start(QUICK);
  const strike = async (seconds: number) => {
    const lock = join(platform.dataDir, 'postgres/postmaster.pid');
    for (let passed = 0; passed < seconds; passed += 3) {
      const pid = existsSync(lock) ? Number(readFileSync(lock, 'utf8').split('\n')[0]) : 0;
      if (pid > 0) process.kill(pid, 'SIGKILL');
      await pause(3);
    }
  };
  return { platform, strike, close: nothing };
}

const DISK_MB = 320;

/** The disk with database and recordings is full. */
async function fullDisk(): Promise<Site> {
  const dataDir = folder();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=755`, 'tmpfs', dataDir]).status !== 0)
    throw new Error('no tmpfs can be mounted');
  const platform = await Platform.start({ ...QUICK, DATA_DIR: dataDir, OPERATOR_TOKEN: 'operator-token-of-the-outage' });
  return {
    platform,
    strike: async (seconds) => {
      const filler = join(dataDir, 'filler');
      spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=64k'], { stdio: 'ignore' });
      await pause(seconds);
      rmSync(filler);
    },
    close: async () => {
      const lock = join(dataDir, 'postgres/postmaster.pid');
      if (existsSync(lock)) process.kill(Number(readFileSync(lock, 'utf8').split('\n')[0]), 'SIGKILL');
      spawnSync('umount', ['-l', dataDir]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const store = (mischief: Mischief) => async (): Promise<Site> => {
  const bucket = await Bucket.start();
  const platform = await Platform.start({
    ...QUICK,
    RECORDINGS: 's3://calls/of/us',
    S3_ENDPOINT: bucket.endpoint,
    S3_REGION: CREDENTIALS.region,
    S3_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    S3_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
  });
  return {
    platform,
    strike: async (seconds) => {
      bucket.misbehave = () => mischief;
      await pause(seconds);
      bucket.clear();
    },
    close: () => bucket.stop(),
  };
};

/** The media worker is lost, three times at most: more often it is not replaced within a minute. */
async function lostWorker(): Promise<Site> {
  const preload = join(import.meta.dir, '../support/loses-worker.ts');
  const platform = await Platform.start({ ...QUICK, BUN_OPTIONS: `--preload=${preload}` });
  const strike = async (seconds: number) => {
    for (let lost = 0; lost < 3; lost += 1) {
      platform.signal('SIGUSR2');
      await pause(seconds / 3);
    }
  };
  return { platform, strike, close: nothing };
}

/** The wall clock of the platform is stepped; that of its database and of everybody else is not. */
const stepped = (by: string) => async (): Promise<Site> => {
  const dataDir = folder();
  const clock = join(dataDir, 'clock');
  writeFileSync(clock, '+0');
  const platform = await Platform.start({
    ...QUICK,
    LD_PRELOAD: LIBFAKETIME ?? '',
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    FAKETIME_NO_CACHE: '1',
  });
  return {
    platform,
    strike: async (seconds) => {
      writeFileSync(clock, by);
      await pause(seconds);
      writeFileSync(clock, '+0');
    },
    close: async () => rmSync(dataDir, { recursive: true, force: true }),
    hasWrongClock: true,
  };
};

/** A limit of the running process is lowered to about what it uses. */
const short = (resource: 'nofile' | 'as', limit: (pid: number) => number) => async (): Promise<Site> => {
  const platform = await Platform.start(QUICK);
  const set = (value: string) => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', String(platform.pid), `--${resource}=${value}`]);
    if (status !== 0) throw new Error(`the limit cannot be set: ${stderr}`);
  };
  return {
    platform,
    strike: async (seconds) => {
      const { pid } = platform;
      const [, , , before = ''] = /^(\S+) .*?(\d+|unlimited) +(\d+|unlimited)/m.exec(limits(pid, resource)) ?? [];
      set(`${limit(pid)}:${before}`);
      await pause(seconds);
      if (platform.pid === pid) set(`${before}:${before}`);
    },
    close: nothing,
  };
};

const limits = (pid: number, resource: string): string => {
  const { stdout } = spawnSync('prlimit', ['--pid', String(pid), `--${resource}`, '--noheadings', '-o', 'RESOURCE,SOFT,HARD']);
  return stdout.toString();
};
/**
 * The shares of what is in use that it may have from now on. At half of its address space no mapping succeeds any more.
 */
const DESCRIPTORS_LEFT = 0.8;
const MEMORY_LEFT = 0.5;
const descriptors = (pid: number): number => Math.floor(readdirSync(`/proc/${pid}/fd`).length * DESCRIPTORS_LEFT);
const memory = (pid: number): number =>
  Math.floor(Number(/^VmSize:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024 * MEMORY_LEFT);

function parentOf(pid: string): number {
  if (!/^[0-9]+$/.test(pid)) return 0;
  try {
    return Number(/\) [A-Z] ([0-9]+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}

const noMount = () => (process.getuid?.() === 0 ? undefined : 'only root may mount a tmpfs');
const noFaketime = () =>
  LIBFAKETIME !== undefined ? undefined : 'libfaketime is not installed (Debian: apt-get install libfaketime)';
const noPrlimit = () =>
  spawnSync('prlimit', ['-V'], { stdio: 'ignore' }).error === undefined ? undefined : 'prlimit is not installed (util-linux)';

export const OUTAGES: readonly Outage[] = [
  { name: 'postgres-stopped', missing: never, open: stopped },
  { name: 'postgres-hung', missing: never, open: throughProxy('blackhole') },
  { name: 'postgres-reset', missing: never, open: throughProxy('reset') },
  { name: 'postgres-killed', missing: never, open: killed },
  { name: 'postgres-crowded', missing: never, open: crowded },
  { name: 'disk-full', missing: noMount, open: fullDisk },
  { name: 'store-away', missing: never, open: store('reset') },
  { name: 'store-hung', missing: never, open: store('hang') },
  { name: 'worker-lost', missing: never, open: lostWorker },
  { name: 'clock-forward', missing: noFaketime, open: stepped('+1h') },
  { name: 'clock-back', missing: noFaketime, open: stepped('-1h') },
  { name: 'descriptors', missing: noPrlimit, open: short('nofile', descriptors) },
  { name: 'memory', missing: noPrlimit, open: short('as', memory) },
];
