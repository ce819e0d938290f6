/**
 * One page of the event log for whoever filters it. No index has the status or the name of an event, because it would
 * be written for each event that is delivered. So the log is looked through piece by piece, for a bounded time.
 */
import { EVENT_LIST_LOOK_MS, EVENT_LIST_MAX_BYTES, EVENT_LIST_PIECE_MAX_ROWS, EVENT_LIST_PIECE_ROWS } from '../../limits.ts';
import type { EventLog, EventQuery, LoggedEvent } from './events.ts';

interface EventPage {
  readonly events: readonly LoggedEvent[];
  /** The position to ask on from, or undefined on the last page. A page of few events, or of none, may have it. */
  readonly next: number | undefined;
}

type PagedLog = Pick<EventLog, 'list' | 'ends'>;

/** A piece is looked through in about this many milliseconds, if the one before it tells how long that takes. */
const PIECE_MS = 200;

/** Reads a page. `now` is in milliseconds. */
export async function pageOfLog(log: PagedLog, query: EventQuery, now = () => performance.now()): Promise<EventPage> {
  const { oldest, newest } = await log.ends();
  const isBack = query.before !== undefined;
  // The events that are left to look through are those after `low` and before `high`.
  let low = Math.max(query.after, oldest - 1);
  let high = Math.min(query.before ?? newest + 1, newest + 1);
  const isPieced = (query.status !== undefined || query.name !== undefined) && query.sessionUuid === undefined;
  let piece = isPieced ? EVENT_LIST_PIECE_ROWS : Number.POSITIVE_INFINITY;
  const began = now();
  const found: LoggedEvent[] = [];
  let bytes = 0;
  while (low + 1 < high) {
    if (now() - began > EVENT_LIST_LOOK_MS || bytes >= EVENT_LIST_MAX_BYTES) return { events: found, next: isBack ? high : low };
    const pieceBegan = now();
    const [from, to] = isBack ? [Math.max(low, high - 1 - piece), high] : [low, Math.min(high, low + 1 + piece)];
    // One more than the page shows whether there is another one.
    const limit = query.limit + 1 - found.length;
    const rows = await log.list({ ...query, after: from, before: to, limit, oldestFirst: !isBack });
    found.push(...rows);
    if (found.length > query.limit) {
      const events = found.slice(0, query.limit);
      return { events, next: events.at(-1)?.eventId };
    }
    const last = rows.at(-1)?.eventId;
    // A page may have ended early where its events are large: what is behind the last one is looked at again.
    if (isBack) high = last ?? from + 1;
    else low = last ?? to - 1;
    bytes += rows.reduce((sum, { body, attempts }) => sum + body.length + JSON.stringify(attempts).length, 0);
    if (last === undefined)
      piece = Math.min(EVENT_LIST_PIECE_MAX_ROWS, now() - pieceBegan < PIECE_MS ? piece * 2 : Math.ceil(piece / 2));
  }
  return { events: found, next: undefined };
}
