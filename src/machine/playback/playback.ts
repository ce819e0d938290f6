/**
 * The playback of one Session (contract §3), a part of its state:
 *
 *   none ─play→ starting ─started→ playing ─stop→ stopping ─→ none
 *
 * A silence is nothing to the leg: it is playing at once and ends at once.
 * Each admitted play ends in exactly one `playback.ended` or `playback.failed`.
 */
import type { Event, PlaybackFailure } from '../../event/event.ts';
import type { MediaNotice } from '../../notice/signal.ts';

/** Where to go on: from the beginning, or from what is heard now; milliseconds. Before the start is the start, past the end completes. */
export type Place = { readonly positionMs: number } | { readonly offsetMs: number };

/** What is ordered of a playback that goes on. */
export type PlaybackControl =
  | { readonly type: 'pause' }
  | { readonly type: 'resume' }
  | { readonly type: 'restart' }
  | { readonly type: 'seek'; readonly place: Place };

/** What a push sends: one channel, little-endian (interface, Session playback). */
export type PushFormat =
  | { readonly encoding: 'pcm_s16le'; readonly sample_rate: 8000 | 16000 | 24000 | 48000 }
  | { readonly encoding: 'mulaw'; readonly sample_rate: 8000 };

export interface Playback {
  readonly operationUuid: string;
  readonly kind: 'files' | 'stream' | 'silence' | 'push';
  /** Of files. */
  readonly urls: readonly string[];
  readonly phase: 'starting' | 'playing' | 'stopping';
}

export interface PlaybackStep {
  readonly playback: Playback | undefined;
  readonly events: readonly Event[];
}

const urlsOf = ({ kind, urls }: Pick<Playback, 'kind' | 'urls'>): { readonly urls?: readonly string[] } =>
  kind === 'files' ? { urls } : {};

/** The terminal event of a playback that did not fail. */
export const playbackEnded = (sessionUuid: string, playback: Playback, reason: 'completed' | 'stopped'): Event => ({
  event: 'playback.ended',
  session_uuid: sessionUuid,
  operation_uuid: playback.operationUuid,
  ...urlsOf(playback),
  reason,
});

/** The terminal event of a playback that failed; `sourceIndex` names the source that did, where one is known. */
export const playbackFailed = (
  sessionUuid: string,
  playback: Pick<Playback, 'operationUuid' | 'kind' | 'urls'>,
  reason: PlaybackFailure,
  sourceIndex?: number,
): Event => ({
  event: 'playback.failed',
  session_uuid: sessionUuid,
  operation_uuid: playback.operationUuid,
  ...urlsOf(playback),
  reason,
  ...(sourceIndex === undefined ? {} : { source_index: sourceIndex }),
});

/** A command that needs a playback found none: 202, then this (contract §2). */
export const noActivePlayback = (sessionUuid: string, operationUuid: string): Event => ({
  event: 'playback.failed',
  session_uuid: sessionUuid,
  operation_uuid: operationUuid,
  reason: 'no_active_playback',
});

/** What a media notice means for the current playback. Notices of another operation are late ones of a playback already told of. */
export function hearPlayback(sessionUuid: string, playback: Playback | undefined, notice: MediaNotice): PlaybackStep {
  if (playback === undefined || !('operationUuid' in notice) || notice.operationUuid !== playback.operationUuid) {
    return { playback, events: [] };
  }
  const { operationUuid, urls } = playback;
  switch (notice.type) {
    case 'playback.started':
      if (playback.phase !== 'starting') return { playback, events: [] };
      return {
        playback: { ...playback, phase: 'playing' },
        // Of files only (contract §3): the start of anything else is the application's own, or nothing to hear.
        events:
          playback.kind === 'files'
            ? [{ event: 'playback.started', session_uuid: sessionUuid, operation_uuid: operationUuid, urls }]
            : [],
      };
    case 'playback.completed':
      return { playback: undefined, events: [playbackEnded(sessionUuid, playback, 'completed')] };
    case 'playback.stopped':
      return { playback: undefined, events: [playbackEnded(sessionUuid, playback, 'stopped')] };
    case 'playback.failed':
      return {
        playback: undefined,
        events: [playbackFailed(sessionUuid, playback, notice.reason, notice.sourceIndex)],
      };
  }
}
