import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { brandOf, CARD_BRANDS, cardFault, cvvFits, isracardCheck, luhn } from '../../src/machine/payment/card.ts';

const digits = (text: string): number[] => [...text].map(Number);

describe('a card number', () => {
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
    expect([cvvFits(3, undefined), cvvFits(4, undefined), cvvFits(2, undefined)]).toEqual([true, true, false]);
  });
});
