/**
 * What tests leave behind that are cut off, as by the time limit of a `beforeAll`: data directories, and the PostgreSQL
 * of one, which lives on when its platform is killed. The suite gives the directories of its tests a prefix of its own,
 * and removes at its end what is left of them.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The file system in memory that Linux mounts by itself, where data directories of tests lie. */
const MEMORY = '/dev/shm';
/** PostgreSQL has so long to stop when it is told to at once, in milliseconds. */
const STOP_MAX_MS = 5_000;

/**
 * Stops every PostgreSQL whose data lies below a directory that begins with the prefix, and removes these directories,
 * with the rings of recordings that belong to them. Resolves with their paths.
 */
export async function removeLeftovers(prefix, parents = [MEMORY, tmpdir()]) {
  const left = parents.filter(existsSync).flatMap((parent) =>
    readdirSync(parent)
      .filter((name) => name.startsWith(prefix))
      .map((name) => join(parent, name)),
  );
  for (const directory of left) {
    for (const file of ['postmaster.pid', 'postgres/postmaster.pid']) await stopServer(join(directory, file));
    const { dev, ino } = statSync(directory, { bigint: true });
    const rings = `sidetone-${process.getuid()}-${dev.toString(16)}-${ino.toString(16)}`;
    for (const path of [join(MEMORY, rings), directory]) rmSync(path, { recursive: true, force: true });
  }
  return left;
}

/** Stops the server that wrote the file, where it still has that data directory. */
async function stopServer(pidFile) {
  if (!existsSync(pidFile)) return;
  const [line, dataDir] = readFileSync(pidFile, 'utf8').split('\n');
  const pid = Number(line);
  const runs = () => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(dataDir);
    } catch {
      return false;
    }
  };
  if (!dataDir || !runs()) return;
  process.kill(pid, 'SIGQUIT');
  for (let waited = 0; runs() && waited < STOP_MAX_MS; waited += 50) await sleep(50);
}
