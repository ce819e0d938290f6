/** SIP trunks, as the operator set them up; their passwords sealed. */
import { asc, eq } from 'drizzle-orm';
import { TRUNKS_MAX } from '../limits.ts';
import type { Database } from './driver/database.ts';
import { trunks } from './schema.ts';
import type { Seal } from './vault/seal.ts';

interface TrunkRow {
  readonly name: string;
  /** `sip:host[:port][;transport=udp|tcp|tls]`. */
  readonly uri: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly register: boolean;
  readonly inboundCidrs: readonly string[];
  readonly maxChannels: number | undefined;
  readonly codecs: readonly string[] | undefined;
}

export interface TrunkStore {
  /** False: there are as many trunks as there may be. */
  put(trunk: TrunkRow): Promise<boolean>;
  remove(name: string): Promise<boolean>;
  /** Passwords opened: for the carrier only. */
  list(): Promise<readonly TrunkRow[]>;
}

export function trunkStore(database: Database, seal: Seal): TrunkStore {
  return {
    async put(trunk) {
      const row = {
        uri: trunk.uri,
        username: trunk.username ?? null,
        password: trunk.password === undefined ? null : seal.close(trunk.password, `trunk ${trunk.name}`),
        register: trunk.register,
        inboundCidrs: [...trunk.inboundCidrs],
        maxChannels: trunk.maxChannels ?? null,
        codecs: trunk.codecs === undefined ? null : [...trunk.codecs],
      };
      const known = await database.run((on) => on.select({ name: trunks.name }).from(trunks).limit(TRUNKS_MAX));
      if (known.length >= TRUNKS_MAX && !known.some((each) => each.name === trunk.name)) return false;
      await database.run((on) =>
        on
          .insert(trunks)
          .values({ name: trunk.name, ...row })
          .onConflictDoUpdate({ target: trunks.name, set: row }),
      );
      return true;
    },
    async remove(name) {
      const gone = await database.run((on) => on.delete(trunks).where(eq(trunks.name, name)).returning({ name: trunks.name }));
      return gone.length > 0;
    },
    async list() {
      const rows = await database.run((on) => on.select().from(trunks).orderBy(asc(trunks.name)).limit(TRUNKS_MAX));
      return rows.map((row) => ({
        name: row.name,
        uri: row.uri,
        username: row.username ?? undefined,
        password: row.password === null ? undefined : seal.open(new Uint8Array(row.password), `trunk ${row.name}`),
        register: row.register,
        inboundCidrs: row.inboundCidrs,
        maxChannels: row.maxChannels ?? undefined,
        codecs: row.codecs ?? undefined,
      }));
    },
  };
}
