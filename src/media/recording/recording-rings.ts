/**
 * The folder of the rings of recordings. It lies in memory, `/dev/shm/sidetone-UID-DEVICE-INODE`, and is named by the
 * identity of `DATA_DIR`, so that the next start finds it and no other platform takes it for its own.
 */
import { lstat, mkdir, readdir, readlink, rmdir, stat, statfs, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { codeOf, messageOf } from '../../error-facts.ts';
import type { Log } from '../../log.ts';

const MEMORY = '/dev/shm';
/** statfs(2): TMPFS_MAGIC. What is no tmpfs may be a disk, which no tick may touch. */
const TMPFS = 0x01021994;
/** The IPC namespace of the machine itself (the kernel's PROC_IPC_INIT_INO), whose /dev/shm ends with nobody. */
const MACHINE_IPC = 'ipc:[4026531839]';
const SUFFIX = '.ring';

export interface RecordingRings {
  /** The ring of the recording that is written to this file. */
  path(wav: string): string;
  /**
   * Removes what earlier processes left, but for the rings of recordings that are still to be mended, named by their
   * files. Before the first recording; returns how many went.
   */
  sweep(unmended?: readonly string[]): Promise<number>;
  /** The folder goes too, if no recording is left in it. Never rejects. */
  close(): Promise<void>;
}

/**
 * Opens the rings. They are undefined when there is no memory that outlives the process: recordings are then written
 * more often. Never rejects.
 */
export async function recordingRings(dataDir: string, log: Log, memory: string = MEMORY): Promise<RecordingRings | undefined> {
  try {
    if ((await statfs(memory)).type !== TMPFS) throw new Error(`${memory} is no tmpfs`);
    const ipc = await readlink('/proc/self/ns/ipc').catch(() => '');
    if (endsWithProcess(process.pid, process.ppid, ipc)) throw new Error('the container ends with this process');
    const uid = process.getuid?.() ?? 0;
    const { dev, ino } = await stat(dataDir, { bigint: true });
    const folder = join(memory, `sidetone-${uid}-${dev.toString(16)}-${ino.toString(16)}`);
    await mkdir(folder, { mode: 0o700 }).catch(ignoreExisting);
    // Anyone may make folders there: one that is not ours alone is a trap.
    const about = await lstat(folder);
    if (!about.isDirectory() || about.uid !== uid || (about.mode & 0o077) !== 0)
      throw new Error(`${folder} is not this user's alone`);
    return new Folder(folder);
  } catch (error) {
    log.info({ reason: messageOf(error) }, 'recordings are written in short steps: no memory outlives this process');
    return undefined;
  }
}

/**
 * Whether `/dev/shm` is lost with this process: a container's is, when its first process ends, or the only one below an
 * `init`. `ipc`: the name of the IPC namespace.
 */
export const endsWithProcess = (pid: number, ppid: number, ipc: string): boolean =>
  ipc !== MACHINE_IPC && (pid === 1 || ppid === 1);

class Folder implements RecordingRings {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  path(wav: string): string {
    return join(this.#path, basename(wav) + SUFFIX);
  }

  async sweep(unmended: readonly string[] = []): Promise<number> {
    const kept = new Set(unmended.map((wav) => basename(this.path(wav))));
    const left = (await readdir(this.#path)).filter((name) => name.endsWith(SUFFIX) && !kept.has(name));
    for (const name of left) await unlink(join(this.#path, name)).catch(ignoreMissing);
    return left.length;
  }

  async close(): Promise<void> {
    await rmdir(this.#path).catch(() => {});
  }
}

const ignoring = (code: string) => (error: unknown) => {
  if (codeOf(error) !== code) throw error;
};
const ignoreExisting = ignoring('EEXIST');
const ignoreMissing = ignoring('ENOENT');
