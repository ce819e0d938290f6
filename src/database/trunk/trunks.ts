/** SIP trunks, as the operator set them up. Passwords and private keys are sealed under MASTER_KEY. */
import { asc, eq } from 'drizzle-orm';
import { TRUNKS_MAX } from '../../limits.ts';
import type { Database } from '../driver/database.ts';
import { trunks } from '../schema.ts';
import { opened, type Seal, type TellLost } from '../vault/seal.ts';
import type { TrunkSettings } from './trunk-settings.ts';

export interface TrunkRow {
  readonly name: string;
  /** `sip:host[:port][;transport=udp|tcp|tls]`. */
  readonly uri: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly register: boolean;
  readonly inboundCidrs: readonly string[];
  readonly maxChannels: number | undefined;
  readonly codecs: readonly string[] | undefined;
  readonly settings: TrunkSettings;
  /** The private key of `settings.tls.cert`, PEM text. */
  readonly tlsKey: string | undefined;
}

export interface TrunkStore {
  /**
   * Sets a trunk up, whole. A secret that is undefined stays as it is, `""` removes it. False: there are TRUNKS_MAX
   * trunks already.
   */
  put(trunk: TrunkRow): Promise<boolean>;
  remove(name: string): Promise<boolean>;
  /** The trunks by name, secrets opened, for the carrier only. A secret that does not open is none. */
  list(): Promise<readonly TrunkRow[]>;
}

/** Makes the store. `tellLost` is told of trunks whose secrets do not open, each time that they are read. */
export function trunkStore(database: Database, seal: Seal, tellLost: TellLost): TrunkStore {
  const close = (secret: string, purpose: string) => (secret === '' ? null : seal.close(secret, purpose));
  return {
    async put(trunk) {
      const { name, password, tlsKey } = trunk;
      const row = {
        uri: trunk.uri,
        username: trunk.username ?? null,
        register: trunk.register,
        inboundCidrs: [...trunk.inboundCidrs],
        maxChannels: trunk.maxChannels ?? null,
        codecs: trunk.codecs === undefined ? null : [...trunk.codecs],
        settings: trunk.settings,
        ...(password === undefined ? {} : { password: close(password, passwordOf(name)) }),
        ...(tlsKey === undefined ? {} : { tlsKey: close(tlsKey, keyOf(name)) }),
      };
      const known = await database.run((on) => on.select({ name: trunks.name }).from(trunks).limit(TRUNKS_MAX));
      if (known.length >= TRUNKS_MAX && !known.some((each) => each.name === name)) return false;
      await database.run((on) =>
        on
          .insert(trunks)
          .values({ name, ...row })
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
      const lost = new Set<string>();
      const open = (sealed: Uint8Array | null, name: string, purpose: string) => {
        const secret = sealed === null ? undefined : opened(seal, sealed, purpose);
        if (sealed !== null && secret === undefined) lost.add(name);
        return secret;
      };
      const listed = rows.map((row) => ({
        name: row.name,
        uri: row.uri,
        username: row.username ?? undefined,
        password: open(row.password, row.name, passwordOf(row.name)),
        register: row.register,
        inboundCidrs: row.inboundCidrs,
        maxChannels: row.maxChannels ?? undefined,
        codecs: row.codecs ?? undefined,
        settings: row.settings,
        tlsKey: open(row.tlsKey, row.name, keyOf(row.name)),
      }));
      if (lost.size > 0) tellLost('trunks', [...lost]);
      return listed;
    },
  };
}

/** What a secret is sealed for: it opens for nothing else. */
export const passwordOf = (name: string): string => `trunk ${name}`;
export const keyOf = (name: string): string => `trunk key ${name}`;
