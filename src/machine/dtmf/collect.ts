/**
 * Prompt and collect (contract §3), a part of a Session's state:
 *
 *   prompting ─prompt over, or a key with barge_in→ collecting ─terminator, max_digits, a timeout, DELETE, the end→ one `digits.collected`
 *
 * Keys are RFC 4733 events, SIP INFO or tones: by the time they are here they are one a press.
 */
import type { Event } from '../../event/event.ts';

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

export interface Collect {
  readonly operationUuid: string;
  readonly terms: CollectTerms;
  readonly phase: 'prompting' | 'collecting';
  readonly digits: string;
  /** When the next key is too late, ms since the epoch; undefined while prompting. */
  readonly digitDue: number | undefined;
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
  const idle: Collect = { operationUuid, terms, phase: 'prompting', digits: '', digitDue: undefined, totalDue: undefined };
  return hasPrompt ? idle : listen(idle, now);
}

const listen = (collect: Collect, now: number): Collect => ({
  ...collect,
  phase: 'collecting',
  digitDue: now + collect.terms.firstDigitTimeoutMs,
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

/** One key. Keys pressed over a prompt without `barge_in`, and keys that are not valid, count for nothing. */
export function key(before: Collect, digit: string, now: number): CollectStep {
  const { terms } = before;
  const terminates = terms.terminators.includes(digit);
  if (!terminates && !terms.validDigits.includes(digit)) return { collect: before };
  const prompting = before.phase === 'prompting';
  if (prompting && !terms.bargeIn) return { collect: before };
  const collect = promptOver(before, now);
  const stopPrompt = prompting ? { stopPrompt: true as const } : {};
  if (terminates) return { done: atTerminator(collect, digit), ...stopPrompt };
  const digits = collect.digits + digit;
  if (digits.length >= terms.maxDigits) return { done: { status: 'success', digits, terminator: '' }, ...stopPrompt };
  return { collect: { ...collect, digits, digitDue: now + terms.interDigitTimeoutMs }, ...stopPrompt };
}

function atTerminator({ digits, terms }: Collect, terminator: string): CollectResult {
  if (digits.length >= terms.minDigits) return { status: 'success', digits, terminator };
  return { status: 'failure', digits, terminator, reason: 'too_few_digits' };
}

/** When `timeout` has to be called, ms since the epoch. */
export function collectDue({ digitDue, totalDue }: Collect): number | undefined {
  if (digitDue === undefined || totalDue === undefined) return undefined;
  return Math.min(digitDue, totalDue);
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
