/**
 * Cookies of the console that were logged out before their time, and one-time logins that were used, kept as hashes so
 * that every node refuses them.
 */
import { eq } from 'drizzle-orm';
import { sha256 } from '../hash.ts';
import type { Database } from './driver/database.ts';
import { revokedConsoleCookies } from './schema.ts';

export interface ConsoleCookieStore {
  /**
   * Revokes a cookie or a login. Resolves with whether it was not revoked before. `expiresAt` (ms since the epoch) is
   * when its row may be forgotten.
   */
  revoke(cookie: string, expiresAt: number): Promise<boolean>;
  isRevoked(cookie: string): Promise<boolean>;
}

/** The store of revoked cookies. Both of its functions reject with StoreUnavailable when the database is away. */
export function consoleCookieStore(database: Database): ConsoleCookieStore {
  return {
    async revoke(cookie, expiresAt) {
      const row = { hash: sha256(cookie), expiresAt: Math.floor(expiresAt) };
      const { hash } = revokedConsoleCookies;
      const rows = await database.run((on) =>
        on.insert(revokedConsoleCookies).values(row).onConflictDoNothing().returning({ hash }),
      );
      return rows.length > 0;
    },
    async isRevoked(cookie) {
      const { hash } = revokedConsoleCookies;
      const rows = await database.run((on) =>
        on
          .select({ hash })
          .from(revokedConsoleCookies)
          .where(eq(hash, sha256(cookie))),
      );
      return rows.length > 0;
    },
  };
}
