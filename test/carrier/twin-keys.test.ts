/** Keys that come by INFO and in the audio. */
import { expect, test } from 'bun:test';
import { TwinKeys } from '../../src/carrier/leg/twin-keys.ts';

/** Plays a phone that sends keys in the ways given; returns what is told of them. */
function told(keys: readonly (readonly ['info' | 'audio', digit: string, at: number, durationMs?: number])[]): string[] {
  const twins = new TwinKeys();
  return keys.flatMap(([way, digit, at, durationMs = 100]) => {
    const isTold = way === 'info' ? twins.isToldByAudio(digit, at) : twins.isToldByInfo(digit, durationMs, at);
    return isTold ? [] : [`${digit} ${way}`];
  });
}

test('a key that comes both ways is told once, whichever comes first and however long it is held', () => {
  expect(
    told([
      ['info', '1', 0],
      ['audio', '1', 100],
      ['info', '1', 300],
      ['audio', '1', 400],
    ]),
  ).toEqual(['1 info', '1 info']);
  expect(
    told([
      ['audio', '1', 100],
      ['info', '1', 110],
      ['audio', '1', 300],
      ['info', '1', 310],
    ]),
  ).toEqual(['1 audio', '1 audio']);
  expect(
    told([
      ['info', '5', 0],
      ['audio', '5', 4_000, 3_900],
    ]),
  ).toEqual(['5 info']);
});

test('keys that come one way, other keys, and the same key later are all told', () => {
  expect(
    told([
      ['info', '1', 0],
      ['info', '1', 100],
      ['info', '1', 200],
    ]),
  ).toHaveLength(3);
  expect(
    told([
      ['audio', '1', 0],
      ['audio', '1', 200],
    ]),
  ).toHaveLength(2);
  expect(
    told([
      ['info', '1', 0],
      ['audio', '2', 100],
    ]),
  ).toHaveLength(2);
  expect(
    told([
      ['info', '1', 0],
      ['audio', '1', 5_000],
    ]),
  ).toHaveLength(2);
  const many = Array.from({ length: 50 }, (_, at) => ['info', '1', at] as const);
  expect(told(many)).toHaveLength(50);
});

test('a press in the audio is none where its key was told by INFO just before, and is not used up by being looked at', () => {
  const twins = new TwinKeys();
  twins.isToldByAudio('1', 0);
  expect([twins.isPressToldByInfo('1', 600), twins.isPressToldByInfo('1', 700)]).toEqual([true, true]);
  expect([twins.isPressToldByInfo('2', 600), twins.isPressToldByInfo('1', 701)]).toEqual([false, false]);
  expect(twins.isToldByInfo('1', 600, 1_200)).toBe(true);
  expect(twins.isPressToldByInfo('1', 650)).toBe(false);
});
