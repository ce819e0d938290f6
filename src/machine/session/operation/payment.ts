/**
 * The Session during secure collection (contract §6): what the collection decides, put back into the Session's state.
 */

import type { Event } from '../../../event/event.ts';
import { PAYMENT_CUT_OFF_QUIET_MS, PAYMENT_QUIET_MS } from '../../../limits.ts';
import type { MediaNotice } from '../../../notice/signal.ts';
import { type Problem, problems } from '../../../problem.ts';
import {
  beginCollection,
  type Collection,
  type CollectionStep,
  collected,
  collectionFailed,
  collectKey,
  holdSecurely,
  type PaymentRecord,
  promptHeard,
  promptName,
} from '../../payment/collection.ts';
import { playbackEnded } from '../../playback/playback.ts';
import type { Command, Effect, Step } from '../input.ts';
import { isCollectingSecurely, type SessionState } from '../session.ts';
import { isPlay } from './playback.ts';
import { maskAll } from './recording.ts';
import { transferRefusal } from './transfer.ts';

export type CollectPayment = Extract<Command, { type: 'collect_payment' }>;

/**
 * The reason why a secure collection refuses a command, or a command cannot begin one; undefined where it may go on.
 */
export function paymentRefusal(state: SessionState, type: Command['type']): Problem | undefined {
  if (type === 'cancel_payment') return isCollectingSecurely(state) ? undefined : problems.notFound('Payment collection');
  if (isCollectingSecurely(state) && (type === 'collect_payment' || isPlay(type) || type === 'collect' || type === 'member_join'))
    return problems.conflict('Secure collection is in progress');
  if (type !== 'collect_payment') return undefined;
  // A keypad is a telephone's.
  if (state.type === 'websocket') return problems.conflict('Session has no keypad');
  if (state.phase !== 'answered') return problems.conflict('Session is not connected');
  if (state.membership !== undefined) return problems.conflict('Session is a member of a Room');
  if (state.collect !== undefined) return problems.conflict('Session is already collecting digits');
  // The caller would be taken away in the middle of a card.
  return transferRefusal(state);
}

/**
 * Begins: recordings are masked and the leg's taps closed before a prompt can be heard, so that no tone that answers it
 * reaches them.
 */
export function collectPayment(state: SessionState, { terms }: CollectPayment, operationUuid: string, now: number): Step {
  const begins = beginCollection(operationUuid, terms, now);
  const collection = state.press === undefined ? begins : holdSecurely(begins, now);
  const { playback, sessionUuid } = state;
  const stopped: Event[] = playback === undefined ? [] : [playbackEnded(sessionUuid, playback, 'stopped')];
  const silenced: Effect[] =
    playback === undefined || terms.hasPrompt ? [] : [{ do: 'stop_playback', operationUuid: playback.operationUuid }];
  const masked = maskAll(state, now);
  return {
    state: { ...masked.state, playback: undefined, collection, hasCollected: true },
    events: stopped,
    effects: [
      ...masked.effects,
      { do: 'secure', on: true },
      ...silenced,
      ...(terms.hasPrompt ? [{ do: 'play', operationUuid: promptName(collection), loop: 1, volume: 100 } as const] : []),
    ],
    payments: [{ record: 'begun', operationUuid, kind: terms.kind }],
  };
}

export function cancelPayment(state: SessionState, kind: Collection['terms']['kind'], now: number): Step {
  const { collection } = state;
  if (collection === undefined || collection.terms.kind !== kind)
    return { state, events: [], effects: [], refused: problems.notFound('Payment collection') };
  return collecting(state, collection, { failed: 'cancelled', ...silence(collection) }, now);
}

const silence = (collection: Collection) => (collection.phase === 'prompting' ? { stopPrompt: promptName(collection) } : {});

/**
 * Tells whether a key that ends at `now` belongs to a secure collection: one that runs, or one that had just ended when
 * the key went down. A key is told when it is let go, which may be much later.
 */
export const isSecuredKey = ({ collection, quietUntil }: SessionState, durationMs: number, now: number): boolean =>
  collection !== undefined || now - durationMs < quietUntil;

/** A key during a collection, and just after one: nobody is told of it. Undefined: it is an ordinary key. */
export function securedKey(state: SessionState, key: string, durationMs: number, now: number): Step | undefined {
  const { collection } = state;
  if (collection !== undefined) {
    const failedQuietMs = collection.terms.terminators.includes(key) ? PAYMENT_QUIET_MS : PAYMENT_CUT_OFF_QUIET_MS;
    return collecting(state, collection, collectKey(collection, key, now), now, failedQuietMs);
  }
  if (!isSecuredKey(state, durationMs, now)) return undefined;
  return { state: { ...state, quietUntil: now + state.quietMs }, events: [], effects: [] };
}

/**
 * The state after a step that took `ms` to store. The quiet after a collection counts from when its end is stored: keys
 * that were pressed meanwhile waited behind it.
 */
export const quietFromStored = (before: SessionState, after: SessionState, ms: number): SessionState =>
  after.quietUntil === before.quietUntil ? after : { ...after, quietUntil: after.quietUntil + ms };

/** A notice of the collection's prompt; undefined: it is about something else. */
export function hearPaymentPrompt(state: SessionState, notice: MediaNotice, now: number): Step | undefined {
  const { collection } = state;
  if (collection === undefined || !('operationUuid' in notice)) return undefined;
  if (!notice.operationUuid.startsWith(`${collection.operationUuid}/`)) return undefined;
  // The notice is about the prompt of an attempt that is over.
  const over = notice.operationUuid !== promptName(collection) || collection.phase === 'collecting';
  if (over || notice.type === 'playback.started') return { state, events: [], effects: [] };
  if (notice.type === 'playback.failed') return collecting(state, collection, { failed: 'playback_source_error' }, now);
  return { state: { ...state, collection: promptHeard(collection, now) }, events: [], effects: [] };
}

/**
 * Puts a step of the collection into the Session's state. Where it fails, keys stay quiet for `failedQuietMs`: longer
 * where the caller did not end the entry, and may type on.
 */
export function collecting(
  state: SessionState,
  before: Collection,
  step: CollectionStep,
  now: number,
  failedQuietMs = PAYMENT_CUT_OFF_QUIET_MS,
): Step {
  const { sessionUuid } = state;
  const { operationUuid, terms } = before;
  const stop: Effect[] = step.stopPrompt === undefined ? [] : [{ do: 'stop_playback', operationUuid: step.stopPrompt }];
  if ('collection' in step) {
    const prompt: Effect[] = step.prompt === undefined ? [] : [{ do: 'prompt', name: step.prompt, urls: terms.retryUrls }];
    return { state: { ...state, collection: step.collection }, events: [], effects: [...stop, ...prompt] };
  }
  const staged = 'staged' in step ? step.staged : undefined;
  // A caller who keyed nothing in is not in the middle of a number: the next key may answer a menu.
  const quietMs = 'failed' in step && step.failed !== 'no_input' ? failedQuietMs : PAYMENT_QUIET_MS;
  return {
    state: { ...state, collection: undefined, quietUntil: now + quietMs, quietMs },
    events: [
      'staged' in step
        ? collected(sessionUuid, before, step.staged)
        : collectionFailed(sessionUuid, operationUuid, terms.kind, step.failed),
    ],
    effects: [...stop, { do: 'secure', on: false }],
    payments: [{ record: 'ended', operationUuid, staged }],
  };
}

/** The end of the Session ends its collection first, and makes its references useless. */
export function endPayments(state: SessionState): Pick<Step, 'events'> & { payments: readonly PaymentRecord[] } {
  const { collection, sessionUuid, hasCollected } = state;
  const forgotten: PaymentRecord[] = hasCollected ? [{ record: 'forgotten' }] : [];
  if (collection === undefined) return { events: [], payments: forgotten };
  const { operationUuid, terms } = collection;
  return {
    events: [collectionFailed(sessionUuid, operationUuid, terms.kind, 'session_ended')],
    payments: [{ record: 'ended', operationUuid, staged: undefined }, ...forgotten],
  };
}
