/** A node's relay in a process of its own, to be killed. Argument: database URL. Says `started`. */
import { systemClock } from '../../src/clock.ts';
import { openStore } from '../../src/database/store.ts';
import { silentLog } from '../../src/log.ts';
import { createRelay } from '../../src/webhook/relay.ts';
import { plainOutbound } from './plain-outbound.ts';

const [databaseUrl = ''] = process.argv.slice(2);
const clock = systemClock();
const settings = { dataDir: '/nowhere', databaseUrl, databaseDriver: 'postgres', masterKey: new Uint8Array(32).fill(7) } as const;
const { outbox, apps, credentials } = await openStore(settings, silentLog, clock);
createRelay({
  outbox,
  apps,
  credentials,
  outbound: plainOutbound,
  clock,
  log: silentLog,
  timeoutSec: 1,
  retryScale: 0.01,
  leaseMs: 600,
}).start();
process.stdout.write('started\n');
