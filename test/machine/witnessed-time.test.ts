/** When a clock is trusted with the removal of what is past its retention. */
import { expect, test } from 'bun:test';
import { LEAP_BELIEVED_MS, LEAP_MS, look, type WitnessedTime } from '../../src/machine/node/witnessed-time.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START = Date.parse('2026-01-01T00:00:00Z');

/** Looks each hour, `hours` times from `from` on. Returns the last look. */
function looks(before: WitnessedTime | undefined, from: number, hours: number) {
  let last = look(before, from);
  for (let hour = 1; hour <= hours; hour += 1) last = look(last.time, from + hour * HOUR_MS);
  return last;
}

test('the first look, and those an hour after each other, are trusted', () => {
  expect(look(undefined, START)).toEqual({ verdict: 'trusted', time: { seen: START } });
  expect(looks(undefined, START, 1_000)).toMatchObject({ verdict: 'trusted', time: { seen: START + 1_000 * HOUR_MS } });
});

test('a clock that is forty days ahead for a while is never trusted, however often the process starts, and is forgotten once it is right', () => {
  const ahead = START + 40 * DAY_MS;
  let time: WitnessedTime = { seen: START };
  for (let start = 0; start < 100; start += 1) {
    const found = look(time, ahead + start * 60_000);
    expect(found.verdict).toBe('ahead');
    time = found.time;
  }
  expect(look(time, START + HOUR_MS)).toEqual({
    verdict: 'trusted',
    time: { seen: START + HOUR_MS },
  });
});

test('after a stop of a month the time is believed when it has been looked at for a day', () => {
  const back = START + 31 * DAY_MS;
  expect(looks({ seen: START }, back, 23).verdict).toBe('ahead');
  expect(looks({ seen: START }, back, LEAP_BELIEVED_MS / HOUR_MS)).toMatchObject({
    verdict: 'trusted',
    time: { seen: back + LEAP_BELIEVED_MS },
  });
});

test('on a machine that is switched off each night, or runs once a week, what is past its retention is removed all the same', () => {
  for (const [everyMs, hours] of [
    [DAY_MS, 9],
    [7 * DAY_MS, 3],
  ] as const) {
    let time: WitnessedTime = { seen: START };
    const trusted = [];
    for (let turn = 1; turn <= 30; turn += 1) {
      const found = looks(time, START + turn * everyMs, hours);
      time = found.time;
      trusted.push(found.verdict === 'trusted');
    }
    expect(trusted.filter((each) => each).length).toBeGreaterThanOrEqual(10);
  }
});

test('a clock that leaps twice is looked at for a day from the second leap on', () => {
  const once = looks({ seen: START }, START + 40 * DAY_MS, 20);
  expect(looks(once.time, START + 80 * DAY_MS, 20).verdict).toBe('ahead');
});

test('what a clock that was behind has dated is told once, when it is right again, however long it was behind', () => {
  for (const hours of [1, 3, 20, 100]) {
    const behind = looks({ seen: START }, 10 * DAY_MS, hours);
    expect(behind.verdict).toBe(hours * HOUR_MS < LEAP_BELIEVED_MS ? 'behind' : 'trusted');
    expect(behind.misdated).toBeUndefined();
    const right = START + (hours + 1) * HOUR_MS;
    let found = look(behind.time, right);
    for (let hour = 1; found.verdict !== 'trusted'; hour += 1) found = look(found.time, right + hour * HOUR_MS);
    expect(found.misdated).toEqual({ from: 10 * DAY_MS - HOUR_MS, to: 10 * DAY_MS + hours * HOUR_MS + LEAP_MS });
    expect(look(found.time, found.time.seen + HOUR_MS).misdated).toBeUndefined();
  }
});
