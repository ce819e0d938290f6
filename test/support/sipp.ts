/** SIPp, a SIP peer that is not ours, run on scenario files. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const FIRST_PORT = 10_000;
const PORTS = 10_000;
let tried = process.pid * 101;

/**
 * A port that is free at the moment, over UDP and TCP. It lies below the ports that the system hands out, where a
 * connection of somebody else would take it before SIPp does, and begins at another place in each process.
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

export async function sipp(options: SippOptions): Promise<Sipp> {
  const directory = mkdtempSync(join(tmpdir(), 'sipp-'));
  const scenario = join(directory, 'scenario.xml');
  const written = readFileSync(join(import.meta.dir, '../whole/sipp', `${options.scenario}.xml`), 'utf8');
  writeFileSync(scenario, written.replaceAll('{{status}}', options.status ?? '486'));
  const port = options.port ?? (await freePort());
  const keys = Object.entries({ rtp_port: '6000', ...options.keys }).flatMap(([name, value]) => ['-key', name, value]);
  const calls = options.calls ?? 1;
  const args = [
    ...(options.to === undefined ? [] : [options.to]),
    ...['-sf', scenario],
    ...['-i', '127.0.0.1', '-p', String(port), '-m', String(calls), '-r', String(options.rate ?? 1)],
    ...['-t', options.transport === 'tcp' ? 't1' : 'u1'],
    ...[
      '-s',
      options.number ?? '+15550002',
      '-nostdin',
      '-d',
      String(options.pauseMs ?? 0),
      '-trace_err',
      '-timeout',
      String(options.timeoutSec ?? 60),
      '-timeout_error',
    ],
    ...['-l', String(Math.max(10, calls)), '-skip_rlimit', ...keys],
  ];
  const child: ChildProcess = spawn('sipp', args, {
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
  return { port, done, stop: () => child.kill('SIGKILL'), errors: () => failure ?? errors() };
}
