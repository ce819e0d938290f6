/** The simulated database against PostgreSQL: each statement of a simulation gives the same rows there. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import type { Database, Queryable, Row } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { silentLog } from '../../src/log.ts';
import { dataDirectory } from '../support/data-directory.ts';
import { fillDataDir } from '../support/postgres-template.ts';
import type { Executed } from './database/simulated-database.ts';
import { planOf } from './plan.ts';
import { simulate } from './world.ts';

const SEEDS = [1, 4, 7, 8, 10, 14, 20];
/**
 * Transaction numbers, the server's clock, and the application that a simulation sets up without SQL are not compared.
 */
const APART =
  /outbox|leases|pg_snapshot|^NOTIFY|FROM apps| FROM api_keys|"webhook_secrets"| FROM caller_ids| FROM payment_terminals|advisory/;
const CLOCK = new Set(['started_at', 'dead_at', 'draining_at', 'one', '?column?', 'held', 'sealed', 'labels', 'event_id', 'xid']);
const TABLES =
  'sessions, rooms, events, outbox, idempotency, nodes, node_beats, leases, cluster_meta, recordings, payment_collections, payment_references, charges, messages, message_parts';

let dataDir: string;
let database: Database;

beforeAll(async () => {
  dataDir = dataDirectory('sidetone-faithful-');
  await fillDataDir(dataDir);
  database = await openDatabase({ dataDir, databaseUrl: undefined, databaseDriver: 'postgres' }, silentLog);
});

afterAll(async () => {
  await database.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** JSON of the server has spaces between its fields, and lines between objects. */
const textOf = (value: unknown): string => String(value).replaceAll(/([,:])\s+(?=["{[tf])/g, '$1');

/** Rows without order, and without what is the server's own; only columns that PostgreSQL gives too. */
const plain = (rows: readonly Row[], columns: readonly string[]): string[] =>
  rows.map((row) => JSON.stringify(columns.map((name) => (row[name] == null ? null : textOf(row[name]))))).sort();

async function compare(within: Queryable, { text, parameters, rows }: Executed): Promise<void> {
  if (APART.test(text) && !text.includes('emitted')) return;
  const real = await within.query(text, parameters);
  // The second of two marks at once sees what was before the first; marks that come one after the other cannot show
  // that.
  const isMark = text.includes('WITH marked');
  const columns = Object.keys(real[0] ?? {}).filter((name) => (isMark ? name === 'fresh' : !CLOCK.has(name)));
  expect({ text, count: rows.length, rows: plain(rows, columns) }).toEqual({
    text,
    count: real.length,
    rows: plain(real, columns),
  });
}

test('PostgreSQL gives the rows that the simulated database gave, statement by statement', async () => {
  let compared = 0;
  for (const seed of SEEDS) {
    const story: (readonly Executed[])[] = [];
    simulate(planOf(seed, 1), false, (statements) => story.push([...statements]));
    await database.query(`TRUNCATE ${TABLES}`);
    for (const statements of story) {
      const [only] = statements;
      if (statements.length === 1 && only !== undefined) await compare(database, only);
      else
        await database.transaction(async (within) => {
          for (const each of statements) await compare(within, each);
        });
      compared += statements.length;
    }
  }
  expect(compared).toBeGreaterThan(1_000);
}, 60_000);
