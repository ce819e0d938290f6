/**
 * The user under whom the embedded PostgreSQL runs. The server refuses to run as root; started as root, the platform
 * runs it as `postgres` or `nobody`. Where the data directory or the binaries lie under a directory that user may not
 * pass (`/root`, say), the server keeps the one capability that lets it through, CAP_DAC_OVERRIDE, and no other
 * (capabilities(7), ambient set).
 */
import { accessSync, chownSync, constants, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface RunAs {
  readonly uid: number;
  readonly gid: number;
  /** Turns a command into one that runs as this user. */
  command(file: string, args: readonly string[]): { readonly file: string; readonly args: readonly string[] };
}

/**
 * Finds the user who runs the server whose files are `paths`. Throws, in one line, when root has no plain user to give
 * it to.
 */
export function runAs(paths: readonly string[]): RunAs {
  const own = { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 };
  if (own.uid !== 0) return { ...own, command: (file, args) => ({ file, args }) };
  const user = plainUser();
  const capability = paths.every((path) => passable(path, user)) ? [] : ['+dac_override'];
  const setpriv = ['/usr/bin/setpriv', '/bin/setpriv'].find(executable);
  if (setpriv === undefined)
    throw new Error('started as root, the embedded PostgreSQL needs setpriv (package util-linux) to run as a plain user');
  const sets = ['-all', ...capability].join(',');
  const drop = [
    `--reuid=${user.uid}`,
    `--regid=${user.gid}`,
    '--clear-groups',
    '--no-new-privs',
    `--inh-caps=${sets}`,
    `--ambient-caps=${sets}`,
    `--bounding-set=${sets}`,
    // Without it access(2), by which the server's programs look for each other, counts as if there were no capability.
    ...(capability.length === 0 ? [] : ['--securebits=+no_setuid_fixup']),
  ];
  return { ...user, command: (file, args) => ({ file: setpriv, args: [...drop, file, ...args] }) };
}

/** Gives a directory and all in it to the user, where they are not already. */
export function giveTo(user: RunAs, path: string): void {
  if (process.getuid?.() !== 0) return;
  if (statSync(path).uid !== user.uid) chownSync(path, user.uid, user.gid);
  for (const entry of readdirSync(path, { withFileTypes: true, recursive: true })) {
    const full = join(entry.parentPath, entry.name);
    if (!entry.isSymbolicLink() && statSync(full).uid !== user.uid) chownSync(full, user.uid, user.gid);
  }
}

function plainUser(): { uid: number; gid: number } {
  const known = new Map(
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .map((line) => line.split(':'))
      .map(([name = '', , uid, gid]) => [name, { uid: Number(uid), gid: Number(gid) }] as const),
  );
  const user = known.get('postgres') ?? known.get('nobody');
  if (user === undefined || !(user.uid > 0))
    throw new Error('started as root, the embedded PostgreSQL needs a user postgres or nobody to run as');
  return user;
}

/** Tells whether every directory above `path` lets others pass, or is the user's. */
function passable(path: string, user: { uid: number }): boolean {
  for (let at = dirname(path); ; at = dirname(at)) {
    const { mode, uid } = statSync(at);
    if ((mode & (uid === user.uid ? 0o100 : 0o001)) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
