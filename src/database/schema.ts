/**
 * The tables, except those of payments. Times are milliseconds since the epoch, as everywhere in the program. What is
 * written on every call (sessions, events, outbox) has no foreign keys and no index on a column that changes while a
 * call is up, so that those updates stay heap-only.
 */
import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import { bytea, ms, xid8 } from './column-types.ts';
import type { Attempt } from './event/attempt.ts';
import type { TrunkSettings } from './trunk/trunk-settings.ts';

export const apps = pgTable('apps', {
  appUuid: text('app_uuid').primaryKey(),
  name: text('name').notNull(),
  webhookUrl: text('webhook_url').notNull().default(''),
  /** Set by a 410 of the endpoint; cleared by the next PATCH (contract §9). */
  webhookDisabled: boolean('webhook_disabled').notNull().default(false),
  /** Since when the webhook is what it is: set, unset, or disabled. */
  webhookSince: ms('webhook_since').notNull().default(0),
  blockedWebhookEvents: text('blocked_webhook_events').array().notNull().default(sql`'{}'`),
  maxRooms: integer('max_rooms').notNull().default(100),
  maxMembersPerRoom: integer('max_members_per_room').notNull().default(250),
  allowedDestinations: text('allowed_destinations').array().notNull().default(sql`'{}'`),
  blockedDestinations: text('blocked_destinations').array().notNull().default(sql`'{}'`),
  createdAt: ms('created_at').notNull(),
});

/** SHA-256 of the key: a key has 256 random bits, so a slow hash would buy nothing. */
export const apiKeys = pgTable(
  'api_keys',
  {
    keyId: uuid('key_id').primaryKey(),
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
    hash: bytea('hash').notNull(),
    createdAt: ms('created_at').notNull(),
  },
  (table) => [index('api_keys_app').on(table.appUuid)],
);

/** Sealed under MASTER_KEY. The newest has no end; the one it replaced signs along until `signs_until`. */
export const webhookSecrets = pgTable(
  'webhook_secrets',
  {
    secretId: uuid('secret_id').primaryKey(),
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
    sealed: bytea('sealed').notNull(),
    createdAt: ms('created_at').notNull(),
    signsUntil: ms('signs_until'),
  },
  (table) => [index('webhook_secrets_app').on(table.appUuid)],
);

/**
 * Tokens with which browsers call in. SHA-256 of the token: it has 256 random bits, so a slow hash would buy nothing.
 */
export const webrtcTokens = pgTable(
  'webrtc_tokens',
  {
    tokenId: uuid('token_id').primaryKey(),
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
    hash: bytea('hash').notNull().unique(),
    callerId: text('caller_id').notNull(),
    did: text('did').notNull(),
    clientState: text('client_state').notNull(),
    createdAt: ms('created_at').notNull(),
    expiresAt: ms('expires_at').notNull(),
  },
  (table) => [index('webrtc_tokens_app_expiry').on(table.appUuid, table.expiresAt)],
);

/** SHA-256 of cookies of the console whose session was logged out. A row goes once its cookie would be over anyway. */
export const revokedConsoleCookies = pgTable(
  'revoked_console_cookies',
  { hash: bytea('hash').primaryKey(), expiresAt: ms('expires_at').notNull() },
  (table) => [index('revoked_console_cookies_expiry').on(table.expiresAt)],
);

export const numbers = pgTable(
  'numbers',
  {
    e164: text('e164').primaryKey(),
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
  },
  (table) => [index('numbers_app').on(table.appUuid)],
);

export const callerIds = pgTable(
  'caller_ids',
  {
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
    e164: text('e164').notNull(),
  },
  (table) => [primaryKey({ columns: [table.appUuid, table.e164] })],
);

export const paymentTerminals = pgTable(
  'payment_terminals',
  {
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
    terminalNumber: text('terminal_number').notNull(),
  },
  (table) => [primaryKey({ columns: [table.appUuid, table.terminalNumber] })],
);

export const trunks = pgTable('trunks', {
  name: text('name').primaryKey(),
  uri: text('uri').notNull(),
  username: text('username'),
  /** Sealed under MASTER_KEY. */
  password: bytea('password'),
  register: boolean('register').notNull().default(false),
  inboundCidrs: text('inbound_cidrs').array().notNull(),
  maxChannels: integer('max_channels'),
  codecs: text('codecs').array(),
  settings: jsonb('settings').$type<TrunkSettings>().notNull().default({}),
  /** The private key of the client certificate, sealed under MASTER_KEY. */
  tlsKey: bytea('tls_key'),
});

/** The users of SIP devices. */
export const devices = pgTable(
  'devices',
  {
    username: text('username').primaryKey(),
    appUuid: text('app_uuid')
      .notNull()
      .references(() => apps.appUuid, { onDelete: 'cascade' }),
    /** HA1 by MD5 and by SHA-256, sealed under MASTER_KEY. */
    secrets: bytea('secrets').notNull(),
    createdAt: ms('created_at').notNull(),
    changedAt: ms('changed_at').notNull(),
  },
  (table) => [index('devices_app').on(table.appUuid)],
);

/** The contacts that devices have registered. */
export const deviceContacts = pgTable(
  'device_contacts',
  {
    username: text('username')
      .notNull()
      .references(() => devices.username, { onDelete: 'cascade' }),
    /** The key of the contact (src/sip/registrar.ts): its URI, which may have a mark behind it. */
    uri: text('uri').notNull(),
    callId: text('call_id').notNull(),
    cseq: ms('cseq').notNull(),
    expiresAt: ms('expires_at').notNull(),
    transport: text('transport').notNull(),
    /** The address that its REGISTER came from. */
    host: text('host').notNull(),
    port: integer('port').notNull(),
    userAgent: text('user_agent').notNull(),
    /** The node that has its connection, or the way through its NAT; "" where an earlier release wrote the row. */
    nodeId: text('node_id').notNull().default(''),
    /** What the device calls itself, and its way to us (RFC 5626); "" and 0 where it named none. */
    instance: text('instance').notNull().default(''),
    regId: integer('reg_id').notNull().default(0),
    /** The Path of its REGISTER (RFC 3327), which is the Route of what is sent to it; "" where it had none. */
    path: text('path').notNull().default(''),
  },
  (table) => [primaryKey({ columns: [table.username, table.uri] })],
);

export const sessions = pgTable(
  'sessions',
  {
    sessionUuid: uuid('session_uuid').primaryKey(),
    appUuid: text('app_uuid').notNull(),
    nodeId: text('node_id').notNull(),
    /** Rises each time another node takes the Session over; a write of an earlier owner is refused. */
    epoch: integer('epoch').notNull().default(0),
    type: text('type').notNull(),
    state: text('state').notNull(),
    callerId: text('caller_id').notNull(),
    did: text('did').notNull(),
    answered: boolean('answered').notNull(),
    clientState: text('client_state').notNull(),
    /** The Room it is in; empty: none. */
    roomId: text('room_id').notNull().default(''),
    /**
     * The playback and the collection of digits that run, as JSON (`machine/session/operation/running.ts`), so that a
     * restart can tell their end; empty: none.
     */
    running: text('running').notNull().default(''),
    /** The name of its trunk. Empty when it has none. */
    trunk: text('trunk').notNull().default(''),
    createdAt: ms('created_at').notNull(),
    answeredAt: ms('answered_at'),
    endedAt: ms('ended_at'),
    /** What `session.ended` says of it, as JSON: duration, cause, quality. Empty until then. */
    summary: text('summary').notNull().default(''),
  },
  (table) => [
    index('sessions_created').on(table.createdAt, table.sessionUuid),
    index('sessions_live').on(table.appUuid, table.createdAt).where(sql`ended_at IS NULL`),
    index('sessions_ended').on(table.endedAt).where(sql`ended_at IS NOT NULL`),
  ],
);

/** Timelines of calls: a row is what happened in a few seconds of one. */
export const timelines = pgTable(
  'timelines',
  {
    sessionUuid: uuid('session_uuid').notNull(),
    /** The time of the first entry. */
    since: ms('since').notNull(),
    /** An array of entries (`history/entry.ts`) as JSON text. */
    entries: text('entries').notNull(),
  },
  (table) => [primaryKey({ columns: [table.sessionUuid, table.since] })],
);

/** Rooms. Who is in one is a fact of the Sessions; a deleted Room's row stays for a day, as an ended Session's does. */
export const rooms = pgTable(
  'rooms',
  {
    roomId: uuid('room_id').primaryKey(),
    appUuid: text('app_uuid').notNull(),
    /** The node that mixes it; NULL: it has no home yet. */
    nodeId: text('node_id'),
    epoch: integer('epoch').notNull().default(0),
    voiceActivityEvents: boolean('voice_activity_events').notNull(),
    /** What a member that is alone hears; empty: nothing. */
    holdMusicUrl: text('hold_music_url').notNull().default(''),
    /** Percent; NULL: never set. */
    volume: smallint('volume'),
    deleting: boolean('deleting').notNull(),
    /** The playback that runs, as JSON `{operationUuid, urls}`, so that a restart can tell its end; empty: none. */
    playback: text('playback').notNull().default(''),
    createdAt: ms('created_at').notNull(),
    deletedAt: ms('deleted_at'),
  },
  (table) => [
    index('rooms_live').on(table.appUuid, table.createdAt).where(sql`deleted_at IS NULL`),
    index('rooms_deleted').on(table.deletedAt).where(sql`deleted_at IS NOT NULL`),
  ],
);

/**
 * Recordings of Sessions and Rooms. The file is named by `recording_uuid` (`recording-storage/`); its row stays a year
 * after the file is removed.
 */
export const recordings = pgTable(
  'recordings',
  {
    recordingUuid: text('recording_uuid').primaryKey(),
    appUuid: text('app_uuid').notNull(),
    sessionUuid: uuid('session_uuid'),
    roomId: uuid('room_id'),
    /** The DATA_DIR on whose disk its file is written; empty in rows of a release without nodes. */
    volumeId: text('volume_id').notNull().default(''),
    operationUuid: text('operation_uuid').notNull(),
    clientState: text('client_state').notNull(),
    traceparent: text('traceparent').notNull(),
    createdAt: ms('created_at').notNull(),
    /** Set with `recording.ended`. */
    endedAt: ms('ended_at'),
    durationMs: ms('duration_ms'),
    /** The size of its file, of one under way as it was measured last. Null in rows of a release that kept none. */
    bytes: bigint('bytes', { mode: 'number' }),
    removedAt: ms('removed_at'),
  },
  (table) => [
    index('recordings_live').on(table.createdAt).where(sql`ended_at IS NULL`),
    index('recordings_kept').on(table.endedAt).where(sql`removed_at IS NULL`),
    index('recordings_unmended')
      .on(table.volumeId)
      .where(sql`ended_at IS NOT NULL AND duration_ms IS NULL AND removed_at IS NULL`),
    index('recordings_removed').on(table.removedAt).where(sql`removed_at IS NOT NULL`),
    // Lists of what an application keeps: all, those of a Session, and those of a Room.
    index('recordings_of_app').on(table.appUuid, table.createdAt, table.recordingUuid).where(sql`removed_at IS NULL`),
    index('recordings_of_session').on(table.sessionUuid).where(sql`session_uuid IS NOT NULL AND removed_at IS NULL`),
    index('recordings_of_room').on(table.roomId).where(sql`room_id IS NOT NULL AND removed_at IS NULL`),
  ],
);

/** The log of what happened: every event, sent or not, with its delivery attempts. */
export const events = pgTable(
  'events',
  {
    eventId: bigint('event_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    webhookId: text('webhook_id').notNull(),
    appUuid: text('app_uuid').notNull(),
    name: text('name').notNull(),
    sessionUuid: text('session_uuid'),
    lanes: text('lanes').array().notNull(),
    body: text('body').notNull(),
    traceparent: text('traceparent').notNull(),
    at: ms('at').notNull(),
    /** pending, delivered, dead, blocked, undeliverable. */
    status: text('status').notNull().default('pending'),
    /** `[{at, status, error, duration_ms, retry_at}]`, oldest first. */
    attempts: jsonb('attempts').$type<readonly Attempt[]>().notNull().default([]),
  },
  (table) => [
    uniqueIndex('events_webhook_id').on(table.webhookId),
    index('events_app').on(table.appUuid, table.eventId),
    index('events_session').on(table.sessionUuid, table.eventId),
  ],
);

/**
 * What is still to be delivered: one narrow row an event, deleted when it is settled. `xid` is the transaction that
 * committed it: the relay reads only below the oldest transaction still running, so that a late committer is never
 * skipped, as it would be by `event_id` alone.
 */
export const outbox = pgTable(
  'outbox',
  {
    xid: xid8('xid').notNull().default(sql`pg_current_xact_id()`),
    eventId: bigint('event_id', { mode: 'number' }).notNull(),
    appUuid: text('app_uuid').notNull(),
    /** Attempts made before a replay: they do not count towards the retry schedule. */
    attemptsBefore: integer('attempts_before').notNull().default(0),
  },
  (table) => [
    primaryKey({ columns: [table.xid, table.eventId] }),
    index('outbox_app').on(table.appUuid, table.xid, table.eventId),
  ],
);

/** Leases on work that only one process may do at a time. */
export const leases = pgTable('leases', {
  name: text('name').primaryKey(),
  holder: text('holder').notNull(),
  /** Rises with each new holder. */
  fence: bigint('fence', { mode: 'number' }).notNull().default(0),
  /** The end of the lease, by the database's clock. */
  expiresAt: ms('expires_at').notNull(),
});

/**
 * The processes of the platform. An id is new at each start and never used again; death is permanent. Every flush is
 * fenced by the row of its node (`journal/flush.ts`).
 */
export const nodes = pgTable('nodes', {
  nodeId: text('node_id').primaryKey(),
  /** The DATA_DIR, which outlives the process (`volume.id`). */
  volumeId: text('volume_id').notNull(),
  /** The address and port at which other nodes reach its HTTP server. */
  host: text('host').notNull(),
  httpPort: integer('http_port').notNull(),
  rtpHost: text('rtp_host').notNull(),
  /** `host:port` of its SIP over UDP, or over TCP. */
  sipContact: text('sip_contact').notNull(),
  labels: text('labels').array().notNull(),
  version: text('version').notNull(),
  /** The version of the messages between nodes, and of what it writes. */
  protocol: integer('protocol').notNull(),
  startedAt: ms('started_at').notNull(),
  drainingAt: ms('draining_at'),
  /** The seconds from when the node hears of the drain until what is left is ended; NULL: never. */
  drainSec: ms('drain_sec'),
  drainMode: text('drain_mode').notNull().default('wait'),
  deadAt: ms('dead_at'),
  deadBy: text('dead_by'),
});

/** The signs of life of nodes, one a second. `at` is for people: no two clocks are ever compared. */
export const nodeBeats = pgTable('node_beats', {
  nodeId: text('node_id').primaryKey(),
  beat: bigint('beat', { mode: 'number' }).notNull(),
  at: ms('at').notNull(),
  load: text('load').notNull(),
});

/** Facts that every node of a database shares: the name of the cluster, and a check of its MASTER_KEY. */
export const clusterMeta = pgTable('cluster_meta', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
});

export const idempotency = pgTable(
  'idempotency',
  {
    appUuid: text('app_uuid').notNull(),
    key: text('key').notNull(),
    fingerprint: text('fingerprint').notNull(),
    /** The status of the answer. It is NULL while the first request is in flight. */
    status: smallint('status'),
    body: text('body'),
    leaseUntil: ms('lease_until').notNull(),
    /** The process that answers the first request, so that its successor can free the keys it left. */
    nodeId: text('node_id').notNull().default(''),
    createdAt: ms('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.appUuid, table.key] }), index('idempotency_age').on(table.createdAt)],
);

/** Outbound short messages, with the state of `machine/message/message.ts`. Kept as long as events are. */
export const messages = pgTable(
  'messages',
  {
    messageUuid: uuid('message_uuid').primaryKey(),
    appUuid: text('app_uuid').notNull(),
    operationUuid: text('operation_uuid').notNull(),
    from: text('from_number').notNull(),
    to: text('to_number').notNull(),
    body: text('body').notNull(),
    encoding: text('encoding').notNull(),
    segments: smallint('segments').notNull(),
    status: text('status').notNull(),
    errorCode: text('error_code').notNull().default(''),
    errorMessage: text('error_message').notNull().default(''),
    createdAt: ms('created_at').notNull(),
    updatedAt: ms('updated_at').notNull(),
    sentAt: ms('sent_at'),
    deliveredAt: ms('delivered_at'),
    parts: jsonb('parts').notNull(),
    stage: text('stage').notNull(),
    dueAt: ms('due_at').notNull(),
    attempts: integer('attempts').notNull().default(0),
    traceparent: text('traceparent').notNull(),
  },
  (table) => [
    index('messages_app').on(table.appUuid, table.createdAt),
    index('messages_to').on(table.appUuid, table.to, table.createdAt),
    index('messages_turn').on(table.appUuid, table.dueAt).where(sql`stage = 'waiting'`),
    index('messages_due').on(table.stage, table.dueAt).where(sql`stage <> 'settled'`),
    index('messages_age').on(table.createdAt),
  ],
);

/** A short message from a telephone, or a segment of one, until it is certain that it does not come again. */
export const receivedParts = pgTable(
  'received_parts',
  {
    partId: bigint('part_id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    appUuid: text('app_uuid').notNull(),
    to: text('to_number').notNull(),
    from: text('from_number').notNull(),
    reference: integer('reference').notNull(),
    total: smallint('total').notNull(),
    number: smallint('number').notNull(),
    alphabet: text('alphabet').notNull(),
    octets: bytea('octets').notNull(),
    /** The link over which it came. */
    link: text('link').notNull(),
    cameAgain: boolean('came_again').notNull().default(false),
    receivedAt: ms('received_at').notNull(),
    /** The message that was told with it. */
    messageUuid: uuid('message_uuid'),
  },
  (table) => [
    index('received_parts_numbers').on(table.to, table.from),
    index('received_parts_waiting').on(table.receivedAt).where(sql`message_uuid IS NULL`),
    index('received_parts_age').on(table.receivedAt),
  ],
);

/** The part of a message that an SMSC's id stands for, in one spelling. Receipts are found by it. */
export const messageParts = pgTable(
  'message_parts',
  {
    messageUuid: uuid('message_uuid')
      .notNull()
      .references(() => messages.messageUuid, { onDelete: 'cascade' }),
    part: smallint('part').notNull(),
    smscId: text('smsc_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.messageUuid, table.part] }), index('message_parts_smsc_id').on(table.smscId)],
);
