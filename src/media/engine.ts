/**
 * The face of the media plane on the main thread: legs, playlists and what is heard back. The implementation drives a fixed pool of
 * worker threads, each ticking its own native plane; no RTP packet crosses into script.
 */
import type { SourceDetail } from '../problem.ts';
import type { MediaNotice } from '../session/signal.ts';

export type { MediaNotice };

/** Static payload types of RFC 3551 table 4, and what a codec is called in SDP. */
export type CodecName = 'PCMU' | 'PCMA' | 'G722';

/** What an offer and its answer agreed on for one audio stream (RFC 3264). */
export interface RtpParameters {
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly remoteRtcpPort: number;
  readonly codec: CodecName;
  readonly payloadType: number;
  /** Payload type of telephone-event (RFC 4733), or undefined when it was not agreed. */
  readonly telephoneEventPayloadType: number | undefined;
  /** Milliseconds of audio in a packet we send, 10 to 60. */
  readonly ptimeMs: number;
  /** We send audio (the far end has not asked us to be silent). */
  readonly send: boolean;
  /** We expect audio; the media timeout runs only while this is true. */
  readonly receive: boolean;
}

/** Counters of one leg (RFC 3550 §6.4), as of the call. */
export interface LegCounters {
  readonly packetsReceived: number;
  readonly packetsSent: number;
  readonly packetsLost: number;
  readonly jitterMs: number;
}

/** Sources that were opened and screened, ready to be played on any one leg. Must be played or released. */
export interface Playlist {
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

/** One UDP port pair and everything that runs on it. */
export interface RtpLeg {
  /** The address to write into SDP. */
  readonly host: string;
  readonly port: number;
  /** Starts or changes the stream: the first call opens the tap, later ones are re-negotiations. */
  negotiate(parameters: RtpParameters): void;
  play(options: PlayOptions): void;
  /** Stops the playback of that operation; `playback.stopped` follows if it was playing. */
  stopPlayback(operationUuid: string): void;
  counters(): Promise<LegCounters>;
  /** Gives the ports back (they rest 60 s). A playback in progress ends as `playback.stopped` first. Resolves when the last notice was given. */
  close(): Promise<LegCounters>;
}

/** What went wrong before a source was admitted (interface, 502 detail object). */
export interface SourceRefused {
  readonly refused: SourceDetail;
}

export interface MediaEngine {
  /**
   * Takes a port pair on the least loaded worker. `notify` hears every notice of the leg, in order.
   * Undefined when all ports are in use or resting.
   */
  openRtpLeg(notify: (notice: MediaNotice) => void): Promise<RtpLeg | undefined>;
  /** Opens every URL concurrently, screened against private addresses, up to its first audio. */
  openPlaylist(urls: readonly string[]): Promise<Playlist | SourceRefused>;
  /** Workers up and ticking. */
  ready(): boolean;
  /** Live legs and free ports, for `/metrics` and `/readyz`. */
  load(): { readonly legs: number; readonly portsFree: number };
  close(): Promise<void>;
}
