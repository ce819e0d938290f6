/** The media engine: a fixed pool of workers, the node's RTP ports, and the decoding thread. */
import { randomInt } from 'node:crypto';
import { isIP } from 'node:net';
import { RECORDING_CLOSE_MS, RTP_BIND_TRIES, RTP_PORT_LEAST_REST_MS, RTP_PORT_REST_MS } from '../limits.ts';
import type { Log } from '../log.ts';
import { DecoderThread } from './decode/decoder.ts';
import type { MediaEngine, MediaNotice } from './engine.ts';
import { ByteLeg } from './leg/byte-leg.ts';
import type { PlaneLeg } from './leg/plane-leg.ts';
import { PlaneRoom } from './leg/plane-room.ts';
import { PortPool } from './leg/port-pool.ts';
import { UdpLeg } from './leg/udp-leg.ts';
import { OpenStream } from './playback/live-stream.ts';
import { openPlaylist } from './playback/playlist.ts';
import { OpenPush } from './playback/push.ts';
import type { RecordingEars } from './recording/recordings.ts';
import type { AudioOutbound } from './source/opening.ts';
import { HeldBytes } from './source/source.ts';
import { SourceCache } from './source/source-cache.ts';
import { MediaWorker, type TickLoad } from './worker/media-worker.ts';
import { Traffic } from './worker/traffic.ts';

export interface MediaEngineOptions {
  /** `host` is a literal address to bind; pairs lie within `firstPort` to `lastPort`. */
  readonly rtp: { readonly host: string; readonly firstPort: number; readonly lastPort: number };
  readonly workers: number;
  readonly mediaTimeoutSec: number;
  readonly outbound: AudioOutbound;
  readonly log: Log;
  /** How long a freed port rests; only tests have a reason to change it. */
  readonly portRestMs?: number;
}

/** Errnos of `bind` that another pair may not have: EACCES, EADDRINUSE. */
const TAKEN = new Set([13, 98]);

/** What the pool is doing, for `/metrics`. */
export interface NativeMediaEngine extends MediaEngine {
  ticks(): readonly TickLoad[];
  readonly traffic: Traffic;
}

/** Starts the workers one after another and resolves when all of them tick. Rejects where one does not. */
export async function createMediaEngine(options: MediaEngineOptions): Promise<NativeMediaEngine> {
  const { rtp, log, outbound } = options;
  if (isIP(rtp.host) === 0) throw new TypeError(`RTP host is no address: ${rtp.host}`);
  const restMs = options.portRestMs ?? RTP_PORT_REST_MS;
  const leastRestMs = Math.min(restMs, RTP_PORT_LEAST_REST_MS);
  const { firstPort, lastPort } = rtp;
  const ports = new PortPool({ firstPort, lastPort, restMs, leastRestMs, random: randomInt });
  const held = new HeldBytes();
  const cache = new SourceCache();
  const decoders = new DecoderThread(log);
  const workers: MediaWorker[] = [];
  const recordings: RecordingEars = new Map();
  const closeAll = async () => {
    await decoders.close();
    // The legs are gone; their files are finished within two rounds of the writing thread, unless the disk is stuck.
    const until = performance.now() + RECORDING_CLOSE_MS;
    while (recordings.size > 0 && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 20));
    for (const worker of workers) await worker.close();
  };
  try {
    for (let i = 0; i < options.workers; i++)
      workers.push(await MediaWorker.start({ mediaTimeoutMs: options.mediaTimeoutSec * 1000, log, recordings }));
  } catch (error) {
    await closeAll();
    throw error;
  }

  const traffic = new Traffic();
  const legs = new Set<PlaneLeg>();
  const rooms = new Map<PlaneRoom, MediaWorker>();
  let lastNumber = 0;
  let lastPlayback = 0;
  let closing: Promise<void> | undefined;
  /** Numbers of the plane are 32 bits and never 0; no leg or playback lives long enough to meet its successor. */
  const next = (last: number) => (last % 0xffff_ffff) + 1;
  const nextPlayback = () => {
    lastPlayback = next(lastPlayback);
    return lastPlayback;
  };
  /** Legs, rooms and recordings are numbered together. */
  const nextNumber = () => {
    lastNumber = next(lastNumber);
    return lastNumber;
  };
  const leastLoaded = () => workers.filter((worker) => worker.alive).sort((a, b) => a.legs - b.legs)[0];

  /** One try: the leg, or the errno of its bind. */
  const tryOpen = (worker: MediaWorker, port: number, notify: (notice: MediaNotice) => void) =>
    new Promise<UdpLeg | number>((resolve) => {
      const id = nextNumber();
      const leg: UdpLeg = new UdpLeg({
        id,
        host: rtp.host,
        port,
        worker,
        decoders,
        notify,
        nextPlayback,
        nextNumber,
        recordings,
        opened: (errno) => {
          if (errno === 0) legs.add(leg);
          resolve(errno === 0 ? leg : errno);
        },
        freed: (counters) => {
          if (!legs.delete(leg)) return;
          ports.release(port, performance.now());
          traffic.add(counters);
        },
      });
    });

  return {
    traffic,
    async openRtpLeg(notify) {
      for (let attempt = 0; attempt < RTP_BIND_TRIES && closing === undefined; attempt++) {
        const worker = leastLoaded();
        const port = worker === undefined ? undefined : ports.take(performance.now());
        if (worker === undefined || port === undefined) return undefined;
        const leg = await tryOpen(worker, port, notify);
        if (typeof leg !== 'number') return leg;
        ports.release(port, performance.now());
        if (!TAKEN.has(leg)) {
          log.error({ errno: leg, port }, 'an RTP port could not be bound');
          return undefined;
        }
      }
      return undefined;
    },
    openStreamLeg(stream, notify) {
      const worker = closing === undefined ? leastLoaded() : undefined;
      if (worker === undefined) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const id = nextNumber();
        const leg: ByteLeg = new ByteLeg(
          {
            id,
            worker,
            decoders,
            notify,
            nextPlayback,
            nextNumber,
            recordings,
            opened: (errno) => {
              if (errno === 0) legs.add(leg);
              resolve(errno === 0 ? leg : undefined);
            },
            freed: () => legs.delete(leg),
          },
          stream,
        );
      });
    },
    async openRoom(notify) {
      const count = (worker: MediaWorker) => [...rooms.values()].filter((other) => other === worker).length;
      const worker = workers.filter((candidate) => candidate.alive).sort((a, b) => count(a) - count(b))[0];
      if (worker === undefined || closing !== undefined) return undefined;
      const room: PlaneRoom = new PlaneRoom({
        number: nextNumber(),
        worker,
        decoders,
        notify,
        nextPlayback,
        nextNumber,
        recordings,
        closed: () => rooms.delete(room),
      });
      rooms.set(room, worker);
      return room;
    },
    openPlaylist: (urls) => openPlaylist({ outbound, held, cache }, urls),
    async openStream(url) {
      const stream = new OpenStream({ outbound, url });
      return (await stream.admit()) ?? stream;
    },
    openPush(format) {
      const push = new OpenPush(format);
      return { playlist: push, ingest: push };
    },
    ready: () => closing === undefined && workers.every((worker) => worker.alive),
    load: () => ({ legs: legs.size, portsFree: ports.free(performance.now()) }),
    ticks: () => workers.map((worker) => worker.load),
    close() {
      closing ??= Promise.all([...legs, ...rooms.keys()].map((each) => each.close())).then(closeAll);
      return closing;
    },
  };
}
