/** SIPp, a SIP peer that is not ours, run on scenario files. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const sippInstalled = spawnSync('sipp', ['-v'], { stdio: 'ignore' }).error === undefined;

export interface SippOptions {
  /** A scenario file of `test/whole/sipp`, without `.xml`. */
  readonly scenario: string;
  /** The address to call, or undefined to wait for calls. */
  readonly to?: string;
  readonly transport?: 'udp' | 'tcp';
  readonly port?: number;
  readonly calls?: number;
  readonly rate?: number;
  /** Percent of UDP packets to lose, both ways. */
  readonly lossPercent?: number;
  readonly keys?: Readonly<Record<string, string>>;
  /** What `{{status}}` in the scenario stands for. */
  readonly status?: string;
  readonly number?: string;
  /** How long a `<pause/>` of the scenario is. */
  readonly pauseMs?: number;
  readonly timeoutSec?: number;
}

export interface Sipp {
  readonly port: number;
  /** Resolves with true when every call of the scenario went as written. */
  readonly done: Promise<boolean>;
  stop(): void;
  /** What went wrong, for a test's message. */
  errors(): string;
}

/** Loss below the peer, so that its own retransmissions are what heals it: SIPp's `-lost` forgets what it lost. */
function lossOf(percent: number | undefined): Record<string, string> {
  if (percent === undefined) return {};
  const library = join(tmpdir(), `sidetone-lossy-${process.getuid?.()}-${process.pid}.so`);
  if (!existsSync(library)) {
    const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, join(import.meta.dir, 'lossy.c'), '-ldl'], {
      stdio: 'inherit',
    });
    if (built.status !== 0) throw new Error('lossy.c was not built');
  }
  return { LD_PRELOAD: library, LOSS_PERCENT: String(percent) };
}

const FIRST_PORT = 2_000;
const PORTS = 4_000;
/** How often a SIPp that could not bind is started again. */
const STARTS_MAX = 100;
let tried = process.pid * 101;

/**
 * A port that is free at the moment, over UDP and TCP. It lies below the ports that the system hands out and those that
 * the tests give to media, where somebody else would take it before SIPp does, and begins at another place in each
 * process.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST_PORT + (tried++ % PORTS);
    if ((await isFree(port, 'udp')) && (await isFree(port, 'tcp'))) return port;
  }
}

function isFree(port: number, transport: 'udp' | 'tcp'): Promise<boolean> {
  return new Promise((resolve) => {
    if (transport === 'udp') {
      const socket = createSocket('udp4');
      socket.once('error', () => resolve(false));
      socket.bind(port, '127.0.0.1', () => socket.close(() => resolve(true)));
      return;
    }
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * Resolves when SIPp has bound its port, and is started again when somebody had the port: another one, where the caller
 * named none. A port may be somebody's for a moment, who only looks whether it is free.
 */
export async function sipp(options: SippOptions): Promise<Sipp> {
  for (let starts = 1; ; starts++) {
    const started = start(options, options.port ?? (await freePort()));
    if ((await started.bound) || starts === STARTS_MAX) return started;
  }
}

function start(options: SippOptions, port: number): Sipp & { readonly bound: Promise<boolean> } {
  const directory = mkdtempSync(join(tmpdir(), 'sipp-'));
  const child: ChildProcess = spawn('sipp', argumentsOf(options, port, scenarioIn(directory, options)), {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...lossOf(options.lossPercent) },
  });
  let said = '';
  child.stderr?.on('data', (chunk) => {
    said = (said + chunk).slice(-5_000);
  });
  const errors = () => {
    const files = readdirSync(directory).filter((file) => file.endsWith('errors.log'));
    return said + files.map((file) => readFileSync(join(directory, file), 'utf8').slice(0, 5_000)).join('\n');
  };
  let failure: string | undefined;
  const done = new Promise<boolean>((resolve) => {
    child.once('exit', (code) => {
      failure = errors();
      rmSync(directory, { recursive: true, force: true });
      resolve(code === 0);
    });
  });
  const bound = async (): Promise<boolean> => {
    while (failure === undefined && !isBoundBy(child.pid, port, options.transport ?? 'udp')) await Bun.sleep(5);
    return !(failure ?? '').includes('Unable to bind');
  };
  return { port, done, stop: () => child.kill('SIGKILL'), errors: () => failure ?? errors(), bound: bound() };
}

/** Writes the scenario. Returns its path. */
function scenarioIn(directory: string, { scenario, status }: SippOptions): string {
  const path = join(directory, 'scenario.xml');
  const written = readFileSync(join(import.meta.dir, '../whole/sipp', `${scenario}.xml`), 'utf8');
  writeFileSync(path, written.replaceAll('{{status}}', status ?? '486'));
  return path;
}

function argumentsOf(options: SippOptions, port: number, scenario: string): readonly string[] {
  const keys = Object.entries({ rtp_port: '6000', caller: '+15550009', ...options.keys }).flatMap(([name, value]) => [
    '-key',
    name,
    value,
  ]);
  const calls = options.calls ?? 1;
  return [
    ...(options.to === undefined ? [] : [options.to]),
    ...['-sf', scenario],
    ...['-i', '127.0.0.1', '-p', String(port), '-m', String(calls), '-r', String(options.rate ?? 1)],
    ...['-t', options.transport === 'tcp' ? 't1' : 'u1'],
    ...['-s', options.number ?? '+15550002', '-nostdin', '-d', String(options.pauseMs ?? 0), '-trace_err'],
    ...['-timeout', String(options.timeoutSec ?? 60), '-timeout_error'],
    ...['-l', String(Math.max(10, calls)), '-skip_rlimit', ...keys],
  ];
}

/** Whether one of the sockets of a process has the port (proc(5), `/proc/net/udp`). */
function isBoundBy(pid: number | undefined, port: number, transport: 'udp' | 'tcp'): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync(`/proc/net/${transport}`, 'utf8').split('\n').slice(1);
  const inodes = rows
    .map((row) => row.trim().split(/\s+/))
    .flatMap(([, address, , , , , , , , inode]) =>
      address?.endsWith(local) === true && inode !== undefined ? [`socket:[${inode}]`] : [],
    );
  if (inodes.length === 0 || pid === undefined) return false;
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => inodes.includes(readlinkSync(`/proc/${pid}/fd/${fd}`)));
  } catch {
    return false; // It has ended, or closed one of them meanwhile.
  }
}
