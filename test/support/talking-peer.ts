/**
 * The far end of many calls at once: to each packet of audio it answers with one of its own, so that every call is
 * spoken into at its own pace.
 */
import { createSocket, type Socket } from 'node:dgram';
import { encodeMulaw } from './speaker.ts';

const HZ = 440;
const AMPLITUDE = 8000;
const PACKET_SAMPLES = 160;

export class TalkingPeer {
  readonly #socket: Socket;
  /** Packets said to each of the platform's ports. */
  readonly #said = new Map<number, number>();
  #waiting: { left: number; resolve: () => void }[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    // The port of a call that is over refuses what was on its way to it.
    socket.on('error', () => {});
    socket.on('message', (data, { port, address }) => {
      // RTP version 2 with PCMU in it (RFC 3550 §5.1, RFC 3551).
      if (data.length !== 12 + PACKET_SAMPLES || (data[0] ?? 0) >> 6 !== 2 || ((data[1] ?? 0) & 0x7f) !== 0) return;
      const said = this.#said.get(port) ?? 0;
      this.#said.set(port, said + 1);
      const packet = Buffer.alloc(12 + PACKET_SAMPLES);
      packet.writeUInt8(0x80, 0);
      packet.writeUInt16BE(said & 0xffff, 2);
      packet.writeUInt32BE((said * PACKET_SAMPLES) >>> 0, 4);
      packet.writeUInt32BE(0x7a1c0000 + port, 8);
      for (let at = 0; at < PACKET_SAMPLES; at++) {
        const time = (2 * Math.PI * HZ * (said * PACKET_SAMPLES + at)) / 8000;
        packet[12 + at] = encodeMulaw(AMPLITUDE * Math.sin(time));
      }
      socket.send(packet, port, address);
      for (const waiting of this.#waiting) if (--waiting.left === 0) waiting.resolve();
      this.#waiting = this.#waiting.filter(({ left }) => left > 0);
    });
  }

  /** Resolves when so many more packets were said, or when nobody has spoken for a second. */
  async says(packets: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const silence = setTimeout(resolve, 1_000);
    this.#waiting.push({ left: packets, resolve });
    await promise;
    clearTimeout(silence);
  }

  /** Packets said so far to each of the platform's ports: as many as it said to us. */
  said(): ReadonlyMap<number, number> {
    return new Map(this.#said);
  }

  static async open(): Promise<TalkingPeer> {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    return new TalkingPeer(socket);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  close(): void {
    this.#socket.close();
  }
}
