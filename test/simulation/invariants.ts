/** What must hold after every step, looked at in the database and in the processes. */
import { EmissionChecker } from '../../src/event/conformance/emission-checker.ts';
import type { EventRecord, Tables } from './database/tables.ts';
import type { Process } from './process.ts';
import { MAX_ROOMS } from './settings.ts';

interface InvariantsOptions {
  readonly tables: Tables;
  readonly isAlone: boolean;
  /** The members that a Room may have. */
  readonly mostMembers: number;
  onBreach(breach: string): void;
  /** An event was committed. */
  onEvent(event: EventRecord): void;
}

export class Invariants {
  readonly #options: InvariantsOptions;
  readonly #tables: Tables;
  readonly #onBreach: (breach: string) => void;
  /** The contract, held against the events as they are committed. */
  readonly #checker = new EmissionChecker();
  #looked = 0;
  /** The events of each lane that were committed and not received. */
  readonly #lanes = new Map<string, Set<EventRecord>>();
  readonly #heard = new Set<string>();

  constructor(options: InvariantsOptions) {
    this.#options = options;
    this.#tables = options.tables;
    this.#onBreach = options.onBreach;
  }

  /** A transaction was committed: looks at its events. */
  committed(): void {
    const { events } = this.#tables;
    this.#counted();
    if (events.size === this.#looked) return;
    const fresh = [...events.values()].slice(this.#looked);
    this.#looked = events.size;
    for (const event of fresh) this.#emitted(event);
  }

  /** No Room has more members by the rows than it may. */
  #counted(): void {
    const members = new Map<string, number>();
    for (const { ended_at: endedAt, room_id: room } of this.#tables.sessions.values())
      if (endedAt === null && room !== '') members.set(room, (members.get(room) ?? 0) + 1);
    for (const [room, count] of members)
      if (count > this.#options.mostMembers)
        this.#onBreach(`committed: ${count} members of the Room ${room}, and ${this.#options.mostMembers} are permitted`);
  }

  #emitted(event: EventRecord): void {
    const { webhook_id: webhookId, body, lanes, name, session_uuid: session } = event;
    // The events of a Room come from several nodes at once there: what counts is the order of their transactions.
    if (this.#options.isAlone) for (const breach of this.#checker.take(webhookId, body)) this.#onBreach(`committed: ${breach}`);
    for (const lane of lanes) {
      const waiting = this.#lanes.get(lane) ?? new Set();
      waiting.add(event);
      this.#lanes.set(lane, waiting);
    }
    this.#owned(event);
    this.#options.onEvent(event);
    if (name === 'session.ended' && session !== null && this.#tables.sessions.get(session)?.state !== 'ended')
      this.#onBreach(`committed: session.ended of ${session}, whose row is ${this.#tables.sessions.get(session)?.state}`);
  }

  /** Nobody but the owner of a Session or a Room tells of it. */
  #owned({ name, by, session_uuid: session, lanes }: EventRecord): void {
    if (by === null || name.startsWith('recording.')) return;
    const room = lanes.find((lane) => lane.startsWith('room:'))?.slice('room:'.length) ?? '';
    const row = session === null ? this.#tables.rooms.get(room) : this.#tables.sessions.get(session);
    if (row !== undefined && row.node_id !== by)
      this.#onBreach(`committed: ${name} by ${by}, and the owner is ${String(row.node_id)}`);
  }

  /**
   * An event was received: it is one that was committed, byte for byte, and nothing of its lanes was left out before.
   */
  received(webhookId: string, body: string): void {
    const event = this.#tables.events.get(webhookId);
    if (event === undefined) {
      this.#onBreach(`received: ${webhookId}, which was never committed`);
      return;
    }
    if (event.body !== body) this.#onBreach(`received: ${webhookId} with other bytes than were committed`);
    if (this.#heard.has(webhookId)) return;
    this.#heard.add(webhookId);
    for (const lane of event.lanes) {
      const waiting = this.#lanes.get(lane);
      waiting?.delete(event);
      const isBefore = (each: EventRecord) => each.xid < event.xid || (each.xid === event.xid && each.event_id < event.event_id);
      for (const each of waiting ?? [])
        if (isBefore(each)) this.#onBreach(`received: ${event.name} of ${lane} before ${each.name}`);
    }
  }

  /** What a process holds at this moment keeps within its limits. */
  stepped(processes: readonly Process[]): void {
    const { rooms } = this.#tables;
    for (const { running } of processes) {
      if (running === undefined || running.rooms.size <= MAX_ROOMS) continue;
      // A process may not know yet that it has deleted a Room: the answer of the database was lost.
      const size = running.rooms.live().filter(({ roomId }) => (rooms.get(roomId)?.deleted_at ?? null) === null).length;
      if (size > MAX_ROOMS) this.#onBreach(`${size} Rooms are live, and ${MAX_ROOMS} are permitted`);
    }
    let live = 0;
    for (const { deleted_at } of rooms.values()) if (deleted_at === null) live += 1;
    if (live > MAX_ROOMS) this.#onBreach(`${live} Rooms are stored, and ${MAX_ROOMS} are permitted`);
  }

  /** The Rooms of a process have no more members than they may. */
  placed({ running }: Process): void {
    const { mostMembers } = this.#options;
    for (const { roomId } of running?.rooms.live() ?? []) {
      const places = running?.rooms.find(roomId)?.places.length ?? 0;
      if (places > mostMembers) this.#onBreach(`${places} members in a Room, and ${mostMembers} are permitted`);
    }
  }

  /** Tells whether nothing lives and nothing waits, in the database and in the processes. */
  isQuiet(processes: readonly Process[]): boolean {
    const lives = ({ running }: Process) => (running?.sessions.size ?? 0) + (running?.rooms.size ?? 0) > 0;
    const { sessions, rooms, outbox, recordings, collections, charges, messages } = this.#tables;
    const all = <T>(rows: Iterable<T>, isOver: (row: T) => boolean) => [...rows].every(isOver);
    return (
      !processes.some(lives) &&
      outbox.size === 0 &&
      collections.size === 0 &&
      all(sessions.values(), (row) => row.ended_at !== null) &&
      all(rooms.values(), (row) => row.deleted_at !== null) &&
      all(recordings.values(), (row) => row.ended_at !== null) &&
      all(charges.values(), (row) => row.status !== 'attempting') &&
      all(messages.values(), (row) => row.stage === 'settled' && row.status !== 'sent')
    );
  }

  /** All is quiet: nothing lives, and nothing waits. */
  quiet(processes: readonly Process[], hears: (webhookId: string) => boolean): void {
    const { sessions, rooms, events, outbox, recordings, collections, charges, messages } = this.#tables;
    const breach = (count: number, what: string) => {
      if (count > 0) this.#onBreach(`at the end: ${count} ${what}`);
    };
    const countOf = <T>(rows: Iterable<T>, isWrong: (row: T) => boolean) => [...rows].filter(isWrong).length;
    breach(
      countOf(sessions.values(), (row) => row.ended_at === null),
      'Sessions live',
    );
    breach(
      countOf(sessions.values(), (row) => (row.ended_at === null) !== (row.state !== 'ended')),
      'Sessions are ended by halves',
    );
    breach(
      countOf(rooms.values(), (row) => row.deleted_at === null),
      'Rooms live',
    );
    breach(
      countOf(recordings.values(), (row) => row.ended_at === null),
      'recordings grow',
    );
    breach(collections.size, 'collections of cards run');
    breach(
      countOf(charges.values(), (row) => row.status === 'attempting'),
      'charges are under way',
    );
    breach(
      countOf(messages.values(), (row) => row.stage !== 'settled'),
      'messages wait',
    );
    breach(outbox.size, 'events wait in the outbox');
    breach(
      countOf(events.values(), (row) => !hears(row.webhook_id)),
      'events were never received',
    );
    breach(
      countOf(events.values(), (row) => row.status !== 'delivered'),
      'events are not down as delivered',
    );
    for (const { running, media } of processes) {
      breach(running?.sessions.size ?? 0, 'Sessions have an actor');
      breach(running?.rooms.size ?? 0, 'Rooms have an actor');
      breach(running?.recordings.growing ?? 0, 'recordings are held open');
      breach(media.openSources, 'sources are open');
      breach(media.openSounds, 'legs, pipes or rooms of the media plane are open');
    }
  }
}
