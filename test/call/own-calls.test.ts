/** The calls of the process before: what is taken at the start, what goes on, and when others may be looked for. */
import { expect, test } from 'bun:test';
import { Adoption } from '../../src/call/adoption.ts';
import { OwnCalls } from '../../src/call/session/handover/own-calls.ts';
import type { SessionRow } from '../../src/database/journal/journal.ts';
import { OWN_CALL_EPOCH_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import { sessionRow } from '../database/rows.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

test('All are taken at once, go on when there are sockets, and one that changed hands too often is an orphan.', async () => {
  const rows = [1, OWN_CALL_EPOCH_MAX, OWN_CALL_EPOCH_MAX + 1].map((epoch) => sessionRow({ sessionUuid: `${epoch}`, epoch }));
  const asked: unknown[] = [];
  const lost: string[] = [];
  const gone: string[] = [];
  const expected: string[] = [];
  /** What `adoption` finds that is this node's by its row: all of them, while nobody here has them. */
  const found: (readonly string[])[] = [];
  const adoption = new Adoption<SessionRow>({
    records: { adopt: async () => [], mine: async () => rows },
    ...{ clock: new VirtualClock(), log: silentLog, idOf: ({ sessionUuid }: SessionRow) => sessionUuid, takeUp: async () => {} },
  });
  const look = async () => {
    // An answer that was lost has it look for rows of its own.
    adoption.doubt();
    found.push((await adoption.take()).map(({ sessionUuid }) => sessionUuid));
  };
  const own = new OwnCalls({
    sessions: {
      adoption,
      expect: ({ sessionUuid }) => void expected.push(sessionUuid),
      orphan: ({ sessionUuid }) => void lost.push(sessionUuid),
    },
    log: silentLog,
    takeCalls: async (...which) => {
      asked.push(which);
      return rows;
    },
    trunks: async () => ['carrier'],
  });
  await own.take('before');
  await look();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const going = own.goOn({
    goOnWith: async (these) => {
      // All have their places by then.
      expect(expected).toEqual(rows.map(({ sessionUuid }) => sessionUuid));
      gone.push(...these.map(({ sessionUuid }) => sessionUuid));
      await answered;
    },
  });
  await look();
  answer();
  await going;
  await look();
  expect(asked).toEqual([['before', expect.any(Number), ['carrier']]]);
  expect([lost, gone]).toEqual([[`${OWN_CALL_EPOCH_MAX + 1}`], ['1', `${OWN_CALL_EPOCH_MAX}`]]);
  expect(found).toEqual([[], [], rows.map(({ sessionUuid }) => sessionUuid)]);
});
