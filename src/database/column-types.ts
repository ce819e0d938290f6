/** The column types that Drizzle does not have, or that the program takes in one form only. */
import { bigint, customType } from 'drizzle-orm/pg-core';

export const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

/** The number of a transaction, which never wraps. A string, as it has 64 bits. */
export const xid8 = customType<{ data: string; driverData: string }>({ dataType: () => 'xid8' });

/** A time: milliseconds since the epoch. */
export const ms = (name: string) => bigint(name, { mode: 'number' });
