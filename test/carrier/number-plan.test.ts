/** Numbers of trunks, both ways: a table of the forms that carriers use, and laws over all numbers. */
import { beforeAll, describe, expect, test } from 'bun:test';
import {
  formatNumber,
  type InboundFormat,
  isCountryCode,
  loadNumberPlans,
  normaliseNumber,
  type OutboundFormat,
} from '../../src/carrier/trunk/number-plan.ts';
import fc from '../support/fast-check.ts';

beforeAll(() => loadNumberPlans([{ settings: { country_code: '1' } }]));

/** Country code, what the carrier writes, and what it is; undefined is no number. */
const inbound: [code: string | undefined, user: string, e164: string | undefined][] = [
  // Israel
  ['972', '037654321', '+97237654321'],
  ['972', '37654321', '+97237654321'],
  ['972', '0501234567', '+972501234567'],
  ['972', '972501234567', '+972501234567'],
  ['972', '00972501234567', '+972501234567'],
  ['972', '0014155552671', '+14155552671'],
  ['972', '1800123456', '+9721800123456'],
  ['972', '100', undefined],
  ['972', '0501234567;phone-context=+972', '+972501234567'],
  ['972', '02012345678;phone-context=+44', undefined],
  ['972', '0501234567;phone-context=pbx.example', '+972501234567'],
  // United States
  ['1', '4155552671', '+14155552671'],
  ['1', '14155552671', '+14155552671'],
  ['1', '+14155552671', '+14155552671'],
  ['1', '(415) 555-2671', '+14155552671'],
  ['1', '011442079460958', '+442079460958'],
  ['1', '4165551234', '+14165551234'],
  ['1', '911', undefined],
  ['1', '5552671', undefined],
  // United Kingdom
  ['44', '02079460958', '+442079460958'],
  ['44', '2079460958', '+442079460958'],
  ['44', '447700900123', '+447700900123'],
  ['44', '07700900123', '+447700900123'],
  ['44', '0033612345678', '+33612345678'],
  ['44', '999', undefined],
  // Germany
  ['49', '03012345678', '+493012345678'],
  ['49', '015123456789', '+4915123456789'],
  // France
  ['33', '0612345678', '+33612345678'],
  ['33', '612345678', '+33612345678'],
  ['33', '33612345678', '+33612345678'],
  // Brazil
  ['55', '11961234567', '+5511961234567'],
  ['55', '1133334444', '+551133334444'],
  ['55', '5511961234567', '+5511961234567'],
  // Australia
  ['61', '0412345678', '+61412345678'],
  ['61', '0288887777', '+61288887777'],
  ['61', '0011442079460958', '+442079460958'],
  ['61', '61412345678', '+61412345678'],
  // India
  ['91', '09876543210', '+919876543210'],
  ['91', '9876543210', '+919876543210'],
  ['91', '919876543210', '+919876543210'],
  // No country
  [undefined, '15551234567', '+15551234567'],
  [undefined, '972501234567', '+972501234567'],
  [undefined, '5551234567', undefined],
  [undefined, '15550002', undefined],
  [undefined, '+15550002', '+15550002'],
  [undefined, '0015550002', '+15550002'],
  [undefined, '0501234567', undefined],
  [undefined, '1234567890123456', undefined],
];

const outbound: [code: string | undefined, e164: string, format: OutboundFormat, user: string][] = [
  ['972', '+972501112222', 'national', '0501112222'],
  ['972', '+97237654321', 'national', '037654321'],
  ['972', '+14155552671', 'national', '0014155552671'],
  ['1', '+15551234567', 'national', '5551234567'],
  ['44', '+442079460958', 'national', '02079460958'],
  ['49', '+4915123456789', 'national', '015123456789'],
  ['33', '+33612345678', 'national', '0612345678'],
  ['55', '+5511961234567', 'national', '11961234567'],
  ['61', '+61412345678', 'national', '0412345678'],
  ['91', '+919876543210', 'national', '09876543210'],
  [undefined, '+972501112222', 'plus_e164', '+972501112222'],
  [undefined, '+972501112222', 'e164', '972501112222'],
  [undefined, '+972501112222', 'international_00', '00972501112222'],
];

describe('a number that comes in', () => {
  for (const [code, user, e164] of inbound)
    test(`${user} on a trunk ${code === undefined ? 'without a country code' : `of +${code}`} is ${e164 ?? 'no number'}`, () =>
      expect(normaliseNumber(user, 'auto', code)).toBe(e164));

  test('is digits with or without + where the trunk sends E.164', () => {
    for (const user of ['15550002', '+15550002', '1-555-0002']) expect(normaliseNumber(user, 'e164', '972')).toBe('+15550002');
    expect(normaliseNumber('0501234567', 'e164', '972')).toBeUndefined();
  });

  test('is never read as international where the trunk sends national digits, + and 00 aside', () => {
    expect(normaliseNumber('0501234567', 'national', '972')).toBe('+972501234567');
    expect(normaliseNumber('972501234567', 'national', '972')).toBeUndefined();
    expect(normaliseNumber('+14155552671', 'national', '972')).toBe('+14155552671');
    expect(normaliseNumber('0014155552671', 'national', '972')).toBe('+14155552671');
  });

  test('has the 1 of North America as its prefix within the country too', () => {
    for (const user of ['4155552671', '14155552671']) expect(normaliseNumber(user, 'national', '1')).toBe('+14155552671');
    expect(normaliseNumber('442079460958', 'national', '1')).toBeUndefined();
  });

  test('that is text, too long or empty is no number', () => {
    for (const user of ['', 'nobody', '+', '00', '*97', '12345678901234567890123', '+0123', '٣٤٥'])
      for (const format of ['auto', 'e164', 'national'] as const) expect(normaliseNumber(user, format, '972')).toBeUndefined();
  });
});

describe('a number that goes out', () => {
  for (const [code, e164, format, user] of outbound)
    test(`${e164} as ${format}${code === undefined ? '' : ` of +${code}`} is ${user}`, () =>
      expect(formatNumber(e164, format, code)).toBe(user));
});

describe('for every number', () => {
  const codes = ['972', '1', '44', '49', '33', '55', '61', '91', '39', '7', '52', '351'];
  const code = fc.constantFrom(...codes);
  const digits = fc.stringMatching(/^[0-9]{1,15}$/);
  const user = fc.oneof(
    digits,
    digits.map((each) => `+${each}`),
    digits.map((each) => `00${each}`),
    fc.tuple(code, digits).map(([own, rest]) => `${own}${rest}`),
    fc.tuple(code, digits).map(([own, rest]) => `+${own}${rest}`),
  );
  const pairs: [OutboundFormat, InboundFormat][] = [
    ['plus_e164', 'auto'],
    ['plus_e164', 'e164'],
    ['plus_e164', 'national'],
    ['e164', 'e164'],
    ['national', 'auto'],
    ['national', 'national'],
  ];

  test('to normalise, to format and to normalise again is the same', () => {
    fc.assert(
      fc.property(user, code, fc.constantFrom<InboundFormat>('auto', 'e164', 'national'), (given, own, from) => {
        const first = normaliseNumber(given, from, own);
        if (first === undefined) return;
        expect(first).toMatch(/^\+[1-9][0-9]{1,14}$/);
        for (const [out, back] of pairs) {
          const written = formatNumber(first, out, own);
          expect([written, normaliseNumber(written, back, own)]).toEqual([written, first]);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test('a country code is one that the plan knows', async () => {
    const known = (given: readonly string[]) => Promise.all(given.map(isCountryCode));
    expect(new Set(await known(codes))).toEqual(new Set([true]));
    expect(new Set(await known(['0', '999', '', '12', 'constructor', '+1']))).toEqual(new Set([false]));
  });
});
