/** Checks of the machine that the platform runs on: disk, shared memory, limits, the kernel. */
import { closeSync, existsSync, openSync, readFileSync, statfsSync, unlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Check, fault, ok, warning } from './check.ts';
import type { Examined } from './process.ts';

const MIB = 1024 * 1024;
const DISK_FAULT_BYTES = 256 * MIB;
const DISK_WARNING_BYTES = 2 * 1024 * MIB;
const SHM_FAULT_BYTES = 16 * MIB;
const SHM_WARNING_BYTES = 64 * MIB;
/** Each leg has three sockets; a thousand calls need their descriptors, those of WebSockets and of files. */
const DESCRIPTORS_MIN = 4_096;

/** The folders in which the kernel tells about itself. A test names others. */
export interface Kernel {
  readonly proc: string;
  readonly shm: string;
}

export const KERNEL: Kernel = { proc: '/proc', shm: '/dev/shm' };

/** Checks the machine, and the limits of the process `examined`. */
export const machineChecks = (dataDir: string, examined: Examined, kernel: Kernel = KERNEL): readonly Check[] => [
  disk(dataDir),
  sharedMemory(kernel.shm),
  realTime(kernel.proc, examined),
  ioUring(kernel.proc, examined),
  descriptors(kernel.proc, examined),
];

const size = (bytes: number): string =>
  bytes >= 1024 * MIB ? `${(bytes / 1024 / MIB).toFixed(1)} GiB` : `${Math.floor(bytes / MIB)} MiB`;

function disk(dataDir: string): Check {
  const name = 'disk';
  // Before the first start the directory is not there yet, and perhaps not the one in which it will be made.
  let place = dataDir;
  while (!existsSync(place)) place = dirname(place);
  const probe = join(place, `.sidetone-doctor-${process.pid}`);
  try {
    closeSync(openSync(probe, 'wx'));
    unlinkSync(probe);
  } catch (error) {
    return fault(name, `${place} cannot be written (${codeOf(error)})`, 'Set DATA_DIR to a directory that this user may write');
  }
  const { bavail, bsize } = statfsSync(place);
  const free = bavail * bsize;
  const found = `${size(free)} free in ${place}`;
  if (free < DISK_FAULT_BYTES)
    return fault(name, found, 'Free space, or set DATA_DIR to a larger disk: nothing can be stored soon');
  if (free < DISK_WARNING_BYTES)
    return warning(name, found, 'Free space, or lower RECORDING_RETENTION_DAYS and CALL_HISTORY_DAYS');
  return ok(name, found);
}

function sharedMemory(shm: string): Check {
  const name = 'dev_shm';
  try {
    const { bavail, bsize } = statfsSync(shm);
    const free = bavail * bsize;
    const found = `${size(free)} free in ${shm}`;
    const remedy = 'Make it larger: mount -o remount,size=256M /dev/shm, or --shm-size=256m for a container';
    if (free < SHM_FAULT_BYTES) return fault(name, found, remedy);
    return free < SHM_WARNING_BYTES ? warning(name, found, remedy) : ok(name, found);
  } catch (error) {
    return fault(name, `${shm} is not there (${codeOf(error)})`, 'Mount a tmpfs there: recordings are written through it');
  }
}

/** The soft limit of that name, from `/proc/PID/limits`. */
function limitOf(proc: string, pid: string, name: string): number | undefined {
  const line = textOf(join(proc, pid, 'limits'))
    ?.split('\n')
    .find((each) => each.startsWith(name));
  const soft = line?.slice(name.length).trim().split(/\s+/)[0];
  return soft === undefined ? undefined : soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft);
}

const CAP_SYS_NICE = 1n << 23n;

function realTime(proc: string, { name: pid, told }: Examined): Check {
  const name = 'realtime_priority';
  const capabilities = /^CapEff:\s*([0-9a-f]+)$/m.exec(textOf(join(proc, pid, 'status')) ?? '')?.[1] ?? '0';
  if ((BigInt(`0x${capabilities}`) & CAP_SYS_NICE) !== 0n)
    return ok(name, `real-time priorities are permitted by CAP_SYS_NICE (${told})`);
  const limit = limitOf(proc, pid, 'Max realtime priority') ?? 0;
  if (limit > 0) return ok(name, `real-time priorities up to ${limit} are permitted (${told})`);
  return warning(
    name,
    `media threads cannot have a real-time priority, so a busy machine makes audio late (limit ${told})`,
    'Set LimitRTPRIO=1 in the systemd unit, --ulimit rtprio=1 for a container, or in the shell that starts it: sudo prlimit --pid $$ --rtprio=1',
  );
}

function ioUring(proc: string, { name: pid }: Examined): Check {
  const name = 'io_uring';
  const disabled = textOf(join(proc, 'sys/kernel/io_uring_disabled'))?.trim();
  const remedy = 'sysctl kernel.io_uring_disabled=0 saves a tenth of the CPU of many legs; without it epoll is used';
  if (disabled === '2') return warning(name, 'the kernel forbids io_uring', remedy);
  if (disabled === '1') return warning(name, 'the kernel permits io_uring to some users only', remedy);
  const mode = /^Seccomp:\s*(\d)$/m.exec(textOf(join(proc, pid, 'status')) ?? '')?.[1];
  if (mode === '2')
    return warning(
      name,
      'a seccomp filter (as of Docker) may forbid io_uring',
      'Permit io_uring_setup, io_uring_enter and io_uring_register in the seccomp profile',
    );
  return ok(name, 'not forbidden');
}

function descriptors(proc: string, { name: pid, told }: Examined): Check {
  const name = 'descriptors';
  const limit = limitOf(proc, pid, 'Max open files');
  if (limit === undefined) return ok(name, 'the limit is not known');
  const found = `at most ${limit} open files (${told})`;
  return limit < DESCRIPTORS_MIN
    ? warning(name, found, 'Set LimitNOFILE=65536 in the systemd unit, or `ulimit -n 65536`')
    : ok(name, found);
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

export const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : error instanceof Error ? error.message : String(error);
