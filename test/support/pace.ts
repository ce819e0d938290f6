/** Judges the pace of what arrives by its best second, because a busy machine may stamp any single arrival late. */

const WINDOW = 50;
const TOLERANCE_MS = 60;

/** Whether 50 arrivals in a row, anywhere in `stamps` (ms), came `periodMs` apart, to 60 ms over all of them. */
export function keepsPace(stamps: readonly number[], periodMs: number): boolean {
  const due = (WINDOW - 1) * periodMs;
  return stamps.some((from, at) => {
    const to = stamps[at + WINDOW - 1];
    return to !== undefined && Math.abs(to - from - due) < TOLERANCE_MS;
  });
}
