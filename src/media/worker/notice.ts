/** The notices of the native plane as they lie in its buffer: records of eight 32-bit words (native/plane/notice.h). */

/** The numbers of `NoticeKind` in native/plane/notice.h. */
export const NOTICE = {
  mediaStarted: 1,
  mediaTimeout: 2,
  digit: 3,
  playbackStarted: 4,
  playbackEnded: 5,
  playbackStopped: 6,
  playbackHungry: 7,
  roomJoined: 8,
  roomLeft: 9,
  voice: 10,
  moved: 11,
  recordingStarted: 12,
  recordingEnded: 13,
  recordingFailed: 14,
  speechStarted: 15,
  playbackMoved: 16,
  speechEnded: 17,
  streamPlayed: 18,
  keysSent: 19,
  answerer: 20,
  greetingEnded: 21,
  link: 22,
  payloadType: 23,
  keyDown: 24,
  keyUp: 25,
  pipeSilent: 40,
} as const;

/** The states of a link, by the numbers of `LinkState` in native/plane/webrtc/webrtc_link.h. */
export const LINK_STATES = ['checking', 'connected', 'failed', 'closed', 'lost'] as const;

export const NOTICE_WORDS = 8;
/** Words before the first notice: the report of the tick. */
export const REPORT_WORDS = 8;

export interface NoticeRecord {
  readonly kind: number;
  readonly leg: number;
  /**
   * The playback or the room; for a digit and a key that is down its character code, for a voice 1 while it talks, for
   * an answerer its number, for a greeting 1 where it ended with a beep.
   */
  readonly a: number;
  /**
   * The duration of a digit, what a hungry playback has queued, or when the answerer was known, in milliseconds. For a
   * moved playback, the samples heard before.
   */
  readonly b: number;
  /** The samples that were fed so far to a hungry playback. */
  readonly c: number;
  /** Milliseconds of silence that were sent for want of audio by a hungry playback. */
  readonly d: number;
}

/** Unpacks `count` notices from a buffer without the report. */
export function* unpackNotices(words: Uint32Array, count: number): Generator<NoticeRecord> {
  for (let at = 0; at < count * NOTICE_WORDS; at += NOTICE_WORDS) {
    yield {
      kind: words[at] ?? 0,
      leg: words[at + 1] ?? 0,
      a: words[at + 2] ?? 0,
      b: words[at + 3] ?? 0,
      c: words[at + 4] ?? 0,
      d: words[at + 5] ?? 0,
    };
  }
}
