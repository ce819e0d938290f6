/** A node's relay in a process of its own, to be killed. Argument: database URL. Says `started`. */
import { systemClock } from '../../src/clock.ts';
import { openStore } from '../../src/database/store.ts';
import { silentLog } from '../../src/log.ts';
import { hastyRelay } from './hasty-relay.ts';

const [databaseUrl = ''] = process.argv.slice(2);
const clock = systemClock();
const settings = { dataDir: '/nowhere', databaseUrl, databaseDriver: 'postgres', masterKey: new Uint8Array(32).fill(7) } as const;
const store = await openStore(settings, silentLog, clock);
hastyRelay(store, clock, { leaseMs: 600 }).start();
process.stdout.write('started\n');
