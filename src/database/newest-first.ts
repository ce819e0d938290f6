/** Lists that go from the newest to the oldest, page by page. */
import { type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/** The item that a page ended with. */
export interface PageEnd {
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly id: string;
}

/** The condition that an item is behind the end of a page. The list is ordered by both columns, descending. */
export const olderThan = (createdAt: PgColumn, id: PgColumn, end: PageEnd): SQL => sql`(${createdAt}, ${id}) < ${rowOf(id, end)}`;

/** The condition that an item is the end of a page, or before it. */
export const notOlderThan = (createdAt: PgColumn, id: PgColumn, end: PageEnd): SQL =>
  sql`(${createdAt}, ${id}) >= ${rowOf(id, end)}`;

const rowOf = (id: PgColumn, end: PageEnd): SQL => sql`(${end.createdAt}::bigint, ${end.id}::${sql.raw(id.getSQLType())})`;

/**
 * The condition that a row is of an application, by which no index is asked. What a Session or a Room has is found by
 * that: a plan that was made without statistics would look at all that the application has.
 */
export const isOfApp = (column: PgColumn, appUuid: string): SQL => sql`${column} || '' = ${appUuid}`;
