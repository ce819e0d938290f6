/**
 * What runs in a Session and ends with an event of its own: a playback and a collection of digits. It is stored with
 * the command that began it, as JSON in the Session's row, so that the process after a crash can tell its end, exactly
 * once (contract §2, Order at the end).
 */
import type { Event } from '../../event/event.ts';
import type { Collect } from '../dtmf/collect.ts';
import { digitsCollected } from '../dtmf/collect.ts';
import { type Playback, playbackFailed } from '../playback/playback.ts';

export interface Running {
  readonly playback?: Pick<Playback, 'operationUuid' | 'kind' | 'urls'>;
  /** The operation that collects digits. */
  readonly collect?: string;
}

/** The column's text. `""`: nothing runs. */
export function runningText({
  playback,
  collect,
}: {
  readonly playback: Playback | undefined;
  readonly collect: Pick<Collect, 'operationUuid'> | undefined;
}): string {
  if (playback === undefined && collect === undefined) return '';
  const running: Running = {
    ...(playback === undefined
      ? {}
      : { playback: { operationUuid: playback.operationUuid, kind: playback.kind, urls: playback.urls } }),
    ...(collect === undefined ? {} : { collect: collect.operationUuid }),
  };
  return JSON.stringify(running);
}

/** Reads the column's text, which this platform wrote. */
export const runningOf = (text: string): Running => (text === '' ? {} : JSON.parse(text));

/** The ends of what a crash cut off. */
export function cutOff(sessionUuid: string, { playback, collect }: Running): Event[] {
  return [
    ...(collect === undefined
      ? []
      : [
          digitsCollected(
            sessionUuid,
            { operationUuid: collect },
            { status: 'failure', digits: '', terminator: '', reason: 'internal_error' },
          ),
        ]),
    ...(playback === undefined ? [] : [playbackFailed(sessionUuid, playback, 'media_unavailable')]),
  ];
}
