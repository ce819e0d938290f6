/**
 * One page of the calls that an operator filters by number or application. No index has either, because it would be
 * written with each call. So the calls are looked through piece by piece, newest first, for a bounded time: one
 * statement over those of a month would take longer than a statement may.
 */
import { CALL_LIST_LOOK_MS, CALL_LIST_PIECE_MAX_ROWS, CALL_LIST_PIECE_ROWS } from '../../limits.ts';
import type { PageEnd } from '../newest-first.ts';
import type { CallQuery, CallRow, CallStore } from './calls.ts';

interface CallPage {
  readonly calls: readonly CallRow[];
  /** What the next page begins behind, or undefined on the last page. A page of few calls, or of none, may have it. */
  readonly after: PageEnd | undefined;
}

/** A piece is looked through in about this many milliseconds, if the one before it tells how long that takes. */
const PIECE_MS = 200;

/** Reads a page. `now` is in milliseconds. */
export async function pageOfCalls(
  store: Pick<CallStore, 'list' | 'pieceEnd'>,
  query: CallQuery,
  now = () => performance.now(),
): Promise<CallPage> {
  const isLive = query.state !== undefined && query.state !== 'ended';
  const isPieced = !isLive && (query.number !== undefined || query.appUuid !== undefined);
  const began = now();
  const found: CallRow[] = [];
  let { after } = query;
  let rows = CALL_LIST_PIECE_ROWS;
  for (;;) {
    const pieceBegan = now();
    const through = isPieced ? await store.pieceEnd({ ...query, after }, rows) : undefined;
    // One more than the page shows whether there is another one.
    found.push(...(await store.list({ ...query, after, through, limit: query.limit + 1 - found.length })));
    if (found.length > query.limit) {
      const calls = found.slice(0, query.limit);
      const last = calls.at(-1);
      return { calls, after: last && { createdAt: last.createdAt, id: last.sessionUuid } };
    }
    if (through === undefined) return { calls: found, after: undefined };
    if (now() - began > CALL_LIST_LOOK_MS) return { calls: found, after: through };
    after = through;
    rows = Math.min(CALL_LIST_PIECE_MAX_ROWS, now() - pieceBegan < PIECE_MS ? rows * 2 : Math.ceil(rows / 2));
  }
}
