import type { RtpPeer } from './rtp-peer.ts';

/** G.711 mu-law of a linear sample (ITU-T G.711), by its definition. */
export function encodeMulaw(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const biased = Math.min(Math.abs(Math.round(sample)), 32_635) + 132;
  let exponent = 7;
  for (let mask = 0x4000; (biased & mask) === 0 && exponent > 0; mask >>= 1) exponent--;
  return ~(sign | (exponent << 4) | ((biased >> (exponent + 3)) & 0x0f)) & 0xff;
}

/** A packet that is sent so much later than it should be is late, in ms: more than a receiver bridges. */
const LATE_MS = 40;

/** Says a tone into a call, a packet each 20 ms, until it is stopped. */
export class Speaker {
  readonly #timer: ReturnType<typeof setInterval>;
  /** Telephone-event payloads still to be said instead of the tone (RFC 4733 §2.3): four, then the end three times. */
  #event: Buffer[] = [];
  #lost = 0;
  #onTime = 0;
  /** The amplitude, of 32,767. 0 is silence that is sent. */
  amplitude = 8000;
  /** How often this process was too busy to speak in time. */
  stalls = 0;

  constructor(peer: Pick<RtpPeer, 'source' | 'send'>, hz: number) {
    let sequence = Math.floor(Math.random() * 65_536);
    let timestamp = 0;
    const started = performance.now();
    let sent = 0;
    let eventStart: number | undefined;
    const send = () => {
      const event = this.#event.shift();
      if (event !== undefined) eventStart ??= timestamp;
      const packet = Buffer.alloc(event === undefined ? 172 : 16);
      packet.writeUInt8(0x80, 0);
      packet.writeUInt16BE(sequence & 0xffff, 2);
      packet.writeUInt32BE((event === undefined ? timestamp : (eventStart ?? timestamp)) >>> 0, 4);
      packet.writeUInt32BE(0x5eed + hz, 8);
      if (event !== undefined) {
        packet.writeUInt8(101, 1);
        event.copy(packet, 12);
      } else eventStart = undefined;
      for (let at = 0; at < 160 && event === undefined; at++) {
        packet[12 + at] = encodeMulaw(this.amplitude * Math.sin((2 * Math.PI * hz * (timestamp + at)) / 8000));
      }
      if (this.#lost > 0) this.#lost--;
      else peer.send(peer.source?.port ?? 9, packet);
      sequence++;
      timestamp += 160;
      sent++;
      this.#onTime++;
    };
    // Kept to the clock, not to the timer: what a late timer missed is sent at once.
    this.#timer = setInterval(() => {
      if (performance.now() - started - sent * 20 > LATE_MS) {
        this.#onTime = 0;
        this.stalls++;
      }
      while (sent * 20 <= performance.now() - started) send();
    }, 10);
  }

  /** Presses a key for 80 ms. */
  press(digit: string): void {
    const code = '0123456789*#ABCD'.indexOf(digit);
    for (const [at, duration] of [160, 320, 480, 640, 640, 640, 640].entries()) {
      this.#event.push(Buffer.of(code, at > 3 ? 0x8a : 0x0a, duration >> 8, duration & 0xff));
    }
  }

  /** The next `packets` are lost on their way. */
  lose(packets: number): void {
    this.#lost = packets;
  }

  /** Resolves when so many packets from now on have been sent in time, one after another. */
  async steady(packets: number): Promise<void> {
    this.#onTime = 0;
    while (this.#onTime < packets) await Bun.sleep(10);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
