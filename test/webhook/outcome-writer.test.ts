/** Outcomes on their way to the database, on virtual time. */
import { expect, test } from 'bun:test';
import type { Settlement } from '../../src/database/event/outbox.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { SETTLE_BATCH_MAX_EVENTS, SETTLE_GATHER_MS, SETTLE_LAST_TRIES, SETTLE_RETRY_MS } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { OutcomeWriter } from '../../src/webhook/outcome-writer.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const outcome = (eventId: number): Settlement => ({ xid: '1', eventId, status: 'delivered', attempt: undefined });

/** A writer on a database that takes a statement (`true`), refuses it (`false`) or is away, as the test says. */
function writer() {
  const clock = new VirtualClock();
  const calls: { readonly ids: readonly number[]; readonly isAgain: boolean | undefined }[] = [];
  const state = { answer: async (): Promise<boolean> => true, written: 0, lost: 0 };
  const outcomes = new OutcomeWriter({
    outbox: {
      settle: (_holder, settlements, isAgain) => {
        calls.push({ ids: settlements.map(({ eventId }) => eventId), isAgain });
        return state.answer();
      },
    },
    ...{ holder: 'node', clock, log: silentLog },
    onWritten: () => {
      state.written += 1;
    },
    onLeaseLost: () => {
      state.lost += 1;
    },
  });
  return { outcomes, clock, calls, state };
}

const away = (): Promise<boolean> => Promise.reject(new StoreUnavailable('away'));

test('Outcomes of a moment are one statement, and none waits for longer than that', async () => {
  const { outcomes, clock, calls, state } = writer();
  outcomes.add(outcome(1));
  await clock.advance(SETTLE_GATHER_MS - 1);
  outcomes.add(outcome(2));
  expect([calls.length, outcomes.waiting]).toEqual([0, 2]);
  await clock.advance(1);
  expect(calls).toEqual([{ ids: [1, 2], isAgain: false }]);
  expect([outcomes.waiting, state.written]).toEqual([0, 1]);
  outcomes.add(outcome(3));
  await clock.advance(SETTLE_GATHER_MS);
  expect(calls[1]).toEqual({ ids: [3], isAgain: false });
});

test('More outcomes than a statement takes follow at once, in their order', async () => {
  const { outcomes, clock, calls } = writer();
  const ids = Array.from({ length: SETTLE_BATCH_MAX_EVENTS + 2 }, (_, id) => id);
  for (const id of ids) outcomes.add(outcome(id));
  await clock.advance(SETTLE_GATHER_MS);
  expect(calls.map((each) => each.ids)).toEqual([ids.slice(0, SETTLE_BATCH_MAX_EVENTS), ids.slice(SETTLE_BATCH_MAX_EVENTS)]);
});

test('A statement whose answer did not come is written again with what was added, and known as such', async () => {
  const { outcomes, clock, calls, state } = writer();
  state.answer = away;
  outcomes.add(outcome(1));
  await clock.advance(SETTLE_GATHER_MS);
  outcomes.add(outcome(2));
  await clock.advance(SETTLE_RETRY_MS - 1);
  expect(calls.length).toBe(1);
  await clock.advance(1);
  state.answer = async () => true;
  await clock.advance(SETTLE_RETRY_MS);
  outcomes.add(outcome(3));
  await clock.advance(SETTLE_GATHER_MS);
  expect(calls).toEqual([
    { ids: [1], isAgain: false },
    { ids: [1, 2], isAgain: true },
    { ids: [1, 2], isAgain: true },
    { ids: [3], isAgain: false },
  ]);
});

test('A statement whose answer did not come is known as such in each of the parts in which it is written again', async () => {
  const { outcomes, clock, calls, state } = writer();
  state.answer = away;
  for (const id of [1, 2, 3]) outcomes.add(outcome(id));
  await clock.advance(SETTLE_GATHER_MS);
  state.answer = async () => {
    if (calls.at(-1)?.ids.includes(4) === true) throw new Error('a row is damaged');
    return true;
  };
  outcomes.add(outcome(4));
  await clock.advance(SETTLE_RETRY_MS);
  expect(calls.slice(0, 6)).toEqual([
    { ids: [1, 2, 3], isAgain: false },
    { ids: [1, 2, 3, 4], isAgain: true },
    { ids: [1, 2], isAgain: true },
    { ids: [3, 4], isAgain: true },
    { ids: [3], isAgain: true },
    { ids: [4], isAgain: false },
  ]);
});

test('What follows a statement that was written again is new to the database', async () => {
  const { outcomes, clock, calls, state } = writer();
  state.answer = away;
  for (let id = 0; id <= SETTLE_BATCH_MAX_EVENTS; id++) outcomes.add(outcome(id));
  await clock.advance(SETTLE_GATHER_MS);
  state.answer = async () => true;
  await clock.advance(SETTLE_RETRY_MS);
  expect(calls.map(({ ids, isAgain }) => [ids.length, isAgain])).toEqual([
    [SETTLE_BATCH_MAX_EVENTS, false],
    [SETTLE_BATCH_MAX_EVENTS, true],
    [1, false],
  ]);
});

test('A database that stays away is asked again for as long as the relay leads', async () => {
  const { outcomes, clock, calls, state } = writer();
  state.answer = away;
  outcomes.add(outcome(1));
  await clock.advance(SETTLE_GATHER_MS + 100 * SETTLE_RETRY_MS);
  expect(calls.length).toBe(101);
  state.answer = async () => true;
  await clock.advance(SETTLE_RETRY_MS);
  expect([outcomes.waiting, state.written]).toEqual([0, 1]);
});

test('Outcomes are refused once another relay holds the lease, and nothing is written after that', async () => {
  const { outcomes, clock, calls, state } = writer();
  state.answer = async () => false;
  outcomes.add(outcome(1));
  await clock.advance(SETTLE_GATHER_MS);
  outcomes.add(outcome(2));
  await outcomes.drain();
  await clock.advance(10 * SETTLE_RETRY_MS);
  expect({ calls: calls.length, written: state.written, lost: state.lost }).toEqual({ calls: 1, written: 0, lost: 1 });
});

test('The end waits until all is written, and for a database that is away only a few tries', async () => {
  const { outcomes, clock, calls, state } = writer();
  outcomes.add(outcome(1));
  let isDrained = false;
  const drained = outcomes.drain().then(() => {
    isDrained = true;
  });
  await clock.advance(SETTLE_GATHER_MS - 1);
  expect(isDrained).toBe(false);
  await clock.advance(1);
  await drained;
  const second = writer();
  second.state.answer = away;
  second.outcomes.add(outcome(1));
  const givenUp = second.outcomes.drain();
  await second.clock.advance(SETTLE_GATHER_MS + 10 * SETTLE_RETRY_MS);
  await givenUp;
  expect([calls.length, state.written, second.calls.length, second.state.lost]).toEqual([1, 1, SETTLE_LAST_TRIES, 0]);
});

test('Statements are as large as before a while after one was refused that is taken when it comes again', async () => {
  const { outcomes, clock, calls, state } = writer();
  const all = Array.from({ length: 4 * SETTLE_BATCH_MAX_EVENTS }, (_, id) => id);
  state.answer = async () => {
    if (calls.length <= 3) throw new Error('deadlock detected');
    return true;
  };
  for (const id of all) outcomes.add(outcome(id));
  await clock.advance(SETTLE_GATHER_MS);
  const sizes = calls.map(({ ids }) => ids.length / SETTLE_BATCH_MAX_EVENTS);
  expect(sizes.slice(0, 8)).toEqual([1, 1 / 2, 1 / 4, 1 / 8, 1 / 4, 1 / 2, 1, 1]);
  expect(calls.slice(3).flatMap(({ ids }) => ids)).toEqual(all);
});

test('An outcome that the database refuses keeps no other from being written, and is tried again by itself', async () => {
  const { outcomes, clock, calls, state } = writer();
  let refused: number | undefined = 5;
  state.answer = async () => {
    if (refused !== undefined && calls.at(-1)?.ids.includes(refused)) throw new Error('a row is damaged');
    return true;
  };
  for (let id = 0; id < 8; id += 1) outcomes.add(outcome(id));
  await clock.advance(SETTLE_GATHER_MS);
  expect(outcomes.waiting).toBe(1);
  outcomes.add(outcome(8));
  await clock.advance(SETTLE_RETRY_MS);
  expect(outcomes.waiting).toBe(1);
  refused = undefined;
  await clock.advance(SETTLE_RETRY_MS);
  expect(outcomes.waiting).toBe(0);
  expect(calls.at(-1)?.ids).toEqual([5]);
  for (const id of [10, 11, 12]) outcomes.add(outcome(id));
  await clock.advance(SETTLE_GATHER_MS);
  expect(calls.at(-1)?.ids).toEqual([10, 11, 12]);
  refused = 9;
  outcomes.add(outcome(9));
  const drained = outcomes.drain();
  await clock.advance(SETTLE_GATHER_MS + SETTLE_LAST_TRIES * SETTLE_RETRY_MS);
  await drained;
  expect(outcomes.waiting).toBe(1);
});
