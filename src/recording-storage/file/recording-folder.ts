/**
 * The local folder of recordings: `DATA_DIR/recordings`, one WAV each, and beside it what is known of its upload; below
 * it their cache.
 */
import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

const NAME = /^[A-Za-z0-9_-]{1,64}$/;

export class RecordingFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Makes it, readable by its owner only. Rejects where it cannot be made. */
  static async make(dataDir: string): Promise<RecordingFolder> {
    const path = join(dataDir, 'recordings');
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
    return new RecordingFolder(path);
  }

  /** Whether this can be the name of a recording: what is not never becomes part of a path. */
  knows(recordingUuid: string): boolean {
    return NAME.test(recordingUuid);
  }

  /** Throws on what can be no name of a recording. */
  wav(recordingUuid: string): string {
    return join(this.path, `${checked(recordingUuid)}.wav`);
  }

  /** Names the ledger of its upload. */
  ledger(recordingUuid: string): string {
    return join(this.path, `${checked(recordingUuid)}.upload`);
  }

  /** The folder in which recordings are kept that an object store has too. */
  get cache(): string {
    return join(this.path, 'cache');
  }

  /** No error where there is none. */
  async remove(path: string): Promise<void> {
    await rm(path, { force: true });
  }

  /** No error where there is none. */
  async removeCache(): Promise<void> {
    await rm(this.cache, { recursive: true, force: true });
  }
}

function checked(recordingUuid: string): string {
  if (!NAME.test(recordingUuid)) throw new Error('not the name of a recording');
  return recordingUuid;
}
