/**
 * Prompt and collect (contract §3), a part of a Session's state:
 *
 *   prompting ─prompt over, or a press with barge_in→ collecting ─terminator, max_digits, a timeout, DELETE, the end→ one `digits.collected`
 *
 * Keys are RFC 4733 events, SIP INFO or tones: by the time they are here they are one a press. A press stops the prompt
 * and holds the timer of the next key; the key counts at its release. SIP INFO tells both at once.
 */
import type { Event } from '../../event/event.ts';
import { type DigitTimer, holdTimer, NO_TIMER, resumeTimer, startTimer } from './digit-timer.ts';

/** The terms of the request, with its defaults filled in. */
export interface CollectTerms {
  readonly minDigits: number;
  readonly maxDigits: number;
  readonly validDigits: string;
  /** Empty: none. A key that is both valid and a terminator terminates. */
  readonly terminators: readonly string[];
  readonly firstDigitTimeoutMs: number;
  readonly interDigitTimeoutMs: number;
  readonly totalTimeoutMs: number;
  readonly bargeIn: boolean;
}

export interface Collect extends DigitTimer {
  readonly operationUuid: string;
  readonly terms: CollectTerms;
  readonly phase: 'prompting' | 'collecting';
  readonly digits: string;
  /** When the whole entry is too late. */
  readonly totalDue: number | undefined;
}

type CollectStatus = 'success' | 'no_input' | 'partial_then_timeout' | 'cancelled' | 'failure';

export interface CollectResult {
  readonly status: CollectStatus;
  readonly digits: string;
  readonly terminator: string;
  readonly reason?: string;
}

/** Still going, or done. */
export type CollectStep =
  | { readonly collect: Collect; readonly stopPrompt?: true }
  | { readonly done: CollectResult; readonly stopPrompt?: true };

/** Begins; with a prompt the clocks start at its end. */
export function beginCollect(operationUuid: string, terms: CollectTerms, hasPrompt: boolean, now: number): Collect {
  const idle: Collect = { operationUuid, terms, phase: 'prompting', digits: '', ...NO_TIMER, totalDue: undefined };
  return hasPrompt ? idle : listen(idle, now);
}

const listen = (collect: Collect, now: number): Collect => ({
  ...collect,
  phase: 'collecting',
  ...startTimer(collect, collect.terms.firstDigitTimeoutMs, now),
  totalDue: now + collect.terms.totalTimeoutMs,
});

/**
 * The name under which the leg plays the prompt. It is not the operation's own: an application may give a play the same
 * Operation-Id.
 */
export const promptOf = ({ operationUuid }: Pick<Collect, 'operationUuid'>): string => `${operationUuid}/prompt`;

/** The prompt has been played to its end, or was replaced by something else. */
export const promptOver = (collect: Collect, now: number): Collect =>
  collect.phase === 'prompting' ? listen(collect, now) : collect;

/** Whether a key counts for anything, as a digit or as a terminator. */
const counts = ({ terminators, validDigits }: CollectTerms, digit: string): boolean =>
  terminators.includes(digit) || validDigits.includes(digit);

/** A key goes down. It ends a prompt with `barge_in`, and the timer of the next key stands still until its release. */
export function press(before: Collect, digit: string, now: number): CollectStep {
  const held = holdForKey(before, digit, now);
  if (held === before || before.phase !== 'prompting' || !before.terms.bargeIn) return { collect: held };
  return { collect: promptOver(held, now), stopPrompt: true };
}

/** A key that counts is down, maybe since before the collection began: the timer stands still. */
export const holdForKey = (collect: Collect, digit: string, now: number): Collect =>
  counts(collect.terms, digit) ? { ...collect, ...holdTimer(collect, now) } : collect;

/** The key is up, or is not waited for any longer. */
export const release = (collect: Collect, now: number): Collect => ({ ...collect, ...resumeTimer(collect, now) });

/** One key. Keys pressed over a prompt without `barge_in`, and keys that are not valid, count for nothing. */
export function key(before: Collect, digit: string, now: number): CollectStep {
  const { terms } = before;
  if (!counts(terms, digit)) return { collect: before };
  const prompting = before.phase === 'prompting';
  if (prompting && !terms.bargeIn) return { collect: before };
  const collect = promptOver(before, now);
  const stopPrompt = prompting ? { stopPrompt: true as const } : {};
  if (terms.terminators.includes(digit)) return { done: atTerminator(collect, digit), ...stopPrompt };
  const digits = collect.digits + digit;
  if (digits.length >= terms.maxDigits) return { done: { status: 'success', digits, terminator: '' }, ...stopPrompt };
  return { collect: { ...collect, digits, ...startTimer(collect, terms.interDigitTimeoutMs, now) }, ...stopPrompt };
}

function atTerminator({ digits, terms }: Collect, terminator: string): CollectResult {
  if (digits.length >= terms.minDigits) return { status: 'success', digits, terminator };
  return { status: 'failure', digits, terminator, reason: 'too_few_digits' };
}

/** When `timeout` has to be called, ms since the epoch. */
export function collectDue({ digitDue, totalDue }: Collect): number | undefined {
  if (totalDue === undefined) return undefined;
  return Math.min(digitDue ?? Infinity, totalDue);
}

/** Time has passed; nothing happens before the deadline. */
export function timeout(collect: Collect, now: number): CollectStep {
  const due = collectDue(collect);
  if (due === undefined || now < due) return { collect };
  const { digits, terms } = collect;
  if (digits === '') return { done: { status: 'no_input', digits, terminator: '' } };
  // Enough digits and then silence is how a variable-length entry without a terminator ends.
  return { done: { status: digits.length >= terms.minDigits ? 'success' : 'partial_then_timeout', digits, terminator: '' } };
}

/** The `digits.collected` of a result. */
export const digitsCollected = (sessionUuid: string, collect: Pick<Collect, 'operationUuid'>, result: CollectResult): Event => ({
  event: 'digits.collected',
  session_uuid: sessionUuid,
  operation_uuid: collect.operationUuid,
  ...result,
});
