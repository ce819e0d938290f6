/** How the guessing of passwords is slowed, on a clock of our own. */
import { expect, test } from 'bun:test';
import { GuessLimit } from '../../src/carrier/device/guess-limit.ts';
import { SIP_GUESSES_A_MINUTE } from '../../src/limits.ts';

const START = 1_000_000;

/** Counts so many wrong passwords of a source. */
function guess(limit: GuessLimit, source: string, times: number, now: number): void {
  for (let time = 0; time < times; time++) limit.count(source, now);
}

test('A source has ten guesses, and ten more when a minute has passed since the first of them', () => {
  const limit = new GuessLimit(10);
  guess(limit, 'a', 1, START);
  guess(limit, 'a', SIP_GUESSES_A_MINUTE - 2, START + 30_000);
  expect(limit.isOver('a', START + 30_000)).toBe(false);
  guess(limit, 'a', 1, START + 30_000);
  expect([limit.isOver('a', START + 59_999), limit.isOver('b', START + 59_999)]).toEqual([true, false]);
  expect(limit.isOver('a', START + 60_000)).toBe(false);
  guess(limit, 'a', SIP_GUESSES_A_MINUTE - 1, START + 60_000);
  expect(limit.isOver('a', START + 60_000)).toBe(false);
  guess(limit, 'a', 1, START + 60_000);
  expect(limit.isOver('a', START + 119_999)).toBe(true);
});

test('Where there are too many sources, the one is forgotten whose minute began longest ago', () => {
  const limit = new GuessLimit(2);
  guess(limit, 'a', SIP_GUESSES_A_MINUTE, START);
  guess(limit, 'b', SIP_GUESSES_A_MINUTE, START + 1);
  guess(limit, 'a', SIP_GUESSES_A_MINUTE, START + 60_000);
  guess(limit, 'c', SIP_GUESSES_A_MINUTE, START + 60_000);
  expect(['a', 'b', 'c'].map((source) => limit.isOver(source, START + 60_000))).toEqual([true, false, true]);
});
