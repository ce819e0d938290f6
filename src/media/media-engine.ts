/** The media engine: a fixed pool of workers, the node's RTP ports, and the decoding thread. */
import { randomInt } from 'node:crypto';
import { isIP } from 'node:net';
import { ThrottledLog } from '../bounds/throttled-log.ts';
import {
  RECORDING_CLOSE_MS,
  RTP_BIND_COMPLAINT_MS,
  RTP_BIND_TRIES,
  RTP_PORT_LEAST_REST_MS,
  RTP_PORT_REST_MS,
} from '../limits.ts';
import type { Log } from '../log.ts';
import { SRTP_SUITES } from '../sdp/sdes.ts';
import type { LegCounters } from './audio.ts';
import { DecoderThread } from './decode/decoder.ts';
import type {
  CodecName,
  MediaEngine,
  MediaNotice,
  MediaPipe,
  MediaRoom,
  PipeOptions,
  Playlist,
  Push,
  PushFormat,
  RoomNotice,
  RtpLeg,
  SourceRefused,
  WebrtcLeg,
  WebrtcLegOptions,
} from './engine.ts';
import { ByteLeg } from './leg/byte-leg.ts';
import {
  countersOf,
  LinkedLeg,
  openWebrtcPort,
  type WebrtcCounters,
  type WebrtcListen,
  type WebrtcPort,
} from './leg/linked-leg.ts';
import { PipeLeg } from './leg/pipe-leg.ts';
import { type PlaneLeg, type PlaneLegOptions, WORKER_LOST } from './leg/plane-leg.ts';
import { PlaneRoom } from './leg/plane-room.ts';
import { PortPool } from './leg/port-pool.ts';
import type { StreamLeg, StreamLegOptions } from './leg/stream.ts';
import { tryAddress } from './leg/try-address.ts';
import { UdpLeg, type UdpLegOptions } from './leg/udp-leg.ts';
import { native } from './native.ts';
import { openPlaylist, openStream, type PlaylistTerms } from './playback/playlist.ts';
import { OpenPush } from './playback/push.ts';
import { SharedSounds } from './playback/shared-sounds.ts';
import type { RecordingListeners } from './recording/recordings.ts';
import { HeldBytes } from './source/held-bytes.ts';
import type { AudioOutbound } from './source/opening.ts';
import { SharedContents } from './source/shared-contents.ts';
import { SourceTurns } from './source/source-turns.ts';
import type { MediaWorker, TickLoad } from './worker/media-worker.ts';
import { Traffic } from './worker/traffic.ts';
import { SRTP_SUITE_NUMBER } from './worker/worker-command.ts';
import { WorkerPool } from './worker/worker-pool.ts';

interface MediaEngineOptions {
  /** The RTP ports. `host` is a literal address to bind; pairs lie within `firstPort` to `lastPort`. */
  readonly rtp: { readonly host: string; readonly firstPort: number; readonly lastPort: number };
  /** The address of WebRTC legs, or undefined where there are none; a port of 0 is the system's choice. */
  readonly webrtc?: WebrtcListen | undefined;
  readonly workers: number;
  readonly mediaTimeoutSec: number;
  readonly outbound: AudioOutbound;
  readonly log: Log;
  /** The rest of a freed port in milliseconds. Only tests have a reason to change it. */
  readonly portRestMs?: number;
}

/** Errnos of `bind` that another pair may not have: EACCES, EADDRINUSE. */
const TAKEN = new Set([13, 98]);

/** Errnos that say that no file descriptor is left: ENFILE of the machine, EMFILE of the process. */
const NO_DESCRIPTOR = new Set([23, 24]);
const UNBOUND = 'an RTP port could not be bound';
const NO_DESCRIPTOR_LEFT = `${UNBOUND}, as no descriptor is left: raise LimitNOFILE (ulimit -n)`;

/** The engine with what `/metrics` reads of it. */
export interface NativeMediaEngine extends MediaEngine {
  ticks(): readonly TickLoad[];
  readonly traffic: Traffic;
  /** What the WebRTC port has counted; undefined where there is none. */
  webrtcCounters(): WebrtcCounters | undefined;
}

/**
 * Starts the workers one after another, and resolves when all of them tick and `before` has resolved: the port of
 * WebRTC is opened after it. Rejects where one does not, or `before` rejects.
 */
export async function createMediaEngine(
  options: MediaEngineOptions,
  before: Promise<unknown> = Promise.resolve(),
): Promise<NativeMediaEngine> {
  const { rtp, log, workers } = options;
  if (isIP(rtp.host) === 0) throw new TypeError(`RTP host is no address: ${rtp.host}`);
  await tryAddress('RTP_HOST (by default the host of SIP_LISTEN)', rtp.host);
  const recordings: RecordingListeners = new Map();
  const mediaTimeoutMs = options.mediaTimeoutSec * 1000;
  const pool = await WorkerPool.start({ workers, mediaTimeoutMs, log, recordings });
  try {
    await before;
    return new PooledMediaEngine(options, pool, recordings);
  } catch (error) {
    await pool.close();
    throw error;
  }
}

/** Numbers of the plane are 32 bits and never 0; no leg or playback lives long enough to meet its successor. */
function counter(): () => number {
  let last = 0;
  return () => {
    last = (last % 0xffff_ffff) + 1;
    return last;
  };
}

class PooledMediaEngine implements NativeMediaEngine {
  readonly traffic = new Traffic();
  readonly srtpSuites = SRTP_SUITES.filter((suite) => native.srtpSupports(SRTP_SUITE_NUMBER[suite]));
  readonly codecs: readonly CodecName[] = native.opusSupported() ? ['opus', 'G722', 'PCMU', 'PCMA'] : ['G722', 'PCMU', 'PCMA'];
  readonly webrtc: { readonly port: number; readonly fingerprint: string } | undefined;
  readonly #webrtc: WebrtcPort | undefined;
  readonly #host: string;
  /** Why ports could not be bound, each reason once in RTP_BIND_COMPLAINT_MS: a call has one such failure each. */
  readonly #unbound: ThrottledLog;
  readonly #log: Log;
  readonly #pool: WorkerPool;
  readonly #ports: PortPool;
  readonly #decoders: DecoderThread;
  readonly #recordings: RecordingListeners;
  readonly #sources: PlaylistTerms;
  readonly #legs = new Set<PlaneLeg>();
  readonly #rooms = new Set<PlaneRoom>();
  readonly #nextPlayback = counter();
  /** Legs, rooms and recordings are numbered together. */
  readonly #nextNumber = counter();
  #closing: Promise<void> | undefined;

  constructor(
    { rtp, webrtc, mediaTimeoutSec, log, outbound, portRestMs }: MediaEngineOptions,
    pool: WorkerPool,
    recordings: RecordingListeners,
  ) {
    const { host, firstPort, lastPort } = rtp;
    const restMs = portRestMs ?? RTP_PORT_REST_MS;
    const leastRestMs = Math.min(restMs, RTP_PORT_LEAST_REST_MS);
    this.#host = host;
    this.#log = log;
    this.#unbound = new ThrottledLog(log, performance, RTP_BIND_COMPLAINT_MS);
    this.#pool = pool;
    this.#ports = new PortPool({ firstPort, lastPort, restMs, leastRestMs, random: randomInt });
    this.#decoders = new DecoderThread(log);
    this.#webrtc = webrtc === undefined ? undefined : openWebrtcPort(webrtc, mediaTimeoutSec * 1000, log);
    this.webrtc = this.#webrtc;
    this.#recordings = recordings;
    this.#sources = {
      outbound,
      held: new HeldBytes(),
      contents: new SharedContents(),
      turns: new SourceTurns(),
      sounds: new SharedSounds(this.#decoders),
    };
  }

  openRtpLeg(notify: (notice: MediaNotice) => void): Promise<RtpLeg | undefined> {
    return this.#onPort(this.#host, notify, (options) => new UdpLeg(options));
  }

  openPipe({ host, atOnce, notify, onSilent }: PipeOptions): Promise<MediaPipe | undefined> {
    return this.#onPort(host, notify, (options) => new PipeLeg({ ...options, atOnce, onSilent }));
  }

  /** Makes a leg on a free pair of ports. */
  async #onPort<L extends UdpLeg>(
    host: string,
    notify: (notice: MediaNotice) => void,
    make: (options: UdpLegOptions) => L,
  ): Promise<L | undefined> {
    for (let attempt = 0; attempt < RTP_BIND_TRIES && this.#closing === undefined; attempt++) {
      const worker = this.#leastLoaded();
      const port = worker === undefined ? undefined : this.#ports.take(performance.now());
      if (worker === undefined || port === undefined) return undefined;
      const leg = await this.#tryPort(worker, host, port, notify, make);
      if (typeof leg !== 'number') return leg;
      this.#ports.release(port, performance.now());
      if (leg !== WORKER_LOST && !TAKEN.has(leg)) {
        const message = NO_DESCRIPTOR.has(leg) ? NO_DESCRIPTOR_LEFT : UNBOUND;
        this.#unbound.say('error', `${leg} ${host}`, { errno: leg, host, port }, message);
        return undefined;
      }
    }
    return undefined;
  }

  openWebrtcLeg(options: WebrtcLegOptions, notify: (notice: MediaNotice) => void): Promise<WebrtcLeg | undefined> {
    const port = this.#webrtc;
    if (port === undefined) return Promise.resolve(undefined);
    return this.#withoutPort(notify, (plane) => new LinkedLeg(plane, port.number, options));
  }

  openStreamLeg(stream: StreamLegOptions, notify: (notice: MediaNotice) => void): Promise<StreamLeg | undefined> {
    return this.#withoutPort(notify, (plane) => new ByteLeg(plane, stream));
  }

  /** Makes a leg that has no ports of its own: on another worker, where one is lost meanwhile. */
  async #withoutPort<L extends PlaneLeg>(
    notify: (notice: MediaNotice) => void,
    make: (options: PlaneLegOptions) => L,
  ): Promise<L | undefined> {
    for (;;) {
      const worker = this.#closing === undefined ? this.#leastLoaded() : undefined;
      if (worker === undefined) return undefined;
      const leg = await this.#tryWorker(worker, notify, make, (counters) => this.traffic.add(counters));
      if (typeof leg !== 'number') return leg;
      if (leg === WORKER_LOST) continue;
      this.#log.error({ errno: leg }, 'a leg could not be opened');
      return undefined;
    }
  }

  async openRoom(notify: (notice: RoomNotice) => void): Promise<MediaRoom | undefined> {
    const worker = this.#fewestRooms();
    if (worker === undefined) return undefined;
    const room: PlaneRoom = new PlaneRoom({
      ...this.#shared(),
      number: this.#nextNumber(),
      worker,
      another: () => this.#fewestRooms(),
      notify,
      closed: () => this.#rooms.delete(room),
    });
    this.#rooms.add(room);
    return room;
  }

  /** The worker that ticks and mixes the fewest rooms. */
  #fewestRooms(): MediaWorker | undefined {
    if (this.#closing !== undefined) return undefined;
    const count = (worker: MediaWorker) => [...this.#rooms].filter((room) => room.worker === worker).length;
    const [fewest] = this.#pool.alive.sort((a, b) => count(a) - count(b));
    return fewest;
  }

  openPlaylist(urls: readonly string[], appUuid: string): Promise<Playlist | SourceRefused> {
    return openPlaylist(this.#sources, urls, appUuid);
  }

  openStream(url: string, appUuid: string): Promise<Playlist | SourceRefused> {
    return openStream(this.#sources, url, appUuid);
  }

  openPush(format: PushFormat): Push {
    const push = new OpenPush(format);
    return { playlist: push, ingest: push };
  }

  ready(): boolean {
    return this.#closing === undefined && this.#pool.ready;
  }

  load(): { readonly legs: number; readonly ports: number; readonly portsFree: number } {
    return { legs: this.#legs.size, ports: this.#ports.size, portsFree: this.#ports.free(performance.now()) };
  }

  ticks(): readonly TickLoad[] {
    return this.#pool.ticks();
  }

  webrtcCounters(): WebrtcCounters | undefined {
    return this.#webrtc === undefined ? undefined : countersOf(this.#webrtc);
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    await Promise.all([...this.#legs, ...this.#rooms].map((each) => each.close()));
    if (this.#webrtc !== undefined) native.webrtcClose(this.#webrtc.number);
    await this.#decoders.close();
    // The legs are gone; their files are finished within two rounds of the writing thread, unless the disk is stuck.
    const until = performance.now() + RECORDING_CLOSE_MS;
    while (this.#recordings.size > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
    await this.#pool.close();
  }

  #leastLoaded(): MediaWorker | undefined {
    return this.#pool.alive.sort((a, b) => a.legs - b.legs)[0];
  }

  /** The parts of the engine that every leg and room is given. */
  #shared() {
    return {
      decoders: this.#decoders,
      recordings: this.#recordings,
      nextPlayback: this.#nextPlayback,
      nextNumber: this.#nextNumber,
    };
  }

  /** Tries one pair of ports: the leg, or the errno of its bind. */
  #tryPort<L extends UdpLeg>(
    worker: MediaWorker,
    host: string,
    port: number,
    notify: (notice: MediaNotice) => void,
    make: (options: UdpLegOptions) => L,
  ): Promise<L | number> {
    return this.#tryWorker(
      worker,
      notify,
      (options) => make({ ...options, host, port }),
      (counters, leg) => {
        this.#ports.release(port, performance.now());
        // A call that goes through pipes is counted with its own leg.
        if (!(leg instanceof PipeLeg)) this.traffic.add(counters);
      },
    );
  }

  /** Tries to open a leg on a worker: the leg, or the errno. `freed` is called once it was open and is over. */
  #tryWorker<L extends PlaneLeg>(
    worker: MediaWorker,
    notify: (notice: MediaNotice) => void,
    make: (options: PlaneLegOptions) => L,
    freed: (counters: LegCounters, leg: L) => void,
  ): Promise<L | number> {
    return new Promise((resolve) => {
      const leg: L = make({
        ...this.#shared(),
        id: this.#nextNumber(),
        worker,
        notify,
        opened: (errno) => {
          if (errno === 0) this.#legs.add(leg);
          resolve(errno === 0 ? leg : errno);
        },
        freed: (counters) => {
          if (this.#legs.delete(leg)) freed(counters, leg);
        },
      });
    });
  }
}
