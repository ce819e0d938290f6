/** The bounds of the database: its connections, its statements, and what is kept there. Import them from limits.ts. */

// Store: the embedded PostgreSQL.
/** How often it is asked whether the embedded server is alive, and how long after one of its connections was closed. */
export const EMBEDDED_CHECK_MS = 5_000;
export const EMBEDDED_CHECK_AGAIN_MS = 1_000;
export const EMBEDDED_START_MAX_SEC = 60;
export const EMBEDDED_SHUTDOWN_MAX_SEC = 20;
/** Emptied at a start past this. */
export const EMBEDDED_LOG_MAX_BYTES = 10 * 1024 * 1024;
export const EMBEDDED_OUTPUT_MAX_CHARS = 600;
/** The processes of a killed server end by themselves within this, or are killed. */
export const EMBEDDED_LEFTOVER_GRACE_MS = 2_000;
export const EMBEDDED_LEFTOVER_MAX_SEC = 20;

// Store: connections and queries.
export const DATABASE_CONNECTIONS_MAX = 10;
/** Servers in DATABASE_URL, of which one is the primary. */
export const DATABASE_SERVERS_MAX = 16;
/** A query that has not answered by then fails as `StoreUnavailable`; the server gives it up a little earlier. */
export const QUERY_MAX_MS = 5_000;
export const STATEMENT_MAX_MS = 4_500;
/** A statement without an answer is given up then, a little before its caller is told. */
export const GIVEN_UP_MS = 4_900;
/** The server is asked so often, with such a pause, whether the processes are gone that had such statements. */
export const GIVEN_UP_LOOKS = 40;
export const GIVEN_UP_LOOK_MS = 50;
export const CONNECT_MAX_SEC = 3;
/** A start connects so often, with growing pauses, to a database that closes a connection or lets its time run out. */
export const START_CONNECT_TRIES = 4;
export const START_CONNECT_PAUSE_MS = 200;
/** A migration waits for a table for so long at a time, which holds up all others that use it, and so often at most. */
export const MIGRATION_LOCK_MAX_MS = 1_000;
export const MIGRATION_TRIES = 10;
export const MIGRATION_TRY_PAUSE_MS = 2_000;
/** A start waits so long for the lock of a process that was killed, and looks so often. */
export const LOCK_WAIT_MS = 2_000;
export const LOCK_LOOK_MS = 50;
/** Changes waiting for the next flush; past this a commit is refused as `StoreUnavailable`. */
export const JOURNAL_WAITING_MAX_CHANGES = 20_000;
/** Changes written by one statement. */
export const JOURNAL_FLUSH_MAX_CHANGES = 500;
/** Reads and marks of one kind waiting for the next round trip; past this they are refused as `StoreUnavailable`. */
export const COALESCE_WAITING_MAX_ITEMS = 20_000;
export const COALESCE_BATCH_MAX_ITEMS = 500;
/** Rows one clean-up statement deletes. */
export const RETENTION_BATCH_MAX_ROWS = 5_000;
/** A batch that takes too long is tried with so many times fewer rows. */
export const RETENTION_BATCH_SHRINKS = 10;
export const RETENTION_MAX_BATCHES = 1_000;
/** Recordings whose removal is noted together, and failures in a row after which a sweep is given up. */
export const RETENTION_STEP_ROWS = 100;
export const RETENTION_FAILURES_MAX = 100;
export const EVENT_RETENTION_DAYS = 30;
/** A page of the event log: its items, and the bytes of their bodies and attempts, past which it ends early. */
export const EVENT_LIST_MAX_ITEMS = 1_000;
export const EVENT_LIST_MAX_BYTES = 16 * 1024 * 1024;
/** A page that is filtered by status or name: how long the log is looked through for it, and in pieces of how many. */
export const EVENT_LIST_LOOK_MS = 2_000;
export const EVENT_LIST_PIECE_ROWS = 10_000;
export const EVENT_LIST_PIECE_MAX_ROWS = 1_000_000;
/** A page of calls that is filtered by number or application: how long it is looked for, and in pieces of how many. */
export const CALL_LIST_LOOK_MS = 2_000;
export const CALL_LIST_PIECE_ROWS = 10_000;
export const CALL_LIST_PIECE_MAX_ROWS = 1_000_000;
/** What one timeline shows of events: their number, and the characters of bodies and answers, past which it ends. */
export const TIMELINE_MAX_EVENTS = 20_000;
export const TIMELINE_EVENTS_MAX_CHARS = 16 * 1024 * 1024;
export const OPERATOR_LIST_MAX_ITEMS = 10_000;
/** A NOTIFY to the other nodes at most this often. */
export const NOTIFY_SPACING_MS = 1;

// Contract §10: idempotency.
export const IDEMPOTENCY_LEASE_SEC = 60;
export const IDEMPOTENCY_KEPT_SEC = 24 * 3600;
export const IDEMPOTENCY_MARKS_MAX = 100_000;
export const IDEMPOTENCY_KEY_MAX_CHARS = 255;

// Store: what an operator may make.
export const API_KEYS_PER_APP_MAX = 100;
export const TRUNKS_MAX = 1_000;
/** Contract §9: a replaced webhook secret signs along for this long, and so many of them at once. */
export const WEBHOOK_SECRETS_REPLACED_MAX = 3;
export const WEBHOOK_SECRET_OVERLAP_SEC = 24 * 3600;
/** How often what is past its time is looked for, and how soon after a start: some processes live for minutes only. */
export const RETENTION_EVERY_SEC = 3600;
export const RETENTION_FIRST_SEC = 300;

/** How often an outage of the database that lasts is said, and how long no question may have failed when it is over. */
export const OUTAGE_SAID_EVERY_MS = 60_000;
export const OUTAGE_OVER_MS = 2_000;
/** How often devices and trunks are told of whose secrets do not open. */
export const LOST_SECRETS_SAID_EVERY_MS = 3_600_000;
/**
 * What is remembered of applications: their keys, endpoints, numbers and what they are permitted. A change is seen at
 * once on the node that made it, elsewhere when NATS tells it, and after so long without NATS.
 */
export const APP_CACHE_MS = 5_000;
export const APP_CACHE_MAX_ITEMS = 10_000;
