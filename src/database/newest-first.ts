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
export const olderThan = (createdAt: PgColumn, id: PgColumn, end: PageEnd): SQL =>
  sql`(${createdAt}, ${id}) < (${end.createdAt}::bigint, ${end.id}::${sql.raw(id.getSQLType())})`;
