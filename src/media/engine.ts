/**
 * The face of the media plane on the main thread. The implementation drives a fixed pool of worker threads, each
 * ticking its own native plane; no RTP packet crosses into script.
 */
import type { PlaybackControl, PushFormat } from '../machine/playback/playback.ts';
import type { MediaNotice } from '../notice/signal.ts';
import type { SrtpSuite } from '../sdp/sdes.ts';
import type {
  CodecName,
  MediaPipe,
  MediaRoom,
  PipeOptions,
  Playlist,
  RoomNotice,
  RtpLeg,
  SourceRefused,
  WebrtcLeg,
  WebrtcLegOptions,
} from './audio.ts';
import type { StreamLeg, StreamLegOptions } from './leg/stream.ts';
import type { Ingest } from './playback/push.ts';

export type * from './audio.ts';
export { NO_COUNTERS } from './audio.ts';
export type { Ingest, MediaNotice, PlaybackControl, PushFormat };

/** Audio the application will send, and the side it sends to. */
export interface Push {
  readonly playlist: Playlist;
  readonly ingest: Ingest;
}

export interface MediaEngine {
  /** The suites that RTP legs can be encrypted with. Empty when this build has no SRTP. */
  readonly srtpSuites: readonly SrtpSuite[];
  /**
   * Takes a port pair on the least loaded worker. `notify` hears every notice of the leg, in command.
   * It is undefined when all ports are in use or resting.
   */
  openRtpLeg(notify: (notice: MediaNotice) => void): Promise<RtpLeg | undefined>;
  /** One end of a pipe to another node. Undefined when all ports are in use, or none can be bound on that address. */
  openPipe(options: PipeOptions): Promise<MediaPipe | undefined>;
  /** The codecs that RTP legs can have. Opus is not among them when this build has none. */
  readonly codecs: readonly CodecName[];
  /** The port of all WebRTC legs. Undefined when this build has no WebRTC, or it is switched off. */
  readonly webrtc: { readonly port: number; readonly fingerprint: string } | undefined;
  /** A leg on that port. Undefined when there is no port, no worker is alive, or the port has all the legs it can. */
  openWebrtcLeg(options: WebrtcLegOptions, notify: (notice: MediaNotice) => void): Promise<WebrtcLeg | undefined>;
  /** A leg whose audio is bytes of this process. Undefined when no worker is alive. */
  openStreamLeg(options: StreamLegOptions, notify: (notice: MediaNotice) => void): Promise<StreamLeg | undefined>;
  /** A room on the worker with the fewest. Undefined when no worker is alive. */
  openRoom(notify: (notice: RoomNotice) => void): Promise<MediaRoom | undefined>;
  /**
   * Opens every URL concurrently, screened against private addresses, up to its first audio, when it is the
   * application's turn.
   */
  openPlaylist(urls: readonly string[], appUuid: string): Promise<Playlist | SourceRefused>;
  /** Opens a live stream up to its first audio, when it is the application's turn. */
  openStream(url: string, appUuid: string): Promise<Playlist | SourceRefused>;
  /** Makes a push, whose audio comes through `ingest` later. */
  openPush(format: PushFormat): Push;
  /** Workers up and ticking. */
  ready(): boolean;
  /** Live legs of all kinds, pairs of RTP ports, and those of them that are free. */
  load(): { readonly legs: number; readonly ports: number; readonly portsFree: number };
  close(): Promise<void>;
}
