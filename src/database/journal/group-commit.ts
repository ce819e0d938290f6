/**
 * The journal: one flush under way, and everything that arrives meanwhile is the next one. A flush is a single
 * statement, so it is one round trip and one transaction: session rows, the events they emit, their outbox rows, and
 * the answers kept for replays.
 *
 * What was weighed: a transaction a change (6 round trips, one fsync each), and a statement a change in a pipeline (one
 * fsync each). Coalesced, the fsync is shared by all that waited for it, and order is the order of arrival.
 */
import { nextTurn } from '../../bounds/in-turns.ts';
import { JOURNAL_FLUSH_MAX_CHANGES, JOURNAL_TURN_CHANGES, JOURNAL_WAITING_MAX_CHANGES } from '../../limits.ts';
import type { Log, LogFields } from '../../log.ts';
import type { Queryable, Row } from '../driver/database.ts';
import type { Cursor, OutboxEvent } from '../event/outbox.ts';
import { type FlushPlan, planFlush, writtenEvents } from './flush.ts';
import { ALIVE, entryName, flushStatement } from './flush-statement.ts';
import { type Change, ChangeRefused, type Journal, StoreUnavailable } from './journal.ts';
import type { KeptAnswers } from './kept-answers.ts';
import { isStored } from './stored.ts';

/** What `Journal.commit` tells. */
type Stored = Awaited<ReturnType<Journal['commit']>>;

interface Waiting {
  readonly change: Change;
  readonly resolve: (stored: Stored) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommitOptions {
  readonly database: Queryable;
  readonly log: Log;
  /** This process in `nodes`; nothing is written once it was declared dead. */
  readonly nodeId: string;
  readonly keptAnswers: KeptAnswers;
  /** How far the relay of this process has read the outbox; undefined: it does not read. */
  readonly readTo: () => Cursor | undefined;
  /**
   * Called after each flush that wrote events. `next`: those events, where they come right after what the relay has
   * read; otherwise none, and they are to be read.
   */
  readonly onEvents: (next: readonly OutboxEvent[]) => void;
  /** Called when a flush was refused because this node was declared dead. */
  readonly onDead: () => void;
  /** Resolves one turn of the event loop later: by setImmediate, unless told. */
  readonly turn?: (() => Promise<void>) | undefined;
}

/** Changes waiting and flushes made, for `/metrics`. */
export interface JournalLoad {
  readonly waiting: number;
  readonly flushes: number;
  readonly changes: number;
}

/**
 * A row of the flush's answer: what was written, the number of an event, and the transaction (`flush-statement.ts`).
 */
interface WrittenRow extends Row {
  readonly written: string;
  /** Numbers may come as text (bigint). */
  readonly event_id: number | string | null;
  readonly xid: string | null;
}

/** The events that were written, if a relay has to read them next. */
function nextEvents(plan: FlushPlan, rows: readonly WrittenRow[]): readonly OutboxEvent[] {
  const xid = rows.find(({ written }) => written === ALIVE)?.xid;
  if (xid == null) return [];
  const eventIds = new Map(rows.flatMap(({ written, event_id: id }) => (id === null ? [] : [[written, Number(id)] as const])));
  return writtenEvents(plan, xid, eventIds);
}

/** Makes the journal on a database. */
export const groupCommit = (options: GroupCommitOptions): GroupCommit => new GroupCommit(options);

export class GroupCommit implements Journal {
  readonly #options: GroupCommitOptions;
  readonly #waiting: Waiting[] = [];
  #flushing: Promise<void> | undefined;
  #closed = false;
  #flushes = 0;
  #changes = 0;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  commit(change: Change): Promise<Stored> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new StoreUnavailable('the process ends'));
        return;
      }
      if (this.#waiting.length >= JOURNAL_WAITING_MAX_CHANGES) {
        reject(new StoreUnavailable('too many changes are waiting for the database'));
        return;
      }
      this.#waiting.push({ change, resolve, reject });
      this.#flushing ??= this.#run();
    });
  }

  async wasStored(change: Change): Promise<boolean> {
    const stored = await isStored(this.#options.database, change);
    if (stored && change.events.length > 0) this.#options.onEvents([]);
    return stored;
  }

  load(): JournalLoad {
    return { waiting: this.#waiting.length, flushes: this.#flushes, changes: this.#changes };
  }

  /**
   * Takes no more changes, and resolves when those that wait are stored, or the database does not take them. An actor
   * tries again for as long as it lives, so that there would always be a flush under way while the database is away.
   */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#flushing;
  }

  async #run(): Promise<void> {
    // Everything that commits in this turn comes aboard.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, JOURNAL_FLUSH_MAX_CHANGES);
      this.#flushes += 1;
      this.#changes += batch.length;
      await this.#flush(batch);
    }
    this.#flushing = undefined;
  }

  async #flush(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcome = await this.#write(batch.map((each) => each.change));
      await this.#tell(batch, outcome);
    } catch (error) {
      if (error instanceof StoreUnavailable || batch.length === 1) {
        for (const each of batch) each.reject(asRefusal(error));
        if (this.#closed && error instanceof StoreUnavailable) for (const each of this.#waiting.splice(0)) each.reject(error);
        if (!(error instanceof StoreUnavailable))
          this.#options.log.error({ ...namesOf(batch[0]?.change), error: String(error) }, 'the database refused a change');
        return;
      }
      // One change the database refuses must not sink those beside it.
      for (const each of batch) await this.#flush([each]);
    }
  }

  /**
   * Tells what became of changes, so many in one turn of the event loop: each has its actor perform what it ordered.
   */
  async #tell(batch: readonly Waiting[], outcome: readonly Stored[]): Promise<void> {
    const { turn = nextTurn } = this.#options;
    for (const [at, stored] of outcome.entries()) {
      if (at > 0 && at % JOURNAL_TURN_CHANGES === 0) await turn();
      batch[at]?.resolve(stored);
    }
  }

  async #write(batch: readonly Change[]): Promise<Stored[]> {
    const { nodeId, keptAnswers, readTo } = this.#options;
    const plan = planFlush(batch, keptAnswers);
    const { text, parameters } = flushStatement(plan, nodeId, readTo(), keptAnswers.as);
    const rows = await this.#options.database.query<WrittenRow>(text, parameters);
    const written = new Set(rows.map((row) => row.written));
    if (!written.has(ALIVE)) {
      this.#options.onDead();
      throw new StoreUnavailable('this node was declared dead');
    }
    if (plan.events.length > 0) this.#options.onEvents(nextEvents(plan, rows));
    const outcome: Stored[] = [];
    for (const [at, change] of batch.entries()) {
      const row = change.session?.sessionUuid ?? change.room?.roomId;
      if (row === undefined) outcome.push(true);
      else if (plan.late.has(at)) outcome.push(false);
      else outcome.push(written.has(row) || (await this.#cameBefore(change)) || (isKept(change, written) ? false : 'room_moved'));
    }
    return outcome;
  }

  /** Tells whether the same change came before, and its caller was told in error that it failed. */
  #cameBefore({ events, recordings, payments, answer }: Change): Promise<boolean> {
    return isStored(this.#options.database, { events, recordings, payments, answer });
  }
}

/** Tells whether the Room that a change enters, if any, is as it was when it let the Session in. */
const isKept = ({ enters }: Change, written: ReadonlySet<string>): boolean =>
  enters === undefined || written.has(entryName(enters));

/** Whose change it is, for the log. */
const namesOf = ({ session, room, onlyIfEnded }: Partial<Change> = {}): LogFields => ({
  session_uuid: session?.sessionUuid,
  room_id: room?.roomId,
  recording_uuid: onlyIfEnded,
});

const asRefusal = (error: unknown): StoreUnavailable =>
  error instanceof StoreUnavailable ? error : new ChangeRefused('the database refused the change', { cause: error });
