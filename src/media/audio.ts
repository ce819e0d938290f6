/**
 * The sound of calls as the main thread sees it: legs, Rooms, what is played to them and recorded of them. The
 * implementation is below `media/leg`, `media/playback` and `media/recording`.
 */
import type { PlaybackControl } from '../machine/playback/playback.ts';
import type { MediaNotice } from '../notice/signal.ts';
import type { SourceDetail } from '../problem.ts';
import type { AudioCodec } from '../sdp/codec.ts';
import type { Fingerprint, IceCredentials } from '../sdp/ice.ts';
import type { SrtpKeys } from '../sdp/sdes.ts';

/** What a codec is called in SDP. */
export type CodecName = AudioCodec;

/** The terms of one audio stream, as an offer and its answer agreed on them (RFC 3264). */
export interface RtpParameters {
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly remoteRtcpPort: number;
  /**
   * The addresses and CIDRs that another source of RTP than `remoteHost` may be learnt from: the peer's signalling
   * address and the ranges of its trunk. Empty: nobody else is ever heard.
   */
  readonly learnFrom: readonly string[];
  /** The call is on hold: no other source is learnt meanwhile. */
  readonly held: boolean;
  readonly codec: LegCodec;
  readonly payloadType: number;
  /** Payload type of telephone-event (RFC 4733), or undefined when it was not agreed. */
  readonly telephoneEventPayloadType: number | undefined;
  /** The clock of telephone-event: 8000 unless it says 48000, which it may beside Opus. */
  readonly telephoneEventClockHz?: number | undefined;
  /** Further payload types by which the far end may send the same audio and events. */
  readonly ownPayloadType?: number | undefined;
  readonly ownEventPayloadType?: number | undefined;
  /** Milliseconds of audio in a packet we send, 10 to 60. */
  readonly ptimeMs: number;
  /** The bits a second that the far end takes of Opus on average, at most. Undefined: as many as we send. */
  readonly maxBitrate?: number | undefined;
  /** We send audio (the far end has not asked us to be silent). */
  readonly send: boolean;
  /** We expect audio; the media timeout runs only while this is true. */
  readonly receive: boolean;
  /** The call is not answered yet. The media timeout runs from its answer on. */
  readonly isRinging?: boolean | undefined;
  /** We hold the far end, whether or not it holds us as well: it is neither heard nor recorded. */
  readonly isHolding?: boolean | undefined;
  /** What our packets begin with. It counts with the first terms of a leg; left out, it is random. */
  readonly numbers?: { readonly sequence: number; readonly timestamp: number };
  /** The keys that encrypt the stream. Undefined means that it is in clear. */
  readonly srtp?: SrtpKeys | undefined;
}

/** Counters of one leg (RFC 3550 §6.4), as of the call. */
export interface LegCounters {
  readonly packetsReceived: number;
  readonly packetsSent: number;
  /**
   * At least 0. RFC 3550 §6.4.1 counts from the first packet that came, so that its loss, which RTCP tells, is -1 where
   * the one before it was overtaken.
   */
  readonly packetsLost: number;
  /** Came, but after they were due to be heard. */
  readonly packetsLate: number;
  /** Interarrival jitter (RFC 3550 §6.4.1). */
  readonly jitterMs: number;
  /** Milliseconds that the jitter buffer added to the last frame. 0 means that nobody listens. */
  readonly delayMs: number;
  /** Milliseconds, by the far end's last report (RTCP). 0 means that it has not said. */
  readonly roundTripMs: number;
  /**
   * The estimated MOS of what the far end sends, from loss and delay (E-model, ITU-T G.107): 1 to 4.5. 0 means that
   * nothing was heard of it.
   */
  readonly mos: number;
  /** Encrypted packets that were dropped: their authentication failed. */
  readonly srtpForged: number;
  /** Encrypted packets that were dropped: they had come before, or were older than the replay window. */
  readonly srtpReplayed: number;
}

/** The counters of a leg of which nothing is known. */
export const NO_COUNTERS: LegCounters = {
  packetsReceived: 0,
  packetsSent: 0,
  packetsLost: 0,
  packetsLate: 0,
  jitterMs: 0,
  delayMs: 0,
  roundTripMs: 0,
  mos: 0,
  srtpForged: 0,
  srtpReplayed: 0,
};

/** Something to play that was opened and screened, ready to be played on any one leg. Must be played or released. */
export interface Playlist {
  /** The URLs that are played. Empty when the playlist is a stream or a push. */
  readonly urls: readonly string[];
  /** Gives connections and buffers back. Safe to call twice, and after the playlist was played. */
  release(): void;
}

export interface PlayOptions {
  readonly operationUuid: string;
  readonly playlist: Playlist;
  readonly loop: number;
  readonly volume: number;
}

export interface RecordOptions {
  readonly recordingUuid: string;
  /** A file to be made, of at most 1,024 bytes of name; its folder exists. */
  readonly path: string;
  /**
   * A file in memory to be made (recording-rings.ts), from which a crash loses nothing; without it the recording is
   * written more often.
   */
  readonly ring?: string;
  /** 8000, 16000, 24000 or 48000; without it that of the leg or room now. */
  readonly rateHz?: number;
  /** Whether masked spans, hold and interruptions are kept as silence, or left out. */
  readonly includeGaps: boolean;
  /**
   * The terms of voice activity. When they are given, `speech.started` and `speech.ended` are told of the leg's far
   * end, or of anyone in the room.
   */
  readonly voiceActivity?: {
    /** A number from 0 to 1. A higher one hears more. */
    readonly sensitivity: number;
    readonly speechDurationMs: number;
    readonly silenceDurationMs: number;
  };
}

/** One recording under way. Its commands are without effect once it has ended. */
export interface MediaRecording {
  mask(): void;
  unmask(): void;
  /** Ends the recording. `recording.ended` follows when the file is finished and durable. */
  stop(): void;
}

/**
 * A leg or a room, which can be recorded several times at once. Its end ends its recordings, whose notices may follow.
 */
export interface Recordable {
  /**
   * Mono 16-bit WAV of all that is said and heard. `recording.started` when the first audio is durable; then
   * `recording.ended`, or `recording.failed` where the disk fails or is too slow, which no call notices.
   */
  record(options: RecordOptions): MediaRecording;
}

export interface JoinOptions {
  readonly muted: boolean;
  /** Percent, 0 to 200: what others hear of the member, and what it hears of them. */
  readonly fromVolumePercent: number;
  readonly toVolumePercent: number;
  /**
   * The member is a coach: only `of` hears it, and nobody once that is not in the room, or where it is undefined. It
   * hears everyone, and recordings of the room do not contain it.
   */
  readonly coach?: { readonly of: RoomMember | undefined };
}

/** A leg as a member of rooms: of one at a time. What plays on the leg itself is heard by it alone, over the room. */
export interface RoomMember {
  /**
   * Joins, leaving any other room first. `room.joined` follows when the first mixed frame was sent, `room.left` where
   * the room is over. Joining the room it is in changes nothing.
   */
  join(room: MediaRoom, options: JoinOptions): void;
  /** Leaves the room. `room.left` follows if the leg was in one. */
  leave(): void;
  setMuted(muted: boolean): void;
  /** A member that joined as a coach is heard by `of` from now on, and by nobody where that is not in its room. */
  coach(of: RoomMember | undefined): void;
  /** Sets a volume. Returns false, and sets nothing, when the leg is closed or its worker is lost. */
  setVolume(direction: 'from_member' | 'to_member', percent: number): boolean;
}

/** A leg or a room as the place of one playback at a time. */
export interface Player {
  /** Plays instead of what was playing, which ends as `playback.stopped`. */
  play(options: PlayOptions): void;
  /** Stops the playback of that operation; `playback.stopped` follows if it was playing. */
  stopPlayback(operationUuid: string): void;
  /** Holds, goes on with, or moves within the playback of that operation; no effect where another one plays or none. */
  controlPlayback(operationUuid: string, control: PlaybackControl): void;
}

/** The sound of one leg, whatever carries it: what is played to it, what is recorded of it, and the Room it is in. */
export interface LegAudio extends Player, Recordable, RoomMember {
  /** The codec in which its sound goes to another node with the least loss and work. */
  readonly pipeCodec: PipeCodec;
}

/** The codecs of pipes between nodes. L16 is samples of 16 bits at a rate in Hz (RFC 3551 §4.5.11), for pipes only. */
export type PipeCodec = 'PCMU' | 'PCMA' | 'G722' | 'L16/8000' | 'L16/16000' | 'L16/24000';

/** The codecs that a leg can speak. */
export type LegCodec = CodecName | PipeCodec;

/** The place to which the RTP of a pipe goes. `host` is a literal address. */
export interface PipeEnd {
  readonly host: string;
  readonly port: number;
  readonly ssrc: number;
}

/** One end of a pipe between two nodes, as a member of rooms. */
export interface MediaPipe extends RoomMember {
  readonly end: PipeEnd;
  /** Begins to send, and to hear the other end and nobody else. */
  connect(other: PipeEnd, codec: PipeCodec): void;
  counters(): Promise<LegCounters>;
  close(): Promise<LegCounters>;
}

export interface PipeOptions {
  /** A literal address to bind, on the network between the nodes. */
  readonly host: string;
  /** It is alone with one leg in its room, whose packets it passes on from the first tick. */
  readonly atOnce: boolean;
  notify(notice: MediaNotice): void;
  /** Nothing has come for 300 ms. Told once for each such silence. */
  onSilent(): void;
}

/**
 * The notices of a room. Those of its playbacks and recordings are the same as a leg's; `room.lost` tells that its
 * worker died, and its members with it. The room goes on empty, on another worker as soon as one ticks.
 */
export type RoomNotice =
  | Extract<MediaNotice, { readonly type: `playback.${string}` | `recording.${string}` | `speech.${string}` }>
  | { readonly type: 'room.lost' };

/** A mix in which every member hears all the others, and what is played. */
export interface MediaRoom extends Player, Recordable {
  /** The number of the room, as the members' `room.joined` and `room.left` give it. */
  readonly number: number;
  /** Sets the volume of the playback that is heard now, in percent. */
  setPlaybackVolume(percent: number): void;
  /**
   * Plays music, over and over, to a member that is alone while nothing else is played, in place of what it played
   * before. It is recorded nowhere. `failed` tells why it broke off.
   */
  playMusic(playlist: Playlist, failed: (reason: string) => void): void;
  stopMusic(): void;
  /** Whether members' `voice` notices are told. */
  setVoiceActivity(on: boolean): void;
  /**
   * Stops the playback; every member leaves. Resolves when its last notice was given; the members' `room.left` may
   * still follow.
   */
  close(): Promise<void>;
}

/** One UDP port pair and everything that runs on it. */
export interface RtpLeg extends LegAudio {
  /** The address to write into SDP. */
  readonly host: string;
  readonly port: number;
  /**
   * Starts the stream, or changes it: nothing is sent before the first call, and each later one is a re-negotiation.
   */
  negotiate(parameters: RtpParameters): void;
  /**
   * Whether keys are heard in the audio too (DTMF tones, `method: 'inband'`). A key that comes both ways is told once,
   * as rfc4733.
   */
  detectTones(on: boolean): void;
  /**
   * Sends keys (0-9, A-D, *, #; `w` waits 0.5 s, `W` 1 s) after those that are being sent: as telephone-events where
   * they were agreed, else as tones. `keys.sent` follows the last one.
   */
  sendKeys(operationUuid: string, keys: string, durationMs: number, gapMs: number): void;
  /**
   * Listens, from now on and beside everything else, whether a person or a machine speaks (docs/api.md). One
   * `machine.detected` follows within about `timeoutMs`, and after a machine one `machine.greeting_ended`.
   */
  detectMachine(timeoutMs: number): void;
  counters(): Promise<LegCounters>;
  /**
   * Gives the ports back (they rest 60 s). A playback in progress ends as `playback.stopped` first. Resolves when the
   * last notice was given.
   */
  close(): Promise<LegCounters>;
}

/**
 * A leg on the port that all WebRTC legs share. `link` notices tell of it; nothing is sent or heard before it is
 * connected.
 */
export interface WebrtcLeg extends Omit<RtpLeg, 'host' | 'port'> {
  /** Lets the far end also move by these credentials from now on (ICE restart). */
  restartIce(own: IceCredentials): void;
}

/** What a WebRTC leg begins with. */
export interface WebrtcLegOptions {
  /** The source that it sends as, which SDP names. */
  readonly ssrc: number;
  /** Our side of ICE. */
  readonly ice: IceCredentials;
  /** The certificate that the far end must show. */
  readonly fingerprint: Fingerprint;
}

/** The reason why a source was not admitted (interface, 502 detail object). */
export interface SourceRefused {
  readonly refused: SourceDetail;
}
