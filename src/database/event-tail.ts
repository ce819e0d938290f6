/**
 * The end of the event log, for those who follow it. Transactions commit in another order than they take their numbers,
 * so an event may appear below one that was read already. The tail therefore stops before a gap until it is filled, or
 * until it is so old that its transaction must have been rolled back.
 */
import type { Clock } from '../clock.ts';
import { EVENT_TAIL_BATCH_MAX_EVENTS, EVENT_TAIL_GAP_MS, EVENT_TAIL_LOOK_MS, EVENT_TAIL_SPACING_MS } from '../limits.ts';
import type { Database } from './driver/database.ts';

/** Is told the new end of the log, and how many bytes of bodies lie before it. */
type Follower = (position: number, bytes: number) => void;

export interface EventTail {
  /** Calls back whenever the log has grown. Returns what stops it. */
  follow(follower: Follower): () => void;
  /** The position up to which the log is complete. */
  position(): Promise<number>;
  /** The first position that is still in the log, or may be in it next. Undefined before the first event of all. */
  first(): Promise<number | undefined>;
  /** There may be something new. */
  wake(): void;
}

const AFTER = `SELECT event_id, octet_length(body) AS bytes FROM events WHERE event_id > $1::bigint ORDER BY event_id LIMIT ${EVENT_TAIL_BATCH_MAX_EVENTS}`;
const LAST = 'SELECT max(event_id) AS last FROM events';
const FIRST = `SELECT coalesce(min(event_id), pg_sequence_last_value(pg_get_serial_sequence('events', 'event_id')::regclass) + 1) AS first
  FROM events`;

export function eventTail(database: Database, clock: Clock): EventTail {
  const followers = new Set<Follower>();
  let end: number | undefined;
  let gapSince: number | undefined;
  let looking: Promise<void> | undefined;
  let disarm: (() => void) | undefined;
  let armedAt = Number.POSITIVE_INFINITY;

  const arm = (ms: number): void => {
    const at = clock.now() + ms;
    if (at >= armedAt || followers.size === 0) return;
    disarm?.();
    armedAt = at;
    disarm = clock.at(at, () => {
      armedAt = Number.POSITIVE_INFINITY;
      void look();
    });
  };

  const look = (): Promise<void> => {
    looking ??= advance()
      .catch(() => {
        // The database is away: the next look asks again.
      })
      .finally(() => {
        looking = undefined;
        arm(gapSince === undefined ? EVENT_TAIL_LOOK_MS : EVENT_TAIL_SPACING_MS);
      });
    return looking;
  };

  const advance = async (): Promise<void> => {
    if (end === undefined) {
      const [row] = await database.query<{ last: unknown }>(LAST);
      end = Number(row?.last ?? 0);
      return;
    }
    for (let from: number = end; ; ) {
      const rows = await database.query<{ event_id: unknown; bytes: unknown }>(AFTER, [from]);
      // The last follower has left meanwhile.
      if (end !== from) return;
      let bytes = 0;
      let next: number = from;
      for (const row of rows) {
        const eventId = Number(row.event_id);
        if (eventId > next + 1 && !isOld(next)) break;
        gapSince = undefined;
        next = eventId;
        bytes += Number(row.bytes);
      }
      if (next === from) return;
      end = next;
      from = next;
      for (const follower of followers) follower(end, bytes);
    }
  };

  let gapAt = -1;
  /** Whether the gap behind a position has been there for long. */
  const isOld = (position: number): boolean => {
    if (gapAt !== position || gapSince === undefined) {
      gapAt = position;
      gapSince = clock.now();
    }
    return clock.now() - gapSince >= EVENT_TAIL_GAP_MS;
  };

  return {
    follow(follower) {
      followers.add(follower);
      arm(EVENT_TAIL_LOOK_MS);
      return () => {
        followers.delete(follower);
        if (followers.size > 0) return;
        disarm?.();
        armedAt = Number.POSITIVE_INFINITY;
        // Whoever comes next begins at the end that the log has then.
        end = undefined;
        gapSince = undefined;
      };
    },
    async position() {
      // The first look may be the last one of a follower that has just left.
      for (let looks = 0; end === undefined && looks < 2; looks++) await look();
      if (end === undefined) throw new Error('the event log could not be read');
      return end;
    },
    async first() {
      const [row] = await database.query<{ first: unknown }>(FIRST);
      return row?.first == null ? undefined : Number(row.first);
    },
    wake() {
      if (followers.size > 0) arm(EVENT_TAIL_SPACING_MS);
    },
  };
}
