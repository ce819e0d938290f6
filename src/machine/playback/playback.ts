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

/**
 * A place in a playback, from the beginning or from what is heard now, in milliseconds. A place before the start is the
 * start; one past the end completes.
 */
export type Place = { readonly positionMs: number } | { readonly offsetMs: number };

/** A control of a playback that goes on. */
export type PlaybackControl =
  | { readonly type: 'pause' }
  | { readonly type: 'resume' }
  | { readonly type: 'restart' }
  | { readonly type: 'seek'; readonly place: Place };

/** The samples that a push sends: one channel, little-endian (interface, Session playback). */
export type PushFormat =
  | { readonly encoding: 'pcm_s16le'; readonly sample_rate: 8000 | 16000 | 24000 | 48000 }
  | { readonly encoding: 'mulaw'; readonly sample_rate: 8000 };

export interface Playback {
  readonly operationUuid: string;
  readonly kind: 'files' | 'stream' | 'silence' | 'push';
  /** The URLs that are played. Empty when the playback is a stream, a silence or a push. */
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

/**
 * Takes a media notice. A notice of another operation is a late one of a playback that was already told of, and so is
 * each that comes during a silence, whatever its operation.
 */
export function hearPlayback(sessionUuid: string, playback: Playback | undefined, notice: MediaNotice): PlaybackStep {
  const isLate = playback?.kind === 'silence' || !('operationUuid' in notice) || notice.operationUuid !== playback?.operationUuid;
  if (playback === undefined || isLate) return { playback, events: [] };
  const { operationUuid, urls } = playback;
  switch (notice.type) {
    case 'playback.started':
      if (playback.phase !== 'starting') return { playback, events: [] };
      return {
        playback: { ...playback, phase: 'playing' },
        // Only files tell their start (contract §3): the start of anything else is the application's own, or nothing to
        // hear.
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
