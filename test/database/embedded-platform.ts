/**
 * A process that opens the embedded store, stores one Session, says so, and waits to be killed. Arguments: data
 * directory, session uuid.
 */
import { systemClock } from '../../src/clock.ts';
import { openStore } from '../../src/database/store.ts';
import { silentLog } from '../../src/log.ts';
import { sessionRow } from './rows.ts';

const [dataDir = '', sessionUuid = ''] = process.argv.slice(2);
const masterKey = new Uint8Array(32).fill(7);
const store = await openStore(
  { dataDir, databaseUrl: undefined, databaseDriver: 'postgres', masterKey },
  silentLog,
  systemClock(),
);
await store.journal.commit({ session: sessionRow({ sessionUuid, appUuid: `app_${sessionUuid}` }), events: [] });
process.on('SIGTERM', () => void store.close().then(() => process.exit(0)));
process.stdout.write(`stored as ${process.getuid?.()}\n`);
setInterval(() => {}, 60_000);
