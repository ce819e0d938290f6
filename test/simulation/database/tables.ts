/** The committed state of the simulated database: rows as PostgreSQL would give them. */

import type { Row } from '../../../src/database/driver/database.ts';
import type { Attempt } from '../../../src/database/event/attempt.ts';
import type { EventColumns } from '../../../src/database/journal/event-columns.ts';

export interface SessionRecord extends Row {
  readonly session_uuid: string;
  readonly app_uuid: string;
  readonly node_id: string;
  readonly epoch: number;
  readonly state: string;
  readonly room_id: string;
  readonly running: string;
  readonly created_at: number;
  readonly ended_at: number | null;
}

export interface RoomRecord extends Row {
  readonly room_id: string;
  readonly app_uuid: string;
  readonly node_id: string | null;
  readonly epoch: number;
  readonly deleting: boolean;
  readonly created_at: number;
  readonly deleted_at: number | null;
}

export interface EventRecord extends EventColumns {
  readonly event_id: number;
  readonly xid: number;
  /** The node whose flush it was in. `null`: another transaction emitted it. */
  readonly by: string | null;
  status: string;
  attempts: readonly Attempt[];
}

export interface OutboxRecord {
  readonly xid: number;
  readonly event_id: number;
  readonly app_uuid: string;
}

export interface IdempotencyRecord {
  readonly app_uuid: string;
  readonly key: string;
  readonly fingerprint: string;
  readonly status: number | null;
  readonly body: string | null;
  readonly lease_until: number;
  readonly node_id: string;
  readonly created_at: number;
}

export interface NodeRecord extends Row {
  readonly node_id: string;
  readonly volume_id: string;
  readonly dead_at: number | null;
  readonly dead_by: string | null;
  readonly draining_at: number | null;
  readonly drain_sec: number | null;
  readonly drain_mode: string;
  readonly beat: number;
  readonly load: string;
}

export interface LeaseRecord {
  readonly holder: string;
  readonly fence: number;
  readonly expires_at: number;
}

export interface RecordingRecord extends Row {
  readonly recording_uuid: string;
  readonly app_uuid: string;
  readonly session_uuid: string | null;
  readonly room_id: string | null;
  readonly volume_id: string;
  readonly created_at: number;
  readonly ended_at: number | null;
  readonly duration_ms: number | null;
  readonly bytes: number | null;
  readonly removed_at: number | null;
}

export interface ReferenceRecord {
  readonly reference: string;
  readonly app_uuid: string;
  readonly session_uuid: string;
  readonly sealed: Uint8Array | null;
  readonly brand: string;
  readonly last4: string;
  readonly expires_at: number;
}

export interface CollectionRecord extends Row {
  readonly operation_uuid: string;
  readonly session_uuid: string;
  readonly node_id: string;
}

export interface ChargeRecord extends Row {
  readonly charge_uuid: string;
  readonly status: string;
  readonly created_at: number;
}

export interface MessageRecord extends Row {
  readonly message_uuid: string;
  readonly app_uuid: string;
  readonly status: string;
  readonly stage: string;
  readonly due_at: number;
  readonly created_at: number;
  readonly to_number: string;
}

export interface PartRecord {
  readonly message_uuid: string;
  readonly part: number;
  readonly smsc_id: string;
}

/** An application as the simulation sets it up; nothing changes it but a 410 of its endpoint. */
export interface AppRecord {
  readonly app_uuid: string;
  readonly webhook_url: string;
  readonly max_rooms: number;
  readonly max_members_per_room: number;
  readonly key_hash: Uint8Array;
  readonly sealed_secret: Uint8Array;
  readonly caller_ids: readonly string[];
  readonly terminals: readonly string[];
}

export class Tables {
  readonly apps = new Map<string, AppRecord>();
  readonly sessions = new Map<string, SessionRecord>();
  readonly rooms = new Map<string, RoomRecord>();
  /** Committed events by webhook_id, in the order of their commit. */
  readonly events = new Map<string, EventRecord>();
  readonly eventsById = new Map<number, EventRecord>();
  readonly outbox = new Map<number, OutboxRecord>();
  readonly idempotency = new Map<string, IdempotencyRecord>();
  readonly nodes = new Map<string, NodeRecord>();
  readonly leases = new Map<string, LeaseRecord>();
  readonly meta = new Map<string, string>();
  readonly recordings = new Map<string, RecordingRecord>();
  readonly references = new Map<string, ReferenceRecord>();
  readonly collections = new Map<string, CollectionRecord>();
  readonly charges = new Map<string, ChargeRecord>();
  readonly messages = new Map<string, MessageRecord>();
  readonly parts = new Map<string, PartRecord>();
  readonly #running = new Set<number>();
  #lastXid = 700;
  #lastEvent = 0;

  isAlive(nodeId: string): boolean {
    return this.nodes.get(nodeId)?.dead_at === null;
  }

  /** A transaction writes for the first time. Its number is above that of every transaction before it. */
  beginXid(): number {
    this.#lastXid += 1;
    this.#running.add(this.#lastXid);
    return this.#lastXid;
  }

  /** The number that no transaction has yet (`pg_snapshot_xmax`, or above it). */
  get nextXid(): number {
    return this.#lastXid + 1;
  }

  endXid(xid: number): void {
    this.#running.delete(xid);
  }

  /** The oldest transaction that still runs; everything below it is over (`pg_snapshot_xmin`). */
  get xmin(): number {
    let least = this.nextXid;
    for (const xid of this.#running) if (xid < least) least = xid;
    return least;
  }

  /** Takes the next number of an event; one of a transaction that is rolled back stays a gap. */
  nextEventId(): number {
    this.#lastEvent += 1;
    return this.#lastEvent;
  }
}
