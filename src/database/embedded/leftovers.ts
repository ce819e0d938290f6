/**
 * What a server that was killed leaves behind. PostgreSQL guards its data with `postmaster.pid` and its socket with a
 * lock file beside it, and believes either as long as some process has the number that is written there. In a container
 * numbers come again soon, and a process that nobody has waited for keeps its own: the server would never start again.
 * So both files go, once it is certain that no process of the old server is left that could still write.
 */
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { EMBEDDED_LEFTOVER_GRACE_MS, EMBEDDED_LEFTOVER_MAX_SEC } from '../../limits.ts';

/**
 * Waits for the processes of the killed server of `data`, which end by themselves when they notice, kills those that do
 * not, and removes its lock files. Throws when a process stays. `isBack` tells that a server is running after all: one
 * whose start was under way when the platform was killed.
 */
export async function clearLeftovers(data: string, socketDir: string, port: number, isBack: () => boolean): Promise<void> {
  const began = performance.now();
  for (let left = processesOf(data); left.length > 0; left = processesOf(data)) {
    if (isBack()) return;
    const waited = performance.now() - began;
    if (waited > EMBEDDED_LEFTOVER_MAX_SEC * 1000)
      throw new Error(`a process of the embedded PostgreSQL that was killed does not end (process ${left[0]})`);
    if (waited > EMBEDDED_LEFTOVER_GRACE_MS) for (const pid of left) kill(pid);
    await new Promise((wake) => setTimeout(wake, 20));
  }
  rmSync(join(data, 'postmaster.pid'), { force: true });
  for (const name of [`.s.PGSQL.${port}.lock`, `.s.PGSQL.${port}`]) rmSync(join(socketDir, name), { force: true });
}

/** The living server processes whose working directory is `data`. */
function processesOf(data: string): readonly number[] {
  const { ino, dev } = statSync(data);
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((pid) => {
      try {
        const [name = '', state = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8')
          .split(/^[0-9]+ \(|\) /)
          .slice(1);
        if (name !== 'postgres' || state.startsWith('Z')) return false;
        const at = statSync(`/proc/${pid}/cwd/.`);
        return at.ino === ino && at.dev === dev;
      } catch {
        return false;
      }
    })
    .map(Number);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
