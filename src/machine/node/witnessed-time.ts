/**
 * The time that a database has seen, against clocks that are wrong. What is past its retention is removed for good, so
 * a machine that comes up years ahead may remove nothing: a time that has leapt is believed after a day of it.
 *
 *   trusted ──leaps ahead──→ ahead (nothing is removed) ──a day of looks──→ trusted
 *      │ ↖──────────the clock is set right─────┘
 *      └──leaps back──→ behind (removes too little, never too much) ──a day of looks──→ trusted
 *
 * Pure. All times are milliseconds since the epoch.
 */

const HOUR_MS = 3_600_000;
/** Looks are an hour apart. One that comes later than this, as after a stop, counts as a leap. */
export const LEAP_MS = 2 * HOUR_MS;
/** How long a time that has leapt is looked at before it is believed. */
export const LEAP_BELIEVED_MS = 24 * HOUR_MS;
/** The longest stop in that day: a machine that is switched off each night, or runs once a week, is believed too. */
const STOP_MAX_MS = 10 * 24 * HOUR_MS;

/** A span of the time that was looked at. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** The looks that a database has had. */
export interface WitnessedTime {
  /** The latest time that was trusted. */
  readonly seen: number;
  /** The looks of a time that has leapt and is not trusted yet. */
  readonly leapt?: Span | undefined;
  /** The times that a clock has shown which had leapt back. What it has dated so is younger. */
  readonly behind?: Span | undefined;
}

export interface Look {
  readonly verdict: 'trusted' | 'ahead' | 'behind';
  readonly time: WitnessedTime;
  /** What ended between these times was dated by a clock that was behind, and is younger than it says. */
  readonly misdated?: Span | undefined;
}

/** Judges the time `now` by the looks before it. The first look is trusted: there is nothing to judge it by. */
export function look(before: WitnessedTime | undefined, now: number): Look {
  const { seen, leapt, behind } = before ?? { seen: now };
  if (Math.abs(now - seen) <= LEAP_MS) return trusted(Math.max(seen, now), behind, now);
  const from = leapt !== undefined && follows(leapt, now, STOP_MAX_MS) ? leapt.from : now;
  const isBehind = now < seen;
  const times = isBehind ? { from: Math.min(behind?.from ?? now, now), to: Math.max(behind?.to ?? now, now) } : behind;
  if (now - from >= LEAP_BELIEVED_MS) return trusted(now, times, now);
  return { verdict: isBehind ? 'behind' : 'ahead', time: { seen, leapt: { from, to: now }, behind: times } };
}

const follows = ({ to }: Span, now: number, mostMs: number): boolean => now >= to && now - to <= mostMs;

/** The times of a clock that was behind are kept for as long as it goes on, and told once it is right. */
function trusted(seen: number, behind: Span | undefined, now: number): Look {
  if (behind === undefined) return { verdict: 'trusted', time: { seen } };
  if (follows(behind, now, LEAP_MS)) return { verdict: 'trusted', time: { seen, behind: { from: behind.from, to: now } } };
  const misdated = { from: behind.from - HOUR_MS, to: behind.to + LEAP_MS };
  return { verdict: 'trusted', time: { seen }, misdated };
}
