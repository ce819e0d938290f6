/**
 * REGISTERs as changes of rows. Those that come at the same time share a transaction: phones that come back together,
 * as after a loss of power, would wait for each other's round trips, and for as many connections.
 */
import { DEVICE_CONTACTS_MAX } from '../../limits.ts';
import type { HeldBinding, RegisterOutcome } from '../../sip/registrar.ts';
import type { Database, Queryable, Row } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import { StoreUnavailable } from '../journal/journal.ts';
import type { Seal } from '../vault/seal.ts';
import { bindingOf, type DeviceRow, hasSecrets } from './contacts.ts';

/** What REGISTERs do to the contacts of users. */
export interface RegistrationStore {
  /**
   * Asks `decide` what a REGISTER that came to this process does to the contacts of a user, and does it: it stores and
   * removes what it is told, and deletes whatever of the user's has expired. The user's row is locked meanwhile, and
   * `decide` may be asked again where the database refused what others wrote beside it. It rejects where the user has
   * other secrets by now, or is gone.
   */
  change(device: DeviceRow, decide: (bound: readonly HeldBinding[]) => RegisterOutcome): Promise<RegisterOutcome>;
}

/** One REGISTER: what it does is decided once it is known what is bound. */
interface Registration {
  readonly device: DeviceRow;
  decide(bound: readonly HeldBinding[]): RegisterOutcome;
}

type Decided = RegisterOutcome | 'changed';

const NAMES = 'SELECT json_array_elements_text($1::text::json)';
/** Locked one after the other by their names, so that two nodes never wait for each other. */
const USERS = `SELECT username, encode(secrets, 'hex') AS secrets FROM devices WHERE username IN (${NAMES})
  ORDER BY username FOR UPDATE`;
const BOUND = `SELECT c.*, alive.node_id AS alive_id FROM (${NAMES}) AS user_of (name)
  CROSS JOIN LATERAL (SELECT * FROM device_contacts WHERE username = user_of.name AND expires_at > $2::bigint
    ORDER BY uri LIMIT ${DEVICE_CONTACTS_MAX}) AS c
  LEFT JOIN nodes AS alive ON alive.node_id = c.node_id AND alive.dead_at IS NULL
  ORDER BY c.username, c.uri`;
const REMOVE = `DELETE FROM device_contacts AS c USING json_to_recordset($1::text::json) AS g (username text, everything boolean, removed json)
  WHERE c.username = g.username
    AND (g.everything OR c.expires_at <= $2::bigint OR c.uri IN (SELECT json_array_elements_text(g.removed)))`;
const COLUMNS = [
  ...['username', 'uri', 'call_id', 'cseq', 'expires_at', 'transport', 'host', 'port'],
  ...['user_agent', 'node_id', 'instance', 'reg_id', 'path'],
];
const STORE = `INSERT INTO device_contacts (${COLUMNS.join(', ')}) SELECT ${COLUMNS.join(', ')}
  FROM json_to_recordset($1::text::json) AS s (username text, uri text, call_id text, cseq bigint, expires_at bigint, transport text,
    host text, port int, user_agent text, node_id text, instance text, reg_id int, path text)
  ON CONFLICT (username, uri) DO UPDATE SET ${COLUMNS.slice(2)
    .map((column) => `${column} = excluded.${column}`)
    .join(', ')}`;

/** Makes the store for the process `nodeId`. `now` tells whole milliseconds since the epoch. */
export function registrationStore(database: Database, seal: Seal, nodeId: string, now: () => number): RegistrationStore {
  const write = (batch: readonly Registration[]) =>
    database.transaction((within) => decideAll(within, batch, { seal, nodeId, now: now() }));
  const decided = coalesce<Registration, Decided | { readonly failed: unknown }>({
    // Each has what it reads to itself, and one transaction at a time has as many as have gathered.
    distinct: ({ device }) => device.username,
    flights: 1,
    async load(batch) {
      try {
        return await write(batch);
      } catch (error) {
        if (batch.length === 1 || error instanceof StoreUnavailable) throw error;
      }
      // What the database refuses of one must not sink the others.
      const outcomes: (Decided | { readonly failed: unknown })[] = [];
      for (const each of batch) outcomes.push(...(await write([each]).catch((error: unknown) => [{ failed: error }])));
      return outcomes;
    },
  });
  return {
    async change(device, decide) {
      const outcome = await decided({ device, decide });
      // The password that the request was checked against may be none any more.
      if (outcome === 'changed') throw new Error('the device has changed');
      if ('failed' in outcome) throw outcome.failed;
      return outcome;
    },
  };
}

/** Decides about registrations of different users, whose rows are locked until the transaction ends. */
async function decideAll(
  within: Queryable,
  batch: readonly Registration[],
  { seal, nodeId, now }: { readonly seal: Seal; readonly nodeId: string; readonly now: number },
): Promise<readonly Decided[]> {
  const names = JSON.stringify(batch.map(({ device }) => device.username));
  const users = await within.query<{ username: string; secrets: string }>(USERS, [names]);
  const secrets = new Map(users.map((user) => [user.username, Buffer.from(user.secrets, 'hex')]));
  const bound = heldByUser(await within.query(BOUND, [names, now]), nodeId);
  const outcomes = batch.map(({ device, decide }): Decided => {
    const held = secrets.get(device.username);
    const isSame = held !== undefined && hasSecrets(seal, { username: device.username, secrets: held }, device.secrets);
    return isSame ? decide(bound.get(device.username) ?? []) : 'changed';
  });
  const changes = outcomes.flatMap((outcome, at) => {
    const username = batch[at]?.device.username;
    if (username === undefined || outcome === 'changed' || outcome.status !== 200) return [];
    const { stored, removed } = outcome;
    // All contacts of the user go when none stays bound, as after a star: some may not have been read.
    const everything = outcome.bound.length === 0;
    return stored.length + removed.length === 0 ? [] : [{ username, everything, stored, removed }];
  });
  if (changes.length === 0) return outcomes;
  await within.query(REMOVE, [JSON.stringify(changes.map(({ stored, ...change }) => change)), now]);
  const rows = changes.flatMap(({ username, stored }) =>
    stored.map((binding) => ({
      ...{ username, uri: binding.key, call_id: binding.callId, cseq: binding.cseq, expires_at: binding.expiresAt },
      ...{ transport: binding.transport, host: binding.host, port: binding.port, user_agent: binding.userAgent },
      ...{ node_id: nodeId, instance: binding.instance, reg_id: binding.regId, path: binding.path },
    })),
  );
  if (rows.length > 0) await within.query(STORE, [JSON.stringify(rows)]);
  return outcomes;
}

/** The contacts that are bound, by user, each with whose connection it was made over. */
function heldByUser(rows: readonly Row[], nodeId: string): ReadonlyMap<string, readonly HeldBinding[]> {
  const found = new Map<string, HeldBinding[]>();
  for (const row of rows) {
    const username = String(row.username);
    const held = found.get(username) ?? [];
    held.push({ ...bindingOf(contactOf(row)), holder: holderOf(String(row.node_id), row.alive_id, nodeId) });
    found.set(username, held);
  }
  return found;
}

/** Whose a row is. A node of a release before `node_id` may live. */
const holderOf = (rowNodeId: string, aliveId: unknown, nodeId: string): HeldBinding['holder'] =>
  rowNodeId === nodeId ? 'here' : aliveId === null && rowNodeId !== '' ? 'nobody' : 'elsewhere';

const contactOf = (row: Row): Parameters<typeof bindingOf>[0] => ({
  uri: String(row.uri),
  callId: String(row.call_id),
  cseq: Number(row.cseq),
  expiresAt: Number(row.expires_at),
  transport: String(row.transport),
  host: String(row.host),
  port: Number(row.port),
  userAgent: String(row.user_agent),
  instance: String(row.instance),
  regId: Number(row.reg_id),
  path: String(row.path),
});
