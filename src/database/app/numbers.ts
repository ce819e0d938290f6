/** The applications that numbers, caller IDs and payment terminals belong to (contract §1). */
import { and, eq, getTableName, sql } from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { BriefCache } from '../../bounds/brief-cache.ts';
import { APP_CACHE_MAX_ITEMS, APP_CACHE_MS } from '../../limits.ts';
import type { Database } from '../driver/database.ts';
import { coalesce } from '../journal/coalesce.ts';
import { apps, callerIds, numbers, paymentTerminals } from '../schema.ts';
import type { AppStore } from './apps.ts';

export interface NumberStore {
  /** Assigns, also away from another application. False: no such application. */
  assign(e164: string, appUuid: string): Promise<boolean>;
  unassign(e164: string): Promise<boolean>;
  /** The application an inbound call to the number belongs to. */
  owner(e164: string): Promise<string | undefined>;
}

/** A list of strings an application is permitted. */
export interface Permitted {
  allow(appUuid: string, value: string): Promise<boolean>;
  disallow(appUuid: string, value: string): Promise<boolean>;
  allowed(appUuid: string, value: string): Promise<boolean>;
}

/** Calls that come in together are looked up together. */
const OWNERS = `SELECT e164, app_uuid FROM numbers WHERE e164 = ANY (ARRAY(SELECT json_array_elements_text($1::text::json)))`;

/** Tells that an application was changed, and hears of it, here or on another node. */
type Changes = Pick<AppStore, 'onChange'> & { changed(appUuid: string): void };

export function numberStore(database: Database, changes: Changes, now: () => number): NumberStore {
  const load = coalesce<string, string | undefined>({
    async load(asked) {
      const rows = await database.query<{ e164: string; app_uuid: string }>(OWNERS, [JSON.stringify([...new Set(asked)])]);
      const owners = new Map(rows.map(({ e164, app_uuid: appUuid }) => [e164, appUuid]));
      return asked.map((e164) => owners.get(e164));
    },
  });
  const owners = new BriefCache({ load, keptMs: APP_CACHE_MS, most: APP_CACHE_MAX_ITEMS, now });
  // A change names the application, and none of the numbers that moved.
  changes.onChange(() => owners.forgetAll());
  return {
    async assign(e164, appUuid) {
      if (!(await exists(database, appUuid))) return false;
      await database.run((on) =>
        on.insert(numbers).values({ e164, appUuid }).onConflictDoUpdate({ target: numbers.e164, set: { appUuid } }),
      );
      changes.changed(appUuid);
      return true;
    },
    async unassign(e164) {
      const gone = await database.run((on) =>
        on.delete(numbers).where(eq(numbers.e164, e164)).returning({ appUuid: numbers.appUuid }),
      );
      for (const { appUuid } of gone) changes.changed(appUuid);
      return gone.length > 0;
    },
    owner: (e164) => owners.get(e164),
  };
}

export const callerIdStore = (database: Database, changes: Changes, now: () => number): Permitted =>
  permitted({ database, changes, now }, callerIds, callerIds.appUuid, callerIds.e164, (appUuid, e164) => ({ appUuid, e164 }));

export const terminalStore = (database: Database, changes: Changes, now: () => number): Permitted =>
  permitted(
    { database, changes, now },
    paymentTerminals,
    paymentTerminals.appUuid,
    paymentTerminals.terminalNumber,
    (appUuid, terminalNumber) => ({ appUuid, terminalNumber }),
  );

/** Each call that is dialled asks. Those that are dialled together ask together, each row by its primary key. */
const allowedStatement = (table: string, app: string, value: string): string => `
SELECT asked.position::int AS allowed
FROM json_array_elements($1::text::json) WITH ORDINALITY AS asked (pair, position),
  LATERAL (SELECT 1 FROM ${table} AS t WHERE t.${app} = asked.pair->>0 AND t.${value} = asked.pair->>1 LIMIT 1) AS found`;

function permitted<T extends PgTable>(
  { database, changes, now }: { readonly database: Database; readonly changes: Changes; readonly now: () => number },
  table: T,
  app: PgColumn,
  value: PgColumn,
  row: (appUuid: string, value: string) => T['$inferInsert'],
): Permitted {
  const statement = allowedStatement(getTableName(table), app.name, value.name);
  const load = coalesce<readonly [string, string], boolean>({
    async load(asked) {
      const rows = await database.query<{ allowed: number }>(statement, [JSON.stringify(asked)]);
      const found = new Set(rows.map(({ allowed }) => allowed));
      return asked.map((_, at) => found.has(at + 1));
    },
  });
  const permissions = new BriefCache({
    load: async (pair) => {
      const space = pair.indexOf(' ');
      // A refusal is not kept: who is permitted a moment later may call.
      return (await load([pair.slice(0, space), pair.slice(space + 1)])) || undefined;
    },
    ...{ keptMs: APP_CACHE_MS, most: APP_CACHE_MAX_ITEMS, now },
  });
  changes.onChange(() => permissions.forgetAll());
  return {
    async allow(appUuid, text) {
      if (!(await exists(database, appUuid))) return false;
      await database.run((on) => on.insert(table).values(row(appUuid, text)).onConflictDoNothing());
      changes.changed(appUuid);
      return true;
    },
    async disallow(appUuid, text) {
      const gone = await database.run((on) =>
        on
          .delete(table)
          .where(and(eq(app, appUuid), eq(value, text)))
          .returning({ one: sql<number>`1` }),
      );
      changes.changed(appUuid);
      return gone.length > 0;
    },
    allowed: async (appUuid, text) => (await permissions.get(`${appUuid} ${text}`)) === true,
  };
}

async function exists(database: Database, appUuid: string): Promise<boolean> {
  const rows = await database.run((on) =>
    on.select({ appUuid: apps.appUuid }).from(apps).where(eq(apps.appUuid, appUuid)).limit(1),
  );
  return rows.length > 0;
}
