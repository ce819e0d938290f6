/**
 * Leases on work that only one process of a cluster does at a time. The fence number rises with each new holder, so
 * that a write can name the lease it was made under.
 */
import type { Database } from '../driver/database.ts';

export interface LeaseStore {
  /** Takes or renews a lease for `ttlMs`. Undefined: another node holds it; else its fence number. */
  take(name: string, ttlMs: number): Promise<number | undefined>;
  /** The same of many at once. Returns the names that are held now. */
  takeAll(names: readonly string[], ttlMs: number): Promise<readonly string[]>;
  give(name: string): Promise<void>;
}

const CLOCK = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
const TAKE = `INSERT INTO leases AS l (name, holder, fence, expires_at)
  SELECT $1, $2, 1, ${CLOCK} + $3::bigint WHERE EXISTS (SELECT FROM nodes WHERE node_id = $2 AND dead_at IS NULL)
  ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
    fence = CASE WHEN l.holder = excluded.holder THEN l.fence ELSE l.fence + 1 END
  WHERE l.holder = excluded.holder OR l.expires_at < ${CLOCK}
    OR EXISTS (SELECT FROM nodes AS n WHERE n.node_id = l.holder AND n.dead_at IS NOT NULL)
  RETURNING fence`;
const TAKE_ALL = TAKE.replace('SELECT $1, $2,', 'SELECT wanted.name, $2,')
  .replace(
    ' WHERE EXISTS',
    ' FROM (SELECT DISTINCT json_array_elements_text($1::text::json) AS name ORDER BY name) AS wanted WHERE EXISTS',
  )
  .replace('RETURNING fence', 'RETURNING name');
const GIVE = 'DELETE FROM leases WHERE name = $1 AND holder = $2';

/** `nodeId` names this process, which is the holder. */
export const leaseStore = (database: Database, nodeId: string): LeaseStore => ({
  async take(name, ttlMs) {
    const [row] = await database.query(TAKE, [name, nodeId, ttlMs]);
    return row === undefined ? undefined : Number(row.fence);
  },
  takeAll: async (names, ttlMs) =>
    (await database.query(TAKE_ALL, [JSON.stringify(names), nodeId, ttlMs])).map((row) => String(row.name)),
  give: async (name) => void (await database.query(GIVE, [name, nodeId])),
});
