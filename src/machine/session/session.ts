/**
 * The state of one Session (interface, Sessions; contract §2), as plain data:
 *
 *   phone_in, phone_out, sip, webrtc   new ─ ringing ─ early_media ─ answered ─ ended
 *   websocket                          connecting ─ answered ─ ended
 *
 * Ranks only rise. `ending` is set while an end was ordered and the far end has not confirmed it; whatever ends the
 * call first names the cause.
 */

import type { SipFacts } from '../../event/call-report.ts';
import type { Event } from '../../event/event.ts';
import type { HangupBy, HangupCause } from '../../event/hangup.ts';
import { CALL_DURATION_DEFAULT_SEC } from '../../limits.ts';
import type { LegEnd } from '../../notice/signal.ts';
import { type Collect, collectDue } from '../dtmf/collect.ts';
import { type Collection, collectionDue } from '../payment/collection.ts';
import type { Playback } from '../playback/playback.ts';
import type { Recording } from '../recording/recording.ts';
import type { Membership, Seat, VolumeOrder } from '../room/membership.ts';
import type { Running } from './operation/running.ts';

export type Phase = 'new' | 'connecting' | 'ringing' | 'early_media' | 'answered' | 'ended';

const RANK: Readonly<Record<Phase, number>> = { new: 0, connecting: 0, ringing: 1, early_media: 2, answered: 3, ended: 4 };

/** Tells whether going from `from` to `to` is a step forward. Any other signal is ignored and emits nothing. */
export const rises = (from: Phase, to: Phase): boolean => RANK[to] > RANK[from];

export interface Ending {
  readonly cause: HangupCause;
  readonly by: HangupBy;
  readonly description: string;
  /** The command that ended the Session, if one did. */
  readonly operationUuid: string | undefined;
  /**
   * The Session is cleaned up as an orphan: its end says `answered: false` and 0 seconds (interface, Session states).
   */
  readonly isOrphan?: true;
  /** The far end hung up, whatever cause it gave. */
  readonly hungUp?: true;
}

/** Everything that can fall due, in ms since the epoch. Absent: not armed. */
export interface Deadlines {
  /** `ring_timeout_sec` from the dial's 202. */
  readonly ring?: number;
  /**
   * No sign of life for too long (interface, Orphaned Session cleanup): an unanswered inbound call, an outbound one in
   * early media, a held call, or a Session whose leg was lost.
   */
  readonly orphan?: number;
  /** The far end of a silent call is asked whether it is there. */
  readonly probe?: number;
  /** The outcome of a transfer; and, after a completed one, the far end's BYE. */
  readonly transfer?: number;
  readonly transferred?: number;
  /** What answering machine detection has to say. */
  readonly detection?: number;
  /** `max_duration_sec` from the answer. */
  readonly duration?: number;
  /** The wait of `session.answered` for the seat in a Room; past it the event comes without. */
  readonly seat?: number;
  /** The far end's confirmation of an ordered end; past it the Session ends without. */
  readonly teardown?: number;
  /** The files of its recordings, after the call is over; past it the Session ends without. */
  readonly recordings?: number;
}

/** The settings a Session lives by, fixed when it begins. */
interface Terms {
  readonly orphanTimeoutMs: number;
  readonly maxDurationMs: number;
}

/** Digits that are being sent to the far end, or wait for it. */
interface SentDigits {
  readonly operationUuid: string;
  readonly digits: string;
}

/** A transfer that is under way. */
export interface Transfer {
  readonly operationUuid: string;
  /** Whether the far end has said that it will try. */
  readonly accepted: boolean;
}

/** Answering machine detection (operation/detection.ts). */
interface Detection {
  readonly phase: 'asked' | 'listening' | 'greeting';
  readonly timeoutMs: number;
}

type SessionType = 'phone_in' | 'phone_out' | 'sip' | 'webrtc' | 'websocket';

/** The types of Sessions whose far end has called us. */
const INBOUND: ReadonlySet<string> = new Set(['phone_in', 'sip', 'webrtc']);

/** Tells whether the far end has called us. */
export const isInbound = ({ type }: { readonly type: string }): boolean => INBOUND.has(type);

export interface SessionState {
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly type: SessionType;
  readonly phase: Phase;
  readonly callerId: string;
  readonly did: string;
  readonly clientState: string;
  /** What SIP said of the call as it came in. */
  readonly sip: SipFacts | undefined;
  /** What the leg said of its end. */
  readonly report: Pick<LegEnd, 'sip' | 'quality'> | undefined;
  readonly createdAt: number;
  readonly answeredAt: number | undefined;
  /** The call is over; the Session ends when its recordings are finished. */
  readonly closedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** The digits that are being sent, and those that wait, in order. */
  readonly sending: readonly SentDigits[];
  /** The digits that a dial sends after the answer. `""` for none. */
  readonly sendAtAnswer: string;
  /** The detection that a dial asked for, until it is over. */
  readonly detection: Detection | undefined;
  /** The transfer that is under way. */
  readonly transfer: Transfer | undefined;
  /** The far end holds us. */
  readonly held: boolean;
  /** We hold the far end: as it was ordered, and as it was last told. */
  readonly holding: boolean;
  readonly toldHolding: boolean;
  /** The dial or answer command that `session.answered` may name. */
  readonly answering: string | undefined;
  readonly ending: Ending | undefined;
  /** Whether the call has a process. It is false when that is gone: nothing can be ordered of it any more. */
  readonly hasLeg: boolean;
  /**
   * The playback and collection that ran when the process before this one was lost. Undefined in a Session of this
   * process.
   */
  readonly cutOff: Running | undefined;
  readonly playback: Playback | undefined;
  readonly collect: Collect | undefined;
  readonly membership: Membership | undefined;
  /** The seat that is taken with the answer. */
  readonly seat: Seat | undefined;
  /** Events that wait until the seat is taken. */
  readonly untold: readonly Event[];
  /** The volumes in its Room that were admitted, and whose outcome is not told yet. */
  readonly setting: readonly VolumeOrder[];
  /** The key that is down, and until when its release is waited for, in ms since the epoch. It may be of a card. */
  readonly press: { readonly digit: string; readonly until: number } | undefined;
  /** A card or CVV is being keyed in. */
  readonly collection: Collection | undefined;
  /** Something was collected: there may be references of this Session in the vault. */
  readonly hasCollected: boolean;
  /** The live ones, oldest first. */
  readonly recordings: readonly Recording[];
  /** Keys that began before this belong to a collection that is over. */
  readonly quietUntil: number;
  /** Each of them puts that off by so much. */
  readonly quietMs: number;
  readonly deadlines: Deadlines;
  readonly terms: Terms;
}

interface Begin {
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly callerId: string;
  readonly did: string;
  readonly orphanTimeoutMs: number;
  readonly sip?: SipFacts | undefined;
  /** An inbound call that came from a device or a browser. */
  readonly inboundType?: 'sip' | 'webrtc' | undefined;
  readonly clientState?: string;
}

const begin = (from: Begin, type: SessionState['type'], now: number): SessionState => ({
  sessionUuid: from.sessionUuid,
  appUuid: from.appUuid,
  type,
  phase: 'new',
  callerId: from.callerId,
  did: from.did,
  clientState: '',
  sip: from.sip,
  report: undefined,
  createdAt: now,
  answeredAt: undefined,
  closedAt: undefined,
  endedAt: undefined,
  sending: [],
  sendAtAnswer: '',
  detection: undefined,
  transfer: undefined,
  held: false,
  holding: false,
  toldHolding: false,
  answering: undefined,
  ending: undefined,
  hasLeg: true,
  cutOff: undefined,
  playback: undefined,
  collect: undefined,
  membership: undefined,
  seat: undefined,
  untold: [],
  setting: [],
  press: undefined,
  collection: undefined,
  hasCollected: false,
  recordings: [],
  quietUntil: 0,
  quietMs: 0,
  deadlines: {},
  terms: { orphanTimeoutMs: from.orphanTimeoutMs, maxDurationMs: CALL_DURATION_DEFAULT_SEC * 1000 },
});

/** A call that has just come in. */
export const inbound = (from: Begin, now: number): SessionState => ({
  ...begin(from, from.inboundType ?? 'phone_in', now),
  clientState: from.clientState ?? '',
  deadlines: { orphan: now + from.orphanTimeoutMs },
});

export interface BeginOutbound extends Begin {
  readonly operationUuid: string;
  readonly sendDigits?: string | undefined;
  /** The longest that answering machine detection takes. Undefined: nobody asked for it. */
  readonly detectMachineMs?: number | undefined;
  readonly ringTimeoutMs: number;
  readonly maxDurationMs: number;
  readonly clientState: string;
  readonly seat?: Seat | undefined;
}

/** A call that is about to be placed; its ring window starts with the 202, now. */
export const outbound = (from: BeginOutbound, now: number): SessionState => ({
  ...begin(from, 'phone_out', now),
  clientState: from.clientState,
  sendAtAnswer: from.sendDigits ?? '',
  detection: from.detectMachineMs === undefined ? undefined : { phase: 'asked', timeoutMs: from.detectMachineMs },
  answering: from.operationUuid,
  seat: from.seat,
  deadlines: { ring: now + from.ringTimeoutMs },
  terms: { orphanTimeoutMs: from.orphanTimeoutMs, maxDurationMs: from.maxDurationMs },
});

/** A connection to an application's WebSocket server that is about to be made. It has no numbers. */
export const connecting = (
  from: Omit<Begin, 'callerId' | 'did'> & {
    readonly operationUuid: string;
    readonly clientState: string;
    readonly seat?: Seat | undefined;
  },
  now: number,
): SessionState => ({
  ...begin({ ...from, callerId: '', did: '' }, 'websocket', now),
  phase: 'connecting',
  clientState: from.clientState,
  answering: from.operationUuid,
  seat: from.seat,
});

export interface Remains extends Begin {
  /** The Room it was in, `""`: none. */
  readonly roomId: string;
  readonly type: SessionState['type'];
  readonly phase: Phase;
  readonly answered: boolean;
  /** ms since the epoch, by the clock of this process. */
  readonly answeredAt: number | undefined;
  readonly clientState: string;
  readonly createdAt: number;
  readonly running: Running;
}

/**
 * A Session that a lost process left in the database. It can only be ended, by `DELETE` or as an orphan. `seenAt` (ms):
 * the last sign of life of that process, where it is known.
 */
export function recovered(from: Remains, now: number, seenAt = now): SessionState {
  const talking = from.running.talking === true;
  return {
    ...begin(from, from.type, from.createdAt),
    phase: from.phase,
    // The length of the call is not known: an end by `DELETE` says `answered` and 0 seconds.
    answeredAt: from.answered ? (from.answeredAt ?? now) : undefined,
    closedAt: undefined,
    clientState: from.clientState,
    hasLeg: false,
    cutOff: from.running,
    // Nobody knows: what there may be in the vault is destroyed with its end.
    hasCollected: true,
    membership:
      from.roomId === ''
        ? undefined
        : {
            ...{ roomId: from.roomId, room: 0, phase: 'joined', muted: false, voiceActivityEvents: talking, talking },
            ...from.running.member,
          },
    deadlines: { orphan: Math.min(from.running.orphan ?? Infinity, seenAt + from.orphanTimeoutMs) },
  };
}

/**
 * A call whose node is lost, and which goes on at this one: what ran in it has failed, its seat in a Room is kept, and
 * we hold the far end no longer.
 */
export const takenOver = (from: Remains & { readonly maxDurationMs: number }, now: number): SessionState => {
  const answeredAt = Math.min(from.answeredAt ?? now, now);
  return {
    ...recovered(from, now),
    hasLeg: true,
    held: from.running.held === true,
    toldHolding: from.running.holding === true,
    answeredAt,
    deadlines: { duration: answeredAt + from.maxDurationMs },
    terms: { orphanTimeoutMs: from.orphanTimeoutMs, maxDurationMs: from.maxDurationMs },
  };
};

/**
 * Secure mode (interface, Secure collection): no Room, no new recording and no `unmask`, and nobody is told of keys.
 * Recordings were masked before the prompt, and stay masked after.
 */
export const isCollectingSecurely = (state: SessionState): boolean => state.collection !== undefined;

/** The earliest deadline, or undefined when none is armed. */
export function nextDeadline(state: SessionState): number | undefined {
  const due = [
    ...Object.values(state.deadlines),
    state.press?.until,
    state.collect === undefined ? undefined : collectDue(state.collect),
    state.collection === undefined ? undefined : collectionDue(state.collection),
    ...state.recordings.map(({ confirmBy }) => confirmBy),
  ];
  const earliest = due.reduce<number>((least, at) => Math.min(least, at ?? Infinity), Infinity);
  return earliest === Infinity ? undefined : earliest;
}
