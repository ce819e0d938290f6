/** What a mailbox takes, and what it does not take any more. */
import { expect, test } from 'bun:test';
import { Mailbox } from '../../src/call/mailbox.ts';
import { silentLog } from '../../src/log.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

test('An actor that has closed its mailbox takes nothing that comes after that: no bug in what it did last, no next fact', async () => {
  const taken: string[] = [];
  const dropped: string[] = [];
  const mailbox = new Mailbox<{ readonly type: string }>({
    journal: { commit: async () => true, wasStored: async () => false },
    ...{ clock: new VirtualClock(), log: silentLog, owner: 'Session', logged: {} },
    take: async ({ input }) => {
      taken.push(input.type);
      mailbox.close();
      mailbox.signalNext({ type: 'next' });
      throw new Error('a bug in what follows the end');
    },
    dropped: ({ type }) => dropped.push(type),
    nextDeadline: () => undefined,
    deadline: { type: 'deadline' },
    broken: { type: 'broken' },
    brokenAgain() {},
  });
  mailbox.signal({ type: 'ended' });
  await settle();
  expect([taken, dropped, mailbox.isIdle]).toEqual([['ended'], ['next'], true]);
});
