import { describe, expect, test } from 'bun:test';
import {
  beginCollect,
  type Collect,
  type CollectResult,
  type CollectTerms,
  collectDue,
  key,
  promptOver,
  timeout,
} from '../../src/machine/dtmf/collect.ts';
import fc from '../support/fast-check.ts';

const TERMS: CollectTerms = {
  minDigits: 1,
  maxDigits: 128,
  validDigits: '0123456789*#',
  terminators: ['#'],
  firstDigitTimeoutMs: 5000,
  interDigitTimeoutMs: 5000,
  totalTimeoutMs: 60_000,
  bargeIn: true,
};

/** Presses keys `gapMs` apart, then waits for the deadline. */
function enter(keys: string, terms: Partial<CollectTerms> = {}, gapMs = 100, hasPrompt = false): CollectResult & { at: number } {
  let collect: Collect = beginCollect('op', { ...TERMS, ...terms }, hasPrompt, 0);
  let now = 0;
  for (const digit of keys) {
    const due = collectDue(collect);
    if (due !== undefined && due <= now + gapMs) break;
    now += gapMs;
    const next = key(collect, digit, now);
    if ('done' in next) return { ...next.done, at: now };
    collect = next.collect;
  }
  now = collectDue(collect) ?? Infinity;
  const late = timeout(collect, now);
  if (!('done' in late)) throw new Error('a deadline that does nothing');
  return { ...late.done, at: now };
}

describe('collect', () => {
  test('ends at a terminator, at max_digits, or with the digits there are', () => {
    expect(enter('123#')).toMatchObject({ status: 'success', digits: '123', terminator: '#' });
    expect(enter('1234', { maxDigits: 4 })).toMatchObject({ status: 'success', digits: '1234', terminator: '', at: 400 });
    expect(enter('12')).toMatchObject({ status: 'success', digits: '12', terminator: '', at: 5200 });
    expect(enter('12', { minDigits: 4 })).toMatchObject({ status: 'partial_then_timeout', digits: '12' });
    expect(enter('1234#', { minDigits: 4 })).toMatchObject({ status: 'success', digits: '1234', terminator: '#' });
    expect(enter('12#', { minDigits: 4 })).toMatchObject({
      status: 'failure',
      reason: 'too_few_digits',
      digits: '12',
      terminator: '#',
    });
    expect(enter('')).toMatchObject({ status: 'no_input', digits: '', at: 5000 });
  });

  test('an empty list of terminators disables them, and # is a digit like any other', () => {
    expect(enter('1#2', { terminators: [], maxDigits: 3 })).toMatchObject({ status: 'success', digits: '1#2' });
  });

  test('ends at a terminator that is no valid digit', () => {
    expect(enter('12#', { validDigits: '0123456789' })).toMatchObject({ status: 'success', digits: '12', terminator: '#' });
  });

  test('takes no fewer digits than min_digits, at a terminator and in silence', () => {
    expect([enter('123', { minDigits: 3 }).status, enter('12', { minDigits: 3 }).status]).toEqual([
      'success',
      'partial_then_timeout',
    ]);
    expect([enter('123#', { minDigits: 3 }).status, enter('12#', { minDigits: 3 }).status]).toEqual(['success', 'failure']);
  });

  test('stops its prompt also with the key that ends it', () => {
    const prompting = (terms: Partial<CollectTerms>) => beginCollect('op', { ...TERMS, ...terms }, true, 0);
    expect(key(prompting({}), '#', 1)).toMatchObject({ stopPrompt: true, done: { status: 'failure', reason: 'too_few_digits' } });
    expect(key(prompting({ maxDigits: 1 }), '7', 1)).toMatchObject({
      stopPrompt: true,
      done: { status: 'success', digits: '7' },
    });
    expect(key(prompting({}), '7', 1)).toMatchObject({ stopPrompt: true, collect: { digits: '7', phase: 'collecting' } });
    expect(key(promptOver(prompting({}), 0), '7', 1)).not.toHaveProperty('stopPrompt');
  });

  test('without barge_in takes keys once the prompt is over', () => {
    const prompting = beginCollect('op', { ...TERMS, bargeIn: false }, true, 0);
    expect(key(prompting, '7', 1)).toEqual({ collect: prompting });
    expect(key(prompting, '#', 1)).toEqual({ collect: prompting });
    expect(key(promptOver(prompting, 2), '7', 3)).toMatchObject({ collect: { digits: '7' } });
  });

  test('ignores keys that are not valid, which do not restart a clock', () => {
    expect(enter('1*A2', { validDigits: '0123456789', maxDigits: 2 })).toMatchObject({ digits: '12' });
    expect(enter('*', { validDigits: '12', terminators: [] }, 4900)).toMatchObject({ status: 'no_input', at: 5000 });
  });

  test('nothing ends before its deadline, and nothing at all while the prompt is played', () => {
    const collecting = beginCollect('op', TERMS, false, 0);
    expect(timeout(collecting, 4999)).toEqual({ collect: collecting });
    expect(timeout(collecting, 5000)).toMatchObject({ done: { status: 'no_input' } });
    const prompting = beginCollect('op', TERMS, true, 0);
    expect(timeout(prompting, 1_000_000)).toEqual({ collect: prompting });
  });

  test('the whole entry has an end of its own', () => {
    expect(enter('1'.repeat(100), { totalTimeoutMs: 10_000, terminators: [] }, 900)).toMatchObject({
      status: 'success',
      at: 10_000,
      digits: '1'.repeat(11),
    });
  });

  test('the first key over a prompt stops it and counts, unless barge_in is off', () => {
    const prompting = beginCollect('op', TERMS, true, 0);
    expect(collectDue(prompting)).toBeUndefined();
    expect(key(prompting, '5', 700)).toMatchObject({
      stopPrompt: true,
      collect: { phase: 'collecting', digits: '5', digitDue: 5700 },
    });
    // Keys that come without a prompt stop none: the caller may be hearing something else.
    for (const digit of ['5', '#']) expect(key(promptOver(prompting, 0), digit, 700)).not.toHaveProperty('stopPrompt');
    const deaf = beginCollect('op', { ...TERMS, bargeIn: false }, true, 0);
    expect(key(deaf, '5', 700)).toEqual({ collect: deaf });
    expect(promptOver(deaf, 3000)).toMatchObject({ phase: 'collecting', digitDue: 8000, totalDue: 63_000 });
  });
});

test('any keys at any pace end once, with digits that were pressed, are valid, and are no more than max_digits', () => {
  const terms = fc.record({
    minDigits: fc.integer({ min: 1, max: 6 }),
    maxDigits: fc.integer({ min: 1, max: 10 }),
    terminators: fc.constantFrom<string[]>([], ['#'], ['*', '#']),
    bargeIn: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'0123456789*#ABCD'), maxLength: 40 }),
      terms,
      fc.integer({ min: 1, max: 6000 }),
      (keys, given, gap) => {
        const result = enter(keys, given, gap);
        expect(result.digits.length).toBeLessThanOrEqual(given.maxDigits);
        const pressed = [...keys]
          .filter((digit) => TERMS.validDigits.includes(digit) && !given.terminators.includes(digit))
          .join('');
        expect(pressed.startsWith(result.digits)).toBe(true);
        if (result.status === 'success')
          expect(result.digits.length).toBeGreaterThanOrEqual(Math.min(given.minDigits, given.maxDigits));
      },
    ),
  );
});
