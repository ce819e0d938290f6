/** Presses keys as a telephone does: RFC 4733 events, three end packets each. */
import type { RtpPeer } from './rtp-peer.ts';

const PAYLOAD_TYPE = 101;
const KEYS = '0123456789*#ABCD';
const PRESS_SAMPLES = 800;

export class Keypad {
  readonly #peer: RtpPeer;
  #sequence = 100;
  #timestamp = 8_000;

  constructor(peer: RtpPeer) {
    this.#peer = peer;
  }

  /** All keys at once, each with a timestamp of its own: how long they take is in the packets, not in the test. */
  press(keys: string): void {
    for (const key of keys) {
      const packets: [duration: number, end: boolean][] = [
        [160, false],
        [480, false],
        [PRESS_SAMPLES, true],
        [PRESS_SAMPLES, true],
        [PRESS_SAMPLES, true],
      ];
      for (const [at, [duration, end]] of packets.entries()) this.#send(KEYS.indexOf(key), duration, end, at === 0);
      this.#timestamp += 2 * PRESS_SAMPLES;
    }
  }

  #send(event: number, duration: number, end: boolean, marker: boolean): void {
    const packet = new DataView(new ArrayBuffer(16));
    packet.setUint8(0, 0x80);
    packet.setUint8(1, PAYLOAD_TYPE | (marker ? 0x80 : 0));
    packet.setUint16(2, this.#sequence++ & 0xffff);
    packet.setUint32(4, this.#timestamp);
    packet.setUint32(8, 0xfeed);
    packet.setUint8(12, event);
    packet.setUint8(13, (end ? 0x80 : 0) | 10);
    packet.setUint16(14, duration);
    this.#peer.send(this.#peer.source?.port ?? 0, new Uint8Array(packet.buffer));
  }
}
