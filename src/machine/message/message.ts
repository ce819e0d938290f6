/**
 * One outbound short message (contract §7), as plain data:
 *
 *   queued ─claim→ sending ─every part accepted→ sent ─every part delivered→ delivered
 *                     │                            └─a part's receipt says otherwise→ undelivered
 *                     └─refused, expired, or nobody knows→ failed
 *
 * Forward only. A part that left without an answer is never sent again: whether the SMSC has it is not known, and an
 * SMS twice is worse than one reported `failed` with `outcome_unknown`.
 */
import type { Event } from '../../event/event.ts';
import type { Encoding } from './alphabet.ts';
import type { Submitted } from './gateway.ts';
import type { Receipt, ReceiptState } from './receipt.ts';

export const MESSAGE_STATUSES = ['queued', 'sending', 'sent', 'delivered', 'undelivered', 'failed'] as const;
type MessageStatus = (typeof MESSAGE_STATUSES)[number];

interface Part {
  /** The SMSC's id, as its response gave it; `""` until the part is accepted. */
  readonly smscId: string;
  readonly delivered: boolean;
}

export interface MessageState {
  readonly messageUuid: string;
  readonly appUuid: string;
  readonly operationUuid: string;
  readonly from: string;
  readonly to: string;
  readonly text: string;
  readonly encoding: Encoding;
  readonly segments: number;
  readonly status: MessageStatus;
  readonly errorCode: string;
  readonly errorMessage: string;
  /** ms since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly sentAt: number | undefined;
  readonly deliveredAt: number | undefined;
  readonly parts: readonly Part[];
  /**
   * `waiting`: to be submitted at `dueAt`; `submitting`: with the gateway, until `dueAt` at the latest; `settled`:
   * nothing is left to send.
   */
  readonly stage: 'waiting' | 'submitting' | 'settled';
  readonly dueAt: number;
  /** Submissions that were put off so far. */
  readonly attempts: number;
  readonly traceparent: string;
}

/**
 * How long a gateway may hold a message at least, and for each part that is to be sent: more than its response may take
 * (`SMPP_RESPONSE_TIMEOUT_MS`). Past it nobody knows.
 */
const SUBMISSION_MAX_MS = 300_000;
const PART_MAX_MS = 25_000;
/** A message that could not be submitted for this long is given up. */
export const QUEUED_MAX_MS = 24 * 3_600_000;
const DELAYS_MS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000];
/** No message that waits is due later than this after it was put off. */
export const PUT_OFF_MAX_MS = Math.max(...DELAYS_MS);

export interface MessageStep {
  readonly state: MessageState;
  readonly events: readonly Event[];
}

const RANK: Readonly<Record<MessageStatus, number>> = { queued: 0, sending: 1, sent: 2, delivered: 3, undelivered: 3, failed: 3 };

const stay = (state: MessageState): MessageStep => ({ state, events: [] });

/** A step forward, with its event; anything else stays where it is. */
function rise(state: MessageState, status: MessageStatus, change: Partial<MessageState>, now: number): MessageStep {
  const changed = { ...state, ...change, updatedAt: now };
  if (RANK[status] <= RANK[state.status]) return stay({ ...changed, status: state.status });
  const next: MessageState = { ...changed, status };
  return { state: next, events: [statusChanged(next)] };
}

const fail = (state: MessageState, errorCode: string, errorMessage: string, now: number): MessageStep =>
  rise(state, 'failed', { stage: 'settled', errorCode, errorMessage }, now);

/** Gives a message up that has waited for a day, whatever it waits for. */
export const outwaited = (state: MessageState, now: number): MessageStep =>
  state.stage === 'waiting' && now - state.createdAt >= QUEUED_MAX_MS
    ? fail(state, 'expired', 'The message could not be submitted within a day', now)
    : stay(state);

/** Handed to the gateway; a message that has waited for a day is given up instead. */
export function claim(state: MessageState, now: number): MessageStep {
  if (state.stage !== 'waiting') return stay(state);
  const late = outwaited(state, now);
  if (late.state !== state) return late;
  const left = state.parts.filter(({ smscId }) => smscId === '').length;
  const dueAt = now + Math.max(SUBMISSION_MAX_MS, left * PART_MAX_MS);
  return rise(state, 'sending', { stage: 'submitting', dueAt }, now);
}

/**
 * The message was never handed to the gateway: whoever took it until `dueAt` was not told that it had it. One that was
 * taken again meanwhile stays.
 */
export const unclaimed = (state: MessageState, dueAt: number, now: number): MessageStep =>
  stay(state.stage === 'submitting' && state.dueAt === dueAt ? { ...state, stage: 'waiting', dueAt: now } : state);

/**
 * Takes the outcome of the submission that was made after `attempts` others were put off. One that comes twice, because
 * the database's answer was lost, says nothing of the submission after it.
 */
export function submitted(state: MessageState, outcomes: readonly Submitted[], attempts: number, now: number): MessageStep {
  if (state.stage !== 'submitting' || state.attempts !== attempts) return stay(state);
  const parts = state.parts.map((part, at) => {
    const outcome = outcomes.find((each) => each.part === at)?.outcome;
    return outcome?.outcome === 'accepted' ? { ...part, smscId: outcome.smscId } : part;
  });
  const known = { ...state, parts };
  const bad = outcomes.find(({ outcome }) => outcome.outcome !== 'accepted')?.outcome;
  if (bad?.outcome === 'refused') return fail(known, bad.code, bad.message, now);
  if (bad?.outcome === 'unknown') return interrupted(known, now);
  if (parts.every((part) => part.smscId !== ''))
    return concluded(rise(known, 'sent', { stage: 'settled', sentAt: now }, now), now);
  const delay = DELAYS_MS[Math.min(state.attempts, DELAYS_MS.length - 1)] ?? 0;
  return stay({ ...known, stage: 'waiting', attempts: state.attempts + 1, dueAt: now + delay, updatedAt: now });
}

/** The gateway, or its process, was gone between a submission and its response. */
export const interrupted = (state: MessageState, now: number): MessageStep =>
  state.stage === 'submitting'
    ? fail(state, 'outcome_unknown', 'The message was submitted, but no response came; it was not sent again', now)
    : stay(state);

const UNDELIVERED: Readonly<Record<Exclude<ReceiptState, 'delivered'>, string>> = {
  expired: 'The message expired before it could be delivered',
  deleted: 'The message was deleted by the carrier',
  undeliverable: 'The carrier could not deliver the message',
  rejected: 'The message was rejected by the carrier',
  unknown: 'The carrier does not know what became of the message',
};

/**
 * The receipt of one part. A late or repeated one changes nothing; one that overtakes the other parts' responses is
 * remembered.
 */
export function received(state: MessageState, part: number, receipt: Receipt, now: number): MessageStep {
  if (RANK[state.status] > RANK.sent) return stay(state);
  if (receipt.state === 'delivered') return concluded(stay({ ...state, parts: withDelivered(state.parts, part) }), now);
  const network = receipt.error === '' ? '' : ` (network error ${receipt.error})`;
  return concluded(stay({ ...state, errorCode: receipt.state, errorMessage: UNDELIVERED[receipt.state] + network }), now);
}

/** A sent message ends with its first bad receipt, or its last good one. */
function concluded(before: MessageStep, now: number): MessageStep {
  const { state } = before;
  if (state.status !== 'sent') return before;
  const after =
    state.errorCode !== ''
      ? rise(state, 'undelivered', {}, now)
      : state.parts.every((part) => part.delivered)
        ? rise(state, 'delivered', { deliveredAt: now }, now)
        : stay(state);
  return { state: after.state, events: [...before.events, ...after.events] };
}

const withDelivered = (parts: readonly Part[], part: number): readonly Part[] =>
  parts.map((each, at) => (at === part ? { ...each, delivered: true } : each));

const statusChanged = (state: MessageState): Event => ({
  event: 'message.status_changed',
  message_uuid: state.messageUuid,
  operation_uuid: state.operationUuid,
  status: state.status,
  from: state.from,
  to: state.to,
  segments: state.segments,
  ...errorOf(state),
});

/** Why a message ended as it did: a bad receipt that is remembered says nothing of one that is on its way yet. */
export const errorOf = (state: MessageState): { readonly error_code: string; readonly error_message: string } =>
  RANK[state.status] > RANK.sent
    ? { error_code: state.errorCode, error_message: state.errorMessage }
    : { error_code: '', error_message: '' };
