import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Bucket } from './bucket.ts';

let bucket: Bucket;
let dataDir: string;
beforeAll(async () => {
  bucket = await Bucket.start();
  dataDir = await mkdtemp(join(tmpdir(), 'sidetone-recordings-'));
});
afterAll(async () => {
  await bucket.stop();
  await rm(dataDir, { recursive: true, force: true });
});

describe('a recording of hours', () => {
  test('is uploaded, read back and fetched byte for byte in a part of the memory that it would take', async () => {
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, 'large.ts'), bucket.direct, dataDir, String(120 * 2 ** 20)],
      {
        stdout: 'pipe',
        stderr: 'inherit',
      },
    );
    const { same, uploadMiB, readMiB, fetchMiB } = JSON.parse(await new Response(child.stdout).text());
    expect(await child.exited).toBe(0);
    expect(same).toBe(true);
    // Measured: 30 and 70 MiB at most, of 200 MiB as of 800.
    expect(uploadMiB).toBeLessThan(64);
    expect(readMiB).toBeLessThan(100);
    expect(fetchMiB).toBeLessThan(100);
  }, 30_000);
});
