/**
 * Another MASTER_KEY: what is sealed under the key before is sealed anew. It is done in batches, and what is done stays
 * so: after a crash the next start with the same two keys goes on.
 */
import { ownerOf } from '../device/contacts.ts';
import type { Database } from '../driver/database.ts';
import { keyOf, passwordOf } from '../trunk/trunks.ts';
import { createSeal, opened, type Seal } from './seal.ts';

const BATCH_MAX_ROWS = 500;

/** A column of sealed secrets. `owner` is what a secret is sealed for, told by the row's key and its application. */
interface Column {
  readonly table: string;
  readonly key: string;
  readonly app: string;
  readonly column: string;
  owner(key: string, appUuid: string): string;
}

const COLUMNS: readonly Column[] = [
  { table: 'webhook_secrets', key: 'secret_id', app: 'app_uuid', column: 'sealed', owner: (_, appUuid) => appUuid },
  { table: 'devices', key: 'username', app: 'app_uuid', column: 'secrets', owner: ownerOf },
  { table: 'trunks', key: 'name', app: `''`, column: 'password', owner: passwordOf },
  { table: 'trunks', key: 'name', app: `''`, column: 'tls_key', owner: keyOf },
];

/** Whoever names one is told that it has expired. */
const EXPIRE_ALL = `UPDATE payment_references SET sealed = NULL,
  expires_at = least(expires_at, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) WHERE sealed IS NOT NULL`;
const TABLES = 'webhook_secrets, devices, trunks, payment_references';

interface Counts {
  /** Secrets that were sealed anew. */
  readonly done: number;
  /** Secrets that were sealed under the new key already. */
  readonly kept: number;
  /** Secrets that open under neither key, and were left as they are. */
  readonly lost: number;
}

export interface Resealed extends Counts {
  /** Whether the tables' files were rewritten. Else they hold old ciphertexts until PostgreSQL reuses the space. */
  readonly isRewritten: boolean;
}

/**
 * Seals every secret under `now` that is sealed under `before`. Card references are destroyed: no call outlives the
 * restart that brings another key. The tables are rewritten, so that their files hold nothing under the key before.
 */
export async function reseal(database: Database, before: Uint8Array, now: Uint8Array): Promise<Resealed> {
  const keys = { before: createSeal(before), now: createSeal(now) };
  let counts: Counts = { done: 0, kept: 0, lost: 0 };
  for (const column of COLUMNS) counts = sum(counts, await resealColumn(database, column, keys));
  // Neither key is that of the database: it is told, and nothing is touched.
  if (counts.lost > 0 && counts.done + counts.kept === 0) return { ...counts, isRewritten: false };
  await database.query(EXPIRE_ALL);
  await database.query("DELETE FROM cluster_meta WHERE name = 'master_key_check'");
  const isRewritten = await database.query(`VACUUM (FULL) ${TABLES}`).then(
    () => true,
    () => false,
  );
  return { ...counts, isRewritten };
}

const sum = (one: Counts, other: Counts): Counts => ({
  done: one.done + other.done,
  kept: one.kept + other.kept,
  lost: one.lost + other.lost,
});

async function resealColumn(
  database: Database,
  { table, key, app, column, owner }: Column,
  keys: { readonly before: Seal; readonly now: Seal },
): Promise<Counts> {
  const read = `SELECT ${key}::text AS key, ${app} AS app, encode(${column}, 'base64') AS sealed FROM ${table}
    WHERE ${column} IS NOT NULL AND ${key}::text > $1 ORDER BY ${key}::text LIMIT ${BATCH_MAX_ROWS}`;
  const write = `UPDATE ${table} AS t SET ${column} = decode(n.sealed, 'base64')
    FROM json_to_recordset($1::text::json) AS n (key text, sealed text) WHERE t.${key}::text = n.key`;
  let [done, kept, lost] = [0, 0, 0];
  for (let last = ''; ; ) {
    const rows = await database.query(read, [last]);
    const anew = rows.flatMap((row) => {
      const name = String(row.key);
      const bound = owner(name, String(row.app));
      const sealed = new Uint8Array(Buffer.from(String(row.sealed), 'base64'));
      const isNew = opened(keys.now, sealed, bound) !== undefined;
      const plain = isNew ? undefined : opened(keys.before, sealed, bound);
      if (isNew) kept += 1;
      else if (plain === undefined) lost += 1;
      return plain === undefined ? [] : [{ key: name, sealed: Buffer.from(keys.now.close(plain, bound)).toString('base64') }];
    });
    if (anew.length > 0) await database.query(write, [JSON.stringify(anew)]);
    done += anew.length;
    if (rows.length < BATCH_MAX_ROWS) return { done, kept, lost };
    last = String(rows.at(-1)?.key);
  }
}
