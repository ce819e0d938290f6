/** A client that guesses tokens is slowed down. */
import { expect, test } from 'bun:test';
import { WrongTokens } from '../../src/http/wrong-tokens.ts';
import { OPERATOR_GUESS_ADDRESSES_MAX, OPERATOR_GUESS_WINDOW_MS, OPERATOR_GUESSES_MAX } from '../../src/limits.ts';

const NOW = 1_800_000_000_000;
const addressOf = (at: number): string => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
/** The waits of so many guesses. */
const guess = (wrong: WrongTokens, times: number, now: number, address = addressOf(0)) =>
  Array.from({ length: times }, () => wrong.count(address, now)).slice(-2);

test('An address has its guesses a window, is told how long the rest of it lasts, and has as many in the next', () => {
  const wrong = new WrongTokens();
  expect(guess(wrong, OPERATOR_GUESSES_MAX, NOW)).toEqual([undefined, undefined]);
  expect(guess(wrong, 2, NOW)).toEqual([60, 60]);
  expect(guess(wrong, 2, NOW + 10_001)).toEqual([50, 50]);
  expect(guess(wrong, 2, NOW + OPERATOR_GUESS_WINDOW_MS - 1)).toEqual([1, 1]);
  expect(guess(wrong, OPERATOR_GUESSES_MAX + 1, NOW + OPERATOR_GUESS_WINDOW_MS)).toEqual([undefined, 60]);
});

test('So many addresses are remembered, and the window that began first is forgotten for one more', () => {
  const wrong = new WrongTokens();
  guess(wrong, OPERATOR_GUESSES_MAX, NOW, addressOf(0));
  guess(wrong, OPERATOR_GUESSES_MAX, NOW, addressOf(1));
  // The first one begins a window anew, and is the last then.
  const later = NOW + OPERATOR_GUESS_WINDOW_MS;
  guess(wrong, OPERATOR_GUESSES_MAX, later, addressOf(0));
  for (let at = 2; at <= OPERATOR_GUESS_ADDRESSES_MAX; at++) wrong.count(addressOf(at), later);
  expect(wrong.count(addressOf(0), later)).toBe(60);
  expect(wrong.count(addressOf(1), NOW)).toBeUndefined();
});
