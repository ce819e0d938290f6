/**
 * Secure collection (contract §6), a part of a Session's state:
 *
 *   prompting ─prompt over, or a press→ collecting ─terminator, timeout, longest length→ judged ─good→ one `collected` event
 *       ↑                                                                               │bad
 *       └───────────────────────── another attempt ────────────────────────────────────┴─the last attempt→ one `failed` event
 *
 * While it runs no `dtmf.received` is emitted. Digits are kept as numbers, and leave this state only towards the vault.
 */
import type { CollectionFailure, Event } from '../../event/event.ts';
import { PAYMENT_COLLECT_MAX_MS } from '../../limits.ts';
import { clearTimer, type DigitTimer, holdTimer, NO_TIMER, resumeTimer, startTimer } from '../dtmf/digit-timer.ts';
import { brandOf, CARD_MAX_DIGITS, type CardBrand, CVV_MAX_DIGITS, cardFault, couldBeWhole, cvvFits } from './card.ts';

export type CollectionKind = 'card' | 'cvv';

/** The terms of the request, with its defaults filled in. */
export interface CollectionTerms {
  readonly kind: CollectionKind;
  /** `card_<uuid>` or `cvv_<uuid>`, for the day it is collected. */
  readonly reference: string;
  readonly maxAttempts: number;
  readonly firstDigitTimeoutMs: number;
  readonly interDigitTimeoutMs: number;
  readonly terminators: readonly string[];
  readonly acceptedBrands: readonly CardBrand[];
  /** The brand of the card that a CVV belongs to, where it is known. */
  readonly cardBrand: CardBrand | undefined;
  readonly hasPrompt: boolean;
  /** Played before each further attempt. */
  readonly retryUrls: readonly string[];
}

export interface Collection extends DigitTimer {
  readonly operationUuid: string;
  readonly terms: CollectionTerms;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  readonly phase: 'prompting' | 'collecting';
  readonly digits: readonly number[];
  /** When all of it is too late: `*` could start over for ever. */
  readonly totalDue: number;
}

/** The digits that go into the vault, in the commit of the event. */
export interface Staged {
  readonly reference: string;
  readonly digits: readonly number[];
  readonly brand: CardBrand | '';
  readonly last4: string;
}

/** The record of a collection that the store keeps, written with the step. */
export type PaymentRecord =
  | { readonly record: 'begun'; readonly operationUuid: string; readonly kind: CollectionKind }
  | { readonly record: 'ended'; readonly operationUuid: string; readonly staged: Staged | undefined }
  /** The Session is over: none of its references can be used any more. */
  | { readonly record: 'forgotten' };

export type CollectionStep =
  /** `prompt`: what is to be played now, by the name its notices will carry. */
  | { readonly collection: Collection; readonly stopPrompt?: string; readonly prompt?: string }
  | { readonly failed: CollectionFailure; readonly stopPrompt?: string }
  | { readonly staged: Staged; readonly stopPrompt?: string };

/** Each attempt's prompt has a name of its own, so that a late notice of the one before is not taken for it. */
export const promptName = (collection: Collection): string => `${collection.operationUuid}/${collection.attempt}`;

/** Begins a secure collection: by its prompt, or without one by waiting for the first key. */
export function beginCollection(operationUuid: string, terms: CollectionTerms, now: number): Collection {
  const idle: Collection = {
    operationUuid,
    terms,
    attempt: 1,
    phase: 'prompting',
    digits: [],
    ...NO_TIMER,
    totalDue: now + PAYMENT_COLLECT_MAX_MS,
  };
  return terms.hasPrompt ? idle : promptHeard(idle, now);
}

/** The prompt is over: from here on time counts. */
export const promptHeard = (collection: Collection, now: number): Collection =>
  collection.phase === 'collecting'
    ? collection
    : { ...collection, phase: 'collecting', ...startTimer(collection, collection.terms.firstDigitTimeoutMs, now) };

/** A key goes down. It stops a prompt that still plays, and the timer of the next key stands still till its release. */
export function pressSecurely(before: Collection, now: number): CollectionStep {
  const collection = promptHeard(holdSecurely(before, now), now);
  return before.phase === 'prompting' ? { collection, stopPrompt: promptName(before) } : { collection };
}

/** A key is down, maybe since before the collection began: the timer stands still. */
export const holdSecurely = (collection: Collection, now: number): Collection => ({
  ...collection,
  ...holdTimer(collection, now),
});

/** The key is up, or is not waited for any longer. */
export const releaseSecurely = (collection: Collection, now: number): Collection => ({
  ...collection,
  ...resumeTimer(collection, now),
});

/** One key. It stops a prompt that still plays. */
export function collectKey(before: Collection, key: string, now: number): CollectionStep {
  const { terms } = before;
  const stopPrompt = before.phase === 'prompting' ? { stopPrompt: promptName(before) } : {};
  const collection = promptHeard(before, now);
  const timer = startTimer(collection, terms.interDigitTimeoutMs, now);
  if (terms.terminators.includes(key)) return { ...judged(collection, 'terminator', now), ...stopPrompt };
  if (key === '*') {
    const anew = startTimer(collection, terms.firstDigitTimeoutMs, now);
    return { collection: { ...collection, digits: [], ...anew }, ...stopPrompt };
  }
  if (!/^[0-9]$/.test(key)) return { collection: { ...collection, ...timer }, ...stopPrompt };
  const entered = { ...collection, digits: [...collection.digits, Number(key)], ...timer };
  const longest = terms.kind === 'card' ? CARD_MAX_DIGITS : CVV_MAX_DIGITS;
  return { ...(entered.digits.length >= longest ? judged(entered, 'length', now) : { collection: entered }), ...stopPrompt };
}

/** When `collectionTimeout` has to be called, ms since the epoch. */
export const collectionDue = ({ digitDue, totalDue }: Collection): number => Math.min(digitDue ?? Infinity, totalDue);

/** Time has passed; nothing happens before the deadline. */
export function collectionTimeout(collection: Collection, now: number): CollectionStep {
  if (now < collectionDue(collection)) return { collection };
  if (now < collection.totalDue) return judged(collection, 'timeout', now);
  const stopPrompt = collection.phase === 'prompting' ? { stopPrompt: promptName(collection) } : {};
  return { failed: collection.digits.length === 0 ? 'no_input' : 'incomplete_input', ...stopPrompt };
}

function judged(collection: Collection, by: 'terminator' | 'timeout' | 'length', now: number): CollectionStep {
  const { terms, digits, attempt } = collection;
  const fault = faultOf(collection, by);
  if (fault === undefined) return { staged: stagedOf(terms, digits) };
  if (attempt >= terms.maxAttempts) return { failed: fault };
  const again: Collection = { ...collection, attempt: attempt + 1, phase: 'prompting', digits: [], ...clearTimer(collection) };
  return terms.retryUrls.length > 0 ? { collection: again, prompt: promptName(again) } : { collection: promptHeard(again, now) };
}

function faultOf({ terms, digits }: Collection, by: 'terminator' | 'timeout' | 'length'): CollectionFailure | undefined {
  if (digits.length === 0) return 'no_input';
  if (by === 'timeout' && !couldBeWhole(terms.kind, digits.length)) return 'incomplete_input';
  if (terms.kind === 'card') return cardFault(digits, terms.acceptedBrands);
  return cvvFits(digits.length, terms.cardBrand) ? undefined : 'invalid_length';
}

const stagedOf = ({ kind, reference }: CollectionTerms, digits: readonly number[]): Staged =>
  kind === 'card'
    ? { reference, digits, brand: brandOf(digits), last4: digits.slice(-4).join('') }
    : { reference, digits, brand: '', last4: '' };

/** The terminal event of a collection that came to nothing. */
export const collectionFailed = (
  sessionUuid: string,
  operationUuid: string,
  kind: CollectionKind,
  reason: CollectionFailure,
): Event => ({
  event: kind === 'card' ? 'payment.card.collected' : 'payment.cvv.collected',
  session_uuid: sessionUuid,
  operation_uuid: operationUuid,
  status: 'failed',
  reason,
});

/** The terminal event of a collection that was staged. */
export const collected = (sessionUuid: string, { operationUuid, terms }: Collection, staged: Staged): Event =>
  terms.kind === 'card'
    ? {
        event: 'payment.card.collected',
        session_uuid: sessionUuid,
        operation_uuid: operationUuid,
        status: 'collected',
        card_uuid: staged.reference,
        payment_method_details: { card: { brand: staged.brand, last4: staged.last4 } },
      }
    : {
        event: 'payment.cvv.collected',
        session_uuid: sessionUuid,
        operation_uuid: operationUuid,
        status: 'collected',
        cvv_uuid: staged.reference,
      };
