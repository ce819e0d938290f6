import { expect, test } from 'bun:test';
import { MessageDispatcher } from '../../src/call/message/message-dispatcher.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import type { MessageStore, PartFound } from '../../src/database/messages.ts';
import { mayReach } from '../../src/destinations.ts';
import { EARLY_RECEIPT_WAIT_MS, RECEIPT_LOOKUP_WAIT_MS, RECEIPT_LOOKUPS_MAX, RECEIPTS_PENDING_MAX } from '../../src/limits.ts';
import { silentLog } from '../../src/log.ts';
import type { SmsGateway, SmsListener, Submitted } from '../../src/machine/message/gateway.ts';
import type { MessageState, MessageStep } from '../../src/machine/message/message.ts';
import type { Receipt } from '../../src/machine/message/receipt.ts';
import { noIncoming } from '../support/no-incoming.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

/** How the database answers: it does, it takes a change without an answer, it is away, or the row is locked. */
type Answers = Record<'claim' | 'change', 'yes' | 'unheard' | 'away' | 'locked'>;

/** What every dispatcher here has: all may send to all, and nobody writes to them. */
const OPEN = {
  log: silentLog,
  incoming: noIncoming,
  reachOf: async () => mayReach(),
  mayCallFrom: async () => true,
};

/** A queue of one message. */
function queue(clock: VirtualClock, answers: Answers, isReady = true, submits = () => true, shared = false) {
  let row: MessageState | undefined;
  const take = (doing: 'claim' | 'change', step: (state: MessageState) => MessageStep) => {
    if (answers[doing] === 'away' || row === undefined) throw new StoreUnavailable('away');
    row = step(row).state;
    if (answers[doing] === 'unheard') throw new StoreUnavailable('no answer');
    return row;
  };
  const store: MessageStore = {
    shared,
    insert: async (message) => {
      row = message;
      return true;
    },
    claim: async (now, _limit, _after, step) => {
      const isFree = row?.stage === 'waiting' && row.dueAt <= now && answers.claim !== 'locked';
      const claimed = isFree ? take('claim', step) : undefined;
      return claimed === undefined ? [] : [claimed];
    },
    change: async (_uuid, _now, step) => take('change', step),
    held: async (until) => (row?.stage === 'submitting' && row.dueAt <= until ? [row.messageUuid] : []),
    waitingSince: async (at) => (row?.stage === 'waiting' && row.createdAt <= at ? [row.messageUuid] : []),
    nextDue: async () => (row?.stage === 'waiting' ? row.dueAt : undefined),
    get: async () => row,
    list: async () => [],
    latest: async () => [],
    findParts: async (ids) =>
      row?.parts.flatMap(({ smscId }, part) =>
        row !== undefined && ids.includes(smscId)
          ? [{ messageUuid: row.messageUuid, part, smscId, to: row.to, open: row.status !== 'delivered' }]
          : [],
      ) ?? [],
    openParts: async () => [],
  };
  const submissions: ((outcome: readonly Submitted[]) => void)[] = [];
  const held: ('started' | 'rested' | 'waits')[] = [];
  let listener: SmsListener | undefined;
  const gateway: SmsGateway = {
    partsOf: (segments) => segments,
    start: (to) => {
      listener = to;
      held.push('started');
    },
    rest: async () => void held.push('rested'),
    ready: () => isReady,
    window: 10,
    submit: () => new Promise((resolve) => submissions.push(resolve)),
    close: async () => {},
  };
  const dispatcher = new MessageDispatcher({
    store,
    gateway,
    clock,
    ...OPEN,
    submits,
    onWaiting: () => void held.push('waits'),
  });
  const receipt = (smscId: string, more: Partial<Receipt> = {}) =>
    listener?.onReceipt({ smscId, state: 'delivered', error: '', recipient: '15550100', isMarked: true, ...more });
  return { dispatcher, submissions, held, receipt, row: () => row, store };
}

const CONTEXT = { appUuid: 'app', operationUuid: 'operation', idempotencyKey: undefined, traceparent: '' };

test('A message is not submitted again while it is with the gateway, when the outcome of the attempt before is stored late', async () => {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'yes', change: 'yes' };
  const { dispatcher, submissions, row } = queue(clock, answers);
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  expect(submissions).toHaveLength(1);
  answers.change = 'unheard';
  submissions[0]?.([{ part: 0, outcome: { outcome: 'later' } }]);
  await settle();
  expect(row()).toMatchObject({ stage: 'waiting', attempts: 1 });
  answers.change = 'away';
  await clock.advance((row()?.dueAt ?? 0) - clock.now() + 100);
  dispatcher.look();
  await settle();
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
  const request = { from: '+15550001', to: '+15550100', text: 'Hello' };
  await dispatcher.send(request, CONTEXT);
  await settle();
  const rested = dispatcher.rest();
  await settle();
  expect([submissions.length, held]).toEqual([1, ['started']]);
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await rested;
  expect(row()).toMatchObject({ stage: 'settled', status: 'sent' });
  expect(held).toEqual(['started', 'rested']);
  await dispatcher.send(request, CONTEXT);
  expect(held.pop()).toBe('waits');
  dispatcher.look();
  await clock.advance(60_000);
  expect([submissions.length, row()?.stage]).toEqual([1, 'waiting']);
  await dispatcher.start();
  await settle();
  expect([submissions.length, held]).toEqual([2, ['started', 'rested', 'started']]);
  submissions[1]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'another-id' } }]);
  await dispatcher.close();
});

test('A receipt of the first part that comes while the last ones are still being submitted is not lost', async () => {
  const clock = new VirtualClock();
  const { dispatcher, submissions, receipt, row } = queue(clock, { claim: 'yes', change: 'yes' });
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'x'.repeat(400) }, CONTEXT);
  await settle();
  // The parts of a long message leave a second apart where the carrier takes one a second.
  const early = receipt('1');
  await settle();
  await clock.advance(1_000);
  await early;
  await clock.advance(1_000);
  submissions[0]?.([0, 1, 2].map((part) => ({ part, outcome: { outcome: 'accepted', smscId: String(part + 1) } })));
  await settle();
  expect(row()).toMatchObject({ status: 'sent', parts: [{ delivered: true }, { delivered: false }, { delivered: false }] });
  await receipt('2');
  await receipt('3');
  expect(row()?.status).toBe('delivered');
  await dispatcher.close();
});

test('A text that looks like a receipt counts only from the number that the message went to', async () => {
  const clock = new VirtualClock();
  const { dispatcher, submissions, receipt, row } = queue(clock, { claim: 'yes', change: 'yes' });
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: '1' } }]);
  await settle();
  const forged = receipt('1', { state: 'rejected', recipient: '15559999', isMarked: false });
  await settle();
  await clock.advance(1_000);
  await forged;
  expect(row()?.status).toBe('sent');
  await receipt('1', { isMarked: false });
  expect(row()?.status).toBe('delivered');
  await dispatcher.close();
});

test('A receipt that is marked counts by its id alone, first for a message that waits for one: ids come round again', async () => {
  const { dispatcher, receipt, store } = queue(new VirtualClock(), { claim: 'yes', change: 'yes' });
  await dispatcher.start();
  const changed: string[] = [];
  const part = (messageUuid: string, open: boolean, to = '15550100') => ({ messageUuid, part: 0, smscId: '1', to, open });
  const change: MessageStore['change'] = async (messageUuid) => {
    changed.push(messageUuid);
    return undefined;
  };
  for (const found of [
    [part('newer', false), part('waits', true)],
    [part('newer', true, '15559999'), part('waits', true)],
    [part('waits', false), part('older', false)],
    [part('waits', true, '15559999'), part('older', true, '15559999')],
  ]) {
    Object.assign(store, { findParts: async () => found, change });
    await receipt('1');
  }
  // One that names no recipient is for the newest.
  await receipt('1', { recipient: '' });
  expect(changed).toEqual(['waits', 'waits', 'waits', 'waits', 'waits']);
  await dispatcher.close();
});

test('So many receipts at most are looked up at a time; one more has to come again', async () => {
  const { dispatcher, receipt, store } = queue(new VirtualClock(), { claim: 'yes', change: 'yes' });
  await dispatcher.start();
  const { promise, resolve } = Promise.withResolvers<readonly PartFound[]>();
  Object.assign(store, { findParts: () => promise, change: async () => undefined });
  const taken = Array.from({ length: RECEIPTS_PENDING_MAX }, () => receipt('1'));
  await expect(receipt('1')).rejects.toThrow('too many receipts');
  resolve([{ messageUuid: 'one', part: 0, smscId: '1', to: '15550100', open: true }]);
  await Promise.all(taken);
  await receipt('1');
  await dispatcher.close();
});

test('A stop waits ten seconds for a database that is away to take an outcome, not for ever', async () => {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'yes', change: 'yes' };
  const { dispatcher, submissions, row } = queue(clock, answers);
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  answers.change = 'away';
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: '1' } }]);
  await clock.advance(60_000);
  let isClosed = false;
  const closed = dispatcher.close().then(() => {
    isClosed = true;
  });
  await clock.advance(9_000);
  expect([isClosed, row()?.status]).toEqual([false, 'sending']);
  await clock.advance(4_000);
  expect(isClosed).toBe(true);
  await closed;
});

test.each([
  ['the SMSC is away', false],
  ['messages are off by now', true],
])('A message that could not be submitted for a day is told as expired, also while %s', async (_, isOff) => {
  const clock = new VirtualClock();
  const { dispatcher: first, submissions, row, store } = queue(clock, { claim: 'yes', change: 'yes' }, false);
  await first.start();
  await first.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  if (isOff) await first.close();
  const off = {
    store,
    gateway: undefined,
    clock,
    ...OPEN,
  };
  const dispatcher = isOff ? new MessageDispatcher(off) : first;
  if (isOff) await dispatcher.start();
  await clock.advance(24 * 3_600_000 - 60_000);
  expect(row()).toMatchObject({ status: 'queued', stage: 'waiting' });
  await clock.advance(120_000);
  expect(row()).toMatchObject({ status: 'failed', stage: 'settled', errorCode: 'expired' });
  expect(submissions).toHaveLength(0);
  await dispatcher.close();
});

test('A message that was stored before the clock was set back by an hour is submitted at once', async () => {
  class SetClock extends VirtualClock {
    ahead = 0;
    override now(): number {
      return super.now() + this.ahead;
    }
  }
  const clock = new SetClock();
  const { dispatcher, submissions, row } = queue(clock, { claim: 'yes', change: 'yes' });
  clock.ahead = 3_600_000;
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Your code is 1234' }, CONTEXT);
  clock.ahead = 0;
  await dispatcher.start();
  await settle();
  await clock.advance(100);
  expect(submissions).toHaveLength(1);
  // One that the carrier puts off waits its second, like every other.
  submissions[0]?.([{ part: 0, outcome: { outcome: 'later' } }]);
  await settle();
  await clock.advance(900);
  expect([row()?.stage, submissions.length]).toEqual(['waiting', 1]);
  await clock.advance(200);
  expect(submissions).toHaveLength(2);
  submissions[1]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await dispatcher.close();
});

test('A message that a receipt of another part locks while it is claimed is submitted a second later', async () => {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'locked', change: 'yes' };
  const { dispatcher, submissions } = queue(clock, answers);
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  expect(submissions).toHaveLength(0);
  answers.claim = 'yes';
  await clock.advance(1_000);
  expect(submissions).toHaveLength(1);
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await dispatcher.close();
});

test('A receipt that came for no message counts for none that gets its id five minutes later: ids come round again.', async () => {
  for (const [waitedMs, status] of [
    [EARLY_RECEIPT_WAIT_MS - 60_000, 'delivered'],
    [EARLY_RECEIPT_WAIT_MS, 'sent'],
  ] as const) {
    const clock = new VirtualClock();
    const { dispatcher, submissions, receipt, row } = queue(clock, { claim: 'yes', change: 'yes' });
    await dispatcher.start();
    for (const smscId of ['other', 'stray']) {
      await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
      await settle();
      const stray = smscId === 'other' ? receipt('stray') : undefined;
      for (let lookups = 0; lookups < RECEIPT_LOOKUPS_MAX; lookups++) await clock.advance(RECEIPT_LOOKUP_WAIT_MS);
      await stray;
      submissions.shift()?.([{ part: 0, outcome: { outcome: 'accepted', smscId } }]);
      await settle();
      if (smscId === 'other') await clock.advance(waitedMs);
    }
    expect(row()?.status).toBe(status);
    await dispatcher.close();
  }
});

test('A receipt that comes to one node while another still submits the parts of its message is not lost', async () => {
  const clock = new VirtualClock();
  const { dispatcher: leaves, submissions, row, store: alone } = queue(clock, { claim: 'yes', change: 'yes' });
  await leaves.start();
  await leaves.send({ from: '+15550001', to: '+15550100', text: 'x'.repeat(200) }, CONTEXT);
  await settle();
  const store = { ...alone, shared: true };
  let listener: SmsListener | undefined;
  const gateway: SmsGateway = {
    partsOf: (segments) => segments,
    start: (to) => {
      listener = to;
    },
    ready: () => true,
    window: 10,
    submit: async () => [],
    close: async () => {},
  };
  const comes = new MessageDispatcher({
    store,
    gateway,
    clock,
    ...OPEN,
  });
  await comes.start();
  const receipt = (smscId: string) =>
    listener?.onReceipt({ smscId, state: 'delivered', error: '', recipient: '15550100', isMarked: true });
  const early = receipt('1');
  await settle();
  await clock.advance(1_000);
  await early;
  submissions[0]?.([0, 1].map((part) => ({ part, outcome: { outcome: 'accepted', smscId: String(part + 1) } })));
  await settle();
  await receipt('2');
  await clock.advance(30_000);
  expect(row()).toMatchObject({ status: 'delivered', parts: [{ delivered: true }, { delivered: true }] });
  await leaves.close();
  await comes.close();
});

test('A node that is not told yet that it lost the submitting to another takes no message', async () => {
  const clock = new VirtualClock();
  let isMine = false;
  const { dispatcher, submissions, row } = queue(clock, { claim: 'yes', change: 'yes' }, true, () => isMine);
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await clock.advance(60_000);
  expect([submissions.length, row()?.stage]).toEqual([0, 'waiting']);
  isMine = true;
  dispatcher.look();
  await settle();
  expect(submissions).toHaveLength(1);
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await dispatcher.close();
});

test.each([
  ['alone', false],
  ['in a cluster', true],
])(
  'A message that was taken from a database whose answer was lost is submitted once that answers again, %s',
  async (_, shared) => {
    // The outage may end at any moment of what is asked meanwhile.
    for (let outageMs = 500; outageMs < 40_000; outageMs += 500) {
      const clock = new VirtualClock();
      const answers: Answers = { claim: 'unheard', change: 'away' };
      const { dispatcher, submissions, row } = queue(clock, answers, true, () => true, shared);
      await dispatcher.start();
      await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Your code is 1234' }, CONTEXT);
      await settle();
      expect([row()?.stage, submissions.length]).toEqual(['submitting', 0]);
      await clock.advance(outageMs);
      answers.claim = 'yes';
      answers.change = 'yes';
      await clock.advance(3_000);
      expect([outageMs, submissions.length]).toEqual([outageMs, 1]);
      submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
      await settle();
      await clock.advance(60_000);
      expect([submissions.length, row()?.status]).toEqual([1, 'sent']);
      await dispatcher.close();
    }
  },
);

/** The SMSC accepts the message, and the database refuses the row of that, as one that it does not know. */
async function acceptedInVain({ store, submissions }: Pick<ReturnType<typeof queue>, 'store' | 'submissions'>): Promise<void> {
  const { change } = store;
  Object.assign(store, { change: () => Promise.reject(new Error('a row of a later version')) });
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await settle();
  Object.assign(store, { change });
}

test('A message whose outcome could not be stored for a fault of ours is not submitted again', async () => {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'yes', change: 'yes' };
  const { dispatcher, submissions, row, store } = queue(clock, answers);
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  await acceptedInVain({ store, submissions });
  // Another claim without an answer, whatever it was for.
  Object.assign(store, { claim: () => Promise.reject(new StoreUnavailable('away')) });
  dispatcher.look();
  await clock.advance(20_000);
  expect([submissions.length, row()?.stage]).toEqual([1, 'submitting']);
  await dispatcher.close();
});

test('A node that loses the submitting while it does not know what it has taken gives that back for the next', async () => {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'unheard', change: 'away' };
  const { dispatcher, submissions, held, row } = queue(clock, answers, true, () => true, true);
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Your code is 1234' }, CONTEXT);
  await settle();
  await dispatcher.rest();
  await clock.advance(30_000);
  expect([row()?.stage, held]).toEqual(['submitting', ['started', 'rested']]);
  answers.change = 'yes';
  await clock.advance(10_000);
  expect([row()?.stage, submissions.length]).toEqual(['waiting', 0]);
  expect(held).toEqual(['started', 'rested', 'waits']);
  await dispatcher.close();
});

test('A node that leaves the submitting while it claims a message submits that before it lets go of the carrier', async () => {
  const clock = new VirtualClock();
  const { dispatcher, submissions, held, row, store } = queue(clock, { claim: 'yes', change: 'yes' });
  const { claim } = store;
  const { promise: locked, resolve: unlock } = Promise.withResolvers<void>();
  Object.assign(store, { claim: (...claimed: Parameters<typeof claim>) => locked.then(() => claim(...claimed)) });
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  const rested = dispatcher.rest();
  unlock();
  await settle();
  expect([submissions.length, held]).toEqual([1, ['started']]);
  submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: 'an-id' } }]);
  await rested;
  expect([row()?.status, held]).toEqual(['sent', ['started', 'rested']]);
  await dispatcher.close();
});

test('A stop that comes while the start asks the database takes no carrier', async () => {
  const { dispatcher, held, store } = queue(new VirtualClock(), { claim: 'yes', change: 'yes' });
  const { promise: asked, resolve: answer } = Promise.withResolvers<readonly string[]>();
  Object.assign(store, { held: () => asked });
  const started = dispatcher.start();
  await dispatcher.close();
  answer([]);
  await started;
  expect(held).toEqual([]);
});

/** A message that the SMSC has accepted while the database was away. */
async function acceptedWhileAway() {
  const clock = new VirtualClock();
  const answers: Answers = { claim: 'yes', change: 'yes' };
  const parts = queue(clock, answers);
  await parts.dispatcher.start();
  await parts.dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  answers.change = 'away';
  parts.submissions[0]?.([{ part: 0, outcome: { outcome: 'accepted', smscId: '1' } }]);
  return { ...parts, clock, answers };
}

test('A receipt that comes while the database is away for the id of its message counts, brought again or not', async () => {
  const { clock, answers, dispatcher, receipt, row } = await acceptedWhileAway();
  await settle();
  const early = receipt('1')?.then(
    () => 'taken',
    () => 'to come again',
  );
  await clock.advance(10_000);
  expect(await early).toBe('to come again');
  answers.change = 'yes';
  await clock.advance(60_000);
  expect(row()?.status).toBe('delivered');
  await dispatcher.close();
});

test('The outcome of a message counts, however long the database was away for it, and is not told as unknown meanwhile', async () => {
  const { clock, answers, dispatcher, row, store } = await acceptedWhileAway();
  const { held } = store;
  // It is back when it is asked what is with the gateway for too long, and before the outcome is tried again.
  const heldAtLast = async (until: number) => {
    const found = await held(until);
    if (found.length > 0) answers.change = 'yes';
    return found;
  };
  Object.assign(store, { held: heldAtLast });
  await clock.advance(400_000);
  expect<Answers['change']>(answers.change).toBe('yes');
  expect(row()).toMatchObject({ status: 'sent', errorCode: '' });
  await dispatcher.close();
});

test('A receipt for a message whose outcome could not be stored for a fault of ours is not brought again for ever', async () => {
  const clock = new VirtualClock();
  const { dispatcher, submissions, receipt, store } = queue(clock, { claim: 'yes', change: 'yes' });
  await dispatcher.start();
  await dispatcher.send({ from: '+15550001', to: '+15550100', text: 'Hello' }, CONTEXT);
  await settle();
  await acceptedInVain({ store, submissions });
  const brought = receipt('an-id')?.then(
    () => 'taken',
    () => 'to come again',
  );
  await settle();
  await clock.advance(10_000);
  expect(await brought).toBe('taken');
  await dispatcher.close();
});

test('The receipts that a process before this one owed are made after the start, and those of another node each half minute', async () => {
  const clock = new VirtualClock();
  const { store } = queue(clock, { claim: 'yes', change: 'yes' });
  const openParts: MessageStore['openParts'] = async (prefix) => [
    { messageUuid: 'one', part: 0, smscId: `${prefix}1`, to: '+15550100', open: true },
  ];
  const resumed: string[][] = [];
  const gateway: SmsGateway = {
    ownReceipts: { idPrefix: 'ours-', resume: (parts) => void resumed.push(parts.map(({ smscId }) => smscId)) },
    partsOf: (segments) => segments,
    start() {},
    ready: () => true,
    window: 10,
    submit: async () => [],
    close: async () => {},
  };
  const dispatcher = new MessageDispatcher({ store: Object.assign(store, { openParts }), gateway, clock, ...OPEN });
  await dispatcher.start();
  await settle();
  const first = resumed.length;
  expect(resumed[0]).toEqual(['ours-1']);
  await clock.advance(61_000);
  expect(resumed.length).toBeGreaterThan(first);
  await dispatcher.close();
});

/** A queue of many messages, and the gateway that they wait for, which takes two at a time. */
function manyQueued(clock: VirtualClock) {
  const rows = new Map<string, MessageState>();
  const claims: { readonly limit: number; readonly after: string }[] = [];
  const waiting = (now: number) => [...rows.values()].filter(({ stage, dueAt }) => stage === 'waiting' && dueAt <= now);
  const { store: one } = queue(clock, { claim: 'yes', change: 'yes' });
  const store: MessageStore = {
    ...one,
    insert: async (message) => rows.set(message.messageUuid, message).size > 0,
    claim: async (now, limit, after, step) => {
      claims.push({ limit, after });
      return waiting(now)
        .slice(0, limit)
        .map((row) => {
          const { state } = step(row);
          rows.set(row.messageUuid, state);
          return state;
        });
    },
    change: async (messageUuid, _now, step) => {
      const row = rows.get(messageUuid);
      if (row !== undefined) rows.set(messageUuid, step(row).state);
      return rows.get(messageUuid);
    },
    held: async () => [],
    waitingSince: async () => [],
    nextDue: async () => [...rows.values()].find(({ stage }) => stage === 'waiting')?.dueAt,
  };
  const submitted: { readonly parts: readonly number[]; readonly answer: (outcomes: readonly Submitted[]) => void }[] = [];
  const gateway: SmsGateway = {
    partsOf: (segments) => segments,
    start() {},
    ready: () => true,
    window: 2,
    submit: ({ parts }) => new Promise((answer) => submitted.push({ parts, answer })),
    close: async () => {},
  };
  const dispatcher = new MessageDispatcher({ store, gateway, clock, ...OPEN });
  const send = (appUuid: string, text = 'Hello') =>
    dispatcher.send({ from: '+15550001', to: '+15550100', text }, { ...CONTEXT, appUuid });
  return { dispatcher, claims, submitted, send, rows };
}

test('No more messages are with the gateway than it takes at a time, and the application after the last one has its turn.', async () => {
  const clock = new VirtualClock();
  const { dispatcher, claims, submitted, send } = manyQueued(clock);
  for (const appUuid of ['a', 'a', 'b', 'a', 'c']) await send(appUuid);
  await dispatcher.start();
  await clock.advance(100);
  expect([submitted.length, claims]).toEqual([2, [{ limit: 2, after: '' }]]);
  const accepted = (smscId: string): readonly Submitted[] => [{ part: 0, outcome: { outcome: 'accepted', smscId } }];
  submitted[0]?.answer(accepted('1'));
  await settle();
  expect([submitted.length, claims.slice(1)]).toEqual([3, [{ limit: 1, after: 'a' }]]);
  for (const at of [1, 2]) submitted[at]?.answer(accepted(String(at)));
  await settle();
  expect(submitted.length).toBe(5);
  expect(claims.slice(2).map(({ after }) => after)).toEqual(expect.arrayContaining(['b']));
  for (const at of [3, 4]) submitted[at]?.answer(accepted(String(at)));
  await dispatcher.close();
});

test('The parts of a message that the gateway has accepted are not submitted again with the others.', async () => {
  const clock = new VirtualClock();
  const { dispatcher, submitted, send, rows } = manyQueued(clock);
  await dispatcher.start();
  await send('a', 'x'.repeat(400));
  await settle();
  expect(submitted[0]?.parts).toEqual([0, 1, 2]);
  submitted[0]?.answer([
    { part: 0, outcome: { outcome: 'accepted', smscId: '1' } },
    { part: 1, outcome: { outcome: 'later' } },
  ]);
  await settle();
  await clock.advance(60_000);
  expect(submitted.map(({ parts }) => parts)).toEqual([
    [0, 1, 2],
    [1, 2],
  ]);
  submitted[1]?.answer([1, 2].map((part) => ({ part, outcome: { outcome: 'accepted', smscId: String(part + 1) } })));
  await settle();
  expect([...rows.values()]).toMatchObject([{ status: 'sent', parts: [{ smscId: '1' }, { smscId: '2' }, { smscId: '3' }] }]);
  await dispatcher.close();
});
