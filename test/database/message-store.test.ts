/** Short messages as rows: what a claim takes, what still waits, and what a list finds. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Database } from '../../src/database/driver/database.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import { keptAnswers } from '../../src/database/journal/kept-answers.ts';
import { messageStore } from '../../src/database/messages.ts';
import { newUuid } from '../../src/id.ts';
import { LIST_MATCHED_MAX_ITEMS, MESSAGE_CLAIM_MS, MESSAGES_WAITING_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { claim, type MessageState } from '../../src/machine/message/message.ts';
import { openTestStore, type TestStore } from './open.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

let own: TestStore;
let database: Database;
beforeAll(async () => {
  own = await openTestStore();
  const { url, dataDir } = own;
  database = await openDatabase({ dataDir, databaseUrl: url, databaseDriver: 'postgres' }, silentLog);
});
afterAll(async () => {
  await database.close();
  await own.close();
});

const message = (appUuid: string, more: Partial<MessageState> = {}): MessageState => ({
  ...{ messageUuid: newUuid(), appUuid, operationUuid: newUuid(), from: '+15550001', to: '+15550100', text: 'Hello' },
  ...{ encoding: 'gsm7', segments: 1, status: 'queued', errorCode: '', errorMessage: '', createdAt: NOW, updatedAt: NOW },
  ...{ sentAt: undefined, deliveredAt: undefined, parts: [{ smscId: '', delivered: false }], stage: 'waiting', dueAt: NOW },
  ...{ attempts: 0, traceparent: '', ...more },
});

/** Makes the message of an application so many times. */
async function multiply(appUuid: string, times: number): Promise<void> {
  const insert = `INSERT INTO messages SELECT (m).* FROM (
    SELECT jsonb_populate_record(m, jsonb_build_object('message_uuid', gen_random_uuid())) AS m
    FROM messages AS m, generate_series(1, $2::int)
    WHERE m.message_uuid = (SELECT message_uuid FROM messages WHERE app_uuid = $1 LIMIT 1)) AS made`;
  // A statement has its time, on a busy machine too.
  for (let left = times; left > 0; left -= 5_000) await database.query(insert, [appUuid, Math.min(left, 5_000)]);
}

test('A claim takes as many messages as a slow database writes in its time, so that it is not rolled back each time', async () => {
  let now = 0;
  let statementMs = 300;
  const slow: typeof database = {
    ...database,
    transaction: (work) =>
      database.transaction((within) =>
        work({
          query(text, parameters) {
            now += statementMs;
            return within.query(text, parameters);
          },
        }),
      ),
  };
  const store = messageStore(
    slow,
    false,
    keptAnswers(undefined),
    () => {},
    () => now,
  );
  // One application alone, which has the rest at once, and several that take turns.
  for (const apps of [['alone'], ['one', 'two', 'three']]) {
    for (let at = 0; at < 30; at += 1) await store.insert(message(apps[at % apps.length] ?? ''), undefined);
    const began = now;
    const claimed = await store.claim(NOW, 100, '', (state) => claim(state, NOW));
    expect(claimed.length).toBeGreaterThan(1);
    expect(claimed.length).toBeLessThan(10);
    expect(now - began).toBeLessThan(MESSAGE_CLAIM_MS + 5 * statementMs);
    expect(await store.held(Number.MAX_SAFE_INTEGER)).toHaveLength(claimed.length);
    statementMs = 0;
    expect(await store.claim(NOW, 100, '', (state) => claim(state, NOW))).toHaveLength(30 - claimed.length);
    statementMs = 300;
    await database.query('DELETE FROM messages');
  }
}, 30_000);

const storeOf = () => messageStore(database, false, keptAnswers(undefined), () => {});
const everything = { status: undefined, to: undefined, from: undefined, createdAfter: undefined, createdBefore: undefined };

test('An application has ten thousand waiting messages at most, whatever others have, and those that are sent are not counted', async () => {
  const store = storeOf();
  expect(await store.insert(message('full'), undefined)).toBe(true);
  await multiply('full', MESSAGES_WAITING_MAX - 2);
  expect(await store.insert(message('full'), undefined)).toBe(true);
  expect(await store.insert(message('full'), undefined)).toBe(false);
  expect(await store.insert(message('other'), undefined)).toBe(true);
  await store.claim(NOW, 1, 'a', (state) => claim(state, NOW));
  expect(await store.insert(message('full'), undefined)).toBe(true);
  expect(await store.insert(message('full'), undefined)).toBe(false);
  await database.query('DELETE FROM messages');
}, 30_000);

test('A list begins with the millisecond that it is asked for and ends before the other, and is refused where it is too long', async () => {
  const store = storeOf();
  for (const createdAt of [NOW - 1, NOW, NOW + 1]) await store.insert(message('listed', { createdAt }), undefined);
  const times = async (createdAfter: number | undefined, createdBefore: number | undefined) => {
    const found = await store.list('listed', { ...everything, createdAfter, createdBefore, limit: 10 });
    return found === 'too_many' ? found : found.map(({ createdAt }) => createdAt - NOW);
  };
  expect(await times(undefined, undefined)).toEqual([1, 0, -1]);
  expect(await times(NOW, undefined)).toEqual([1, 0]);
  expect(await times(undefined, NOW)).toEqual([-1]);
  expect(await times(NOW, NOW + 1)).toEqual([0]);

  await store.insert(message('long', { stage: 'settled' }), undefined);
  await multiply('long', LIST_MATCHED_MAX_ITEMS - 1);
  expect(await store.list('long', { ...everything, limit: 2 })).toHaveLength(2);
  await store.insert(message('long'), undefined);
  expect(await store.list('long', { ...everything, limit: 2 })).toBe('too_many');
  expect(await store.list('long', { ...everything, status: 'sent', limit: 2 })).toEqual([]);
  expect(await store.list('listed', { ...everything, limit: 2 })).toHaveLength(2);
}, 30_000);
