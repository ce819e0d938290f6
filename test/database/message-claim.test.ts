/** How many messages one claim takes from a database that is slow. */
import { expect, test } from 'bun:test';
import { openDatabase } from '../../src/database/driver/open.ts';
import { keptAnswers } from '../../src/database/journal/kept-answers.ts';
import { messageStore } from '../../src/database/messages.ts';
import { newUuid } from '../../src/id.ts';
import { MESSAGE_CLAIM_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { claim, type MessageState } from '../../src/machine/message/message.ts';
import { openTestStore } from './open.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

const message = (appUuid: string): MessageState => ({
  ...{ messageUuid: newUuid(), appUuid, operationUuid: newUuid(), from: '+15550001', to: '+15550100', text: 'Hello' },
  ...{ encoding: 'gsm7', segments: 1, status: 'queued', errorCode: '', errorMessage: '', createdAt: NOW, updatedAt: NOW },
  ...{ sentAt: undefined, deliveredAt: undefined, parts: [{ smscId: '', delivered: false }], stage: 'waiting', dueAt: NOW },
  ...{ attempts: 0, traceparent: '' },
});

test('A claim takes as many messages as a slow database writes in its time, so that it is not rolled back each time', async () => {
  const { url, dataDir, close } = await openTestStore();
  const database = await openDatabase({ dataDir, databaseUrl: url, databaseDriver: 'postgres' }, silentLog);
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
  await database.close();
  await close();
}, 30_000);
