/** The ticks of the time axis: how far apart they are, and what stands at them. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS_MS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((each) => each * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((each) => each * MINUTE),
  ...[1, 2, 3, 6, 12, 24].map((each) => each * HOUR),
];

/** The least step between ticks of which at most `most` are within `lengthMs`. Beyond a day it doubles. */
export function stepOf(lengthMs: number, most: number): number {
  const known = STEPS_MS.find((each) => lengthMs / each <= most);
  if (known !== undefined) return known;
  let step = 48 * HOUR;
  while (lengthMs / step > most) step *= 2;
  return step;
}

/** The ticks between two times, counted from `start`, the first instant of the call. */
export function ticksOf(from: number, until: number, start: number, step: number): readonly number[] {
  const ticks: number[] = [];
  for (let at = start + Math.ceil((from - start) / step) * step; at <= until; at += step) ticks.push(at);
  return ticks;
}

/** How long after the call's first instant a tick is: `0:05`, `1:00:00`, or `0:05.250` where ticks are that close. */
export function tickText(sinceMs: number, step: number): string {
  const seconds = Math.floor(sinceMs / SECOND);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const two = (value: number) => String(value).padStart(2, '0');
  const clock = hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
  return step >= SECOND ? clock : `${clock}.${String(Math.round(sinceMs) % SECOND).padStart(3, '0')}`;
}
