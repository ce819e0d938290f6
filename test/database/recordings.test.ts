/** The rows of recordings past their retention. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { openTestStore, type TestStore } from './open.ts';
import { sessionRow } from './rows.ts';

let opened: TestStore;
beforeAll(async () => {
  opened = await openTestStore();
}, 60_000);
afterAll(() => opened?.close());

test('A recording past its retention is told as expired until it is removed, and as removed from then on', async () => {
  const { journal, recordings } = opened.store;
  const session = sessionRow();
  const begun = (recordingUuid: string) => ({
    begun: {
      recordingUuid,
      appUuid: session.appUuid,
      sessionUuid: session.sessionUuid,
      roomId: undefined,
      volumeId: 'volume',
      operationUuid: 'op',
      clientState: '',
      traceparent: '',
      createdAt: 1,
      endedAt: undefined,
      removedAt: undefined,
    },
  });
  await journal.commit({ session, events: [], recordings: [begun('rec_old'), begun('rec_live')] });
  const over = { ended: { recordingUuid: 'rec_old', endedAt: 10, durationMs: 5 } };
  await journal.commit({ session, events: [], recordings: [over] });
  expect(await recordings.expired(10)).toEqual([]);
  expect(await recordings.expired(11)).toEqual(['rec_old']);
  const some = ['rec_live', 'rec_old', 'rec_unknown'];
  expect(await recordings.removedOf(some)).toEqual([]);
  await recordings.removed(['rec_old'], 12);
  expect(await recordings.expired(11)).toEqual([]);
  expect(await recordings.removedOf(some)).toEqual(['rec_old']);
  expect(await recordings.removedOf([])).toEqual([]);
});
