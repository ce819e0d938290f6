import { describe, expect, test } from 'bun:test';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import type { CollectionTerms } from '../../src/machine/payment/collection.ts';
import type { Command, SessionInput, Step } from '../../src/machine/session/input.ts';
import { inbound, isCollectingSecurely, nextDeadline, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';

const NOW = 1_000_000;
const GOOD = '4111111111111111';
const answered: SessionState = {
  ...inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1000 }, NOW),
  phase: 'answered',
  answeredAt: NOW,
  deadlines: {},
};
const terms = (more: Partial<CollectionTerms> = {}): CollectionTerms => ({
  kind: 'card',
  reference: 'card_r',
  maxAttempts: 2,
  firstDigitTimeoutMs: 10_000,
  interDigitTimeoutMs: 5_000,
  terminators: ['#'],
  acceptedBrands: CARD_BRANDS,
  cardBrand: undefined,
  hasPrompt: false,
  retryUrls: [],
  ...more,
});
const collect = (more: Partial<CollectionTerms> = {}): Command => ({
  type: 'collect_payment',
  terms: terms(more),
  promptUrls: [],
  cardUuid: undefined,
});
const transfer: Command = { type: 'transfer', target: { number: '+15550111' }, timeoutMs: 30_000 };
const order = (state: SessionState, command: Command, now = NOW) =>
  step(state, { type: 'command', command, operationUuid: 'op' }, now);
const begun = (more: Partial<CollectionTerms> = {}) => order(answered, collect(more)).state;
const digit = (key: string, method: 'rfc4733' | 'inband'): SessionInput => ({
  type: 'leg.media',
  notice: { type: 'digit', digit: key, durationMs: 100, method },
});

/** Every step of pressing those keys. */
function press(state: SessionState, keys: string, now = NOW, method: 'rfc4733' | 'inband' | 'sip_info' = 'rfc4733'): Step[] {
  const steps: Step[] = [];
  for (const key of keys) {
    const input: SessionInput = method === 'sip_info' ? { type: 'leg.digit', digit: key, durationMs: 100 } : digit(key, method);
    steps.push(step(steps.at(-1)?.state ?? state, input, now));
  }
  return steps;
}
const names = (steps: readonly Step[]) => steps.flatMap(({ events }) => events.map(({ event }) => event));

describe('a Session that collects securely', () => {
  test.each(['rfc4733', 'inband', 'sip_info'] as const)('tells nobody of keys by %s, and of the result once', (method) => {
    const steps = press(begun(), `${GOOD}#`, NOW, method);
    expect(names(steps)).toEqual(['payment.card.collected']);
    expect(JSON.stringify(steps.flatMap(({ events }) => events))).not.toContain(GOOD.slice(0, 6));
    expect(steps.at(-1)?.payments).toMatchObject([{ record: 'ended', operationUuid: 'op', staged: { reference: 'card_r' } }]);
    expect(steps.at(-1)?.effects).toContainEqual({ do: 'secure', on: false });
  });

  test('tells brand and last four of a card, and of a CVV nothing but its reference', () => {
    expect(press(begun(), `${GOOD}#`).at(-1)?.events).toMatchObject([
      {
        ...{ event: 'payment.card.collected', status: 'collected', card_uuid: 'card_r', operation_uuid: 'op' },
        payment_method_details: { card: { brand: 'visa', last4: '1111' } },
      },
    ]);
    const cvv = { kind: 'cvv', reference: 'cvv_r', maxAttempts: 1 } as const;
    expect(press(begun(cvv), '123#').at(-1)?.events).toEqual([
      { event: 'payment.cvv.collected', session_uuid: 's', operation_uuid: 'op', status: 'collected', cvv_uuid: 'cvv_r' },
    ]);
    expect(press(begun(cvv), '#').at(-1)?.events).toEqual([
      { event: 'payment.cvv.collected', session_uuid: 's', operation_uuid: 'op', status: 'failed', reason: 'no_input' },
    ]);
  });

  test('ends what was playing: by its prompt, or by silence where there is none', () => {
    const playback = { operationUuid: 'music', kind: 'files', urls: ['http://x/a.wav'], phase: 'playing' } as const;
    const stopped = { event: 'playback.ended', operation_uuid: 'music', reason: 'stopped' } as const;
    const silent = order({ ...answered, playback }, collect());
    expect(silent.events).toMatchObject([stopped]);
    expect(silent.effects).toEqual([
      { do: 'secure', on: true },
      { do: 'stop_playback', operationUuid: 'music' },
    ]);
    const prompted = order({ ...answered, playback }, collect({ hasPrompt: true }));
    expect(prompted.events).toMatchObject([stopped]);
    expect(prompted.effects).toEqual([
      { do: 'secure', on: true },
      { do: 'play', operationUuid: 'op/1', loop: 1, volume: 100 },
    ]);
    // The end of what was playing comes late, and is not that of the prompt.
    const late: SessionInput = { type: 'leg.media', notice: { type: 'playback.stopped', operationUuid: 'music' } };
    const { state, events } = step(prompted.state, late, NOW);
    expect([state.collection?.phase, events]).toEqual(['prompting', []]);
  });

  test('silences its prompt at the first key, and at a DELETE, once', () => {
    const prompting = begun({ hasPrompt: true });
    const stop = { do: 'stop_playback', operationUuid: 'op/1' } as const;
    const [first, second] = press(prompting, '41');
    expect([first?.effects, second?.effects]).toEqual([[stop], []]);
    const cancelled = (state: SessionState) => order(state, { type: 'cancel_payment', kind: 'card' }).effects;
    expect(cancelled(prompting)).toEqual([stop, { do: 'secure', on: false }]);
    expect(cancelled(first?.state ?? answered)).toEqual([{ do: 'secure', on: false }]);
  });

  test('does not count the time until its prompt is over, and goes on to hear the leg', () => {
    const prompting = begun({ hasPrompt: true });
    const heard = (notice: Extract<SessionInput, { type: 'leg.media' }>['notice']) =>
      step(prompting, { type: 'leg.media', notice }, NOW + 100).state.collection;
    expect(heard({ type: 'playback.started', operationUuid: 'op/1' })).toMatchObject({ phase: 'prompting', digitDue: undefined });
    expect(heard({ type: 'media.started' })).toMatchObject({ phase: 'prompting', digitDue: undefined });
    expect(heard({ type: 'playback.completed', operationUuid: 'op/1' })).toMatchObject({ digitDue: NOW + 10_100 });
  });

  test('can be hung up', () => {
    expect(order(begun(), { type: 'hangup' })).toMatchObject({ effects: [{ do: 'hangup' }] });
    expect(order(begun(), { type: 'hangup' }).refused).toBeUndefined();
  });

  test('closes what taps the leg before anything is played, and keeps that it has begun', () => {
    const first = order(answered, collect({ hasPrompt: true }));
    expect(first.effects).toEqual([
      { do: 'secure', on: true },
      { do: 'play', operationUuid: 'op/1', loop: 1, volume: 100 },
    ]);
    expect(first.payments).toEqual([{ record: 'begun', operationUuid: 'op', kind: 'card' }]);
  });

  test('refuses play, collect, a second collection and a Room; a member of a Room and an unanswered call cannot begin one', () => {
    const state = begun();
    expect(isCollectingSecurely(state)).toBe(true);
    const refused: Command[] = [
      { type: 'collect', terms: { ...collectTerms }, promptUrls: [] },
      collect(),
      { type: 'member_join', roomId: 'r', room: 1, muted: false, voiceActivityEvents: false },
      { type: 'play', urls: ['http://x/a.wav'], loop: 1, volume: 100 },
      { type: 'play_silence' },
      { type: 'send_digits', digits: '1', durationMs: 100, gapMs: 100 },
      transfer,
    ];
    for (const command of refused) expect([command.type, order(state, command).refused?.status]).toEqual([command.type, 409]);
    const membership = {
      roomId: 'r',
      room: 1,
      phase: 'joining',
      muted: false,
      voiceActivityEvents: false,
      talking: false,
    } as const;
    expect(order({ ...answered, membership }, collect()).refused?.status).toBe(409);
    expect(order({ ...answered, phase: 'ringing' }, collect()).refused?.status).toBe(409);
    expect(order({ ...answered, hasLeg: false }, collect()).refused?.status).toBe(409);
    expect(order({ ...answered, type: 'websocket' }, collect()).refused?.status).toBe(409);
    const collectsDigits = order(answered, { type: 'collect', terms: { ...collectTerms }, promptUrls: [] }).state;
    expect(order(collectsDigits, collect()).refused?.status).toBe(409);
  });

  test('and a transfer are not under way together, whichever is asked for first', () => {
    const transferred = order(answered, transfer).state;
    const refer = (phase: 'accepted' | 'completed'): SessionInput => ({ type: 'leg.transfer', phase });
    const accepted = step(transferred, refer('accepted'), NOW).state;
    const completed = step(accepted, refer('completed'), NOW).state;
    for (const state of [transferred, accepted, completed]) expect(order(state, collect()).refused?.status).toBe(409);
    const failed = step(transferred, { type: 'leg.transfer', phase: 'refused', status: 603 }, NOW).state;
    expect(order(failed, collect()).refused).toBeUndefined();
  });

  test('is not told of a key that ends just after; later ones are ordinary again', () => {
    const done = press(begun(), `${GOOD}#`).at(-1)?.state ?? answered;
    expect(names(press(done, '5', NOW + 100))).toEqual([]);
    expect(names(press(done, '5', NOW + 1_000))).toEqual(['dtmf.received']);
  });

  test('is not told of a key that was held since before its end, however long that is', () => {
    const typed = press(begun({ maxAttempts: 1 }), GOOD.slice(0, -1)).at(-1)?.state ?? answered;
    const due = NOW + 5_000;
    const late = step(typed, { type: 'deadline' }, due);
    expect(names([late])).toEqual(['payment.card.collected']);
    const held = (durationMs: number): SessionInput => ({
      type: 'leg.media',
      notice: { type: 'digit', digit: '1', durationMs, method: 'rfc4733' },
    });
    expect(names([step(late.state, held(4_000), due + 3_500)])).toEqual([]);
    expect(names([step(late.state, held(100), due + 3_500)])).toEqual(['dtmf.received']);
  });

  const after = (state: SessionState, ...times: number[]) => {
    let last = state;
    return times.map((at) => {
      const next = step(last, digit('7', 'rfc4733'), NOW + at);
      last = next.state;
      return names([next]).length;
    });
  };

  test('keeps keys quiet for as long as they go on, and longer where it was cancelled', () => {
    const collected = press(begun(), `${GOOD}#`).at(-1)?.state ?? answered;
    expect(after(collected, 400, 800, 1_200, 1_850)).toEqual([0, 0, 0, 1]);
    const cancelled = order(begun(), { type: 'cancel_payment', kind: 'card' }).state;
    expect(after(cancelled, 2_500, 5_400, 8_500)).toEqual([0, 0, 1]);
  });

  test('tells nobody of the rest of a number that was not keyed in whole when its time was over, or that is too long', () => {
    const timedOut = (keys: string, ms: number) =>
      step(press(begun({ maxAttempts: 1 }), keys, NOW - ms).at(-1)?.state ?? answered, { type: 'deadline' }, NOW);
    const unfinished = [timedOut('4111', 5_000), timedOut(GOOD.slice(0, -1), 5_000)];
    const tooLong = press(begun({ maxAttempts: 1 }), '4'.repeat(19));
    const reasons = [...unfinished, ...tooLong].flatMap(({ events }) => events);
    expect(reasons).toMatchObject(['incomplete_input', 'invalid_length', 'luhn_check_failed'].map((reason) => ({ reason })));
    for (const { state } of [...unfinished, ...tooLong.slice(-1)])
      expect(after(state, 1_500, 3_000, 5_500, 8_700)).toEqual([0, 0, 0, 1]);
    const wrong = press(begun({ maxAttempts: 1 }), '4111#').at(-1)?.state ?? answered;
    expect(after(wrong, 400, 1_200)).toEqual([0, 1]);
    const silent = step(begun({ maxAttempts: 1 }), { type: 'deadline' }, NOW + 60_000);
    expect(silent.events).toMatchObject([{ reason: 'no_input' }]);
    expect(after(silent.state, 60_400, 61_200)).toEqual([0, 1]);
  });

  test('ends it before itself, as failed, with what it held', () => {
    const [ended] = [step(press(begun(), '4111').at(-1)?.state ?? answered, over, NOW)];
    expect(ended?.events).toMatchObject([
      { event: 'payment.card.collected', status: 'failed', reason: 'session_ended', operation_uuid: 'op' },
      { event: 'session.ended' },
    ]);
    expect(ended?.payments).toEqual([{ record: 'ended', operationUuid: 'op', staged: undefined }, { record: 'forgotten' }]);
    expect(JSON.stringify(ended?.state.collection ?? null)).toBe('null');
  });

  test('forgets its references when it ends after a collection, and writes nothing where there was none', () => {
    const done = press(begun(), `${GOOD}#`).at(-1)?.state ?? answered;
    expect(step(done, over, NOW).payments).toEqual([{ record: 'forgotten' }]);
    expect(step(answered, over, NOW).payments).toBeUndefined();
  });

  test('is cancelled by DELETE of its own kind only', () => {
    expect(order(begun(), { type: 'cancel_payment', kind: 'cvv' }).refused?.status).toBe(404);
    expect(order(answered, { type: 'cancel_payment', kind: 'card' }).refused?.status).toBe(404);
    expect(order(begun(), { type: 'cancel_payment', kind: 'card' }).events).toMatchObject([
      { status: 'failed', reason: 'cancelled' },
    ]);
  });

  test('plays the prompt of each attempt under its own name, and is not confused by a late notice of the one before', () => {
    const prompting = begun({ hasPrompt: true, retryUrls: ['http://x/retry.wav'] });
    const again = press(prompting, '41#').at(-1);
    expect(again?.effects).toContainEqual({ do: 'prompt', name: 'op/2', urls: ['http://x/retry.wav'] });
    const state = again?.state ?? answered;
    const notice = (type: 'playback.stopped' | 'playback.completed', operationUuid: string): SessionInput => ({
      type: 'leg.media',
      notice: { type, operationUuid },
    });
    expect(step(state, notice('playback.stopped', 'op/1'), NOW).state.collection?.phase).toBe('prompting');
    const heard = step(state, notice('playback.completed', 'op/2'), NOW + 500).state;
    expect(heard.collection?.phase).toBe('collecting');
    expect(nextDeadline(heard)).toBe(NOW + 10_500);
    const failed: SessionInput = {
      type: 'leg.media',
      notice: { type: 'playback.failed', operationUuid: 'op/2', reason: 'media_unavailable' },
    };
    expect(step(state, failed, NOW).events).toMatchObject([{ status: 'failed', reason: 'playback_source_error' }]);
    expect(step(heard, failed, NOW).events).toEqual([]);
  });

  test('runs out of time like any other', () => {
    const state = begun({ maxAttempts: 1 });
    expect(nextDeadline(state)).toBe(NOW + 10_000);
    expect(step(state, { type: 'deadline' }, NOW + 10_000).events).toMatchObject([{ status: 'failed', reason: 'no_input' }]);
  });
});

const over: SessionInput = { type: 'leg.ended', end: { cause: 'completed', by: 'caller', description: '' } };
const collectTerms = {
  minDigits: 1,
  maxDigits: 5,
  validDigits: '0123456789',
  terminators: [],
  firstDigitTimeoutMs: 1,
  interDigitTimeoutMs: 1,
  totalTimeoutMs: 1,
  bargeIn: true,
};
