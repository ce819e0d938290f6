/** Ogg Opus (RFC 7845) by libopus in WebAssembly. */
import { OpusDecoder as Libopus } from 'opus-decoder';
import { OggReader } from '../format/ogg.ts';
import { LibraryDecoder } from './library-decoder.ts';
import { withBoundedErrors } from './library-errors.ts';
import { joined, type Pcm } from './pcm-output.ts';

const OPUS_HZ = 48_000;
/** Channels that a mapping of family 1 can name (RFC 7845 §5.1.1.2). */
const CHANNELS_MAX = 8;
/** The longest packet of one stream is 48 frames of 1,275 bytes; what libopus is given has room for less. */
const packetMaxBytes = (channels: number): number => 3_840 * channels;

interface OpusHead {
  readonly channels: number;
  readonly preSkip: number;
  /** Factor by which samples are multiplied. */
  readonly gain: number;
  readonly streamCount: number;
  readonly coupledStreamCount: number;
  readonly channelMappingTable: number[];
}

export class OpusDecoder extends LibraryDecoder {
  readonly #ogg = new OggReader((packet) => opusHead(packet) !== undefined);
  #head: OpusHead | undefined;
  #libopus: Libopus<typeof OPUS_HZ> | undefined;
  /** Packets of the head that are still to come: the comments. */
  #headers = 0;
  /** Samples of this logical stream, and those before its first page's end; undefined until that is known. */
  #decoded = 0;
  #origin: number | undefined;

  async push(bytes: Uint8Array): Promise<Pcm> {
    this.output.step();
    const parts: Pcm[] = [];
    for (const { first, last, granule, packets } of this.#ogg.push(bytes)) {
      const sound = first ? packets.slice(1) : packets;
      if (first) await this.#begin(packets[0]);
      const decoded: Float32Array[][] = [];
      for (const packet of sound) {
        if (this.#headers > 0) this.#headers--;
        else decoded.push(await this.#decode(packet));
      }
      const made = decoded.reduce((sum, channels) => sum + (channels[0]?.length ?? 0), 0);
      this.#decoded += made;
      this.#origin ??= made > 0 ? Number(granule) - (this.#head?.preSkip ?? 0) - this.#decoded : undefined;
      // The last page names the exact end (RFC 7845 §4).
      const over = last ? this.#decoded - (Number(granule) - (this.#head?.preSkip ?? 0) - Math.max(0, this.#origin ?? 0)) : 0;
      parts.push(this.#page(decoded, Math.max(0, made - Math.max(0, over))));
    }
    return joined(parts);
  }

  end(): Pcm {
    this.output.step();
    return this.output.end();
  }

  protected free(): void {
    this.#libopus?.free();
  }

  #page(decoded: readonly Float32Array[][], most: number): Pcm {
    const gain = this.#head?.gain ?? 1;
    const parts: Pcm[] = [];
    let left = most;
    for (const channels of decoded) {
      const kept = channels.map((channel) => channel.subarray(0, left));
      left -= kept[0]?.length ?? 0;
      if (gain !== 1) for (const channel of kept) for (let i = 0; i < channel.length; i++) channel[i] = (channel[i] ?? 0) * gain;
      parts.push(this.output.add(kept, OPUS_HZ));
    }
    return joined(parts);
  }

  async #begin(packet: Uint8Array | undefined): Promise<void> {
    this.#head = packet === undefined ? undefined : opusHead(packet);
    this.#headers = 1;
    this.#decoded = 0;
    this.#origin = undefined;
    this.countStream();
    await this.#renew();
  }

  async #renew(): Promise<void> {
    const before = this.#libopus;
    this.#libopus = undefined;
    before?.free();
    if (this.#head === undefined) return;
    const libopus = new Libopus({ ...this.#head, sampleRate: OPUS_HZ });
    this.#libopus = libopus;
    await libopus.ready;
  }

  async #decode(packet: Uint8Array): Promise<Float32Array[]> {
    const libopus = this.#libopus;
    if (libopus === undefined || packet.length > packetMaxBytes(this.#head?.channels ?? 1)) return [];
    if (packet.length === 0) return []; // It is malformed (RFC 6716 §3.4), and libopus would make up 120 ms for it.
    try {
      const { channelData } = withBoundedErrors(() => libopus.decodeFrame(packet));
      if ((channelData[0]?.length ?? 0) > 0) this.isHeard = true;
      return channelData;
    } catch (error) {
      this.countRestart(error);
      await this.#renew();
      return [];
    }
  }
}

/** RFC 7845 §5.1. Undefined where it is none that is played. */
function opusHead(packet: Uint8Array): OpusHead | undefined {
  if (packet.length < 19 || String.fromCharCode(...packet.subarray(0, 8)) !== 'OpusHead') return undefined;
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  const channels = view.getUint8(9);
  const family = view.getUint8(18);
  if (view.getUint8(8) >> 4 !== 0 || channels < 1 || channels > (family === 0 ? 2 : CHANNELS_MAX)) return undefined;
  if (family !== 0 && packet.length < 21 + channels) return undefined;
  const streamCount = family === 0 ? 1 : view.getUint8(19);
  const coupledStreamCount = family === 0 ? channels - 1 : view.getUint8(20);
  const channelMappingTable = family === 0 ? (channels === 2 ? [0, 1] : [0]) : [...packet.subarray(21, 21 + channels)];
  const sane = streamCount > 0 && coupledStreamCount <= streamCount && streamCount + coupledStreamCount <= 2 * CHANNELS_MAX;
  if (!sane || channelMappingTable.some((from) => from !== 255 && from >= streamCount + coupledStreamCount)) return undefined;
  const gain = 10 ** (view.getInt16(16, true) / 256 / 20);
  return { channels, preSkip: view.getUint16(10, true), gain, streamCount, coupledStreamCount, channelMappingTable };
}
