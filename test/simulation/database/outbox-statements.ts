/** The outbox and the leases. */
import type { Attempt } from '../../../src/database/event/attempt.ts';
import { RELAY_LEASE_SEEN_MS } from '../../../src/limits.ts';
import type { Execution, Rows, Statement } from './statement.ts';
import { listAt, NONE, numberAt, read, textAt, write } from './statement.ts';
import type { OutboxRecord, Tables } from './tables.ts';

const RELAY = 'webhook-relay';

/** Takes or renews a lease. It is free where its holder is dead, or as `isOver` says. Undefined: another holds it. */
function take(
  execution: Execution,
  name: string,
  holder: string,
  ttlMs: number,
  isOver: (expiresAt: number) => boolean,
): number | undefined {
  const { tables, now } = execution;
  const held = tables.leases.get(name);
  const isFree = held === undefined || held.holder === holder || isOver(held.expires_at) || isHeldByDead(execution, name);
  if (!isFree) return undefined;
  const fence = held === undefined ? 1 : held.holder === holder ? held.fence : held.fence + 1;
  tables.leases.set(name, { holder, fence, expires_at: now + ttlMs });
  return fence;
}

function takeAsNode(execution: Execution, name: string): number | undefined {
  const { tables } = execution;
  const holder = textAt(execution, 2);
  if (!tables.isAlive(holder)) return undefined;
  return take(execution, name, holder, numberAt(execution, 3), (expiresAt) => expiresAt < execution.now);
}

/** Tells whether the holder of a lease was declared dead. */
function isHeldByDead({ tables }: Execution, name: string): boolean {
  const held = tables.leases.get(name);
  return held !== undefined && tables.nodes.get(held.holder)?.dead_at != null;
}

/** Tells whether a row lies behind a position in the outbox. */
export const isAfter = (row: OutboxRecord, xid: number, eventId: number): boolean =>
  row.xid > xid || (row.xid === xid && row.event_id > eventId);

/** The page of rows. No body of the simulation is so large that it would be read by itself. */
function rowsOf(tables: Tables, all: readonly OutboxRecord[], limit: number): Rows {
  const page = [...all].sort((a, b) => a.xid - b.xid || a.event_id - b.event_id).slice(0, limit);
  return page.flatMap(({ event_id }) => {
    const event = tables.eventsById.get(event_id);
    if (event === undefined) return [];
    const { xid, lanes, attempts, ...rest } = event;
    const times = (name: 'at' | 'retry_at') => JSON.stringify(attempts.map((attempt) => attempt[name]));
    const told = { lanes: JSON.stringify(lanes), tried_at: times('at'), retry_at: times('retry_at'), attempts_before: 0 };
    return [{ ...rest, ...told, xid: String(xid), held: false, bytes: event.body.length }];
  });
}

interface Settled {
  readonly xid: string;
  readonly event_id: number;
  readonly status: string;
  readonly attempts: readonly Attempt[];
}

const leaseStatements: readonly Statement[] = [
  write(/^WITH taken AS \(\s+INSERT INTO leases AS l \(name, holder, expires_at\)/, (execution) => () => {
    const { tables, now, parameters } = execution;
    const before = tables.leases.get(RELAY);
    const isOver = (expiresAt: number) =>
      parameters[2] === expiresAt && expiresAt < now && numberAt(execution, 4) <= now - RELAY_LEASE_SEEN_MS;
    const held = take(execution, RELAY, textAt(execution, 1), numberAt(execution, 2), isOver) !== undefined;
    const ranOut = before !== undefined && before.expires_at < now ? before.expires_at : null;
    return [{ held, now, ran_out: ranOut }];
  }),
  write(/^DELETE FROM leases WHERE name = 'webhook-relay' AND holder = \$1$/, (execution) => () => {
    const { leases } = execution.tables;
    if (leases.get(RELAY)?.holder === textAt(execution, 1)) leases.delete(RELAY);
    return NONE;
  }),
  write(/^DELETE FROM leases WHERE name = 'webhook-relay'$/, (execution) => () => {
    execution.tables.leases.delete(RELAY);
    return NONE;
  }),
  write(/^INSERT INTO leases AS l \(name, holder, fence, expires_at\)\s+SELECT \$1/, (execution) => () => {
    const fence = takeAsNode(execution, textAt(execution, 1));
    return fence === undefined ? NONE : [{ fence }];
  }),
  write(
    /^INSERT INTO leases AS l \(name, holder, fence, expires_at\)\s+SELECT wanted/,
    (execution) => () =>
      [...new Set(listAt<string>(execution, 1))].flatMap((name) => (takeAsNode(execution, name) === undefined ? [] : [{ name }])),
  ),
  write(/^DELETE FROM leases WHERE name = \$1 AND holder = \$2/, (execution) => () => {
    const { leases } = execution.tables;
    if (leases.get(textAt(execution, 1))?.holder === textAt(execution, 2)) leases.delete(textAt(execution, 1));
    return NONE;
  }),
];

const relayStatements: readonly Statement[] = [
  read(/^SELECT pg_snapshot_xmin/, ({ tables }) => [{ xid: String(tables.xmin) }]),
  read(/^SELECT pg_snapshot_xmax/, ({ tables }) => [{ xid: String(tables.nextXid) }]),
  read(/^WITH RECURSIVE apps AS .* FROM outbox/s, (execution) => {
    const before = [...execution.tables.outbox.values()].filter(
      (row) => !isAfter(row, numberAt(execution, 1), numberAt(execution, 2)),
    );
    return [...new Set(before.map((row) => row.app_uuid))].map((app_uuid) => ({ app_uuid }));
  }),
  read(/^SELECT o\.xid.* AND o\.xid < pg_snapshot_xmin/s, (execution) => {
    const { tables } = execution;
    const { xmin } = tables;
    const found = [...tables.outbox.values()].filter(
      (row) => row.xid < xmin && isAfter(row, numberAt(execution, 1), numberAt(execution, 2)),
    );
    const held = [...tables.outbox.values()].some((row) => row.xid >= xmin);
    return rowsOf(tables, found, numberAt(execution, 3)).map((row) => ({ ...row, held }));
  }),
  read(/^SELECT EXISTS \(SELECT 1 FROM outbox WHERE/, (execution) => [
    {
      held: [...execution.tables.outbox.values()].some((row) => isAfter(row, numberAt(execution, 1), numberAt(execution, 2))),
      // No transaction of the simulation is lost once it has a number.
      went_back: false,
    },
  ]),
  read(/^SELECT EXISTS \(SELECT 1 FROM outbox AS o JOIN/, (execution) => {
    const { tables } = execution;
    const before = [...tables.outbox.values()].filter(({ xid }) => xid < numberAt(execution, 1));
    return [{ waits: before.some(({ event_id }) => tables.eventsById.get(event_id)?.attempts.length === 0) }];
  }),
  read(/^SELECT o\.xid.* WHERE o\.app_uuid = \$1/s, (execution) => {
    const { tables } = execution;
    const found = [...tables.outbox.values()].filter(
      (row) =>
        row.app_uuid === textAt(execution, 1) &&
        isAfter(row, numberAt(execution, 2), numberAt(execution, 3)) &&
        !isAfter(row, numberAt(execution, 4), numberAt(execution, 5)),
    );
    return rowsOf(tables, found, numberAt(execution, 6));
  }),
  write(
    /^\s*WITH mine AS MATERIALIZED \(\s+SELECT 1 FROM leases/,
    (execution) => {
      const { tables } = execution;
      const isHolder = tables.leases.get(RELAY)?.holder === textAt(execution, 2);
      const settled = listAt<Settled>(execution, 1);
      const isAgain = execution.text.includes('NOT e.attempts @>');
      return () => {
        if (!isHolder) return [{ settled: 0 }];
        for (const { xid, event_id, status, attempts } of settled) {
          const event = tables.eventsById.get(event_id);
          if (event !== undefined && String(tables.outbox.get(event_id)?.xid) === xid) {
            event.status = status;
            const known = new Set(isAgain ? event.attempts.map((attempt) => JSON.stringify(attempt)) : []);
            event.attempts = [...event.attempts, ...attempts.filter((attempt) => !known.has(JSON.stringify(attempt)))];
          }
          if (status !== 'pending') tables.outbox.delete(event_id);
        }
        return [{ settled: settled.length }];
      };
    },
    (execution) => listAt<Settled>(execution, 1).map(({ event_id }) => `event ${event_id}`),
  ),
];

export const outboxStatements: readonly Statement[] = [...leaseStatements, ...relayStatements];
