/** The contacts that SIP devices have registered (RFC 3261 §10), each with the node that has the connection to it. */
import { and, asc, eq, gt, inArray, isNull, lte, or, sql } from 'drizzle-orm';
import { DEVICE_CONTACTS_MAX, DEVICES_MAX } from '../../limits.ts';
import type { Binding } from '../../sip/registrar.ts';
import type { Database } from '../driver/database.ts';
import { deviceContacts, nodes } from '../schema.ts';

/** A contact, and the node that it registered with. */
export interface DeviceFlow {
  readonly nodeId: string;
  readonly binding: Binding;
}

/** The contacts that are bound: registered, and not expired. */
export interface ContactStore {
  /** The contacts of a user that are bound. */
  bindings(username: string): Promise<readonly Binding[]>;
  /** The contacts of a user that are bound, each with the node that it registered with, of those that are not dead. */
  flows(username: string): Promise<readonly DeviceFlow[]>;
  /**
   * Stores contacts that a user has registered with this process, and deletes the URIs in `removed` and whatever of the
   * user's has expired.
   */
  save(username: string, stored: readonly Binding[], removed: readonly string[]): Promise<void>;
  /** The contacts of all users that are bound. */
  allBindings(): Promise<readonly { readonly username: string; readonly binding: Binding }[]>;
}

/** Makes the store for the process `nodeId`. `now` tells whole milliseconds since the epoch. */
export function registeredContacts(database: Database, nodeId: string, now: () => number): ContactStore {
  const bound = (username: string) => and(eq(deviceContacts.username, username), gt(deviceContacts.expiresAt, now()));
  return {
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
        const expired = lte(deviceContacts.expiresAt, now());
        const gone = removed.length === 0 ? expired : or(expired, inArray(deviceContacts.uri, [...removed]));
        await on.delete(deviceContacts).where(and(eq(deviceContacts.username, username), gone));
        if (stored.length === 0) return;
        await on
          .insert(deviceContacts)
          .values(stored.map((binding) => ({ username, nodeId, ...binding })))
          .onConflictDoUpdate({ target: [deviceContacts.username, deviceContacts.uri], set: REGISTERED_ANEW });
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

/** The columns that a contact's next REGISTER sets. */
const REGISTERED_ANEW = {
  callId: sql`excluded.call_id`,
  cseq: sql`excluded.cseq`,
  expiresAt: sql`excluded.expires_at`,
  transport: sql`excluded.transport`,
  host: sql`excluded.host`,
  port: sql`excluded.port`,
  userAgent: sql`excluded.user_agent`,
  nodeId: sql`excluded.node_id`,
};

const TRANSPORTS = ['udp', 'tcp', 'tls'] as const;

/** The binding that a row stands for. */
export function bindingOf(row: typeof deviceContacts.$inferSelect): Binding {
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
