/** A store on a PostgreSQL of its own, thrown away when the file's tests are done. */
import { rmSync } from 'node:fs';
import { type Clock, systemClock } from '../../src/clock.ts';
import { openStore, type Store } from '../../src/database/store.ts';
import { silentLog } from '../../src/log.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { fillDataDir } from '../support/postgres-template.ts';

export const masterKey = new Uint8Array(32).fill(7);

export interface TestStore {
  readonly store: Store;
  readonly dataDir: string;
  /** The URL of the database, for a second store on it. */
  readonly url: string;
  close(): Promise<void>;
}

export async function openTestStore(clock: Clock = systemClock()): Promise<TestStore> {
  const dataDir = dataDirectory('sidetone-test-');
  await fillDataDir(dataDir);
  const store = await openStore({ dataDir, databaseUrl: undefined, databaseDriver: 'postgres', masterKey }, silentLog, clock);
  return {
    store,
    dataDir,
    url: `postgres://sidetone@localhost/postgres?host=${dataDir}/postgres-socket`,
    async close() {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A second node's store on the same database. */
export const openSecondStore = (first: TestStore, clock: Clock = systemClock(), nodeId?: string): Promise<Store> =>
  openStore({ dataDir: first.dataDir, databaseUrl: first.url, databaseDriver: 'postgres', masterKey }, silentLog, clock, nodeId);
