/**
 * SIP devices: the users that may register, and the contacts that they have registered. What a password is checked
 * against (HA1 for both digests) is sealed under MASTER_KEY; the password itself is not stored.
 */
import { randomBytes } from 'node:crypto';
import { and, asc, eq, gt, inArray, sql } from 'drizzle-orm';
import { DEVICES_MAX } from '../../limits.ts';
import type { DigestSecrets } from '../../sip/message/digest-server.ts';
import type { Binding } from '../../sip/registrar.ts';
import type { Database } from '../driver/database.ts';
import { apps, deviceContacts, devices } from '../schema.ts';
import type { Seal, TellLost } from '../vault/seal.ts';
import { bindingOf, type ContactStore, type DeviceRow, hasSecrets, ownerOf, registeredContacts, secretsOf } from './contacts.ts';
import { type RegistrationStore, registrationStore } from './registrations.ts';

/** A device user of an application, with the contacts that are bound. */
export interface ListedDevice {
  readonly username: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The one that is bound longest first. */
  readonly contacts: readonly Binding[];
}

/** A page of the devices of an application, by name. */
interface DeviceQuery {
  readonly appUuid: string;
  /** The one of that name alone. */
  readonly username?: string | undefined;
  /** The name behind which the page begins. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** The devices of all applications: their users, and the contacts of these that are bound. */
export interface DeviceStore extends ContactStore, RegistrationStore {
  /** Sets a device up, or gives it another password: its contacts, which it registered with the old one, go. */
  put(device: DeviceRow): Promise<'stored' | 'no_app' | 'taken' | 'full'>;
  /** Removes a device and its contacts. Resolves with false when the application has no such device. */
  remove(appUuid: string, username: string): Promise<boolean>;
  /** Resolves with undefined where there is no such application. */
  list(query: DeviceQuery): Promise<readonly ListedDevice[] | undefined>;
  /** Every device, secrets opened, for the carrier only. No password fits one whose secrets do not open. */
  all(): Promise<readonly StoredDevice[]>;
  /** The devices of these names, as far as they are there. */
  some(usernames: readonly string[]): Promise<readonly StoredDevice[]>;
  /** The number of devices and the sum of their `changedAt`. It changes with every `put` and `remove`. */
  version(): Promise<string>;
}

/** A device as its row says. */
export interface StoredDevice extends DeviceRow {
  /** Milliseconds since the epoch by some machine; it rises with each change of this device. */
  readonly changedAt: number;
}

/**
 * Makes the store. `nodeId` names this process, which has the connections of the devices that register with it.
 * `tellLost` is told of users whose secrets do not open, each time that they are read.
 */
export function deviceStore(
  database: Database,
  seal: Seal,
  nodeId: string,
  clock: () => number,
  tellLost: TellLost,
): DeviceStore {
  const now = () => Math.floor(clock());
  return {
    ...deviceUsers(database, seal, now, tellLost),
    ...registeredContacts(database, now),
    ...registrationStore(database, seal, nodeId, now),
  };
}

type DeviceUsers = Pick<DeviceStore, 'put' | 'remove' | 'list' | 'all' | 'some' | 'version'>;

/** The users that may register. `now` tells whole milliseconds since the epoch. */
function deviceUsers(database: Database, seal: Seal, now: () => number, tellLost: TellLost): DeviceUsers {
  const stored = (rows: readonly (typeof devices.$inferSelect)[]) => storedDevices(seal, rows, tellLost);
  return {
    put: (device) => putDevice(database, seal, device, now()),
    async remove(appUuid, username) {
      const gone = await database.run((on) =>
        on
          .delete(devices)
          .where(and(eq(devices.username, username), eq(devices.appUuid, appUuid)))
          .returning({ username: devices.username }),
      );
      return gone.length > 0;
    },
    list: (query) => listDevices(database, query, now()),
    async all() {
      const rows = await database.run((on) => on.select().from(devices).limit(DEVICES_MAX));
      return stored(rows);
    },
    async some(usernames) {
      const rows = await database.run((on) =>
        on
          .select()
          .from(devices)
          .where(inArray(devices.username, [...usernames])),
      );
      return stored(rows);
    },
    async version() {
      const [row] = await database.query<{ version: string }>(
        // The greatest time would not do: they are of several machines, and one may be ahead.
        "SELECT count(*) || ' ' || coalesce(sum(changed_at), 0) AS version FROM devices",
      );
      return row?.version ?? '';
    },
  };
}

/** The devices of rows. One whose secrets do not open stays without a password that fits, until it is given one. */
function storedDevices(seal: Seal, rows: readonly (typeof devices.$inferSelect)[], tellLost: TellLost): readonly StoredDevice[] {
  const lost: string[] = [];
  const found = rows.map((row) => {
    const { username, appUuid, changedAt } = row;
    const secrets = secretsOf(seal, row);
    if (secrets === undefined) lost.push(username);
    return { username, appUuid, changedAt, secrets: secrets ?? nobodys() };
  });
  if (lost.length > 0) tellLost('devices', lost);
  return found;
}

/** The secrets of a password that nobody knows. */
const nobodys = (): DigestSecrets => ({ md5: randomBytes(16).toString('hex'), sha256: randomBytes(32).toString('hex') });

/**
 * Sets a device up, or changes its password, which unbinds its contacts: who has the old one only hears of no more
 * calls. `now` is in whole milliseconds since the epoch.
 */
async function putDevice(
  database: Database,
  seal: Seal,
  { username, appUuid, secrets }: DeviceRow,
  now: number,
): ReturnType<DeviceStore['put']> {
  if (!(await hasApp(database, appUuid))) return 'no_app';
  const sealed = seal.close(JSON.stringify(secrets), ownerOf(username));
  return database.run((on) =>
    on.transaction(async (tx) => {
      // Locked, as by a REGISTER: none that was let in by the old password binds its contact after this.
      const [known] = await tx.select().from(devices).where(eq(devices.username, username)).for('update');
      if (known === undefined && (await tx.$count(devices)) >= DEVICES_MAX) return 'full';
      // The owner is part of the condition, so that two applications cannot take one name at once.
      const stored = await tx
        .insert(devices)
        .values({ username, appUuid, createdAt: now, secrets: sealed, changedAt: now })
        .onConflictDoUpdate({
          target: devices.username,
          // It rises with each change, whatever the clock of this machine says.
          set: { secrets: sealed, changedAt: sql`greatest(${devices.changedAt} + 1, excluded.changed_at)` },
          setWhere: eq(devices.appUuid, appUuid),
        })
        .returning({ username: devices.username });
      if (stored.length === 0) return 'taken';
      if (known !== undefined && !hasSecrets(seal, known, secrets))
        await tx.delete(deviceContacts).where(eq(deviceContacts.username, username));
      return 'stored';
    }),
  );
}

/** Lists devices with their contacts. Undefined where there is no such application. `now` as above. */
async function listDevices(
  database: Database,
  { appUuid, username, after, limit }: DeviceQuery,
  now: number,
): ReturnType<DeviceStore['list']> {
  if (!(await hasApp(database, appUuid))) return undefined;
  const rows = await database.run((on) => {
    const page = on
      .select({ username: devices.username, createdAt: devices.createdAt })
      .from(devices)
      .where(
        and(
          eq(devices.appUuid, appUuid),
          username === undefined ? undefined : eq(devices.username, username),
          after === undefined ? undefined : gt(devices.username, after),
        ),
      )
      .orderBy(asc(devices.username))
      .limit(limit)
      .as('page');
    return on
      .select({ username: page.username, createdAt: page.createdAt, contact: deviceContacts })
      .from(page)
      .leftJoin(deviceContacts, and(eq(deviceContacts.username, page.username), gt(deviceContacts.expiresAt, now)))
      .orderBy(asc(page.username), sql`${deviceContacts.expiresAt} DESC NULLS LAST`);
  });
  const found = new Map<string, { username: string; createdAt: number; contacts: Binding[] }>();
  for (const row of rows) {
    const device = found.get(row.username) ?? { username: row.username, createdAt: row.createdAt, contacts: [] };
    if (row.contact !== null) device.contacts.push(bindingOf(row.contact));
    found.set(row.username, device);
  }
  return [...found.values()];
}

async function hasApp(database: Database, appUuid: string): Promise<boolean> {
  const found = await database.run((on) =>
    on.select({ one: sql<number>`1` }).from(apps).where(eq(apps.appUuid, appUuid)).limit(1),
  );
  return found.length > 0;
}
