/** The timelines of calls are collected in memory and stored in batches. */
import { expect, test } from 'bun:test';
import { CallHistory, type TimelinePart } from '../../src/history/call-history.ts';
import { HISTORY_CALL_MAX_ENTRIES, HISTORY_PART_MAX_ENTRIES } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

function world() {
  const clock = new VirtualClock();
  const written: TimelinePart[] = [];
  const closed: string[] = [];
  const database = { away: false, answers: Promise.resolve() };
  const history = new CallHistory({
    clock,
    log: silentLog,
    write: async (parts) => {
      if (database.away) throw new Error('away');
      const given = [...parts];
      await database.answers;
      written.push(...given);
    },
    onClosed: (sessionUuid) => closed.push(sessionUuid),
  });
  const whats = () => written.flatMap(({ entries }) => entries).map((entry) => ('what' in entry ? entry.what : entry.kind));
  return { clock, written, closed, database, history, whats };
}

const media = (what: string) => ({ kind: 'media', what }) as const;

test('a short call is stored once, a second after its end, with what came in that second', async () => {
  const { clock, history, written, closed } = world();
  history.begin('one', 'app');
  history.add('one', media('started'));
  await clock.advance(2_500);
  history.ended('one');
  await clock.advance(500);
  history.add('one', media('late'));
  expect(history.unsaved('one')).toHaveLength(2);
  expect(written).toEqual([]);
  await clock.advance(2_000);
  expect(written).toHaveLength(1);
  expect(written[0]?.entries.map((entry) => entry.at - (written[0]?.since ?? 0))).toEqual([0, 3_000]);
  expect(closed).toEqual(['one']);
  expect(history.unsaved('one')).toEqual([]);
  expect(clock.armed).toBe(0);
});

test('a command stands where it came, before what it caused', async () => {
  const { clock, history, written } = world();
  history.begin('one', 'app');
  history.add('one', media('started'));
  await clock.advance(2_000);
  history.add('one', media('recording_started'));
  const command = { kind: 'command', method: 'POST', path: '/', status: 202, operation_uuid: '', took_ms: 12.4 } as const;
  history.add('one', command, 'app');
  history.ended('one');
  await clock.advance(2_000);
  expect(written[0]?.entries.map((entry) => entry.at - (written[0]?.since ?? 0))).toEqual([0, 2_000, 1_987]);
});

test('a long call is stored every ten seconds, and as soon as a part is full', async () => {
  const { clock, history, written } = world();
  history.begin('one', 'app');
  history.add('one', media('started'));
  await clock.advance(11_000);
  expect(written).toHaveLength(1);
  for (let n = 0; n < HISTORY_PART_MAX_ENTRIES; n++) history.add('one', media('digit'));
  await clock.advance(1_000);
  expect(written.map(({ entries }) => entries.length)).toEqual([1, HISTORY_PART_MAX_ENTRIES]);
});

test('what a call left that comes back from another node at once is stored with what follows', async () => {
  const { clock, history, written, whats } = world();
  history.begin('one', 'app');
  history.add('one', media('before'));
  history.ended('one');
  history.begin('one', 'app');
  history.add('one', media('after'));
  expect(history.unsaved('one')).toHaveLength(2);
  await history.close();
  expect(whats()).toEqual(['before', 'after']);
  // Parts of one call are told apart by their times.
  expect(written.map(({ since }) => since - clock.now())).toEqual([0, 1]);
});

test('what another application says of a Session is not kept', async () => {
  const { history } = world();
  history.begin('one', 'app');
  history.add('one', media('by nobody in particular'));
  history.add('one', media('by its own'), 'app');
  history.add('one', media('by another'), 'another');
  expect(history.unsaved('one').map((entry) => 'what' in entry && entry.what)).toEqual(['by nobody in particular', 'by its own']);
});

test('nothing is kept of a Session that has not begun, or is over', async () => {
  const { clock, history, written } = world();
  history.add('none', media('started'));
  history.begin('one', 'app');
  history.ended('one');
  await clock.advance(3_000);
  history.add('one', media('late'));
  await clock.advance(20_000);
  expect(written).toEqual([]);
  expect(history.load()).toEqual({ calls: 0, waiting: 0, dropped: 0 });
});

test('a call has at most so many entries, and the last one says that there were more', async () => {
  const { clock, history, whats } = world();
  history.begin('one', 'app');
  for (let n = 0; n < HISTORY_CALL_MAX_ENTRIES + 10; n++) history.add('one', media('digit'));
  history.ended('one');
  await clock.advance(3_000);
  expect(whats()).toHaveLength(HISTORY_CALL_MAX_ENTRIES + 1);
  expect(whats().at(-1)).toBe('timeline_full');
});

test('what the database could not take is stored when it is back, in order', async () => {
  const { clock, history, whats, database } = world();
  database.away = true;
  history.begin('one', 'app');
  history.add('one', media('first'));
  await clock.advance(11_000);
  history.add('one', media('second'));
  await clock.advance(11_000);
  expect(whats()).toEqual([]);
  expect(history.unsaved('one')).toHaveLength(2);
  database.away = false;
  await clock.advance(2_000);
  expect(whats()).toEqual(['first', 'second']);
});

test('what comes to its end while the database is slow is stored too', async () => {
  const { clock, history, whats, database } = world();
  const { promise, resolve } = Promise.withResolvers<void>();
  database.answers = promise;
  history.begin('one', 'app');
  history.add('one', media('first'));
  await clock.advance(11_000);
  history.add('one', media('second'));
  const closed = history.close();
  resolve();
  await closed;
  expect(whats()).toEqual(['first', 'second']);
});

test('closing stores what is left', async () => {
  const { history, whats } = world();
  history.begin('one', 'app');
  history.add('one', media('started'));
  await history.close();
  expect(whats()).toEqual(['started']);
});
