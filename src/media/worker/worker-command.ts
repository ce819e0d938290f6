/**
 * The messages between the main thread and a media worker. Commands arrive in batches and are carried out in order,
 * between two ticks.
 */
import type { Fingerprint, FingerprintHash, IceCredentials } from '../../sdp/ice.ts';
import type { SrtpSuite } from '../../sdp/sdes.ts';
import type { LegCodec, LegCounters, RtpParameters } from '../audio.ts';
import type { StreamFormat } from '../leg/stream.ts';
import type { PlanePriority } from '../native.ts';

/** A command about one leg. */
export type LegCommand =
  | { readonly type: 'open'; readonly leg: number; readonly host: string; readonly port: number }
  | {
      readonly type: 'open stream';
      readonly leg: number;
      readonly inbox: number;
      readonly toSession: StreamFormat;
      readonly fromSession: StreamFormat;
    }
  /** Opens a leg on the WebRTC port of that number. */
  | {
      readonly type: 'open webrtc';
      readonly leg: number;
      readonly port: number;
      readonly ssrc: number;
      readonly ice: IceCredentials;
      readonly fingerprint: Fingerprint;
    }
  | { readonly type: 'restart ice'; readonly leg: number; readonly ice: IceCredentials }
  | { readonly type: 'negotiate'; readonly leg: number; readonly parameters: RtpParameters }
  /** Makes the leg one end of a pipe to another node. */
  | { readonly type: 'pipe'; readonly leg: number; readonly ssrc: number; readonly theirs: number; readonly atOnce: boolean }
  | { readonly type: 'tones'; readonly leg: number; readonly on: boolean }
  | {
      readonly type: 'keys';
      readonly leg: number;
      readonly number: number;
      readonly keys: string;
      readonly durationMs: number;
      readonly gapMs: number;
    }
  | { readonly type: 'answerer'; readonly leg: number; readonly timeoutMs: number }
  | { readonly type: 'counters'; readonly leg: number; readonly request: number }
  /** Moves the leg to the worker whose plane has that number. */
  | { readonly type: 'move'; readonly leg: number; readonly plane: number }
  | { readonly type: 'close'; readonly leg: number };

/** A command about a playback of a leg, or of the room whose number `leg` is. */
export type PlaybackCommand =
  | { readonly type: 'play'; readonly leg: number; readonly playback: number; readonly rateHz: number; readonly volume: number }
  | { readonly type: 'feed'; readonly leg: number; readonly playback: number; readonly pcm: Int16Array<ArrayBuffer> }
  | { readonly type: 'finish'; readonly leg: number; readonly playback: number }
  | { readonly type: 'stop'; readonly leg: number; readonly playback: number }
  | { readonly type: 'pause'; readonly leg: number; readonly playback: number; readonly paused: boolean }
  | { readonly type: 'seek'; readonly leg: number; readonly playback: number }
  | { readonly type: 'playback volume'; readonly leg: number; readonly percent: number };

/** A command about a room, whose number `leg` is, or about a leg as its member. */
export type RoomCommand =
  | { readonly type: 'open room'; readonly leg: number }
  /** The hold music of the room is played under that number. */
  | { readonly type: 'open music'; readonly leg: number; readonly music: number }
  | { readonly type: 'close room'; readonly leg: number }
  | { readonly type: 'voices'; readonly leg: number; readonly on: boolean }
  | {
      readonly type: 'join';
      readonly leg: number;
      readonly room: number;
      readonly muted: boolean;
      readonly from: number;
      readonly to: number;
    }
  /** The member is heard by `coached` only; a number of no member is nobody. */
  | { readonly type: 'coach'; readonly leg: number; readonly coached: number }
  | { readonly type: 'leave'; readonly leg: number }
  | { readonly type: 'mute'; readonly leg: number; readonly muted: boolean }
  | { readonly type: 'room volume'; readonly leg: number; readonly from: boolean; readonly percent: number };

/** A command about a recording of a leg or of a room. */
export type RecordingCommand =
  | {
      readonly type: 'record';
      readonly leg: number;
      readonly recording: number;
      readonly path: string;
      /** The path of the ring, or `''` for none. */
      readonly ring: string;
      /** The sampling rate. 0 means that of the leg or room. */
      readonly rateHz: number;
      readonly includeGaps: boolean;
      readonly voices: { readonly sensitivityPercent: number; readonly onsetMs: number; readonly releaseMs: number } | undefined;
    }
  | { readonly type: 'mask'; readonly leg: number; readonly recording: number; readonly masked: boolean }
  | { readonly type: 'stop recording'; readonly leg: number; readonly recording: number };

export type WorkerCommand =
  | { readonly type: 'start'; readonly mediaTimeoutMs: number }
  | LegCommand
  | PlaybackCommand
  | RoomCommand
  | RecordingCommand
  | { readonly type: 'quit' };

export type WorkerReply =
  | { readonly type: 'up'; readonly plane: number; readonly priority: PlanePriority }
  /** The answer to an opening. An `errno` of 0 means that the leg is open. */
  | { readonly type: 'opened'; readonly leg: number; readonly errno: number }
  | { readonly type: 'counters'; readonly request: number; readonly counters: LegCounters }
  | { readonly type: 'closed'; readonly leg: number; readonly counters: LegCounters }
  /** The leg could not be moved. */
  | { readonly type: 'stayed'; readonly leg: number }
  /** The leg or room to record was not there. */
  | { readonly type: 'not recorded'; readonly recording: number }
  /** Frames of stream legs, as `planeFrames` gives them. */
  | { readonly type: 'frames'; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly type: 'room closed'; readonly leg: number }
  | { readonly type: 'notices'; readonly words: Uint32Array<ArrayBuffer>; readonly count: number }
  /** Sent once a second while the worker ticks. */
  | {
      readonly type: 'pulse';
      readonly ticks: number;
      readonly skippedTicks: number;
      readonly latenessMaxUs: number;
      /** Counts of all ticks so far, by `LATENESS_STEPS_US`. */
      readonly lateness: readonly number[];
      readonly busyUs: number;
    }
  | { readonly type: 'failed'; readonly message: string };

/** The numbers of `Codec` in native/plane/audio/codec.h. */
export const CODEC_NUMBER: Readonly<Record<LegCodec, number>> = {
  PCMU: 0,
  PCMA: 1,
  G722: 2,
  opus: 3,
  'L16/8000': 4,
  'L16/16000': 5,
  'L16/24000': 6,
};

/** The numbers of `FingerprintHash` in native/plane/webrtc/library.h. */
export const FINGERPRINT_HASH_NUMBER: Readonly<Record<FingerprintHash, number>> = { 'sha-256': 1, 'sha-384': 2, 'sha-512': 3 };

/** The numbers of `SrtpSuite` in native/plane/srtp/srtp_session.h. */
export const SRTP_SUITE_NUMBER: Readonly<Record<SrtpSuite, number>> = {
  AES_CM_128_HMAC_SHA1_80: 1,
  AES_CM_128_HMAC_SHA1_32: 2,
  AEAD_AES_128_GCM: 3,
  AEAD_AES_256_GCM: 4,
};

const CODEC_RATE_HZ: Readonly<Record<LegCodec, number>> = {
  PCMU: 8_000,
  PCMA: 8_000,
  G722: 16_000,
  opus: 48_000,
  'L16/8000': 8_000,
  'L16/16000': 16_000,
  'L16/24000': 24_000,
};

/** Rate of the PCM a codec is made from. */
export const codecRateHz = (codec: LegCodec): number => CODEC_RATE_HZ[codec];
