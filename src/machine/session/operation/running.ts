/**
 * What runs in a Session and ends with an event of its own: a playback, a collection of digits, digits that are sent,
 * a volume that is being set, a transfer, the detection of an answering machine and the talking of a member of a Room;
 * and events that wait to be told. It is stored with the command that began it, as JSON in the Session's row, so that
 * the process after a crash can tell its end, exactly once (contract §2, Order at the end).
 */
import type { Event } from '../../../event/event.ts';
import type { Collect } from '../../dtmf/collect.ts';
import { digitsCollected } from '../../dtmf/collect.ts';
import { type Playback, playbackFailed } from '../../playback/playback.ts';
import { directionsOf, type Membership, type VolumeOrder, volumeSet } from '../../room/membership.ts';
import { detectionCompleted, dtmfSent, greetingEnded, transferFailed } from './operation-end.ts';

interface Operation {
  readonly operationUuid: string;
}

interface Digits extends Operation {
  readonly digits: string;
}

export interface Running {
  readonly playback?: Pick<Playback, 'operationUuid' | 'kind' | 'urls'>;
  /** The operation that collects digits. */
  readonly collect?: string;
  /** The digits that are sent, and those that wait, in order. */
  readonly sending?: readonly Digits[];
  /** The volumes of a member that were admitted, and whose outcome is not told yet. */
  readonly setting?: readonly VolumeOrder[];
  /** The answer, which waits for the seat in a Room (seat.ts). */
  readonly untold?: readonly Event[];
  /** The operation that transfers. */
  readonly transfer?: string;
  /** The call itself, as another node needs it to go on (CALL_TAKEOVER). Its text is the carrier's. */
  readonly call?: string;
  /** These two tell whether a side has the call on hold. They are kept where another node may go on with it. */
  readonly held?: true;
  readonly holding?: true;
  /** A card or CVV is keyed in: no other node may go on with the call, since it would tell the keys. */
  readonly secure?: true;
  /** What is listened for: who answered, or the end of a machine's greeting. */
  readonly detection?: 'listening' | 'greeting';
  /** An event has told that it talks in its Room. */
  readonly talking?: true;
  /** An event has told that the connection of a WebSocket Session is gone. */
  readonly disconnected?: true;
  /** The call is lost, and its Session ends then, in ms since the epoch. A further crash does not put that off. */
  readonly orphan?: number;
  /** How it is a member of its Room, kept where another node may go on with the call. */
  readonly member?: Pick<Membership, 'muted' | 'voiceActivityEvents' | 'coach' | 'volumes'>;
}

/** The parts of a Session's state that are stored. */
interface RunningState {
  readonly type: string;
  readonly phase: string;
  readonly hasLeg: boolean;
  readonly playback: Playback | undefined;
  readonly collect: Pick<Collect, 'operationUuid'> | undefined;
  readonly sending: readonly Digits[];
  readonly setting: readonly VolumeOrder[];
  readonly untold: readonly Event[];
  readonly transfer: Operation | undefined;
  readonly held: boolean;
  readonly toldHolding: boolean;
  readonly collection: object | undefined;
  readonly detection: { readonly phase: 'asked' | 'listening' | 'greeting' } | undefined;
  readonly membership: Membership | undefined;
  readonly deadlines: { readonly orphan?: number };
}

/** The column's text. `""`: nothing runs. */
export function runningText(state: RunningState, call?: string): string {
  const { playback, collect, sending, setting, untold, transfer, detection, membership } = state;
  const running: Running = {
    ...(playback === undefined
      ? {}
      : { playback: { operationUuid: playback.operationUuid, kind: playback.kind, urls: playback.urls } }),
    ...(call === undefined ? {} : { call, ...onHold(state), ...asMember(membership), ...secure(state) }),
    ...(collect === undefined ? {} : { collect: collect.operationUuid }),
    ...(sending.length === 0 ? {} : { sending }),
    ...(setting.length === 0 ? {} : { setting }),
    ...(untold.length === 0 ? {} : { untold }),
    ...(transfer === undefined ? {} : { transfer: transfer.operationUuid }),
    // Nothing is told of a call that was not answered.
    ...(detection === undefined || detection.phase === 'asked' ? {} : { detection: detection.phase }),
    ...(membership?.talking === true && membership.voiceActivityEvents ? { talking: true } : {}),
    ...disconnected(state),
    ...orphan(state),
  };
  return Object.keys(running).length === 0 ? '' : JSON.stringify(running);
}

const onHold = ({ held, toldHolding }: RunningState): Pick<Running, 'held' | 'holding'> => ({
  ...(held ? { held } : {}),
  ...(toldHolding ? { holding: true } : {}),
});

/** The end of a connection is told at once. Its Session may end later: with its last recording, or as an orphan. */
const disconnected = ({ type, phase, hasLeg }: RunningState): Pick<Running, 'disconnected'> =>
  type === 'websocket' && phase === 'answered' && !hasLeg ? { disconnected: true } : {};

const orphan = ({ hasLeg, deadlines }: RunningState): Pick<Running, 'orphan'> =>
  hasLeg || deadlines.orphan === undefined ? {} : { orphan: deadlines.orphan };

const secure = ({ collection }: RunningState): Pick<Running, 'secure'> => (collection === undefined ? {} : { secure: true });

function asMember(membership: Membership | undefined): Pick<Running, 'member'> {
  if (membership?.phase !== 'joined') return {};
  const { muted, voiceActivityEvents, coach, volumes } = membership;
  return {
    member: {
      muted,
      voiceActivityEvents,
      ...(coach === undefined ? {} : { coach }),
      ...(volumes === undefined ? {} : { volumes }),
    },
  };
}

/** Reads the column's text, which this platform wrote. */
export const runningOf = (text: string): Running => (text === '' ? {} : JSON.parse(text));

/**
 * The ends of what a crash cut off, in the order of an ordinary end. `goesOn`: the call does, at another node. No final
 * NOTIFY is waited for any more then, and nobody knows what became of a transfer.
 */
export function cutOff(sessionUuid: string, running: Running, goesOn = false): Event[] {
  const { playback, collect, sending = [], setting = [], untold = [], transfer, detection } = running;
  const failure = { status: 'failure', digits: '', terminator: '', reason: 'internal_error' } as const;
  return [
    ...untold,
    ...volumesFailed(sessionUuid, setting),
    ...(collect === undefined ? [] : [digitsCollected(sessionUuid, { operationUuid: collect }, failure)]),
    ...(playback === undefined ? [] : [playbackFailed(sessionUuid, playback, 'media_unavailable')]),
    ...sending.map((each) => dtmfSent(sessionUuid, each, 'stopped')),
    ...(transfer === undefined ? [] : [transferFailed(sessionUuid, transfer, goesOn ? 'timeout' : 'session_ended')]),
    // The time of the crash is not known, and so neither is this length.
    ...(detection === 'listening' ? [detectionCompleted(sessionUuid, 'unknown', 0)] : []),
    ...(detection === 'greeting' ? [greetingEnded(sessionUuid, false)] : []),
  ];
}

/** The outcomes of volumes that nobody is left to set. */
export const volumesFailed = (sessionUuid: string, setting: readonly VolumeOrder[]): Event[] =>
  setting.map((order) => volumeSet(sessionUuid, order, directionsOf(order.direction)));
