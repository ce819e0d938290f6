/** The far end of an RTP stream: a socket that keeps what it hears and can speak. */
import { createSocket, type Socket } from 'node:dgram';

export interface RtpPacket {
  readonly sequence: number;
  readonly timestamp: number;
  readonly payloadType: number;
  readonly marker: boolean;
  readonly payload: Uint8Array;
  /** ms, of this process's monotonic clock. */
  readonly at: number;
}

/** The packet that came just now: RTP without extensions (RFC 3550 §5.1), of 12 bytes at least. */
export const rtpPacketOf = (data: Buffer): RtpPacket => ({
  marker: ((data[1] ?? 0) & 0x80) !== 0,
  payloadType: (data[1] ?? 0) & 0x7f,
  sequence: data.readUInt16BE(2),
  timestamp: data.readUInt32BE(4),
  payload: new Uint8Array(data.subarray(12)),
  at: performance.now(),
});

export class RtpPeer {
  readonly #socket: Socket;
  readonly packets: RtpPacket[] = [];
  #source: { address: string; port: number } | undefined;
  #waiting: { ready: () => boolean; resolve: () => void }[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('message', (data, from) => {
      this.#source = from;
      if (data.length < 12 || (data[0] ?? 0) >> 6 !== 2) return;
      this.packets.push(rtpPacketOf(data));
      this.#waiting = this.#waiting.filter((waiter) => {
        if (!waiter.ready()) return true;
        waiter.resolve();
        return false;
      });
    });
  }

  static async open(): Promise<RtpPeer> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new RtpPeer(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** The address that the packets come from: the platform's port. */
  get source(): { address: string; port: number } | undefined {
    return this.#source;
  }

  /** All audio heard so far, decoded from mu-law, as samples from -1 to 1. */
  audio(): Float32Array {
    return decodeMulaw(this.packets.filter((packet) => packet.payloadType === 0));
  }

  async until(ready: () => boolean, what: string, timeoutMs = 10_000): Promise<void> {
    if (ready()) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error(`waited for ${what}; ${this.packets.length} packets came`)), timeoutMs);
    this.#waiting.push({ ready, resolve });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Resolves when what has come to the socket by now is in `packets`. */
  async drained(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  send(port: number, packet: Uint8Array): void {
    this.#socket.send(packet, port, '127.0.0.1');
  }

  close(): void {
    this.#socket.close();
  }
}

/** ITU-T G.711 mu-law to linear, by its definition. */
export function decodeMulaw(packets: readonly RtpPacket[]): Float32Array {
  const samples: number[] = [];
  for (const packet of packets) {
    for (const byte of packet.payload) {
      const code = ~byte & 0xff;
      const magnitude = ((((code & 0x0f) << 3) + 0x84) << ((code & 0x70) >> 4)) - 0x84;
      samples.push((code & 0x80 ? -magnitude : magnitude) / 32_768);
    }
  }
  return Float32Array.from(samples);
}

/** Share of the signal's energy that is at `hz` (0 to 1), over all of `samples`. */
export function purity(samples: Float32Array, hz: number, rate = 8000): number {
  let real = 0;
  let imaginary = 0;
  let energy = 0;
  for (const [at, sample] of samples.entries()) {
    const angle = (2 * Math.PI * hz * at) / rate;
    real += sample * Math.cos(angle);
    imaginary += sample * Math.sin(angle);
    energy += sample * sample;
  }
  return energy === 0 ? 0 : (2 * (real * real + imaginary * imaginary)) / (samples.length * energy);
}

/** A mono 16-bit WAV of a tone. */
export function toneWav(hz: number, seconds: number, rate = 8000, amplitude = 0.5): Uint8Array<ArrayBuffer> {
  const count = Math.round(seconds * rate);
  const wav = new DataView(new ArrayBuffer(44 + count * 2));
  const text = (at: number, value: string) => {
    for (const [index, letter] of [...value].entries()) wav.setUint8(at + index, letter.charCodeAt(0));
  };
  text(0, 'RIFF');
  wav.setUint32(4, 36 + count * 2, true);
  text(8, 'WAVEfmt ');
  wav.setUint32(16, 16, true);
  wav.setUint16(20, 1, true);
  wav.setUint16(22, 1, true);
  wav.setUint32(24, rate, true);
  wav.setUint32(28, rate * 2, true);
  wav.setUint16(32, 2, true);
  wav.setUint16(34, 16, true);
  text(36, 'data');
  wav.setUint32(40, count * 2, true);
  for (let at = 0; at < count; at++) {
    wav.setInt16(44 + at * 2, Math.round(amplitude * 32_767 * Math.sin((2 * Math.PI * hz * at) / rate)), true);
  }
  return new Uint8Array(wav.buffer);
}
