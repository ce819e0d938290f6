import { describe, expect, test } from 'bun:test';
import { PAYMENT_COLLECT_MAX_MS } from '../../src/limits.ts';
import { CARD_BRANDS } from '../../src/machine/payment/card.ts';
import {
  beginCollection,
  type Collection,
  type CollectionStep,
  type CollectionTerms,
  collectionDue,
  collectionTimeout,
  collectKey,
  promptHeard,
  promptName,
} from '../../src/machine/payment/collection.ts';
import fc from '../support/fast-check.ts';

const NOW = 1_000_000;
const GOOD = '4111111111111111';
const terms = (more: Partial<CollectionTerms> = {}): CollectionTerms => ({
  kind: 'card',
  reference: 'card_x',
  maxAttempts: 3,
  firstDigitTimeoutMs: 10_000,
  interDigitTimeoutMs: 5_000,
  terminators: ['#'],
  acceptedBrands: CARD_BRANDS,
  cardBrand: undefined,
  hasPrompt: false,
  retryUrls: [],
  ...more,
});

/** Presses keys until the collection is over. */
function press(start: Collection, keys: string, now = NOW): CollectionStep {
  let step: CollectionStep = { collection: start };
  for (const key of keys) {
    if (!('collection' in step)) return step;
    step = collectKey(step.collection, key, now);
  }
  return step;
}
const begin = (more: Partial<CollectionTerms> = {}) => beginCollection('op', terms(more), NOW);
const live = (step: CollectionStep): Collection => {
  if (!('collection' in step)) throw new Error('it is over');
  return step.collection;
};

describe('secure collection', () => {
  test('ends at the terminator with the number staged, its brand and last four', () => {
    expect(press(begin(), `${GOOD}#`)).toEqual({
      staged: { reference: 'card_x', digits: [...GOOD].map(Number), brand: 'visa', last4: '1111' },
    });
  });

  test('ends without a terminator at the longest length: 19 for a card, 4 for a CVV', () => {
    expect('staged' in press(begin(), '4000000000000000006')).toBe(true);
    expect('staged' in press(begin({ kind: 'cvv' }), '1234')).toBe(true);
    expect(press(begin({ kind: 'cvv', maxAttempts: 1, cardBrand: 'visa' }), '1234')).toEqual({ failed: 'invalid_length' });
  });

  test('of a CVV stages nothing to show', () => {
    expect(press(begin({ kind: 'cvv', reference: 'cvv_x' }), '737#')).toEqual({
      staged: { reference: 'cvv_x', digits: [7, 3, 7], brand: '', last4: '' },
    });
  });

  test('uses an attempt up for each wrong or missing entry, and reports the last one’s reason', () => {
    const second = live(press(begin({ maxAttempts: 2 }), '4111111111111112#'));
    expect(second).toMatchObject({ attempt: 2, digits: [], phase: 'collecting' });
    expect(press(second, '#')).toEqual({ failed: 'no_input' });
    expect(press(second, '41#')).toEqual({ failed: 'invalid_length' });
    expect(press(second, `${GOOD.slice(0, -1)}2#`)).toEqual({ failed: 'luhn_check_failed' });
    expect(press(begin({ maxAttempts: 1, acceptedBrands: ['amex'] }), `${GOOD}#`)).toEqual({ failed: 'unsupported_brand' });
  });

  test('starts over at a star, within the same attempt', () => {
    const step = press(begin({ maxAttempts: 1 }), `999*${GOOD}#`);
    expect('staged' in step && step.staged.last4).toBe('1111');
  });

  test('at a timeout takes a whole number, and calls a short one incomplete', () => {
    const whole = live(press(begin({ maxAttempts: 1 }), GOOD));
    expect(collectionTimeout(whole, NOW + 4_999)).toEqual({ collection: whole });
    expect('staged' in collectionTimeout(whole, NOW + 5_000)).toBe(true);
    expect(collectionTimeout(live(press(begin({ maxAttempts: 1 }), '4111')), NOW + 5_000)).toEqual({
      failed: 'incomplete_input',
    });
    expect(collectionTimeout(begin({ maxAttempts: 1 }), NOW + 10_000)).toEqual({ failed: 'no_input' });
  });

  test('at a timeout judges what could be a whole number, a short one of Isracard too, and a CVV of three digits', () => {
    const timedOut = (keys: string, more: Partial<CollectionTerms> = {}) =>
      collectionTimeout(live(press(begin({ maxAttempts: 1, ...more }), keys)), NOW + 5_000);
    for (const number of ['12345679', '012345679']) expect('staged' in timedOut(number)).toBe(true);
    for (const number of ['1', '1234567', '1234567890', '12345678901'])
      expect([number, timedOut(number)]).toEqual([number, { failed: 'incomplete_input' }]);
    expect(timedOut('800000000000')).toEqual({ failed: 'luhn_check_failed' });
    expect(timedOut('12', { kind: 'cvv' })).toEqual({ failed: 'incomplete_input' });
    expect('staged' in timedOut('123', { kind: 'cvv' })).toBe(true);
    expect(timedOut('123', { kind: 'cvv', cardBrand: 'amex' })).toEqual({ failed: 'invalid_length' });
  });

  test('stops its prompt at any key: a terminator, a star, one that is no digit', () => {
    const prompting = begin({ hasPrompt: true, maxAttempts: 1 });
    expect(collectKey(prompting, '#', NOW)).toEqual({ failed: 'no_input', stopPrompt: 'op/1' });
    for (const key of ['*', 'A']) {
      const step = collectKey(prompting, key, NOW);
      expect([key, step.stopPrompt, live(step).phase, live(step).digits]).toEqual([key, 'op/1', 'collecting', []]);
    }
  });

  test('is over after ten minutes while its prompt still plays, and after a number that was not finished', () => {
    const prompting = begin({ hasPrompt: true });
    expect(collectionDue(prompting)).toBe(NOW + PAYMENT_COLLECT_MAX_MS);
    expect(collectionTimeout(prompting, NOW + PAYMENT_COLLECT_MAX_MS)).toEqual({ failed: 'no_input', stopPrompt: 'op/1' });
    const late = NOW + PAYMENT_COLLECT_MAX_MS - 1;
    const typing = live(press(begin({ firstDigitTimeoutMs: PAYMENT_COLLECT_MAX_MS }), '4111', late));
    expect(collectionTimeout(typing, NOW + PAYMENT_COLLECT_MAX_MS)).toEqual({ failed: 'incomplete_input' });
  });

  test('waits for the prompt’s end, and stops it at the first key', () => {
    const prompting = begin({ hasPrompt: true, retryUrls: ['u'] });
    expect(prompting.phase).toBe('prompting');
    expect(collectionDue(promptHeard(prompting, NOW + 100))).toBe(NOW + 10_100);
    const first = collectKey(prompting, '4', NOW);
    expect(first.stopPrompt).toBe('op/1');
    const again = press(live(first), '2#');
    expect(again).toMatchObject({ prompt: 'op/2' });
    expect(live(again)).toMatchObject({ phase: 'prompting', attempt: 2 });
    expect(promptName(live(again))).toBe('op/2');
  });

  test('is over after ten minutes, however often it was begun anew', () => {
    let collection = begin();
    for (let now = NOW; now < NOW + PAYMENT_COLLECT_MAX_MS; now += 4_000) collection = live(collectKey(collection, '*', now));
    expect(collectionDue(collection)).toBe(NOW + PAYMENT_COLLECT_MAX_MS);
    expect(collectionTimeout(collection, NOW + PAYMENT_COLLECT_MAX_MS)).toEqual({ failed: 'no_input' });
  });

  test('holds at most 19 digits and ends within its attempts, whatever is pressed whenever', () => {
    const key = fc.constantFrom(...'0123456789*#AD');
    fc.assert(
      fc.property(
        fc.array(fc.tuple(key, fc.nat(12_000)), { maxLength: 120 }),
        fc.integer({ min: 1, max: 5 }),
        (keys, maxAttempts) => {
          let step: CollectionStep = { collection: begin({ maxAttempts }) };
          let now = NOW;
          for (const [pressed, wait] of keys) {
            now += wait;
            if ('collection' in step) step = collectionTimeout(step.collection, now);
            if ('collection' in step) step = collectKey(step.collection, pressed, now);
            if ('collection' in step && (step.collection.digits.length >= 19 || step.collection.attempt > maxAttempts))
              return false;
          }
          return true;
        },
      ),
    );
  });
});
