/** The rows of recordings past their retention. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { RecordingQuery } from '../../src/database/call/recordings.ts';
import { openDatabase } from '../../src/database/driver/open.ts';
import type { SessionRow } from '../../src/database/journal/journal.ts';
import { timeWitness } from '../../src/database/node/time-witness.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { openTestStore, type TestStore } from './open.ts';
import { sessionRow } from './rows.ts';

let opened: TestStore;
beforeAll(async () => {
  opened = await openTestStore();
}, 60_000);
afterAll(() => opened?.close());

const begun = (recordingUuid: string, session: SessionRow) => ({
  begun: {
    recordingUuid,
    appUuid: session.appUuid,
    sessionUuid: session.sessionUuid,
    roomId: undefined,
    volumeId: 'volume',
    operationUuid: 'op',
    clientState: 'Mrs Example, order 7',
    traceparent: '',
    createdAt: 1,
    endedAt: undefined,
    removedAt: undefined,
  },
});

test('A recording past its retention is told as expired until it is removed, and as removed from then on', async () => {
  const { journal, recordings } = opened.store;
  const session = sessionRow();
  await journal.commit({ session, events: [], recordings: [begun('rec_old', session), begun('rec_live', session)] });
  const over = { ended: { recordingUuid: 'rec_old', endedAt: 10, durationMs: 5 } };
  await journal.commit({ session, events: [], recordings: [over] });
  expect(await recordings.expired(10)).toEqual([]);
  expect(await recordings.expired(11)).toEqual(['rec_old']);
  const some = ['rec_live', 'rec_old', 'rec_unknown'];
  expect(await recordings.areRemoved(some)).toEqual(
    new Map([
      ['rec_live', false],
      ['rec_old', false],
    ]),
  );
  expect(await recordings.get('rec_old')).toMatchObject({ clientState: 'Mrs Example, order 7' });
  await recordings.removed(['rec_old'], 12);
  // The row stays for a year, to say so, and what the application said of the person does not.
  expect(await recordings.get('rec_old')).toMatchObject({ removedAt: 12, clientState: '' });
  expect(await recordings.expired(11)).toEqual([]);
  expect(await recordings.areRemoved(some)).toEqual(
    new Map([
      ['rec_live', false],
      ['rec_old', true],
    ]),
  );
  expect(await recordings.areRemoved([])).toEqual(new Map());
});

test('An application lists what it keeps page by page, newest first, all of it or what is of one Session or Room', async () => {
  const { journal, recordings } = opened.store;
  const [own, other] = [sessionRow(), sessionRow()];
  const app = own.appUuid;
  const at = (name: string, createdAt: number, of = own, more: object = {}) => {
    const { begun: row } = begun(name, of);
    return { begun: { ...row, createdAt, ...more } };
  };
  const roomId = crypto.randomUUID();
  const rows = [
    at('rec_1', 10),
    at('rec_3', 20),
    at('rec_2', 20),
    at('rec_4', 30, own, { sessionUuid: undefined, roomId }),
    at('rec_5', 40),
    at('rec_others', 25, other),
  ];
  await journal.commit({ events: [], recordings: rows });
  await journal.commit({ events: [], recordings: [{ ended: { recordingUuid: 'rec_2', endedAt: 50, durationMs: 5 } }] });
  const all = {
    sessionUuid: undefined,
    roomId: undefined,
    createdAfter: undefined,
    createdBefore: undefined,
    after: undefined,
    limit: 10,
  };
  const listed = async (query: Partial<RecordingQuery> = {}) =>
    (await recordings.list(app, { ...all, ...query })).map(({ recordingUuid }) => recordingUuid);
  expect(await listed()).toEqual(['rec_5', 'rec_4', 'rec_3', 'rec_2', 'rec_1']);
  expect(await listed({ limit: 2 })).toEqual(['rec_5', 'rec_4']);
  expect(await listed({ limit: 2, after: { createdAt: 20, id: 'rec_3' } })).toEqual(['rec_2', 'rec_1']);
  expect(await listed({ createdAfter: 20, createdBefore: 40 })).toEqual(['rec_4', 'rec_3', 'rec_2']);
  expect(await listed({ roomId })).toEqual(['rec_4']);
  expect(await listed({ sessionUuid: own.sessionUuid })).toEqual(['rec_5', 'rec_3', 'rec_2', 'rec_1']);
  expect(await listed({ sessionUuid: other.sessionUuid })).toEqual([]);
  const [, , , ended] = await recordings.list(app, all);
  expect(ended).toMatchObject({ endedAt: 50, durationMs: 5 });
  await recordings.removed(['rec_5', 'rec_1'], 60);
  expect(await listed()).toEqual(['rec_4', 'rec_3', 'rec_2']);
  await recordings.removed(['rec_2', 'rec_3', 'rec_4', 'rec_others'], 60);
});

test('What each application keeps is the sum of its rows: of those over, and of those under way elsewhere as they were measured', async () => {
  const { journal, recordings } = opened.store;
  const session = sessionRow();
  const app = session.appUuid;
  const before = (await recordings.kept('volume')).get(app) ?? 0;
  const of = async (volume: string) => ((await recordings.kept(volume)).get(app) ?? 0) - before;
  const names = ['rec_told', 'rec_untold', 'rec_underway'];
  await journal.commit({ session, events: [], recordings: names.map((name) => begun(name, session)) });
  await recordings.sized(
    new Map([
      ['rec_untold', 700],
      ['rec_underway', 300],
    ]),
  );
  expect(await of('volume')).toBe(0);
  const elsewhere = await of('another');
  const told = { ended: { recordingUuid: 'rec_told', endedAt: 10, durationMs: 5, bytes: 1_044 } };
  const untold = { ended: { recordingUuid: 'rec_untold', endedAt: 10, durationMs: 5 } };
  await journal.commit({ session, events: [], recordings: [told, untold] });
  expect(await of('volume')).toBe(1_744);
  // Page by page it is the same, also where more ended in one millisecond than a page has.
  await recordings.sized(new Map([['rec_untold', 701]]));
  const later = Array.from({ length: 7 }, (_, at) => `rec_page_${at}`);
  await journal.commit({ session, events: [], recordings: later.map((name) => begun(name, session)) });
  await journal.commit({
    session,
    events: [],
    recordings: later.map((recordingUuid, at) => ({
      ended: { recordingUuid, endedAt: at < 3 ? 20 : 20 + at, durationMs: 1, bytes: 1_000 },
    })),
  });
  expect(await recordings.kept('volume', 2)).toEqual(await recordings.kept('volume'));
  expect(await of('volume')).toBe(8_745);
  await recordings.removed(later, 30);
  expect(await of('volume')).toBe(1_745);
  // One under way that nobody has measured counts with its header.
  expect((await of('another')) - elsewhere).toBe(1_001);
  await recordings.sized(
    new Map([
      ['rec_told', 44],
      ['rec_untold', 800],
    ]),
  );
  expect(await of('volume')).toBe(1_844);
  await recordings.removed(['rec_told'], 12);
  expect(await of('volume')).toBe(800);
  await recordings.removed(['rec_untold'], 12);
});

test('A clock that is wrong for a while removes no recording: one that is ahead is held back, what one behind has dated is dated anew', async () => {
  const lines: string[] = [];
  const log = {
    ...silentLog,
    warn: (_: object, text: string) => void lines.push(text),
    error: (_: object, text: string) => void lines.push(text),
  };
  const DAY_MS = 24 * 3600 * 1000;
  const start = Date.parse('2027-01-01T00:00:00Z');
  const database = await openDatabase(
    { dataDir: opened.dataDir, databaseUrl: opened.url, databaseDriver: 'postgres' },
    silentLog,
  );
  try {
    /** A process that starts when the machine's clock shows `at`. */
    const mayRemove = (at: number) => timeWitness(database, new VirtualClock(at), log)();
    expect(await mayRemove(start)).toBe(true);
    expect(await mayRemove(start + 40 * DAY_MS)).toBe(false);
    expect(await mayRemove(start + 40 * DAY_MS + 60_000)).toBe(false);
    expect(lines).toEqual(Array(2).fill(expect.stringContaining('nothing is removed for a day')));
    expect(await mayRemove(start + 600_000)).toBe(true);

    // It was ahead at the start of a process that goes on, and is right by now.
    const wasAhead = Object.assign(new VirtualClock(start + 40 * DAY_MS), { wall: () => start + 600_000 });
    for (let hour = 0; hour < 30; hour += 1) {
      expect(await timeWitness(database, wasAhead, log)()).toBe(false);
      await wasAhead.advance(3_600_000);
    }
    expect(lines.at(-1)).toContain('until it is started again');

    const { journal, recordings } = opened.store;
    expect(await mayRemove(0)).toBe(true);
    expect(lines.at(-1)).toContain('the clock is behind');
    const session = sessionRow();
    await journal.commit({ session, events: [], recordings: [begun('rec_of_1970', session)] });
    const over = { ended: { recordingUuid: 'rec_of_1970', endedAt: 300_000, durationMs: 5 } };
    await journal.commit({ session, events: [], recordings: [over] });
    expect(await mayRemove(start + 1_200_000)).toBe(true);
    expect(await recordings.expired(start + 1_200_000)).toEqual([]);
    expect(await recordings.expired(start + 1_200_001)).toEqual(['rec_of_1970']);
  } finally {
    await database.close();
  }
}, 30_000);
