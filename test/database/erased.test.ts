/** What is left of a call that was erased. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import postgres from 'postgres';
import type { RecordingRow } from '../../src/database/journal/recording-rows.ts';
import { newUuid } from '../../src/id.ts';
import { untilWaiting } from './locks.ts';
import { openTestStore, type TestStore } from './open.ts';
import { ended, sessionRow } from './rows.ts';

let opened: TestStore;
beforeAll(async () => {
  opened = await openTestStore();
}, 60_000);
afterAll(() => opened?.close());

test('A call is not erased before the end of its recording, whose event would be left', async () => {
  const { store } = opened;
  const session = ended(sessionRow());
  const { sessionUuid, appUuid } = session;
  const recordingUuid = newUuid();
  const begun: RecordingRow = {
    ...{ recordingUuid, appUuid, sessionUuid, roomId: undefined, volumeId: '', operationUuid: '', clientState: '' },
    ...{ traceparent: '', createdAt: 1, endedAt: undefined, removedAt: undefined },
  };
  await store.journal.commit({ session, events: [], recordings: [{ begun }] });
  expect(await store.calls.erase(sessionUuid)).toBe('pending');
  await store.journal.commit({ events: [], recordings: [{ ended: { recordingUuid, endedAt: 2, durationMs: 1 } }] });
  expect(await store.calls.erase(sessionUuid)).toBe('erased');
});

test('The part of a timeline that is written after its call was erased is not kept; one of a call that is there is', async () => {
  const { store } = opened;
  const [gone, kept] = [ended(sessionRow()), ended(sessionRow())];
  for (const session of [gone, kept]) await store.journal.commit({ session, events: [] });
  const part = (sessionUuid: string) => ({
    sessionUuid,
    since: 1,
    entries: [{ at: 1, kind: 'media', what: 'started' } as const],
  });
  expect(await store.calls.erase(gone.sessionUuid)).toBe('erased');
  await store.calls.write([part(gone.sessionUuid), part(kept.sessionUuid)]);
  expect(await store.calls.timeline(gone.sessionUuid)).toEqual([]);
  expect(await store.calls.timeline(kept.sessionUuid)).toHaveLength(1);
});

test('A part that is written while its call is being erased is not kept either', async () => {
  const { store } = opened;
  const sessions = Array.from({ length: 40 }, () => ended(sessionRow()));
  for (const session of sessions) await store.journal.commit({ session, events: [] });
  const entries = [{ at: 1, kind: 'media', what: 'started' } as const];
  await Promise.all(
    sessions.flatMap(({ sessionUuid }) => [
      store.calls.erase(sessionUuid),
      store.calls.write([{ sessionUuid, since: 1, entries }]),
      store.calls.write([{ sessionUuid, since: 2, entries }]),
    ]),
  );
  for (const { sessionUuid } of sessions) expect(await store.calls.timeline(sessionUuid)).toEqual([]);
});

test('A part that is written when its call is erased but for the timeline waits for the end of that, and is not kept', async () => {
  const { store, dataDir } = opened;
  const session = ended(sessionRow());
  const { sessionUuid } = session;
  await store.journal.commit({ session, events: [] });
  const entries = [{ at: 1, kind: 'media', what: 'started' } as const];
  await store.calls.write([{ sessionUuid, since: 1, entries }]);
  const sql = postgres({ path: `${dataDir}/postgres-socket/.s.PGSQL.5432`, user: 'sidetone', database: 'postgres', max: 2 });
  const [isLocked, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const over = sql.begin(async (tx) => {
    await tx`SELECT FROM timelines WHERE session_uuid = ${sessionUuid} FOR UPDATE`;
    isLocked.resolve();
    await release.promise;
  });
  await isLocked.promise;
  const erased = store.calls.erase(sessionUuid);
  await untilWaiting(sql, 1);
  const written = store.calls.write([{ sessionUuid, since: 2, entries }]);
  await Promise.race([written, untilWaiting(sql, 2)]);
  release.resolve();
  await Promise.all([over, written]);
  expect(await erased).toBe('erased');
  expect(await store.calls.timeline(sessionUuid)).toEqual([]);
  await sql.end();
});

test('Parts of a timeline that two nodes write of one millisecond are kept both, and each once', async () => {
  const { store } = opened;
  const session = sessionRow();
  await store.journal.commit({ session, events: [] });
  const part = (what: string) => ({
    ...{ sessionUuid: session.sessionUuid, since: 1 },
    entries: [{ at: 1, kind: 'media', what } as const, { at: 2, kind: 'media', what: `${what} on` } as const],
  });
  const [old, next] = [part('old'), part('next')];
  for (const each of [old, next, old, next]) await store.calls.write([each]);
  expect(await store.calls.timeline(session.sessionUuid)).toEqual([...old.entries, ...next.entries]);
});
