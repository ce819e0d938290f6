/** Presses keys as telephones do: RFC 4733 events, three end packets each, or tones in the audio. */
import type { RtpPeer } from './rtp-peer.ts';
import { encodeMulaw } from './speaker.ts';

const PAYLOAD_TYPE = 101;
const KEYS = '0123456789*#ABCD';
const PRESS_SAMPLES = 800;

export class Keypad {
  readonly #peer: RtpPeer;
  #sequence = 100;
  #timestamp = 8_000;
  #silentSince: number | undefined;

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

  /**
   * The same keys as tones (ITU-T Q.23): 80 ms each and 80 ms of silence, in packets of 20 ms at their own pace.
   * Resolves with the last.
   */
  async dial(keys: string): Promise<void> {
    const frames = [...keys].flatMap((key) => [...Array.from({ length: 4 }, (_, at) => toneFrame(key, at)), ...SILENT]);
    const started = performance.now();
    // The clock of the audio goes on while nothing is sent (RFC 3550 §5.1).
    if (this.#silentSince !== undefined) this.#timestamp += Math.ceil((started - this.#silentSince) / 20) * 160;
    await new Promise<void>((resolve) => {
      let sent = 0;
      const timer = setInterval(() => {
        while (sent < frames.length && sent * 20 <= performance.now() - started)
          this.#sendAudio(frames[sent++] ?? new Uint8Array(160));
        if (sent < frames.length) return;
        clearInterval(timer);
        this.#silentSince = started + sent * 20;
        resolve();
      }, 10);
    });
  }

  #sendAudio(payload: Uint8Array): void {
    const packet = new Uint8Array(172);
    const header = new DataView(packet.buffer);
    header.setUint8(0, 0x80);
    header.setUint16(2, this.#sequence++ & 0xffff);
    header.setUint32(4, this.#timestamp);
    header.setUint32(8, 0xfeed);
    packet.set(payload, 12);
    this.#timestamp += 160;
    this.#peer.send(this.#peer.source?.port ?? 0, packet);
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

const ROWS = [697, 770, 852, 941];
const COLUMNS = [1209, 1336, 1477, 1633];
const LAYOUT = ['123A', '456B', '789C', '*0#D'];
const SILENT = Array.from({ length: 4 }, () => new Uint8Array(160).fill(0xff));

/** 20 ms of a key's two tones, as mu-law. */
function toneFrame(key: string, frame: number): Uint8Array {
  const row = LAYOUT.findIndex((keys) => keys.includes(key));
  const low = ROWS[row] ?? 0;
  const high = COLUMNS[LAYOUT[row]?.indexOf(key) ?? 0] ?? 0;
  return Uint8Array.from({ length: 160 }, (_, at) => {
    const time = (2 * Math.PI * (frame * 160 + at)) / 8000;
    return encodeMulaw(6000 * Math.sin(low * time) + 6000 * Math.sin(high * time));
  });
}

/**
 * The keys as tones in a WAV of mu-law (8 kHz, mono): 80 ms each after 80 ms of silence, and half a second before the
 * first.
 */
export function keysWav(keys: string): Uint8Array<ArrayBuffer> {
  const lead = new Uint8Array(4000).fill(0xff);
  const audio = Buffer.concat([
    lead,
    ...[...keys].flatMap((key) => [...SILENT, ...[0, 1, 2, 3].map((at) => toneFrame(key, at))]),
    lead,
  ]);
  const header = Buffer.alloc(46);
  header.write('RIFF', 0);
  header.writeUInt32LE(header.length - 8 + audio.length, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(18, 16);
  header.writeUInt16LE(7, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8000, 24);
  header.writeUInt32LE(8000, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write('data', 38);
  header.writeUInt32LE(audio.length, 42);
  return new Uint8Array(Buffer.concat([header, audio]));
}

/**
 * The keys whose tones are in some audio at 8 kHz, each as often as it begins: two strong tones, one of each group
 * (ITU-T Q.23), for 40 ms.
 */
export function keysIn(samples: Float32Array): string {
  let keys = '';
  let before = '';
  let held = 0;
  for (let at = 0; at + 160 <= samples.length; at += 160) {
    const frame = samples.subarray(at, at + 160);
    const [row, rowLevel] = loudest(frame, ROWS);
    const [column, columnLevel] = loudest(frame, COLUMNS);
    const key = Math.min(rowLevel, columnLevel) > 0.02 ? (LAYOUT[row]?.[column] ?? '') : '';
    held = key === before ? held + 1 : 1;
    if (key !== '' && held === 2) keys += key;
    before = key;
  }
  return keys;
}

/** Which of the tones is the loudest, and its amplitude (Goertzel). */
function loudest(frame: Float32Array, tones: readonly number[]): [index: number, amplitude: number] {
  const amplitudes = tones.map((hz) => {
    const turn = 2 * Math.cos((2 * Math.PI * hz) / 8000);
    let [last, beforeLast] = [0, 0];
    for (const sample of frame) [last, beforeLast] = [sample + turn * last - beforeLast, last];
    return (2 * Math.sqrt(Math.max(0, last * last + beforeLast * beforeLast - turn * last * beforeLast))) / frame.length;
  });
  const most = Math.max(...amplitudes);
  return [amplitudes.indexOf(most), most];
}
