/**
 * What the ids of rows cost PostgreSQL: `npm run bench -- row-ids [ROWS]` (100,000). Sessions with an event each go
 * through the journal into an embedded database of their own, 64 at a time, once with random UUIDs and once with those
 * that the platform makes, which begin with the time; three rounds in turns. Says what a Session takes of PostgreSQL
 * and how many bytes of WAL it writes, the last 20,000 beside the ROWS before.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { systemClock } from '../src/clock.ts';
import { openStore } from '../src/database/store.ts';
import { newSessionUuid, newUuid, newWebhookId } from '../src/id.ts';
import { silentLog } from '../src/log.ts';
import { sessionRow } from '../test/database/rows.ts';
import { databaseCpuNs, median } from './support/usage.ts';

const rows = Number(process.argv[2] ?? 100_000);
const MEASURED = 20_000;
const AT_ONCE = 64;
const ROUNDS = 3;
const KINDS = {
  random: { session: newUuid, event: () => `evt_${newUuid()}` },
  'by time': { session: newSessionUuid, event: newWebhookId },
};
const cpuUs: Record<string, number[]> = { random: [], 'by time': [] };
const walBytes: Record<string, number[]> = { random: [], 'by time': [] };

async function round(kind: keyof typeof KINDS): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sidetone-bench-'));
  const where = { dataDir, databaseUrl: undefined, databaseDriver: 'postgres' as const, masterKey: new Uint8Array(32) };
  const store = await openStore(where, silentLog, systemClock());
  const sql = postgres({ path: `${dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 1 });
  const { session, event } = KINDS[kind];
  const commit = async () => {
    const row = sessionRow({ sessionUuid: session(), type: 'phone_out', did: '+15550199' });
    const { appUuid, sessionUuid, createdAt: at } = row;
    const body = JSON.stringify({ aud: appUuid, event: 'session.created', session_uuid: sessionUuid });
    const lanes = [`session:${sessionUuid}`];
    const told = { webhookId: event(), appUuid, name: 'session.created', sessionUuid, lanes, body, traceparent: '', at };
    await store.journal.commit({ session: row, events: [told] });
  };
  const fill = async (count: number) => {
    let left = count;
    const some = async () => {
      while (left-- > 0) await commit();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, some));
  };
  const written = async () => Number((await sql`SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes`)[0]?.bytes);
  await fill(rows);
  await sql`CHECKPOINT`;
  const [cpu, wal] = [databaseCpuNs(dataDir), await written()];
  await fill(MEASURED);
  cpuUs[kind]?.push((databaseCpuNs(dataDir) - cpu) / MEASURED / 1e3);
  walBytes[kind]?.push(((await written()) - wal) / MEASURED);
  await sql.end();
  await store.close();
  rmSync(dataDir, { recursive: true, force: true });
}

for (let at = 0; at < ROUNDS; at++)
  for (const kind of ['random', 'by time'] as const) {
    await round(kind);
    console.log(`${kind.padEnd(8)} ${cpuUs[kind]?.at(-1)?.toFixed(1)} µs, ${walBytes[kind]?.at(-1)?.toFixed(0)} bytes of WAL`);
  }
for (const kind of ['random', 'by time'] as const)
  console.log(
    `${kind.padEnd(8)} median of ${ROUNDS}: ${median(cpuUs[kind] ?? []).toFixed(1)} µs of PostgreSQL a Session and event, ${median(walBytes[kind] ?? []).toFixed(0)} bytes of WAL`,
  );
