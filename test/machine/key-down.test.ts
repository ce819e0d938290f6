/** A key that is down: it stops a prompt, and holds the timer of the next key until it is let go. */
import { describe, expect, test } from 'bun:test';
import { DTMF_PRESS_MAX_MS, PAYMENT_QUIET_MS } from '../../src/limits.ts';
import type { CollectTerms } from '../../src/machine/dtmf/collect.ts';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import type { Command, Effect } from '../../src/machine/session/input.ts';
import { carriedOver } from '../../src/machine/session/movable.ts';
import { inbound, nextDeadline, type SessionState } from '../../src/machine/session/session.ts';
import { step } from '../../src/machine/session/step.ts';
import type { LegSignal, MediaNotice } from '../../src/notice/signal.ts';

const COLLECT: CollectTerms = {
  minDigits: 1,
  maxDigits: 4,
  validDigits: '0123456789',
  terminators: ['#'],
  firstDigitTimeoutMs: 2_000,
  interDigitTimeoutMs: 1_000,
  totalTimeoutMs: 100_000,
  bargeIn: true,
};
const collect = (more: Partial<CollectTerms> = {}, promptUrls: string[] = []): Command => ({
  type: 'collect',
  terms: { ...COLLECT, ...more },
  promptUrls,
});
const card = (hasPrompt = false): Command => ({
  type: 'collect_payment',
  terms: {
    ...{ kind: 'card', reference: 'card_r', maxAttempts: 1, terminators: ['#'], acceptedBrands: CARD_BRANDS },
    ...{ cardBrand: undefined, retryUrls: [], firstDigitTimeoutMs: 2_000, interDigitTimeoutMs: 1_000, hasPrompt },
  },
  promptUrls: [],
  cardUuid: undefined,
});

/** A call on virtual time, which takes its deadlines when they are due. */
class Call {
  now = 0;
  state: SessionState = {
    ...inbound({ sessionUuid: 's', appUuid: 'app', callerId: '', did: '', orphanTimeoutMs: 1_000 }, 0),
    phase: 'answered',
    answeredAt: 0,
    deadlines: {},
  };
  /** The events so far, each behind its time. */
  told: string[] = [];
  effects: Effect[] = [];

  #take(input: Parameters<typeof step>[1]): this {
    const next = step(this.state, input, this.now);
    this.state = next.state;
    this.effects.push(...next.effects);
    for (const each of next.events) {
      const digits = each.event === 'dtmf.received' ? each.digit : each.event === 'digits.collected' ? each.digits : '';
      const outcome = 'status' in each ? ` ${each.status}` : '';
      this.told.push(`${this.now} ${each.event} ${digits}${outcome}`);
    }
    return this;
  }
  wait(ms: number): this {
    const until = this.now + ms;
    for (let due = nextDeadline(this.state); due !== undefined && due <= until; due = nextDeadline(this.state)) {
      this.now = Math.max(this.now, due);
      this.#take({ type: 'deadline' });
      if ((nextDeadline(this.state) ?? Infinity) <= this.now) throw new Error('a deadline that does nothing');
    }
    this.now = until;
    return this;
  }
  command = (command: Command) => this.#take({ type: 'command', command, operationUuid: 'op' });
  signal = (signal: LegSignal) => this.#take(signal);
  notice = (notice: MediaNotice) => this.#take({ type: 'leg.media', notice });
  down = (digit: string) => this.notice({ type: 'key.down', digit, method: 'rfc4733' });
  up = (digit: string, durationMs: number) => this.notice({ type: 'digit', digit, durationMs, method: 'rfc4733' });
  hold = (digit: string, ms: number) => this.down(digit).wait(ms).up(digit, ms);
  get stops() {
    return this.effects.filter((effect) => effect.do === 'stop_playback').length;
  }
}

describe('a key that is held', () => {
  test('for longer than the first digit timeout counts at its release, and the entry goes on', () => {
    const call = new Call().command(collect()).wait(1_500).hold('5', 9_000).wait(900).hold('6', 4_000).wait(10_000);
    expect(call.told).toEqual(['10500 dtmf.received 5', '15400 dtmf.received 6', '16400 digits.collected 56 success']);
  });

  test('does not hold the timer of the whole entry', () => {
    const call = new Call()
      .command(collect({ totalTimeoutMs: 5_000 }))
      .wait(1_000)
      .hold('5', 6_000);
    expect(call.told).toEqual(['5000 digits.collected  no_input', '7000 dtmf.received 5']);
  });

  test('holds nothing where it is neither valid nor a terminator', () => {
    const call = new Call().command(collect()).wait(1_000).hold('A', 6_000);
    expect(call.told).toEqual(['2000 digits.collected  no_input', '7000 dtmf.received A']);
    expect(new Call().command(collect()).wait(1_000).hold('#', 6_000).told.at(-1)).toBe('7000 digits.collected  failure');
  });

  test('since before the collection began holds its timer, stops no prompt, and counts at its release', () => {
    const call = new Call().down('5').wait(100).command(collect()).wait(8_000).up('5', 8_100).wait(1_000);
    expect(call.told).toEqual(['8100 dtmf.received 5', '9100 digits.collected 5 success']);
    const prompted = new Call().down('5').command(collect({}, ['http://a/p']));
    expect(prompted.state.collect?.phase).toBe('prompting');
    expect(prompted.wait(50).notice({ type: 'playback.completed', operationUuid: 'op/prompt' }).wait(5_000).told).toEqual([]);
    expect(prompted.up('5', 5_050).wait(1_000).told.at(-1)).toBe('6050 digits.collected 5 success');
  });

  test('and never let go is given up: the timer goes on with what was left', () => {
    const call = new Call()
      .command(collect())
      .wait(1_500)
      .down('5')
      .wait(DTMF_PRESS_MAX_MS + 499);
    expect(call.told).toEqual([]);
    expect(call.wait(1).told).toEqual([`${2_000 + DTMF_PRESS_MAX_MS} digits.collected  no_input`]);
  });

  test('of which no digit comes holds the timer until the media plane says so', () => {
    const call = new Call().command(collect()).wait(1_500).down('5').wait(5_000).notice({ type: 'key.up' }).wait(499);
    expect(call.told).toEqual([]);
    expect(call.wait(1).told).toEqual(['7000 digits.collected  no_input']);
  });

  test('in the audio goes on to be held where its twin by SIP INFO is counted', () => {
    const call = new Call().command(collect()).down('5').wait(20).signal({ type: 'leg.digit', digit: '5', durationMs: 20 });
    expect(call.wait(6_000).told).toEqual(['20 dtmf.received 5']);
    expect(call.notice({ type: 'key.up' }).wait(1_000).told.at(-1)).toBe('7020 digits.collected 5 success');
  });

  test('when the call ends leaves nothing that falls due', () => {
    const call = new Call().command(collect()).down('5');
    call.signal({ type: 'leg.ended', end: { cause: 'completed', by: 'caller', description: '' } });
    expect(call.state.phase).toBe('ended');
    expect(nextDeadline(call.state)).toBeUndefined();
    const hungUp = new Call().command(collect()).down('5').command({ type: 'hangup' }).wait(100_000);
    expect(hungUp.state.phase).toBe('ended');
  });

  test('when the call goes to another node is told there anew', () => {
    expect(carriedOver(new Call().down('5').state, 10)).toMatchObject({ press: undefined });
  });
});

describe('a press', () => {
  test('stops the prompt with barge_in, once, and counts at its release', () => {
    const call = new Call()
      .command(collect({}, ['http://a/p']))
      .wait(300)
      .down('5');
    expect(call.stops).toBe(1);
    call.wait(3_000).notice({ type: 'playback.stopped', operationUuid: 'op/prompt' }).up('5', 3_000);
    expect(call.stops).toBe(1);
    expect(call.wait(1_000).told).toEqual(['3300 dtmf.received 5', '4300 digits.collected 5 success']);
    expect(call.state.collect).toBeUndefined();
  });

  test('begins the time of the whole entry where it stops the prompt', () => {
    const call = new Call()
      .command(collect({}, ['http://a/p']))
      .wait(300)
      .down('5');
    expect(call.state.collect).toMatchObject({ phase: 'collecting', totalDue: 100_300 });
  });

  test('of a key that counts for nothing, or without barge_in, does not stop the prompt', () => {
    expect(new Call().command(collect({}, ['http://a/p'])).down('A').stops).toBe(0);
    const deaf = new Call()
      .command(collect({ bargeIn: false }, ['http://a/p']))
      .wait(300)
      .down('5');
    expect([deaf.stops, deaf.state.collect?.phase]).toEqual([0, 'prompting']);
    deaf.wait(100).notice({ type: 'playback.completed', operationUuid: 'op/prompt' }).wait(4_000).up('5', 4_100);
    expect(deaf.wait(1_000).told).toEqual(['4400 dtmf.received 5', '5400 digits.collected 5 success']);
  });

  test('without a release, as SIP INFO has none, is the key alone: all is as it was', () => {
    const call = new Call().command(collect({}, ['http://a/p'])).wait(300);
    call.signal({ type: 'leg.digit', digit: '5', durationMs: 100 });
    expect(call.stops).toBe(1);
    expect(call.wait(1_000).told).toEqual(['300 dtmf.received 5', '1300 digits.collected 5 success']);
  });

  test('is told in no event', () => {
    expect(new Call().down('5').told).toEqual([]);
  });

  test('keeps a held call, or one in early media, from being taken for an orphan', () => {
    const call = new Call();
    call.state = { ...call.state, held: true, deadlines: { orphan: 1_000, probe: 500 } };
    call.now = 400;
    expect(call.down('5').state.deadlines.orphan).toBe(1_400);
  });
});

describe('a key of a card', () => {
  test('that is held for longer than the timeouts counts at its release, and nobody is told', () => {
    const call = new Call().command(card());
    for (const key of '4111111111111111') call.wait(500).hold(key, 5_000);
    call.wait(500).hold('#', 5_000);
    expect(call.told).toEqual([`${17 * 5_500} payment.card.collected  collected`]);
  });

  test('stops the prompt at the press, once', () => {
    const call = new Call().command(card(true)).down('4');
    expect([call.stops, call.state.collection?.phase]).toEqual([1, 'collecting']);
    expect(call.wait(5_000).up('4', 5_000).stops).toBe(1);
    expect(call.told).toEqual([]);
    expect(call.wait(1_000).told).toEqual(['6000 payment.card.collected  failed']);
  });

  test('since before the collection holds its timer', () => {
    const call = new Call().down('4').command(card()).wait(5_000);
    expect(call.told).toEqual([]);
    expect(call.up('4', 5_000).state.collection?.digits).toEqual([4]);
  });

  test('and never let go is given up', () => {
    const call = new Call()
      .command(card())
      .wait(500)
      .down('4')
      .wait(DTMF_PRESS_MAX_MS + 1_500);
    expect(call.told).toEqual([`${DTMF_PRESS_MAX_MS + 2_000} payment.card.collected  failed`]);
  });

  test('that goes down just after the collection stops no other prompt', () => {
    const call = new Call().command(card()).command({ type: 'cancel_payment', kind: 'card' });
    call.state = { ...call.state, quietUntil: PAYMENT_QUIET_MS };
    call.command(collect({}, ['http://a/p'])).wait(PAYMENT_QUIET_MS - 1);
    expect(call.down('4').stops).toBe(0);
    expect(call.state.press).toBeUndefined();
    expect(call.wait(1).down('4').stops).toBe(1);
  });
});
