import { describe, expect, test } from 'bun:test';
import { brandOf, CARD_BRANDS, type CardBrand, cardFault, cvvFits, isracardCheck, luhn } from '../../src/machine/payment/card.ts';
import fc from '../support/fast-check.ts';

const digits = (text: string): number[] => [...text].map(Number);

/** A number of that length with those first digits and the right check digit. */
function numbered(prefix: string, length: number): number[] {
  const body = digits(prefix.padEnd(length - 1, '0'));
  const check = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].find((digit) => luhn([...body, digit])) ?? 0;
  return [...body, check];
}

/** The first digits that the brands publish: `first`, `last`, and every length from 10 to 20 that is a number of it. */
const PUBLISHED: readonly (readonly [CardBrand, first: string, last: string, lengths: readonly number[]])[] = [
  ['visa', '4', '4', [13, 16, 19]],
  ['mastercard', '2221', '2720', [16]],
  ['mastercard', '51', '55', [16]],
  ['amex', '34', '34', [15]],
  ['amex', '37', '37', [15]],
  ['diners', '300', '305', [14, 16, 17, 18, 19]],
  ['diners', '3095', '3095', [14, 16, 17, 18, 19]],
  ['diners', '36', '36', [14, 15, 16, 17, 18, 19]],
  ['diners', '38', '39', [14, 16, 17, 18, 19]],
  ['discover', '6011', '6011', [16, 17, 18, 19]],
  ['discover', '622126', '622925', [16, 17, 18, 19]],
  ['discover', '644', '649', [16, 17, 18, 19]],
  ['discover', '65', '65', [16, 17, 18, 19]],
  ['jcb', '3528', '3589', [16, 17, 18, 19]],
  ['maestro', '50', '50', [12, 13, 14, 15, 16, 17, 18, 19]],
  ['maestro', '56', '58', [12, 13, 14, 15, 16, 17, 18, 19]],
  ['maestro', '63', '63', [12, 13, 14, 15, 16, 17, 18, 19]],
  ['maestro', '67', '67', [12, 13, 14, 15, 16, 17, 18, 19]],
];
/** The first digits next to those of a brand, which are another's or nobody's. */
const NEIGHBOURS: readonly (readonly [string, CardBrand])[] = [
  ...([
    ['2220', 'unknown'],
    ['2721', 'unknown'],
    ['299', 'unknown'],
    ['306', 'unknown'],
    ['3094', 'unknown'],
  ] as const),
  ...([
    ['3096', 'unknown'],
    ['33', 'unknown'],
    ['3527', 'unknown'],
    ['3590', 'unknown'],
    ['40', 'visa'],
  ] as const),
  ...([
    ['59', 'unknown'],
    ['6010', 'unknown'],
    ['6012', 'unknown'],
    ['622125', 'unknown'],
    ['622926', 'unknown'],
  ] as const),
  ...([
    ['62', 'unknown'],
    ['643', 'unknown'],
    ['66', 'unknown'],
    ['68', 'unknown'],
    ['7', 'unknown'],
  ] as const),
];

describe('a card number', () => {
  test.each(PUBLISHED)('of %s begins with %s to %s, has a length of that brand, and no other', (brand, first, last, lengths) => {
    for (const prefix of [first, last]) {
      for (let length = 10; length <= 20; length++) {
        const number = numbered(prefix, length);
        const fault = lengths.includes(length) ? undefined : 'invalid_length';
        expect([prefix, length, brandOf(number), cardFault(number, CARD_BRANDS)]).toEqual([prefix, length, brand, fault]);
      }
    }
  });

  test.each(NEIGHBOURS)('that begins with %s is of brand %s', (prefix, brand) => {
    expect(brandOf(numbered(prefix, 16))).toBe(brand);
  });

  test('of no known brand has 12 to 19 digits and a right check digit, and is taken where `unknown` is accepted', () => {
    for (let length = 10; length <= 20; length++) {
      const fault = length >= 12 && length <= 19 ? undefined : 'invalid_length';
      expect([length, cardFault(numbered('8', length), CARD_BRANDS)]).toEqual([length, fault]);
    }
    expect(cardFault(numbered('8', 16), ['visa'])).toBe('unsupported_brand');
  });

  test.each([
    ['4111111111111111', 'visa'],
    ['4222222222222', 'visa'],
    ['5555555555554444', 'mastercard'],
    ['2223003122003222', 'mastercard'],
    ['378282246310005', 'amex'],
    ['30569309025904', 'diners'],
    ['36227206271667', 'diners'],
    ['6011111111111117', 'discover'],
    ['3530111333300000', 'jcb'],
    ['6759649826438453', 'maestro'],
    ['12345674', 'isracard'],
    ['8888888888888888', 'unknown'],
  ])('%s is of brand %s', (number, brand) => {
    expect(String(brandOf(digits(number)))).toBe(brand);
  });

  test.each([
    '4111111111111111',
    '5555555555554444',
    '378282246310005',
    '30569309025904',
    '3530111333300000',
    '6759649826438453',
  ])('%s passes, and with any one digit changed it does not', (number) => {
    expect(cardFault(digits(number), CARD_BRANDS)).toBeUndefined();
    for (let at = 1; at < number.length; at++) {
      const wrong = digits(number);
      wrong[at] = ((wrong[at] ?? 0) + 1) % 10;
      expect(luhn(wrong)).toBe(false);
    }
  });

  test('of Isracard has eight or nine digits and a check of its own, by elevens', () => {
    expect(isracardCheck(digits('010000007'))).toBe(false);
    // 9·0+8·1+7·2+6·3+5·4+4·5+3·6+2·7+1·d = 112 + d: divisible by 11 with 9.
    expect(isracardCheck(digits('012345679'))).toBe(true);
    expect(isracardCheck(digits('12345679'))).toBe(true);
    expect(cardFault(digits('12345679'), CARD_BRANDS)).toBeUndefined();
    expect(cardFault(digits('12345678'), CARD_BRANDS)).toBe('luhn_check_failed');
  });

  test('of a length its brand does not have is told as such, before its check digit', () => {
    for (const number of ['411111111111111', '37828224631000', '555555555555444', '1', '1234567', '1234567890'])
      expect([number, cardFault(digits(number), CARD_BRANDS)]).toEqual([number, 'invalid_length']);
  });

  test('of a brand that is not accepted is refused, a wrong number for its check digit', () => {
    expect(cardFault(digits('378282246310005'), ['visa'])).toBe('unsupported_brand');
    expect(cardFault(digits('378282246310006'), ['visa'])).toBe('luhn_check_failed');
  });

  test('two neighbours exchanged are noticed, but for 0 and 9', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9), { minLength: 15, maxLength: 15 }), fc.nat(13), (body, at) => {
        const check = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].find((digit) => luhn([...body, digit]));
        if (check === undefined) return false;
        const number = [...body, check];
        const [left = 0, right = 0] = number.slice(at, at + 2);
        const swapped = number.with(at, right).with(at + 1, left);
        return left === right || Math.abs(left - right) === 9 || !luhn(swapped);
      }),
    );
  });

  test('a CVV has three digits, four on an American Express, either where the card is not known', () => {
    expect([cvvFits(3, 'visa'), cvvFits(4, 'visa'), cvvFits(3, 'amex'), cvvFits(4, 'amex')]).toEqual([true, false, false, true]);
    for (const brand of [undefined, 'unknown'] as const)
      expect([2, 3, 4, 5].map((length) => cvvFits(length, brand))).toEqual([false, true, true, false]);
  });
});
