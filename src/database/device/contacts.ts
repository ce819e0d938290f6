/** The contacts that SIP devices have registered (RFC 3261 §10), each with the node that has the connection to it. */
import { and, asc, eq, gt, inArray, isNull, lte, or, sql } from 'drizzle-orm';
import { DEVICE_CONTACTS_MAX, DEVICES_MAX } from '../../limits.ts';
import type { DigestSecrets } from '../../sip/message/digest-server.ts';
import { type Binding, type HeldBinding, type RegisterOutcome, uriOfKey } from '../../sip/registrar.ts';
import type { Database } from '../driver/database.ts';
import { deviceContacts, devices, nodes } from '../schema.ts';
import type { Seal } from '../vault/seal.ts';

/** A contact, and the node that it registered with. */
export interface DeviceFlow {
  readonly nodeId: string;
  readonly binding: Binding;
}

/** A device user, and what its password is checked against. */
export interface DeviceRow {
  readonly username: string;
  readonly appUuid: string;
  readonly secrets: DigestSecrets;
}

/** The contacts that are bound: registered, and not expired. */
export interface ContactStore {
  /** The contacts of a user that are bound. */
  bindings(username: string): Promise<readonly Binding[]>;
  /** The contacts of a user that are bound, each with the node that it registered with, of those that are not dead. */
  flows(username: string): Promise<readonly DeviceFlow[]>;
  /**
   * Asks `decide` what a REGISTER that came to this process does to the contacts of a user, and does it: it stores and
   * removes what it is told, and deletes whatever of the user's has expired. The user's row is locked meanwhile. It
   * rejects where the user has other secrets by now, or is gone.
   */
  change(device: DeviceRow, decide: (bound: readonly HeldBinding[]) => RegisterOutcome): Promise<RegisterOutcome>;
  /** The contacts of all users that are bound. */
  allBindings(): Promise<readonly { readonly username: string; readonly binding: Binding }[]>;
}

/** Makes the store for the process `nodeId`. `now` tells whole milliseconds since the epoch. */
export function registeredContacts(database: Database, seal: Seal, nodeId: string, now: () => number): ContactStore {
  const bound = (username: string) => and(eq(deviceContacts.username, username), gt(deviceContacts.expiresAt, now()));
  /** Whose a row is. A node of a release before `node_id` may live. */
  const holderOf = (rowNodeId: string, aliveId: string | null): HeldBinding['holder'] =>
    rowNodeId === nodeId ? 'here' : aliveId === null && rowNodeId !== '' ? 'nobody' : 'elsewhere';
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
    change: ({ username, secrets }, decide) =>
      database.run((on) =>
        on.transaction(async (tx) => {
          // Two requests that both read the contacts before either stored its own would pass the limit together.
          const [user] = await tx.select().from(devices).where(eq(devices.username, username)).for('update');
          // The password that the request was checked against may be none any more.
          if (user === undefined || !hasSecrets(seal, user, secrets)) throw new Error('the device has changed');
          const rows = await tx
            .select({ contact: deviceContacts, aliveId: nodes.nodeId })
            .from(deviceContacts)
            .leftJoin(nodes, and(eq(nodes.nodeId, deviceContacts.nodeId), isNull(nodes.deadAt)))
            .where(bound(username))
            .orderBy(asc(deviceContacts.uri))
            .limit(DEVICE_CONTACTS_MAX);
          const outcome = decide(
            rows.map(({ contact, aliveId }) => ({ ...bindingOf(contact), holder: holderOf(contact.nodeId, aliveId) })),
          );
          if (outcome.status !== 200 || outcome.stored.length + outcome.removed.length === 0) return outcome;
          const { stored, removed } = outcome;
          const expired = lte(deviceContacts.expiresAt, now());
          const some = removed.length === 0 ? expired : or(expired, inArray(deviceContacts.uri, [...removed]));
          // All contacts of the user go when none stays bound, as after a star: some may not have been read.
          const gone = outcome.bound.length === 0 ? undefined : some;
          await tx.delete(deviceContacts).where(and(eq(deviceContacts.username, username), gone));
          if (stored.length > 0)
            await tx
              .insert(deviceContacts)
              .values(stored.map(({ key, ...binding }) => ({ ...binding, username, nodeId, uri: key })))
              .onConflictDoUpdate({ target: [deviceContacts.username, deviceContacts.uri], set: REGISTERED_ANEW });
          return outcome;
        }),
      ),
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

/** What the secrets of a user are sealed for: they open for no other. */
export const ownerOf = (username: string): string => `device ${username}`;

export function secretsOf(
  seal: Seal,
  { username, secrets }: Pick<typeof devices.$inferSelect, 'username' | 'secrets'>,
): DigestSecrets {
  const { md5 = '', sha256 = '' }: Partial<DigestSecrets> = JSON.parse(seal.open(new Uint8Array(secrets), ownerOf(username)));
  return { md5, sha256 };
}

/** Whether these are the secrets of a user, which come of its password alone. */
export function hasSecrets(seal: Seal, user: Parameters<typeof secretsOf>[1], { md5, sha256 }: DigestSecrets): boolean {
  const held = secretsOf(seal, user);
  return held.md5 === md5 && held.sha256 === sha256;
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
  instance: sql`excluded.instance`,
  regId: sql`excluded.reg_id`,
  path: sql`excluded.path`,
};

const TRANSPORTS = ['udp', 'tcp', 'tls'] as const;

/** The binding that a row stands for. */
export function bindingOf(row: typeof deviceContacts.$inferSelect): Binding {
  const { uri: key, callId, cseq, expiresAt, host, port, userAgent, instance, regId, path } = row;
  return {
    key,
    uri: uriOfKey(key),
    callId,
    cseq,
    expiresAt,
    host,
    port,
    userAgent,
    instance,
    regId,
    path,
    transport: TRANSPORTS.find((each) => each === row.transport) ?? 'udp',
  };
}
