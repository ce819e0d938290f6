/**
 * What runs in a Session and ends with an event of its own: a playback, a collection of digits, digits that are sent,
 * a transfer and the detection of an answering machine. It is stored with the command that began it, as JSON in the Session's row, so that the process after
 * a crash can tell its end, exactly once (contract §2, Order at the end).
 */
import type { Event } from '../../event/event.ts';
import type { Collect } from '../dtmf/collect.ts';
import { digitsCollected } from '../dtmf/collect.ts';
import { type Playback, playbackFailed } from '../playback/playback.ts';
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
  /** The operation that transfers. */
  readonly transfer?: string;
  /** What is listened for: who answered, or the end of a machine's greeting. */
  readonly detection?: 'listening' | 'greeting';
}

/** The parts of a Session's state that are stored. */
interface RunningState {
  readonly playback: Playback | undefined;
  readonly collect: Pick<Collect, 'operationUuid'> | undefined;
  readonly sending: readonly Digits[];
  readonly transfer: Operation | undefined;
  readonly detection: { readonly phase: 'asked' | 'listening' | 'greeting' } | undefined;
}

/** The column's text. `""`: nothing runs. */
export function runningText({ playback, collect, sending, transfer, detection }: RunningState): string {
  const running: Running = {
    ...(playback === undefined
      ? {}
      : { playback: { operationUuid: playback.operationUuid, kind: playback.kind, urls: playback.urls } }),
    ...(collect === undefined ? {} : { collect: collect.operationUuid }),
    ...(sending.length === 0 ? {} : { sending }),
    ...(transfer === undefined ? {} : { transfer: transfer.operationUuid }),
    // Nothing is told of a call that was not answered.
    ...(detection === undefined || detection.phase === 'asked' ? {} : { detection: detection.phase }),
  };
  return Object.keys(running).length === 0 ? '' : JSON.stringify(running);
}

/** Reads the column's text, which this platform wrote. */
export const runningOf = (text: string): Running => (text === '' ? {} : JSON.parse(text));

/** The ends of what a crash cut off, in the order of an ordinary end. */
export function cutOff(sessionUuid: string, { playback, collect, sending = [], transfer, detection }: Running): Event[] {
  const failure = { status: 'failure', digits: '', terminator: '', reason: 'internal_error' } as const;
  return [
    ...(collect === undefined ? [] : [digitsCollected(sessionUuid, { operationUuid: collect }, failure)]),
    ...(playback === undefined ? [] : [playbackFailed(sessionUuid, playback, 'media_unavailable')]),
    ...sending.map((each) => dtmfSent(sessionUuid, each, 'stopped')),
    ...(transfer === undefined ? [] : [transferFailed(sessionUuid, transfer, 'session_ended')]),
    // The time of the crash is not known, and so neither is this length.
    ...(detection === 'listening' ? [detectionCompleted(sessionUuid, 'unknown', 0)] : []),
    ...(detection === 'greeting' ? [greetingEnded(sessionUuid, false)] : []),
  ];
}
