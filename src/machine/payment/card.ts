/**
 * Card numbers as they are keyed in (ISO/IEC 7812-1): which brand a number belongs to, how long it may be, and its
 * check digit. Digits are numbers, never text: what is no string is found by nobody who looks for strings in a
 * process's memory.
 */

export const CARD_BRANDS = ['visa', 'mastercard', 'amex', 'diners', 'discover', 'jcb', 'maestro', 'isracard', 'unknown'] as const;
export type CardBrand = (typeof CARD_BRANDS)[number];

export const CARD_MAX_DIGITS = 19;
export const CVV_MAX_DIGITS = 4;

interface Range {
  readonly brand: CardBrand;
  /** First digits, from and to, both of the same length. */
  readonly from: number;
  readonly to: number;
  readonly lengths: readonly number[];
}

const long = [16, 17, 18, 19];
const any = [12, 13, 14, 15, 16, 17, 18, 19];
/** The most specific first. */
const RANGES: readonly Range[] = [
  { brand: 'discover', from: 622126, to: 622925, lengths: long },
  { brand: 'mastercard', from: 2221, to: 2720, lengths: [16] },
  { brand: 'diners', from: 3095, to: 3095, lengths: [14, ...long] },
  { brand: 'jcb', from: 3528, to: 3589, lengths: long },
  { brand: 'discover', from: 6011, to: 6011, lengths: long },
  { brand: 'diners', from: 300, to: 305, lengths: [14, ...long] },
  { brand: 'discover', from: 644, to: 649, lengths: long },
  { brand: 'amex', from: 34, to: 34, lengths: [15] },
  { brand: 'amex', from: 37, to: 37, lengths: [15] },
  { brand: 'diners', from: 36, to: 36, lengths: [14, 15, ...long] },
  { brand: 'diners', from: 38, to: 39, lengths: [14, ...long] },
  { brand: 'maestro', from: 50, to: 50, lengths: any },
  { brand: 'mastercard', from: 51, to: 55, lengths: [16] },
  { brand: 'maestro', from: 56, to: 58, lengths: any },
  { brand: 'maestro', from: 63, to: 63, lengths: any },
  { brand: 'discover', from: 65, to: 65, lengths: long },
  { brand: 'maestro', from: 67, to: 67, lengths: any },
  { brand: 'visa', from: 4, to: 4, lengths: [13, 16, 19] },
];
const ISRACARD_LENGTHS = [8, 9];

/** The first digits as one number. A number with fewer digits is below every range of that length. */
const prefixOf = (digits: readonly number[], length: number): number =>
  digits.slice(0, length).reduce((value, digit) => value * 10 + digit, 0);

const rangeOf = (digits: readonly number[]): Range | undefined =>
  RANGES.find(({ from, to }) => {
    const prefix = prefixOf(digits, String(from).length);
    return prefix >= from && prefix <= to;
  });

/** The brand of a number, by its length and first digits. */
export const brandOf = (digits: readonly number[]): CardBrand =>
  ISRACARD_LENGTHS.includes(digits.length) ? 'isracard' : (rangeOf(digits)?.brand ?? 'unknown');

const lengthsOf = (digits: readonly number[]): readonly number[] =>
  ISRACARD_LENGTHS.includes(digits.length) ? ISRACARD_LENGTHS : (rangeOf(digits)?.lengths ?? any);

/** Every second digit from the right counts double (ISO/IEC 7812-1 annex B). */
export function luhn(digits: readonly number[]): boolean {
  const sum = digits.toReversed().reduce((total, digit, at) => {
    const counted = at % 2 === 0 ? digit : digit * 2;
    return total + (counted > 9 ? counted - 9 : counted);
  }, 0);
  return sum % 10 === 0;
}

/** Isracard's own: nine digits (eight have a leading zero), weighted 9 to 1, divisible by 11. */
export function isracardCheck(digits: readonly number[]): boolean {
  const sum = digits.toReversed().reduce((total, digit, at) => total + digit * (at + 1), 0);
  return sum % 11 === 0;
}

export type CardFault = 'luhn_check_failed' | 'invalid_length' | 'unsupported_brand';

/** Names the fault of a card number, or undefined when it has none. */
export function cardFault(digits: readonly number[], accepted: readonly CardBrand[]): CardFault | undefined {
  if (!lengthsOf(digits).includes(digits.length)) return 'invalid_length';
  const brand = brandOf(digits);
  if (!(brand === 'isracard' ? isracardCheck(digits) : luhn(digits))) return 'luhn_check_failed';
  return accepted.includes(brand) ? undefined : 'unsupported_brand';
}

/** American Express prints four digits, all others three; without a known card either will do. */
export const cvvFits = (length: number, brand: CardBrand | undefined): boolean =>
  brand === undefined || brand === 'unknown' ? length === 3 || length === 4 : length === (brand === 'amex' ? 4 : 3);

/** Tells whether a number of this length could be whole. A shorter one was not finished when time ran out. */
export const couldBeWhole = (kind: 'card' | 'cvv', length: number): boolean =>
  kind === 'cvv' ? length >= 3 : length >= 12 || ISRACARD_LENGTHS.includes(length);
