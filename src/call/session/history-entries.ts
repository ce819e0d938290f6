/** What the history keeps of a Session's inputs. */
import type { MediaEntry } from '../../history/entry.ts';
import type { SessionInput } from '../../machine/session/input.ts';
import { isSecuredKey } from '../../machine/session/operation/payment.ts';
import type { SessionState } from '../../machine/session/session.ts';
import type { MediaNotice } from '../../notice/signal.ts';

/**
 * The timeline's entry for an input, or undefined for one that says nothing of the call's audio. A digit has no value
 * while a card is collected, nor right after that, nor does its length tell anything then.
 */
export function mediaEntry(input: SessionInput, state: SessionState, now: number): MediaEntry | undefined {
  switch (input.type) {
    case 'leg.answered':
      return { kind: 'media', what: 'connected', ...(input.sip?.codec === undefined ? {} : { codec: input.sip.codec }) };
    case 'leg.early_media':
      return { kind: 'media', what: 'early_media' };
    case 'leg.held':
    case 'leg.resumed':
      return { kind: 'media', what: input.type.slice(4), by: 'far_end' };
    case 'leg.own_hold':
      return { kind: 'media', what: input.on ? 'held' : 'resumed', by: 'application' };
    case 'leg.digit':
      return digit(input.digit, input.durationMs, 'sip_info', isSecuredKey(state, input.durationMs, now));
    case 'leg.media':
      return ofNotice(input.notice, state, now);
    default:
      return undefined;
  }
}

function ofNotice(notice: MediaNotice, state: SessionState, now: number): MediaEntry | undefined {
  switch (notice.type) {
    case 'link':
      return { kind: 'media', what: `link_${notice.state}` };
    case 'media.started':
    case 'media.timeout':
    case 'media.lost':
      return { kind: 'media', what: notice.type.slice(6) };
    case 'digit':
      return digit(notice.digit, notice.durationMs, notice.method, isSecuredKey(state, notice.durationMs, now));
    case 'keys.sent':
      return { kind: 'media', what: 'digits_sent', operation_uuid: notice.keysOf };
    case 'playback.started':
    case 'playback.completed':
    case 'playback.stopped':
      return { kind: 'media', what: named(notice.type), operation_uuid: operationOf(notice.operationUuid) };
    case 'playback.failed':
      return { kind: 'media', what: 'playback_failed', operation_uuid: operationOf(notice.operationUuid), reason: notice.reason };
    case 'room.joined':
    case 'room.left':
      return { kind: 'media', what: named(notice.type) };
    case 'recording.started':
      return { kind: 'media', what: 'recording_started', recording_uuid: notice.recordingUuid };
    case 'recording.ended':
      return {
        kind: 'media',
        what: 'recording_ended',
        recording_uuid: notice.recordingUuid,
        duration_ms: Math.round(notice.durationMs),
      };
    case 'recording.failed':
      return { kind: 'media', what: 'recording_failed', recording_uuid: notice.recordingUuid, reason: notice.reason };
    case 'speech.started':
    case 'speech.ended':
      return { kind: 'media', what: named(notice.type), recording_uuid: notice.recordingUuid };
    default:
      return undefined;
  }
}

const named = (type: string): string => type.replace('.', '_');

function digit(value: string, durationMs: number, method: string, isSecret: boolean): MediaEntry {
  if (isSecret) return { kind: 'media', what: 'digit', method };
  return { kind: 'media', what: 'digit', digit: value, duration_ms: Math.round(durationMs), method };
}

/** The operation of a playback: a prompt is played under it and a name of its own. */
const operationOf = (name: string): string => name.split('/', 1)[0] ?? name;
