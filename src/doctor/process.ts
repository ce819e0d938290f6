/** Finds the process of the platform on this machine, which listens on its HTTP port: a shell has other limits. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';

/** The process whose limits are looked at. `name` is its folder in `/proc`. */
export interface Examined {
  readonly name: string;
  /** Which process that is, in words. */
  readonly told: string;
}

/** This process, which is the platform. */
export const OURSELVES: Examined = { name: 'self', told: 'of this process' };

const LISTENS = '0A';

/**
 * The process that listens at `origin`, as far as this user may know, else this one. `isRunning`: the platform has
 * answered there.
 */
export function examinedAt(origin: string, isRunning: boolean, proc: string): Examined {
  const shell = { name: 'self', told: 'of this shell' };
  if (!isRunning) return shell;
  const { hostname, port, protocol } = new URL(origin);
  if (!isHere(hostname)) return { ...shell, told: 'of this shell, not of the platform, which is on another machine' };
  const found = listenerOn(Number(port || (protocol === 'https:' ? 443 : 80)), proc);
  return found === undefined
    ? { ...shell, told: 'of this shell: this user may not see the process of the platform, so run doctor as root or as its user' }
    : { name: found, told: `of process ${found}` };
}

function isHere(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  const own = Object.values(networkInterfaces()).flatMap((each) => (each ?? []).map(({ address }) => address));
  return host === 'localhost' || host === '0.0.0.0' || host === '::' || host.startsWith('127.') || own.includes(host);
}

/** The process that has a listening TCP socket on `port`. Undefined where no process that this user may see has one. */
function listenerOn(port: number, proc: string): string | undefined {
  const sockets = new Set(
    ['net/tcp', 'net/tcp6'].flatMap((table) =>
      socketsOn(
        port,
        readOr(() => linesOf(join(proc, table)), []),
      ),
    ),
  );
  if (sockets.size === 0) return undefined;
  const has = (pid: string): boolean => {
    const folder = join(proc, pid, 'fd');
    // The listening socket is an early one, and the descriptors come in their order.
    return readOr(() => readdirSync(folder), []).some((fd) => sockets.has(readOr(() => readlinkSync(join(folder, fd)), '')));
  };
  return readOr(() => readdirSync(proc), []).find((name) => /^[0-9]+$/.test(name) && has(name));
}

/** The names of the sockets that listen on that port, as `/proc/PID/fd` has them. Table: proc_net_tcp(5). */
function socketsOn(port: number, table: readonly string[]): readonly string[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0');
  return table.flatMap((line) => {
    const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    return state === LISTENS && local.endsWith(`:${wanted}`) ? [`socket:[${inode}]`] : [];
  });
}

const linesOf = (path: string): readonly string[] => readFileSync(path, 'utf8').split('\n');

/** What may be gone by now, or not permitted. */
function readOr<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
