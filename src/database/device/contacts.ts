/** The contacts that SIP devices have registered (RFC 3261 §10), each with the node that has the connection to it. */
import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm';
import { DEVICE_BINDINGS_PAGE_ROWS, DEVICE_CONTACTS_MAX } from '../../limits.ts';
import type { DigestSecrets } from '../../sip/message/digest-server.ts';
import { type Binding, uriOfKey } from '../../sip/registrar.ts';
import type { Database } from '../driver/database.ts';
import { deviceContacts, type devices, nodes } from '../schema.ts';
import { opened, type Seal } from '../vault/seal.ts';

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
  /** The contacts of all users that are bound, page by page: there may be a million, and a statement has its time. */
  allBindings(): AsyncIterable<readonly UserBinding[]>;
}

/** A contact of a user. */
interface UserBinding {
  readonly username: string;
  readonly binding: Binding;
}

/** Makes the store. `now` tells whole milliseconds since the epoch. */
export function registeredContacts(database: Database, now: () => number): ContactStore {
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
    async *allBindings() {
      const { username, uri } = deviceContacts;
      let last = { username: '', uri: '' };
      for (;;) {
        const isNext = sql`(${username}, ${uri}) > (${last.username}, ${last.uri})`;
        const rows = await database.run((on) =>
          on
            .select()
            .from(deviceContacts)
            .where(and(isNext, gt(deviceContacts.expiresAt, now())))
            .orderBy(asc(username), asc(uri))
            .limit(DEVICE_BINDINGS_PAGE_ROWS),
        );
        yield rows.map((row) => ({ username: row.username, binding: bindingOf(row) }));
        const end = rows.at(-1);
        if (end === undefined || rows.length < DEVICE_BINDINGS_PAGE_ROWS) return;
        last = end;
      }
    },
  };
}

/** What the secrets of a user are sealed for: they open for no other. */
export const ownerOf = (username: string): string => `device ${username}`;

/** The secrets of a user. Undefined where they were sealed under another key, or for another user. */
export function secretsOf(
  seal: Seal,
  { username, secrets }: Pick<typeof devices.$inferSelect, 'username' | 'secrets'>,
): DigestSecrets | undefined {
  const text = opened(seal, secrets, ownerOf(username));
  if (text === undefined) return undefined;
  const { md5 = '', sha256 = '' }: Partial<DigestSecrets> = JSON.parse(text);
  return { md5, sha256 };
}

/** Whether these are the secrets of a user, which come of its password alone. */
export function hasSecrets(seal: Seal, user: Parameters<typeof secretsOf>[1], { md5, sha256 }: DigestSecrets): boolean {
  const held = secretsOf(seal, user);
  return held?.md5 === md5 && held.sha256 === sha256;
}

const TRANSPORTS = ['udp', 'tcp', 'tls'] as const;

/** The binding that a row stands for. */
export function bindingOf(row: Omit<typeof deviceContacts.$inferSelect, 'username' | 'nodeId'>): Binding {
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
