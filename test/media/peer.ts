/** The far end of a leg: a pair of real UDP sockets that keeps what it hears and says what it is told. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { LegCodec, MediaNotice, RtpLeg, RtpParameters } from '../../src/media/engine.ts';

export interface Heard {
  readonly at: number;
  readonly marker: boolean;
  readonly payloadType: number;
  readonly sequence: number;
  readonly timestamp: number;
  readonly ssrc: number;
  readonly payload: Buffer;
}

const WAIT_MS = 15_000;

export class Peer {
  readonly heard: Heard[] = [];
  readonly reports: Buffer[] = [];
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #watchers = new Set<() => void>();
  ssrc = 0x1234_5678;
  sequence = 1000;

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    rtp.on('message', (bytes) => {
      this.heard.push({
        at: performance.now(),
        marker: (bytes.readUInt8(1) & 0x80) !== 0,
        payloadType: bytes.readUInt8(1) & 0x7f,
        sequence: bytes.readUInt16BE(2),
        timestamp: bytes.readUInt32BE(4),
        ssrc: bytes.readUInt32BE(8),
        payload: bytes.subarray(12),
      });
      for (const watcher of this.#watchers) watcher();
    });
    rtcp.on('message', (bytes) => {
      this.reports.push(bytes);
      for (const watcher of this.#watchers) watcher();
    });
  }

  static async open(): Promise<Peer> {
    const sockets = [createSocket('udp4'), createSocket('udp4')] as const;
    for (const socket of sockets) {
      socket.bind(0, '127.0.0.1');
      await once(socket, 'listening');
    }
    return new Peer(...sockets);
  }

  get port(): number {
    return this.#rtp.address().port;
  }

  parameters(more: Partial<RtpParameters> = {}): RtpParameters {
    const codec: LegCodec = more.codec ?? 'PCMU';
    return {
      remoteHost: '127.0.0.1',
      remotePort: this.port,
      learnFrom: [],
      held: false,
      remoteRtcpPort: this.#rtcp.address().port,
      codec,
      payloadType: codec === 'PCMU' ? 0 : codec === 'PCMA' ? 8 : 9,
      telephoneEventPayloadType: 101,
      ptimeMs: 20,
      send: true,
      receive: true,
      ...more,
    };
  }

  /**
   * Sends one RTP packet to the leg; the sequence number counts on by itself. It leaves after the commands that the leg
   * was given in the same turn, as an answer of a far end would.
   */
  send(
    leg: RtpLeg,
    payloadType: number,
    timestamp: number,
    payload: Uint8Array,
    more: { sequence?: number; marker?: boolean } = {},
  ): void {
    const packet = Buffer.alloc(12 + payload.length);
    packet.writeUInt8(0x80, 0);
    packet.writeUInt8((more.marker === true ? 0x80 : 0) | payloadType, 1);
    packet.writeUInt16BE((more.sequence ?? this.sequence++) & 0xffff, 2);
    packet.writeUInt32BE(timestamp >>> 0, 4);
    packet.writeUInt32BE(this.ssrc, 8);
    packet.set(payload, 12);
    setImmediate(() => this.#rtp.send(packet, leg.port, leg.host));
  }

  sendRaw(leg: RtpLeg, bytes: Uint8Array, rtcp = false): void {
    setImmediate(() => (rtcp ? this.#rtcp : this.#rtp).send(bytes, leg.port + (rtcp ? 1 : 0), leg.host));
  }

  /** Resolves once `condition` holds; looked at with each datagram. */
  until(condition: () => boolean): Promise<void> {
    return watch(this.#watchers, condition);
  }

  /**
   * Resolves when all that came has been read: a process that was kept from running finds old packets before new ones.
   */
  async caughtUp(): Promise<void> {
    for (let known = -1, quietTurns = 0; quietTurns < 2; quietTurns = this.heard.length === known ? quietTurns + 1 : 0) {
      known = this.heard.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async close(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)); // what is still to be sent
    await Promise.all([this.#rtp, this.#rtcp].map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))));
  }
}

/** The notices of a leg, in command. */
export class Notices {
  readonly all: MediaNotice[] = [];
  readonly #watchers = new Set<() => void>();

  readonly hear = (notice: MediaNotice): void => {
    this.all.push(notice);
    for (const watcher of this.#watchers) watcher();
  };

  of<T extends MediaNotice['type']>(type: T): Extract<MediaNotice, { type: T }>[] {
    return this.all.filter((notice): notice is Extract<MediaNotice, { type: T }> => notice.type === type);
  }

  types(): string[] {
    return this.all.map((notice) => notice.type);
  }

  until(condition: () => boolean): Promise<void> {
    return watch(this.#watchers, condition);
  }
}

function watch(watchers: Set<() => void>, condition: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      watchers.delete(look);
      reject(new Error(`never came: ${condition.toString()}`));
    }, WAIT_MS);
    const look = () => {
      if (!condition()) return;
      clearTimeout(timer);
      watchers.delete(look);
      resolve();
    };
    watchers.add(look);
    look();
  });
}
