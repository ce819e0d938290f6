import { describe, expect, test } from 'bun:test';
import { messageBody } from '../../src/http/route/messages.ts';
import { SMPP_RESPONSE_TIMEOUT_MS } from '../../src/limits.ts';
import type { PartOutcome } from '../../src/machine/message/gateway.ts';
import {
  claim,
  interrupted,
  type MessageState,
  outwaited,
  PUT_OFF_MAX_MS,
  QUEUED_MAX_MS,
  received,
  submitted,
  unclaimed,
} from '../../src/machine/message/message.ts';
import type { ReceiptState } from '../../src/machine/message/receipt.ts';
import fc from '../support/fast-check.ts';

const NOW = Date.parse('2026-11-20T12:00:00Z');

const queued = (parts = 1): MessageState => ({
  messageUuid: 'm',
  appUuid: 'app',
  operationUuid: 'o',
  from: '+15550001',
  to: '+15550002',
  text: 'hello',
  encoding: 'gsm7',
  segments: parts,
  status: 'queued',
  errorCode: '',
  errorMessage: '',
  createdAt: NOW,
  updatedAt: NOW,
  sentAt: undefined,
  deliveredAt: undefined,
  parts: Array.from({ length: parts }, () => ({ smscId: '', delivered: false })),
  stage: 'waiting',
  dueAt: NOW,
  attempts: 0,
  traceparent: '',
});
const receipt = (state: ReceiptState, error = '') => ({ smscId: '1', state, error, recipient: '', isMarked: true });
const accepted = (part: number) => ({ part, outcome: { outcome: 'accepted', smscId: `id${part}` } as const });
const names = (step: { events: readonly object[] }) => step.events.map((event) => ('status' in event ? event.status : undefined));
const sent = (parts = 1) =>
  submitted(
    claim(queued(parts), NOW).state,
    Array.from({ length: parts }, (_, at) => accepted(at)),
    0,
    NOW,
  ).state;

describe('a short message', () => {
  test('goes from queued over sending and sent to delivered, one event each', () => {
    const sending = claim(queued(), NOW);
    const out = submitted(sending.state, [accepted(0)], 0, NOW + 5);
    const done = received(out.state, 0, receipt('delivered'), NOW + 9);
    expect([...names(sending), ...names(out), ...names(done)]).toEqual(['sending', 'sent', 'delivered']);
    expect(done.state).toMatchObject({ status: 'delivered', sentAt: NOW + 5, deliveredAt: NOW + 9, stage: 'settled' });
  });

  test('of three parts is delivered with the last of them, and undelivered with the first that is not', () => {
    const one = received(sent(3), 0, receipt('delivered'), NOW);
    const two = received(one.state, 2, receipt('delivered'), NOW);
    expect(two.state.status).toBe('sent');
    expect(received(two.state, 1, receipt('delivered'), NOW).state.status).toBe('delivered');
    const bad = received(two.state, 1, receipt('undeliverable', '011'), NOW);
    expect(bad.state).toMatchObject({ status: 'undelivered', errorCode: 'undeliverable' });
    expect(bad.state.errorMessage).toContain('011');
  });

  test('that was throttled waits, and then only the rest is sent', () => {
    const claimed = claim(queued(2), NOW).state;
    const put = submitted(claimed, [accepted(0), { part: 1, outcome: { outcome: 'later' } }], 0, NOW);
    expect(put.events).toEqual([]);
    expect(put.state).toMatchObject({ status: 'sending', stage: 'waiting', dueAt: NOW + 1000, attempts: 1 });
    expect(put.state.parts.map((part) => part.smscId)).toEqual(['id0', '']);
    const again = claim(put.state, NOW + 1000);
    expect(again.events).toEqual([]);
    // What was put off is told again, because the database's answer was lost: it is not put off a second time.
    expect(submitted(again.state, [{ part: 1, outcome: { outcome: 'later' } }], 0, NOW + 1001).state).toBe(again.state);
    expect(submitted(again.state, [accepted(1)], 1, NOW + 1001).state.status).toBe('sent');
  });

  test('whose response was lost is failed, not sent again', () => {
    const claimed = claim(queued(), NOW).state;
    const lost = submitted(claimed, [{ part: 0, outcome: { outcome: 'unknown' } }], 0, NOW);
    expect(lost.state).toMatchObject({ status: 'failed', errorCode: 'outcome_unknown', stage: 'settled' });
    expect(interrupted(claimed, NOW).state.status).toBe('failed');
    expect(interrupted(queued(), NOW).state.status).toBe('queued');
  });

  test('that is put off waits 1, 2, 5, 10 and 30 s, and then a minute each time', () => {
    let state = queued();
    let now = NOW;
    const waits: number[] = [];
    for (let attempt = 0; attempt < 8; attempt++) {
      state = submitted(claim(state, now).state, [{ part: 0, outcome: { outcome: 'later' } }], attempt, now).state;
      waits.push(state.dueAt - now);
      now = state.dueAt;
    }
    expect(waits).toEqual([1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 60_000, 60_000]);
    expect(PUT_OFF_MAX_MS).toBe(60_000);
  });

  test('that was taken and never handed to the gateway waits as before, and tells nothing', () => {
    const claimed = claim(queued(2), NOW).state;
    const back = unclaimed(claimed, claimed.dueAt, NOW + 10);
    expect([back.events, back.state]).toEqual([[], { ...claimed, stage: 'waiting', dueAt: NOW + 10 }]);
    expect(unclaimed(sent(), sent().dueAt, NOW).state).toEqual(sent());
    expect(unclaimed(claimed, claimed.dueAt - 1, NOW).state).toBe(claimed);
  });

  test('that the gateway refuses is failed with the reason that it gave, and what came late changes nothing', () => {
    const refused = submitted(
      claim(queued(2), NOW).state,
      [accepted(0), { part: 1, outcome: { outcome: 'refused', code: 'invalid_number', message: 'no' } }],
      0,
      NOW + 3,
    );
    expect(refused.state).toMatchObject({
      status: 'failed',
      errorCode: 'invalid_number',
      errorMessage: 'no',
      stage: 'settled',
      updatedAt: NOW + 3,
    });
    expect(refused.events).toMatchObject([{ status: 'failed', error_code: 'invalid_number', error_message: 'no', segments: 2 }]);
    for (const late of [
      received(refused.state, 0, receipt('delivered'), NOW),
      claim(refused.state, NOW),
      submitted(refused.state, [accepted(1)], 0, NOW),
    ])
      expect(late).toEqual({ state: refused.state, events: [] });
  });

  test('that is delivered or not is so for good', () => {
    const delivered = received(sent(), 0, receipt('delivered'), NOW).state;
    expect(received(delivered, 0, receipt('rejected'), NOW + 1)).toEqual({ state: delivered, events: [] });
    const rejected = received(sent(), 0, receipt('rejected'), NOW).state;
    expect(rejected.errorMessage).toBe('The message was rejected by the carrier');
    expect(received(rejected, 0, receipt('delivered'), NOW + 1)).toEqual({ state: rejected, events: [] });
  });

  test('that is with the gateway is not handed over again, and not given up for its age', () => {
    const claimed = claim(queued(), NOW).state;
    for (const now of [NOW, NOW + QUEUED_MAX_MS]) expect(claim(claimed, now)).toEqual({ state: claimed, events: [] });
    expect(claim(queued(), NOW + QUEUED_MAX_MS - 1).state.status).toBe('sending');
  });

  test('that waited for a day is given up', () => {
    expect(QUEUED_MAX_MS).toBe(86_400_000);
    expect(claim(queued(), NOW + QUEUED_MAX_MS).state).toMatchObject({ status: 'failed', errorCode: 'expired' });
  });

  test('of many parts may be with the gateway for as long as their responses may take', () => {
    const { state } = claim(queued(49), NOW);
    expect(state.dueAt - NOW).toBeGreaterThan(49 * SMPP_RESPONSE_TIMEOUT_MS);
    expect(claim(queued(1), NOW).state.dueAt - NOW).toBe(300_000);
  });

  test('remembers a receipt that overtook the last response', () => {
    const put = submitted(claim(queued(2), NOW).state, [accepted(0), { part: 1, outcome: { outcome: 'later' } }], 0, NOW).state;
    const early = received(put, 0, receipt('rejected'), NOW);
    expect(early.state.status).toBe('sending');
    const out = submitted(claim(early.state, NOW + 1000).state, [accepted(1)], 1, NOW + 1000);
    expect(names(out)).toEqual(['sent', 'undelivered']);
    // What the receipt said is told with the end, not with the statuses before it.
    expect(messageBody(early.state)).toMatchObject({ status: 'sending', error_code: '', error_message: '' });
    expect(out.events).toMatchObject([
      { status: 'sent', error_code: '', error_message: '' },
      { status: 'undelivered', error_code: 'rejected', error_message: 'The message was rejected by the carrier' },
    ]);
    expect(messageBody(out.state)).toMatchObject({ status: 'undelivered', error_code: 'rejected' });
  });

  test('whose first part is delivered before the second is taken has that part sent once, and ends with the second', () => {
    const put = submitted(claim(queued(2), NOW).state, [accepted(0), { part: 1, outcome: { outcome: 'later' } }], 0, NOW).state;
    const early = received(put, 0, receipt('delivered'), NOW).state;
    expect(early.parts).toEqual([
      { smscId: 'id0', delivered: true },
      { smscId: '', delivered: false },
    ]);
    const out = submitted(claim(early, NOW + 1_000).state, [accepted(1)], 1, NOW + 1_000);
    expect([names(out), out.state.stage]).toEqual([['sent'], 'settled']);
    expect(names(received(out.state, 1, receipt('delivered'), NOW + 2_000))).toEqual(['delivered']);
  });

  test('only ever moves forward, ends once, and has no part sent twice, whatever comes in whatever order', () => {
    const rank = { queued: 0, sending: 1, sent: 2, delivered: 3, undelivered: 3, failed: 3 };
    const outcome: fc.Arbitrary<PartOutcome> = fc.oneof(
      { weight: 4, arbitrary: fc.constant<PartOutcome>({ outcome: 'accepted', smscId: 'x' }) },
      { weight: 4, arbitrary: fc.constant<PartOutcome>({ outcome: 'later' }) },
      { weight: 1, arbitrary: fc.constant<PartOutcome>({ outcome: 'unknown' }) },
      { weight: 1, arbitrary: fc.constant<PartOutcome>({ outcome: 'refused', code: 'c', message: 'm' }) },
    );
    const input = fc.oneof(
      { weight: 4, arbitrary: fc.constant(['claim'] as const) },
      { weight: 4, arbitrary: fc.tuple(fc.constant('submitted' as const), fc.array(outcome, { minLength: 3, maxLength: 3 })) },
      { weight: 1, arbitrary: fc.constantFrom(['interrupted'] as const, ['unclaimed'] as const, ['again'] as const) },
      {
        weight: 2,
        arbitrary: fc.tuple(
          fc.constant('received' as const),
          fc.nat(2),
          fc.constantFrom<ReceiptState>('delivered', 'delivered', 'delivered', 'expired', 'rejected'),
        ),
      },
    );
    const pause = fc.oneof({ weight: 20, arbitrary: fc.nat(60_000) }, { weight: 1, arbitrary: fc.nat(QUEUED_MAX_MS) });
    fc.assert(
      fc.property(fc.array(fc.tuple(input, pause), { maxLength: 40 }), (inputs) => {
        let message = queued(3);
        let now = NOW;
        const told: unknown[] = [];
        /** The parts that the carrier has, or may have. */
        const left = new Set<number>();
        /** The last submission, whose outcome may be told twice. */
        let last: Parameters<typeof submitted> | undefined;
        const take = (step: { readonly state: MessageState; readonly events: readonly object[] }) => {
          expect(rank[step.state.status]).toBeGreaterThanOrEqual(rank[message.status]);
          told.push(...names(step));
          message = step.state;
        };
        /** A gateway sends the parts in order, up to the first that is not accepted. */
        const submit = (outcomes: readonly PartOutcome[]) => {
          const parts = message.parts.flatMap(({ smscId }, part) => (smscId === '' ? [part] : []));
          const until = outcomes.slice(0, parts.length).findIndex((each) => each.outcome !== 'accepted');
          const sent = parts.slice(0, until < 0 ? parts.length : until + 1);
          for (const [at, part] of sent.entries()) {
            expect(left.has(part)).toBe(false);
            if (['accepted', 'unknown'].includes(outcomes[at]?.outcome ?? '')) left.add(part);
          }
          return sent.map((part, at) => ({ part, outcome: outcomes[at] ?? { outcome: 'unknown' as const } }));
        };
        for (const [each, ms] of inputs) {
          now += ms;
          if (each[0] === 'claim') take(claim(message, now));
          else if (each[0] === 'interrupted') take(interrupted(message, now));
          else if (each[0] === 'unclaimed') take(unclaimed(message, message.dueAt, now));
          else if (each[0] === 'received') take(received(message, each[1], receipt(each[2]), now));
          else if (each[0] === 'again' && last !== undefined) take(submitted(message, last[1], last[2], now));
          else if (each[0] === 'submitted' && message.stage === 'submitting') {
            last = [message, submit(each[1]), message.attempts, now];
            take(submitted(...last));
          }
        }
        // In the end the carrier answers: the message is settled, by its day at the latest.
        take(interrupted(message, now));
        take(outwaited(message, now + QUEUED_MAX_MS));
        expect(message.stage).toBe('settled');
        for (const part of [0, 1, 2]) take(received(message, part, receipt('delivered'), now + QUEUED_MAX_MS));
        expect(told.filter((status) => ['delivered', 'undelivered', 'failed'].includes(String(status)))).toHaveLength(1);
        expect(new Set(told).size).toBe(told.length);
      }),
      { numRuns: 500 },
    );
  });
});
