/** The pages of calls that an operator filters, on more calls than one piece has. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { pageOfCalls } from '../../src/database/call/call-page.ts';
import type { CallQuery } from '../../src/database/call/calls.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import type { PageEnd } from '../../src/database/newest-first.ts';
import { CALL_LIST_LOOK_MS, CALL_LIST_PIECE_ROWS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { openTestStore, type TestStore } from './open.ts';

const CALLS = 3 * CALL_LIST_PIECE_ROWS;
const QUIET = [1, CALL_LIST_PIECE_ROWS + 5, 2 * CALL_LIST_PIECE_ROWS, CALLS];
/** Call n was made at n; those of `$2` are from +15550100, and the last one is still up. */
const INSERT = `INSERT INTO sessions (session_uuid, app_uuid, node_id, epoch, type, state, caller_id, did, client_state, running, trunk,
    summary, answered, room_id, created_at, ended_at)
  SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'app', 'node', 0, 'phone_in',
    CASE WHEN n = $1::int THEN 'answered' ELSE 'ended' END,
    CASE WHEN n = ANY($2::int[]) THEN '+15550100' ELSE '+15550199' END, '', '', '', '', '', true, '', n,
    CASE WHEN n = $1::int THEN NULL ELSE n + 1 END
  FROM generate_series(1, $1::int) AS n`;
const query = (more: Partial<CallQuery>): CallQuery => ({
  appUuid: undefined,
  state: undefined,
  number: '+15550100',
  createdAfter: undefined,
  createdBefore: undefined,
  after: undefined,
  limit: 100,
  ...more,
});

let opened: TestStore;
beforeAll(async () => {
  opened = await openTestStore();
  const database = await openDatabase(
    { dataDir: opened.dataDir, databaseUrl: opened.url, databaseDriver: 'postgres' },
    silentLog,
  );
  await database.query(INSERT, [CALLS, `{${QUIET.join(',')}}`]);
  await database.close();
}, 60_000);
afterAll(() => opened?.close());
const timesOf = (calls: readonly { readonly createdAt: number }[]) => calls.map(({ createdAt }) => createdAt);

test('The calls of one number are found in whatever piece they are, newest first, in one page or one by one', async () => {
  const { calls } = opened.store;
  expect(timesOf((await pageOfCalls(calls, query({}))).calls)).toEqual(QUIET.toReversed());
  const seen: number[] = [];
  let after: PageEnd | undefined;
  do {
    const page = await pageOfCalls(calls, query({ limit: 1, after }));
    seen.push(...timesOf(page.calls));
    after = page.after;
  } while (after !== undefined);
  expect(seen).toEqual(QUIET.toReversed());
}, 60_000);

test('A page stays within its times and states, whatever pieces it is read in', async () => {
  const { calls } = opened.store;
  const within = { createdAfter: 2, createdBefore: 2 * CALL_LIST_PIECE_ROWS + 1 };
  expect(timesOf((await pageOfCalls(calls, query(within))).calls)).toEqual([2 * CALL_LIST_PIECE_ROWS, CALL_LIST_PIECE_ROWS + 5]);
  expect(timesOf((await pageOfCalls(calls, query({ state: 'answered' }))).calls)).toEqual([CALLS]);
  expect(timesOf((await pageOfCalls(calls, query({ state: 'ringing' }))).calls)).toEqual([]);
  expect(timesOf((await pageOfCalls(calls, query({ state: 'ended', limit: 1 }))).calls)).toEqual([2 * CALL_LIST_PIECE_ROWS]);
  expect((await pageOfCalls(calls, query({ number: undefined, appUuid: 'app_of_nobody' }))).calls).toEqual([]);
}, 60_000);

test('A number that hardly ever called is looked for during two seconds a page, and the next page goes on from there', async () => {
  const { calls } = opened.store;
  let ms = 0;
  const slow = () => {
    ms += CALL_LIST_LOOK_MS;
    return ms;
  };
  const first = await pageOfCalls(calls, query({ number: '+15550777' }), slow);
  expect(first).toEqual({ calls: [], after: { createdAt: CALLS - CALL_LIST_PIECE_ROWS + 1, id: expect.any(String) } });
  const rest = await pageOfCalls(calls, query({ number: '+15550777', after: first.after }));
  expect(rest).toEqual({ calls: [], after: undefined });
}, 60_000);

test('The calls of an application and ended ones are looked through in pieces; live and unfiltered ones are read at once', async () => {
  const { calls } = opened.store;
  const looksFor = async (more: Partial<CallQuery>) => {
    let looks = 0;
    const pieceEnd: typeof calls.pieceEnd = (...asked) => {
      looks += 1;
      return calls.pieceEnd(...asked);
    };
    const page = await pageOfCalls({ list: calls.list, pieceEnd }, query({ limit: 1, ...more }));
    return [timesOf(page.calls), looks];
  };
  const first = { number: undefined, createdBefore: CALLS };
  expect(await looksFor({ ...first, appUuid: 'app' })).toEqual([[CALLS - 1], 1]);
  expect(await looksFor({ state: 'ended' })).toEqual([[2 * CALL_LIST_PIECE_ROWS], 2]);
  expect(await looksFor({ state: 'live' })).toEqual([[CALLS], 0]);
  expect(await looksFor(first)).toEqual([[CALLS - 1], 0]);
  // Four calls fill the page, and no other one is left.
  const filled = await pageOfCalls(calls, query({ limit: QUIET.length }));
  expect([filled.calls.length, filled.after]).toEqual([QUIET.length, undefined]);
}, 60_000);
