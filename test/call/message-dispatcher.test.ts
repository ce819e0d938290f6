import { expect, test } from 'bun:test';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { MessageStore } from '../../src/database/messages.ts';
import { silentLog } from '../../src/log.ts';
import type { SmsGateway, Submitted } from '../../src/machine/message/gateway.ts';
import type { MessageState, MessageStep } from '../../src/machine/message/message.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

/** How the database answers: it does, it takes a change without an answer, or it is away. */
type Answers = Record<'claim' | 'change', 'yes' | 'unheard' | 'away'>;

/** A queue of one message. */
function queue(clock: VirtualClock, answers: Answers) {
  let row: MessageState | undefined;
  const take = (doing: 'claim' | 'change', step: (state: MessageState) => MessageStep) => {
    if (answers[doing] === 'away' || row === undefined) throw new StoreUnavailable('away');
    row = step(row).state;
    if (answers[doing] === 'unheard') throw new StoreUnavailable('no answer');
    return row;
  };
  const store: MessageStore = {
    shared: false,
    insert: async (message) => {
      row = message;
      return true;
    },
    claim: async (now, _limit, _after, step) => {
      const claimed = row?.stage === 'waiting' && row.dueAt <= now ? take('claim', step) : undefined;
      return claimed === undefined ? [] : [claimed];
    },
    change: async (_uuid, _now, step) => take('change', step),
    held: async (until) => (row?.stage === 'submitting' && row.dueAt <= until ? [row.messageUuid] : []),
    nextDue: async () => (row?.stage === 'waiting' ? row.dueAt : undefined),
    get: async () => row,
    list: async () => [],
    latest: async () => [],
    findParts: async () => [],
    openParts: async () => [],
  };
  const submissions: ((outcome: readonly Submitted[]) => void)[] = [];
  const held: ('started' | 'rested')[] = [];
  const gateway: SmsGateway = {
    partsOf: (segments) => segments,
    start: () => void held.push('started'),
    rest: async () => void held.push('rested'),
    ready: () => true,
    window: 10,
    submit: () => new Promise((resolve) => submissions.push(resolve)),
    close: async () => {},
  };
  const dispatcher = new MessageDispatcher({ store, gateway, clock, log: silentLog, mayCallFrom: async () => true });
  return { dispatcher, submissions, held, row: () => row };
}

test('A message is not submitted again while it is with the gateway, when the outcome of the attempt before is stored late', async () => {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'away', change: 'yes' };
  const { dispatcher, submissions, row } = queue(clock, answers);
  await dispatcher.start();
  const context = { appUuid: 'app', operationUuid: 'operation', idempotencyKey: undefined, traceparent: '' };
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, context);
  await settle();
  // For a while after that claim, what is taken without a process that knows of it is given back.
  answers.claim = 'yes';
  await clock.advance(1_100);
  expect(submissions).toHaveLength(1);
  answers.change = 'unheard';
  submissions[0]?.([{ part: 0, outcome: { outcome: 'later' } }]);
  await settle();
  expect(row()).toMatchObject({ stage: 'waiting', attempts: 1 });
  answers.change = 'away';
  await clock.advance((row()?.dueAt ?? 0) - clock.now() + 100);
  expect(submissions).toHaveLength(2);
  answers.change = 'yes';
  await clock.advance(60_000);
  expect(submissions).toHaveLength(2);
  submissions[1]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await settle();
  expect(row()).toMatchObject({ stage: 'settled', status: 'sent' });
  await dispatcher.close();
});

test('A node that leaves the submitting to another waits for what is with the gateway, lets go of it, and begins again', async () => {
  const clock = new VirtualClock();
  const { dispatcher, submissions, held, row } = queue(clock, { claim: 'yes', change: 'yes' });
  await dispatcher.start();
  const context = { appUuid: 'app', operationUuid: 'operation', idempotencyKey: undefined, traceparent: '' };
  const request = { from: '+15550001', to: '+15550100', text: 'Hello' };
  await dispatcher.send(request, context);
  await settle();
  const rested = dispatcher.rest();
  await settle();
  expect([submissions.length, held]).toEqual([1, ['started']]);
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await rested;
  expect(row()).toMatchObject({ stage: 'settled', status: 'sent' });
  expect(held).toEqual(['started', 'rested']);
  await dispatcher.send(request, context);
  dispatcher.look();
  await clock.advance(60_000);
  expect([submissions.length, row()?.stage]).toEqual([1, 'waiting']);
  await dispatcher.start();
  await settle();
  expect([submissions.length, held]).toEqual([2, ['started', 'rested', 'started']]);
  submissions[1]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'another-id' } }]);
  await dispatcher.close();
});
