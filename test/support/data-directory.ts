/** Directories for the data of the tests' platforms and databases. */
import { mkdtempSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The file system in memory that Linux mounts by itself. */
const MEMORY = '/dev/shm';
/** A platform and its database use 60 MB, and a dozen run at a time. */
const MEMORY_LEAST_BYTES = 4 * 1024 ** 3;

/**
 * Makes a directory that is the caller's to remove. Within a test it is in memory, where there is room: each PostgreSQL
 * waits for the disk at every commit, and two suites side by side let one wait for over five seconds, which is what a
 * query may take. The benches, crash tests and soaks are on the disk.
 */
export function dataDirectory(prefix: string): string {
  const parent = process.env.NODE_ENV === 'test' && hasRoom() ? MEMORY : tmpdir();
  // The suite knows by its prefix what a test that was cut off has left behind (bin/test-leftovers.mjs).
  return mkdtempSync(join(parent, `${process.env.TEST_DATA_PREFIX ?? ''}${prefix}`));
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= MEMORY_LEAST_BYTES;
  } catch {
    return false;
  }
}
