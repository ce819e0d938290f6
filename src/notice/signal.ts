/**
 * The signals of the far end and of the media plane. Both are ordinary inputs of a Session's machine; the doors and the
 * media engine, which stand above the machines, import them from here.
 */
import type { CallQuality, SipEnd, SipFacts } from '../event/call-report.ts';
import type { Answerer, PlaybackFailure } from '../event/event.ts';
import type { HangupBy, HangupCause } from '../event/hangup.ts';
import type { WebSocketClosed, WebSocketError, WebSocketFailure } from '../event/websocket-event.ts';
import type { Replaces } from '../sip/message/replaces.ts';
import type { RecordingNotice } from './recording.ts';

/**
 * What has become of the way to a browser: it is `connected`, the handshake `failed` or showed another certificate, the
 * far end has `closed` it, or it is `lost`: neither a check nor a packet of its audio came for MEDIA_TIMEOUT_SEC.
 */
export type LinkState = 'connected' | 'failed' | 'closed' | 'lost';

export type MediaNotice =
  /** The way to a browser has come up or is over. */
  | { readonly type: 'link'; readonly state: LinkState }
  /** The first valid RTP packet of the leg. */
  | { readonly type: 'media.started' }
  /**
   * Packets come with another payload type than the one in use. Told to the leg alone, which knows what was agreed on.
   */
  | { readonly type: 'payload.changed'; readonly payloadType: number }
  /** No RTP came for `MEDIA_TIMEOUT_SEC` while it was expected. Sent once for each such silence. */
  | { readonly type: 'media.timeout' }
  /** The media worker of the leg is lost, and its sound with it. The last notice but those of its recordings. */
  | { readonly type: 'media.lost' }
  /** The last key of that operation has been sent. */
  | { readonly type: 'keys.sent'; readonly keysOf: string }
  /** A key went down. Its `digit`, or `key.up`, follows. */
  | { readonly type: 'key.down'; readonly digit: string; readonly method: 'rfc4733' | 'inband' }
  /** The key that was down is up, or is another way's twin, and no `digit` of it follows. */
  | { readonly type: 'key.up' }
  /** A key was let go. */
  | { readonly type: 'digit'; readonly digit: string; readonly durationMs: number; readonly method: 'rfc4733' | 'inband' }
  /** Answering machine detection knows who answered, so many milliseconds after it began; once. */
  | { readonly type: 'machine.detected'; readonly result: Answerer; readonly afterMs: number }
  /** The greeting of the machine is over; once. */
  | { readonly type: 'machine.greeting_ended'; readonly beep: boolean }
  /** The first frame of the room's mix has been handed to the network; `room` is its number. */
  | { readonly type: 'room.joined'; readonly room: number }
  /** The leg is out of the room. `isAsked` says that it was asked to leave, so that nothing is lost. */
  | { readonly type: 'room.left'; readonly room: number; readonly isAsked?: true }
  /** The member of a room began or ceased to talk. */
  | { readonly type: 'voice'; readonly talking: boolean }
  | RecordingNotice
  /** The first frame of the first source has been handed to the network. */
  | { readonly type: 'playback.started'; readonly operationUuid: string }
  | { readonly type: 'playback.completed'; readonly operationUuid: string }
  | { readonly type: 'playback.stopped'; readonly operationUuid: string }
  | {
      readonly type: 'playback.failed';
      readonly operationUuid: string;
      readonly reason: PlaybackFailure;
      readonly sourceIndex?: number;
    };

/**
 * Whether the notice is of a playback of that name, which several may have after one another: the application chooses
 * the Operation-Id. What waits as one of them begins is of the one before, whose end has been told.
 */
export const isOfPlayback = (notice: MediaNotice, name: string): boolean =>
  'operationUuid' in notice && notice.operationUuid === name;

/** Whether a notice tells the end of speech. */
export const isSpeechEnd = (notice: MediaNotice): boolean =>
  notice.type === 'speech.ended' || (notice.type === 'voice' && !notice.talking);

/** Whether a notice tells the beginning of the speech whose end `over` tells. */
export const beginsSpeech = (notice: MediaNotice, over: MediaNotice): boolean =>
  notice.type === 'voice'
    ? notice.talking && over.type === 'voice'
    : notice.type === 'speech.started' && over.type === 'speech.ended' && notice.recordingUuid === over.recordingUuid;

/**
 * Whether the end of the Session tells the same. A leg that is closing does not signal it, so that the end tells it in
 * its own order (contract §2, Order at the end), and says why.
 */
export const isToldByEnd = ({ type }: MediaNotice): boolean => type === 'room.left' || type === 'playback.stopped';

/** The reason why a leg is over, as seen from the wire (contract §2, `hangup_cause`). */
export interface LegEnd {
  readonly cause: HangupCause;
  readonly by: HangupBy;
  readonly description: string;
  /**
   * The far end was silent for too long: the Session ends as if it had never been answered (interface, Orphaned Session
   * cleanup).
   */
  readonly orphaned?: boolean;
  /** The far end hung up an answered call, whatever cause it gave. */
  readonly hungUp?: boolean;
  /** What the far end said of it. */
  readonly sip?: SipEnd;
  readonly quality?: CallQuality;
}

export type LegSignal =
  | { readonly type: 'leg.ringing' }
  | { readonly type: 'leg.early_media' }
  /** Our 200 went out, or theirs came in. */
  | { readonly type: 'leg.answered'; readonly sip?: SipFacts }
  | { readonly type: 'leg.held' }
  | { readonly type: 'leg.resumed' }
  /** Our own hold has taken effect, or has ended. */
  | { readonly type: 'leg.own_hold'; readonly on: boolean }
  /**
   * What came of the transfer that was ordered. `status` is the SIP status of a refusal, 0 when there was no answer.
   */
  | { readonly type: 'leg.transfer'; readonly phase: 'accepted' }
  | { readonly type: 'leg.transfer'; readonly phase: 'completed' }
  | { readonly type: 'leg.transfer'; readonly phase: 'refused' | 'failed'; readonly status: number }
  /**
   * The far end asks to be transferred to a URI. One that wants two calls of its own to be connected names the dialog
   * of the other one; `toSessionUuid` is the Session of that, where the application has it.
   */
  | {
      readonly type: 'leg.transfer_requested';
      readonly target: string;
      readonly replaces?: Replaces;
      readonly toSessionUuid?: string;
    }
  /** The far end of a silent call showed that it is still there. */
  | { readonly type: 'leg.alive' }
  /** The last signal of a leg, sent exactly once, whoever ended it; its ports and dialog are given back. */
  | { readonly type: 'leg.ended'; readonly end: LegEnd }
  /** The WebSocket is open. `subprotocol` is what is spoken over it; undefined is raw audio alone. */
  | { readonly type: 'leg.connected'; readonly subprotocol?: string }
  /** It never was. The last signal of its leg, as `leg.ended`. */
  | { readonly type: 'leg.failed'; readonly reason: WebSocketFailure; readonly error: WebSocketError; readonly end: LegEnd }
  /** It is closed. The last signal of its leg, as `leg.ended`. */
  | { readonly type: 'leg.disconnected'; readonly reason: WebSocketClosed; readonly closeCode: number; readonly end: LegEnd }
  /** All that the WebSocket's server had sent has been heard, and nothing has come for 200 ms. */
  | { readonly type: 'leg.played'; readonly durationMs: number }
  /** A key by SIP INFO; keys by RFC 4733 and in band are media notices. */
  | { readonly type: 'leg.digit'; readonly digit: string; readonly durationMs: number }
  | { readonly type: 'leg.media'; readonly notice: MediaNotice };
