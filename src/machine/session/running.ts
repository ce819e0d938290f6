/**
 * What runs in a Session and ends with an event of its own: a playback, a collection of digits, digits that are sent
 * and a transfer. It is stored with the command that began it, as JSON in the Session's row, so that the process after
 * a crash can tell its end, exactly once (contract §2, Order at the end).
 */
import type { Event } from '../../event/event.ts';
import type { Collect } from '../dtmf/collect.ts';
import { digitsCollected } from '../dtmf/collect.ts';
import { type Playback, playbackFailed } from '../playback/playback.ts';
import { dtmfSent, transferFailed } from './operation-end.ts';

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
}

/** The parts of a Session's state that are stored. */
interface RunningState {
  readonly playback: Playback | undefined;
  readonly collect: Pick<Collect, 'operationUuid'> | undefined;
  readonly sending: readonly Digits[];
  readonly transfer: Operation | undefined;
}

/** The column's text. `""`: nothing runs. */
export function runningText({ playback, collect, sending, transfer }: RunningState): string {
  if (playback === undefined && collect === undefined && sending.length === 0 && transfer === undefined) return '';
  const running: Running = {
    ...(playback === undefined
      ? {}
      : { playback: { operationUuid: playback.operationUuid, kind: playback.kind, urls: playback.urls } }),
    ...(collect === undefined ? {} : { collect: collect.operationUuid }),
    ...(sending.length === 0 ? {} : { sending }),
    ...(transfer === undefined ? {} : { transfer: transfer.operationUuid }),
  };
  return JSON.stringify(running);
}

/** Reads the column's text, which this platform wrote. */
export const runningOf = (text: string): Running => (text === '' ? {} : JSON.parse(text));

/** The ends of what a crash cut off, in the order of an ordinary end. */
export function cutOff(sessionUuid: string, { playback, collect, sending = [], transfer }: Running): Event[] {
  const failure = { status: 'failure', digits: '', terminator: '', reason: 'internal_error' } as const;
  return [
    ...(collect === undefined ? [] : [digitsCollected(sessionUuid, { operationUuid: collect }, failure)]),
    ...(playback === undefined ? [] : [playbackFailed(sessionUuid, playback, 'media_unavailable')]),
    ...sending.map((each) => dtmfSent(sessionUuid, each, 'stopped')),
    ...(transfer === undefined ? [] : [transferFailed(sessionUuid, transfer, 'session_ended')]),
  ];
}
