/**
 * Retention: idempotency keys, deleted Rooms and expired tokens of browsers are forgotten after 24 h, ended calls after
 * `CALL_HISTORY_DAYS`, events, messages, charges and processes that ended after 30 days, removed recordings after a
 * year. Rows go in small batches, so that no call waits.
 */
import { and, asc, between, eq, inArray, isNotNull, lt, lte, ne, or, type SQL, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import {
  CHARGE_RETENTION_DAYS,
  ENDED_SESSION_KEPT_SEC,
  EVENT_RETENTION_DAYS,
  IDEMPOTENCY_KEPT_SEC,
  MESSAGE_RETENTION_DAYS,
  RECEIVED_KEPT_SEC,
  RECORDING_REMEMBERED_DAYS,
  RETENTION_BATCH_MAX_ROWS,
  RETENTION_BATCH_SHRINKS,
  RETENTION_MAX_BATCHES,
  WEBRTC_TOKEN_KEPT_MS,
} from '../limits.ts';
import { timelinesOf } from './call/calls.ts';
import type { Database } from './driver/database.ts';
import { StoreUnavailable } from './journal/journal.ts';
import { charges, paymentReferences } from './payment-schema.ts';
import {
  apps,
  events,
  idempotency,
  messages,
  nodeBeats,
  nodes,
  receivedParts,
  recordings,
  revokedConsoleCookies,
  rooms,
  sessions,
  timelines,
  webrtcTokens,
} from './schema.ts';

export interface Forgotten {
  readonly sessions: number;
  readonly keys: number;
  readonly events: number;
  readonly messages: number;
  readonly received: number;
  readonly charges: number;
  readonly references: number;
  readonly recordings: number;
  readonly rooms: number;
  readonly cookies: number;
  readonly tokens: number;
  readonly nodes: number;
}

const DAY_MS = 24 * 3600 * 1000;

/** What statements are made with: the database, or a transaction. */
type Statements = Pick<Database['drizzle'], 'select' | 'delete'>;

/** Deletes at most so many rows of what is older than `before`. Resolves with those that went. */
type Batch = (on: Database['drizzle'], before: number, rows: number) => Promise<readonly unknown[]>;

/** Deletes the oldest rows of a table by their key, where their time lies before the bound and `also` is true. */
const oldest =
  (table: PgTable, key: PgColumn, at: PgColumn, also?: SQL) =>
  (on: Statements, before: number, rows: number): Promise<readonly { readonly key: unknown }[]> => {
    const past = on
      .select({ key })
      .from(table)
      .where(and(lt(at, before), also))
      .orderBy(asc(at))
      .limit(rows);
    return on.delete(table).where(inArray(key, past)).returning({ key });
  };

/** Deletes the oldest rows, and what `more` deletes for their keys, in one transaction. */
const oldestWith =
  (first: ReturnType<typeof oldest>, more: (on: Statements, keys: readonly string[]) => Promise<unknown>): Batch =>
  (on, before, rows) =>
    on.transaction(async (inside) => {
      const past = await first(inside, before, rows);
      if (past.length > 0)
        await more(
          inside,
          past.map(({ key }) => String(key)),
        );
      return past;
    });

/** A call's timeline goes in the transaction of its row, so that none is left without one. */
const ended = oldestWith(oldest(sessions, sessions.sessionUuid, sessions.endedAt), (on, calls) =>
  on.delete(timelines).where(timelinesOf(calls)),
);

/** Processes that ended long ago: each start makes one. Their calls and Rooms are others' by now, or over. */
const deadNodes = oldestWith(oldest(nodes, nodes.nodeId, nodes.deadAt), (on, nodeIds) =>
  on.delete(nodeBeats).where(inArray(nodeBeats.nodeId, [...nodeIds])),
);

const keys: Batch = (on, before, rows) =>
  on
    .delete(idempotency)
    .where(
      inArray(
        sql`(${idempotency.appUuid}, ${idempotency.key})`,
        on
          .select({ appUuid: idempotency.appUuid, key: idempotency.key })
          .from(idempotency)
          .where(lt(idempotency.createdAt, before))
          .orderBy(asc(idempotency.createdAt))
          .limit(rows),
      ),
    )
    .returning({ key: idempotency.key });

/**
 * Numbers rise with time, so the oldest events are the lowest: no index on time is needed. Those that a clock which was
 * ahead has dated into the future are passed over, because older ones lie behind them. What is still to be delivered
 * stays, also what is replayed while this statement waits for its row.
 */
const loggedEvents: Batch = (on, before, rows) => {
  const now = before + EVENT_RETENTION_DAYS * DAY_MS;
  const oldest = on
    .select({ eventId: events.eventId, at: events.at })
    .from(events)
    .where(and(ne(events.status, 'pending'), lte(events.at, now)))
    .orderBy(asc(events.eventId))
    .limit(rows)
    .as('oldest');
  const past = on.select({ eventId: oldest.eventId }).from(oldest).where(lt(oldest.at, before));
  return on
    .delete(events)
    .where(and(ne(events.status, 'pending'), inArray(events.eventId, past)))
    .returning({ eventId: events.eventId });
};

const settledMessages = oldest(messages, messages.messageUuid, messages.createdAt, eq(messages.stage, 'settled'));
const received = oldest(receivedParts, receivedParts.partId, receivedParts.receivedAt, isNotNull(receivedParts.messageUuid));
const settledCharges = oldest(charges, charges.chargeUuid, charges.createdAt, ne(charges.status, 'attempting'));
/** References that expired long ago. Those that a charge took have their expiry as a negative number. */
const references: Batch = (on, before, rows) => {
  const { reference, expiresAt } = paymentReferences;
  const isPast = or(between(expiresAt, 0, before - 1), between(expiresAt, 1 - before, -1));
  const past = on.select({ reference }).from(paymentReferences).where(isPast).limit(rows);
  return on.delete(paymentReferences).where(inArray(reference, past)).returning({ reference });
};
const deletedRooms = oldest(rooms, rooms.roomId, rooms.deletedAt);
const removedRecordings = oldest(recordings, recordings.recordingUuid, recordings.removedAt);
const revokedCookies = oldest(revokedConsoleCookies, revokedConsoleCookies.hash, revokedConsoleCookies.expiresAt);

/** Tokens of browsers that no call can have any more. Each application's are looked for, as their index is by that. */
const expiredTokens: Batch = (on, before, rows) => {
  const { tokenId, appUuid, expiresAt } = webrtcTokens;
  const ofApp = on
    .select({ tokenId })
    .from(webrtcTokens)
    .where(and(eq(appUuid, apps.appUuid), lt(expiresAt, before)))
    .limit(rows)
    .as('past');
  const past = on.select({ tokenId: ofApp.tokenId }).from(apps).crossJoinLateral(ofApp).limit(rows);
  return on.delete(webrtcTokens).where(inArray(tokenId, past)).returning({ tokenId });
};

/**
 * Deletes batch after batch of what is older than `before`. One that the database does not finish in its time is tried
 * again with a tenth of the rows: a slow disk falls behind, and does not stand still. Resolves with how many went.
 */
async function sweep(database: Database, batch: Batch, before: number): Promise<number> {
  let rows = RETENTION_BATCH_MAX_ROWS;
  let gone = 0;
  for (let turn = 0; turn < RETENTION_MAX_BATCHES; turn += 1) {
    try {
      const deleted = (await database.run((on) => batch(on, before, rows))).length;
      gone += deleted;
      if (deleted < rows) break;
    } catch (error) {
      if (rows === 1 || !(error instanceof StoreUnavailable)) throw error;
      rows = Math.ceil(rows / RETENTION_BATCH_SHRINKS);
    }
  }
  return gone;
}

/**
 * Deletes all that is past its time at `now`. Returns how many rows went. An ended call is kept for a day at least,
 * because commands to it are still answered. Rejects where a table could not be swept, once all others were.
 */
export async function forget(database: Database, now: number, callHistoryDays: number): Promise<Forgotten> {
  const failures: unknown[] = [];
  const past = (batch: Batch, keptMs: number): Promise<number> =>
    sweep(database, batch, Math.floor(now - keptMs)).catch((error: unknown) => {
      failures.push(error);
      return 0;
    });
  const forgotten = {
    sessions: await past(ended, Math.max(ENDED_SESSION_KEPT_SEC * 1000, callHistoryDays * DAY_MS)),
    keys: await past(keys, IDEMPOTENCY_KEPT_SEC * 1000),
    events: await past(loggedEvents, EVENT_RETENTION_DAYS * DAY_MS),
    charges: await past(settledCharges, CHARGE_RETENTION_DAYS * DAY_MS),
    references: await past(references, ENDED_SESSION_KEPT_SEC * 1000),
    rooms: await past(deletedRooms, ENDED_SESSION_KEPT_SEC * 1000),
    recordings: await past(removedRecordings, RECORDING_REMEMBERED_DAYS * DAY_MS),
    messages: await past(settledMessages, MESSAGE_RETENTION_DAYS * DAY_MS),
    received: await past(received, RECEIVED_KEPT_SEC * 1000),
    cookies: await past(revokedCookies, 0),
    tokens: await past(expiredTokens, WEBRTC_TOKEN_KEPT_MS),
    nodes: await past(deadNodes, EVENT_RETENTION_DAYS * DAY_MS),
  };
  if (failures.length > 0) throw failures[0];
  return forgotten;
}
