/**
 * The platform's time. The clock of the machine that shows the console may be minutes off, and what it shows are the
 * platform's times: a live call would lie in the future or in the past. Each answer has a `Date` (RFC 9110 §6.6.1), in
 * whole seconds, and the answers together tell the difference to within a few milliseconds.
 */

/** How far the platform's clock is ahead of ours, at least and at most. Milliseconds. */
export interface Difference {
  readonly least: number;
  readonly most: number;
}

/** An exchange with the platform. Milliseconds since the epoch: `sentAt` and `heardAt` by our clock, `date` by its. */
export interface Exchange {
  readonly sentAt: number;
  readonly heardAt: number;
  readonly date: number;
}

const SECOND_MS = 1000;

/** What is known after another exchange. One that contradicts what was known is of a clock that has been set since. */
export function learnt(before: Difference | undefined, { sentAt, heardAt, date }: Exchange): Difference | undefined {
  if (Number.isNaN(date)) return before;
  // The answer was written between the two moments, within the second that it names.
  const now = { least: date - heardAt, most: date + SECOND_MS - sentAt };
  const both = { least: Math.max(now.least, before?.least ?? now.least), most: Math.min(now.most, before?.most ?? now.most) };
  return both.least <= both.most ? both : now;
}

/** The difference to go by. A clock that may be right is taken for right, so that it does not jump. Milliseconds. */
export function differenceOf(known: Difference | undefined): number {
  if (known === undefined || (known.least <= 0 && known.most >= 0)) return 0;
  return (known.least + known.most) / 2;
}

let known: Difference | undefined;

/** Notes the `Date` of an answer to a request that was sent at `sentAt` by our clock. */
export function noteDate(headers: Headers, sentAt: number): void {
  known = learnt(known, { sentAt, heardAt: Date.now(), date: Date.parse(headers.get('date') ?? '') });
}

/** The time by the platform's clock, in ms since the epoch, and by ours until the platform has answered. */
export const platformNow = (): number => Date.now() + differenceOf(known);

/** When our clock will show what the platform's shows at a time, in ms since the epoch. */
export const byOwnClock = (platformAt: number): number => platformAt - differenceOf(known);
