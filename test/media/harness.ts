/** A media engine on loopback with a file server beside it, and calls made of a leg and its peer. */
import { silentLog } from '../../src/log.ts';
import type { Playlist, RtpLeg } from '../../src/media/engine.ts';
import { createMediaEngine, type NativeMediaEngine } from '../../src/media/media-engine.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';
import { Notices, Peer } from './peer.ts';

type Serve = (request: Request) => Response | Promise<Response>;

export class Harness {
  readonly engine: NativeMediaEngine;
  /** What the file server has under a path. */
  readonly files = new Map<string, Uint8Array<ArrayBuffer> | Serve>();
  readonly requests: string[] = [];
  readonly #server: Bun.Server<undefined>;

  private constructor(engine: NativeMediaEngine) {
    this.engine = engine;
    this.#server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 60,
      fetch: (request) => {
        const path = new URL(request.url).pathname;
        this.requests.push(path);
        const file = this.files.get(path);
        if (file === undefined) return new Response('no', { status: 404 });
        return typeof file === 'function' ? file(request) : new Response(file);
      },
    });
  }

  /** `ports`: RTP pairs, beginning anywhere, so that test files may run at the same time. */
  static async open(
    options: { mediaTimeoutSec?: number; workers?: number; ports?: number; portRestMs?: number } = {},
  ): Promise<Harness> {
    const pairs = options.ports ?? 100;
    // Under the range the system gives away by itself; a pair that another test holds is passed over by the engine.
    const firstPort = 10_000 + 2 * Math.floor(Math.random() * (5_000 - pairs));
    const engine = await createMediaEngine({
      rtp: { host: '127.0.0.1', firstPort, lastPort: firstPort + 2 * pairs - 1 },
      workers: options.workers ?? 1,
      mediaTimeoutSec: options.mediaTimeoutSec ?? 30,
      outbound: createOutbound(['127.0.0.0/8']),
      log: silentLog,
      ...(options.portRestMs === undefined ? {} : { portRestMs: options.portRestMs }),
    });
    return new Harness(engine);
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#server.port}${path}`;
  }

  async call(): Promise<Call> {
    const notices = new Notices();
    const leg = await this.engine.openRtpLeg(notices.hear);
    if (leg === undefined) throw new Error('no ports');
    return new Call(leg, await Peer.open(), notices);
  }

  async admitted(...paths: string[]): Promise<Playlist> {
    const playlist = await this.engine.openPlaylist(
      paths.map((path) => this.url(path)),
      'app',
    );
    if ('refused' in playlist) throw new Error(`refused: ${playlist.refused.reason}`);
    return playlist;
  }

  async close(): Promise<void> {
    await this.engine.close();
    await this.#server.stop(true);
  }
}

export class Call implements AsyncDisposable {
  readonly leg: RtpLeg;
  readonly peer: Peer;
  readonly notices: Notices;

  constructor(leg: RtpLeg, peer: Peer, notices: Notices) {
    this.leg = leg;
    this.peer = peer;
    this.notices = notices;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leg.close();
    await this.peer.close();
  }
}
