/**
 * SIP devices: the users that may register, and the contacts that they have registered. What a password is checked
 * against (HA1 for both digests) is sealed under MASTER_KEY; the password itself is not stored.
 */
import { and, asc, eq, gt, inArray, isNull, lte, sql } from 'drizzle-orm';
import { DEVICE_CONTACTS_MAX, DEVICES_MAX } from '../limits.ts';
import type { DigestSecrets } from '../sip/message/digest-server.ts';
import type { Binding } from '../sip/registrar.ts';
import type { Database } from './driver/database.ts';
import { apps, deviceContacts, devices, nodes } from './schema.ts';
import type { Seal } from './vault/seal.ts';

interface DeviceRow {
  readonly username: string;
  readonly appUuid: string;
  readonly secrets: DigestSecrets;
}

/** A device user of an application, with the contacts that are bound. */
interface ListedDevice {
  readonly username: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The one that is bound longest first. */
  readonly contacts: readonly Binding[];
}

/** A contact, and the node that it registered with. */
export interface DeviceFlow {
  readonly nodeId: string;
  readonly binding: Binding;
}

export interface DeviceStore {
  /** Sets a device up, or gives it another password. */
  put(device: DeviceRow): Promise<'stored' | 'no_app' | 'taken' | 'full'>;
  /** False: the application has no such device. Its contacts go with it. */
  remove(appUuid: string, username: string): Promise<boolean>;
  /** Resolves with undefined where there is no such application. */
  list(appUuid: string): Promise<readonly ListedDevice[] | undefined>;
  /** Every device, secrets opened: for the carrier only. */
  all(): Promise<readonly DeviceRow[]>;
  /** Changes with every `put` and `remove`. */
  version(): Promise<string>;
  /** The contacts of a user that are bound. */
  bindings(username: string): Promise<readonly Binding[]>;
  /** The contacts of a user that are bound, each with the node that it registered with, of those that are not dead. */
  flows(username: string): Promise<readonly DeviceFlow[]>;
  save(username: string, stored: readonly Binding[], removed: readonly string[]): Promise<void>;
  /** The contacts of all users that are bound. */
  allBindings(): Promise<readonly { readonly username: string; readonly binding: Binding }[]>;
}

/** `nodeId` names this process, which has the connections of the devices that register with it. */
export function deviceStore(database: Database, seal: Seal, nodeId: string, clock: () => number): DeviceStore {
  const now = () => Math.floor(clock());
  const bound = (username: string) => and(eq(deviceContacts.username, username), gt(deviceContacts.expiresAt, now()));
  return {
    async put({ username, appUuid, secrets }) {
      const app = await database.run((on) =>
        on.select({ one: sql<number>`1` }).from(apps).where(eq(apps.appUuid, appUuid)).limit(1),
      );
      if (app.length === 0) return 'no_app';
      const [known] = await database.run((on) =>
        on.select({ appUuid: devices.appUuid }).from(devices).where(eq(devices.username, username)).limit(1),
      );
      if (known === undefined) {
        const [counted] = await database.run((on) => on.select({ count: sql<number>`count(*)::int` }).from(devices));
        if ((counted?.count ?? 0) >= DEVICES_MAX) return 'full';
      }
      const sealed = seal.close(JSON.stringify(secrets), ownerOf(username));
      // The owner is part of the condition, so that two applications cannot take one name at once.
      const stored = await database.run((on) =>
        on
          .insert(devices)
          .values({ username, appUuid, createdAt: now(), secrets: sealed, changedAt: now() })
          .onConflictDoUpdate({
            target: devices.username,
            // It rises with each change, whatever the clock of this machine says.
            set: { secrets: sealed, changedAt: sql`greatest(${devices.changedAt} + 1, excluded.changed_at)` },
            setWhere: eq(devices.appUuid, appUuid),
          })
          .returning({ username: devices.username }),
      );
      return stored.length > 0 ? 'stored' : 'taken';
    },
    async remove(appUuid, username) {
      const gone = await database.run((on) =>
        on
          .delete(devices)
          .where(and(eq(devices.username, username), eq(devices.appUuid, appUuid)))
          .returning({ username: devices.username }),
      );
      return gone.length > 0;
    },
    async list(appUuid) {
      const app = await database.run((on) =>
        on.select({ one: sql<number>`1` }).from(apps).where(eq(apps.appUuid, appUuid)).limit(1),
      );
      if (app.length === 0) return undefined;
      const rows = await database.run((on) =>
        on
          .select({ username: devices.username, createdAt: devices.createdAt, contact: deviceContacts })
          .from(devices)
          .leftJoin(deviceContacts, and(eq(deviceContacts.username, devices.username), gt(deviceContacts.expiresAt, now())))
          .where(eq(devices.appUuid, appUuid))
          .orderBy(asc(devices.username), sql`${deviceContacts.expiresAt} DESC NULLS LAST`)
          .limit(DEVICES_MAX),
      );
      const found = new Map<string, { username: string; createdAt: number; contacts: Binding[] }>();
      for (const { username, createdAt, contact } of rows) {
        const device = found.get(username) ?? { username, createdAt, contacts: [] };
        if (contact !== null) device.contacts.push(bindingOf(contact));
        found.set(username, device);
      }
      return [...found.values()];
    },
    async all() {
      const rows = await database.run((on) => on.select().from(devices).limit(DEVICES_MAX));
      return rows.map(({ username, appUuid, secrets }) => ({
        username,
        appUuid,
        secrets: secretsOf(seal.open(new Uint8Array(secrets), ownerOf(username))),
      }));
    },
    async version() {
      const [row] = await database.query<{ version: string }>(
        // The greatest time would not do: they are of several machines, and one may be ahead.
        "SELECT count(*) || ' ' || coalesce(sum(changed_at), 0) AS version FROM devices",
      );
      return row?.version ?? '';
    },
    async bindings(username) {
      const rows = await database.run((on) =>
        on.select().from(deviceContacts).where(bound(username)).orderBy(asc(deviceContacts.uri)).limit(DEVICE_CONTACTS_MAX),
      );
      return rows.map(bindingOf);
    },
    async flows(username) {
      const rows = await database.run((on) =>
        on
          .select({ contact: deviceContacts })
          .from(deviceContacts)
          .innerJoin(nodes, and(eq(nodes.nodeId, deviceContacts.nodeId), isNull(nodes.deadAt)))
          .where(bound(username))
          .orderBy(asc(deviceContacts.uri))
          .limit(DEVICE_CONTACTS_MAX),
      );
      return rows.map(({ contact }) => ({ nodeId: contact.nodeId, binding: bindingOf(contact) }));
    },
    async save(username, stored, removed) {
      await database.run(async (on) => {
        const gone = and(
          eq(deviceContacts.username, username),
          removed.length === 0
            ? lte(deviceContacts.expiresAt, now())
            : sql`(${lte(deviceContacts.expiresAt, now())} OR ${inArray(deviceContacts.uri, [...removed])})`,
        );
        await on.delete(deviceContacts).where(gone);
        if (stored.length === 0) return;
        await on
          .insert(deviceContacts)
          .values(stored.map((binding) => ({ username, nodeId, ...binding })))
          .onConflictDoUpdate({
            target: [deviceContacts.username, deviceContacts.uri],
            set: {
              callId: sql`excluded.call_id`,
              cseq: sql`excluded.cseq`,
              expiresAt: sql`excluded.expires_at`,
              transport: sql`excluded.transport`,
              host: sql`excluded.host`,
              port: sql`excluded.port`,
              userAgent: sql`excluded.user_agent`,
              nodeId: sql`excluded.node_id`,
            },
          });
      });
    },
    async allBindings() {
      const rows = await database.run((on) =>
        on
          .select()
          .from(deviceContacts)
          .where(gt(deviceContacts.expiresAt, now()))
          .limit(DEVICES_MAX * DEVICE_CONTACTS_MAX),
      );
      return rows.map((row) => ({ username: row.username, binding: bindingOf(row) }));
    },
  };
}

/** What the secrets are sealed for: they open for no other user. */
const ownerOf = (username: string): string => `device ${username}`;

function secretsOf(text: string): DigestSecrets {
  const { md5 = '', sha256 = '' }: Partial<DigestSecrets> = JSON.parse(text);
  return { md5, sha256 };
}

const TRANSPORTS = ['udp', 'tcp', 'tls'] as const;

function bindingOf(row: typeof deviceContacts.$inferSelect): Binding {
  const { uri, callId, cseq, expiresAt, host, port, userAgent } = row;
  return {
    uri,
    callId,
    cseq,
    expiresAt,
    host,
    port,
    userAgent,
    transport: TRANSPORTS.find((each) => each === row.transport) ?? 'udp',
  };
}
