/**
 * The local folder of recordings: `DATA_DIR/recordings`, one WAV each, and beside it what is known of its upload; below
 * it their cache.
 */
import { chmod, mkdir, opendir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { startError } from '../../start-error.ts';
import { isMissing } from './local-file.ts';

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** A file of a recording, here or in the cache. */
const FILE = /^([A-Za-z0-9_-]{1,64})(?:\.[0-9a-f]{8})?\.wav$/;

export class RecordingFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Makes it, readable by its owner only. Rejects where it cannot be made. */
  static async make(dataDir: string): Promise<RecordingFolder> {
    const path = join(dataDir, 'recordings');
    try {
      await mkdir(path, { recursive: true, mode: 0o700 });
      await chmod(path, 0o700);
    } catch (error) {
      throw startError('DATA_DIR', `recordings cannot be kept in ${path}`, error);
    }
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

  /**
   * Tells the recordings that have a file here, in the cache last: what is uploaded meanwhile goes from here to there.
   */
  async *names(): AsyncGenerator<string> {
    for (const folder of [this.path, this.cache]) {
      try {
        for await (const entry of await opendir(folder)) {
          const [, recordingUuid] = FILE.exec(entry.name) ?? [];
          if (recordingUuid !== undefined) yield recordingUuid;
        }
      } catch (error) {
        if (!isMissing(error)) throw error; // Only an object store has a cache.
      }
    }
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
