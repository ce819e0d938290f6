/**
 * The one importer of the addon. Every thread that imports this gets an environment of its own; handles never leave the
 * thread that made them. Arguments are validated by the callers; the addon throws a TypeError for what still is wrong.
 */
declare const handle: unique symbol;
export interface PlaneHandle {
  readonly [handle]: 'plane';
}
export interface WavHandle {
  readonly [handle]: 'wav';
}
export interface PcmHandle {
  readonly [handle]: 'pcm';
}
export interface AacHandle {
  readonly [handle]: 'aac';
}
export interface MpegHandle {
  readonly [handle]: 'mpeg';
}

/** The priority of a thread: 0 is ordinary, 1 a better niceness, 2 real-time (native/plane/priority.h). */
export type PlanePriority = 0 | 1 | 2;

interface Native {
  planeCreate(mediaTimeoutMs: number): PlaneHandle;
  planeDestroy(plane: PlaneHandle): void;
  /** Ends the sleep of `planeRun` of the plane of that number, on any thread. Returns whether there is one. */
  wake(number: number): boolean;
  /**
   * Sleeps to the next tick, runs what is due; returns the notices written from word 8 on, eight words each
   * (notice.ts).
   */
  planeRun(plane: PlaneHandle, notices: Uint32Array): number;
  /** Returns the priority of the thread that made the plane. */
  planePriority(plane: PlaneHandle): PlanePriority;
  /**
   * Gives the thread of the plane of that number, which hangs, the lowest ordinary priority. Returns whether that was
   * possible. Any thread may call it.
   */
  planeGiveUp(number: number): boolean;
  planeNotices(plane: PlaneHandle, notices: Uint32Array): number;
  /** Returns 0 or an errno. */
  legOpen(plane: PlaneHandle, leg: number, host: string, port: number): number;
  legClose(plane: PlaneHandle, leg: number, counters: Uint32Array): boolean;
  legCounters(plane: PlaneHandle, leg: number, counters: Uint32Array): boolean;
  /**
   * Starts or changes the stream. `learnFrom` are addresses and CIDRs, separated by commas, from which another source
   * may be learnt (native/plane/leg/latch.h). A `maxBitrate` of 0 is none. With a `firstSequence` of -1 the leg's first
   * packet has numbers of its own. The suite is 0 for a stream in clear, and
   * the keys are empty then.
   */
  legNegotiate(
    plane: PlaneHandle,
    leg: number,
    remoteHost: string,
    remotePort: number,
    remoteRtcpPort: number,
    codec: number,
    payloadType: number,
    telephoneEventPayloadType: number,
    telephoneEventClockHz: number,
    ownPayloadType: number,
    ownEventPayloadType: number,
    ptimeMs: number,
    maxBitrate: number,
    send: boolean,
    receive: boolean,
    held: boolean,
    ringing: boolean,
    holding: boolean,
    learnFrom: string,
    firstSequence: number,
    firstTimestamp: number,
    srtpSuite: number,
    sendKey: Uint8Array,
    receiveKey: Uint8Array,
  ): boolean;
  /** Makes a leg one end of a pipe to another node (native/plane/leg/leg.h). */
  legPipe(plane: PlaneHandle, leg: number, ssrc: number, theirSsrc: number, atOnce: boolean): boolean;
  /** Whether this build can do Opus (native/plane/audio/opus.h). */
  opusSupported(): boolean;
  /** Whether this build can do WebRTC (native/plane/webrtc/library.h). */
  webrtcSupported(): boolean;
  /**
   * Opens the port of all WebRTC legs. A browser that is unheard for `consentMs` is lost. Returns 0 or an errno; `out`
   * becomes its number and the UDP port.
   */
  webrtcOpen(host: string, port: number, consentMs: number, out: Uint32Array): number;
  webrtcClose(port: number): boolean;
  /** The SHA-256 of its certificate as SDP writes it. */
  webrtcFingerprint(port: number): string;
  /** Eight counters, in the order of `WebrtcCounters` in native/plane/webrtc/webrtc_port.h. */
  webrtcCounters(port: number, out: Uint32Array): boolean;
  /** Returns 0 or an errno. The hash is 1 for SHA-256, 2 for SHA-384, 3 for SHA-512. */
  legOpenWebrtc(
    plane: PlaneHandle,
    leg: number,
    ssrc: number,
    port: number,
    ufrag: string,
    password: string,
    hash: number,
    fingerprint: Uint8Array,
  ): number;
  legRestartIce(plane: PlaneHandle, leg: number, ufrag: string, password: string): boolean;
  /** Whether this build can do a suite (native/plane/srtp/srtp_session.h). */
  srtpSupports(suite: number): boolean;
  /** Sends keys (native/plane/leg/key_sender.h). False when there is no such leg, or too many wait. */
  legKeys(plane: PlaneHandle, leg: number, number: number, keys: string, durationMs: number, gapMs: number): boolean;
  /** Detects whether a machine has answered (native/kernel/answer/answer_detector.h). */
  legAnswerer(plane: PlaneHandle, leg: number, timeoutMs: number): boolean;
  legPlay(plane: PlaneHandle, leg: number, playback: number, rateHz: number, volumePercent: number): boolean;
  /** Hands PCM to the player. False when the playback is over or its queue full. */
  legFeed(plane: PlaneHandle, leg: number, playback: number, pcm: Int16Array): boolean;
  legFinish(plane: PlaneHandle, leg: number, playback: number): boolean;
  legStop(plane: PlaneHandle, leg: number, playback: number): boolean;
  legPause(plane: PlaneHandle, leg: number, playback: number, paused: boolean): boolean;
  /** Announces that the PCM from now on is another place of the same playback; `playbackMoved` tells how far it was. */
  legSeek(plane: PlaneHandle, leg: number, playback: number): boolean;
  /** The plane's number for `legMove`, unique in the process. */
  planeNumber(plane: PlaneHandle): number;
  /** Hands a leg to another plane of the process, which notices `moved`. False where that is impossible. */
  legMove(plane: PlaneHandle, leg: number, toPlane: number): boolean;
  /** Sets the volume of what plays on a leg or in a room. */
  playVolume(plane: PlaneHandle, leg: number, percent: number): boolean;
  /**
   * Records a leg or room. A rate of 0 is its own, a ring of `''` is none, and the sensitivity is in percent. Notices
   * come under the recording's number.
   */
  record(
    plane: PlaneHandle,
    of: number,
    recording: number,
    path: string,
    ring: string,
    rateHz: number,
    includeGaps: boolean,
    voices: boolean,
    sensitivityPercent: number,
    onsetMs: number,
    releaseMs: number,
  ): boolean;
  recordMask(plane: PlaneHandle, of: number, recording: number, masked: boolean): boolean;
  recordStop(plane: PlaneHandle, of: number, recording: number): boolean;
  /**
   * Someone listens to the file as it grows, or no longer does: it is written in short steps meanwhile. Of the process,
   * by any thread.
   */
  recordFollow(path: string, followed: boolean): void;
  /** A buffer for the audio of a stream leg, of the process: any thread may write to it by its number. */
  inboxOpen(): number;
  inboxClose(inbox: number): void;
  /** Writes audio. False when `mostBytes` or more are waiting already; nothing is taken then. */
  inboxWrite(inbox: number, bytes: Uint8Array, mostBytes: number): boolean;
  inboxClear(inbox: number): void;
  inboxPause(inbox: number, on: boolean): void;
  /**
   * A leg whose far end is script: what is written to the inbox is played in it, and its frames come by `planeFrames`.
   */
  streamOpen(
    plane: PlaneHandle,
    leg: number,
    inbox: number,
    toMulaw: boolean,
    toHz: number,
    fromMulaw: boolean,
    fromHz: number,
  ): boolean;
  /**
   * Records of 32-bit words (leg, bytes passed by its inbox, bytes of the frame) and the frame, padded to four. More
   * than `out` holds: too short.
   */
  planeFrames(plane: PlaneHandle, out: Uint8Array): number;
  roomOpen(plane: PlaneHandle, room: number): boolean;
  roomClose(plane: PlaneHandle, room: number): boolean;
  /** Gives the hold music of a room a number, under which it is played (native/plane/room/room.h). */
  roomMusic(plane: PlaneHandle, room: number, music: number): boolean;
  roomVoices(plane: PlaneHandle, room: number, on: boolean): boolean;
  legJoin(plane: PlaneHandle, leg: number, room: number, muted: boolean, fromPercent: number, toPercent: number): boolean;
  /** Makes a member of a room the coach of another one: only that one hears it (native/plane/room/whispers.h). */
  legCoach(plane: PlaneHandle, leg: number, coached: number): boolean;
  legLeave(plane: PlaneHandle, leg: number): boolean;
  /** Leaves the room at once, without the ramp of `legLeave`. */
  legDrop(plane: PlaneHandle, leg: number): boolean;
  legTones(plane: PlaneHandle, leg: number, on: boolean): boolean;
  legMute(plane: PlaneHandle, leg: number, muted: boolean): boolean;
  legVolume(plane: PlaneHandle, leg: number, from: boolean, percent: number): boolean;
  wavCreate(outHz: number): WavHandle;
  /**
   * Decodes bytes. `status` becomes the bytes consumed, the samples made, the state (0 head, 1 sound, 2 ended, 3 no
   * WAV), and 1 when the file is not complete.
   */
  wavRead(wav: WavHandle, bytes: Uint8Array, out: Int16Array, status: Uint32Array): void;
  wavFlush(wav: WavHandle, out: Int16Array): number;
  pcmCreate(inHz: number, outHz: number): PcmHandle;
  pcmConvert(pcm: PcmHandle, left: Float32Array, right: Float32Array, out: Int16Array): number;
  pcmFlush(pcm: PcmHandle, out: Int16Array): number;
  /** Whether AAC can be decoded; the first call looks for the library (native/decode/aac_decoder.h). */
  aacAvailable(): boolean;
  aacCreate(): AacHandle | undefined;
  /**
   * Decodes one ADTS frame to mono. `out` has room for 8,192 samples; `status` becomes the samples made and their rate.
   * It returns false when the frame is damaged.
   */
  aacDecode(aac: AacHandle, frame: Uint8Array, out: Float32Array, status: Uint32Array): boolean;
  aacClose(aac: AacHandle): void;
  /** Creates a decoder of MPEG audio by libmpg123; undefined where that is not on the machine. */
  mpegCreate(): MpegHandle | undefined;
  /**
   * Takes bytes, of which there may be none, and decodes to mono. `out` has room for 4,608 samples; `status` becomes
   * the samples made, their rate, and 1 when there is more sound in the bytes so far. False where the library stumbles
   * over them without end.
   */
  mpegDecode(mpeg: MpegHandle, bytes: Uint8Array, out: Float32Array, status: Uint32Array): boolean;
  mpegClose(mpeg: MpegHandle): void;
  /** Asks for so large a receive buffer of a socket. Returns the bytes that it has then: the system may give less. */
  receiveBuffer(fd: number, bytes: number): number;
  /** Returns the datagrams that the system dropped since the socket was opened, as its receive buffer was full. */
  datagramsDropped(fd: number): number;
  /**
   * Lets the datagrams of a socket be fragmented: on their way over IPv4, and here over IPv6, to what every path takes.
   */
  mayFragment(fd: number): void;
  /** Ends a TCP connection when what was sent is not acknowledged for so long, in milliseconds. */
  userTimeout(fd: number, ms: number): void;
  /** Returns our address in packets to an IP address, by the routes of the system; `""` where none leads there. */
  addressTowards(host: string): string;
}

// A literal path, so that the one file of `npm run binary` carries the addon.
export const native: Native = require('../../build/sidetone_media.node');
