/**
 * Ogg Vorbis by libvorbis in WebAssembly. The library trusts its pages: it is given pages of our own writing, with
 * whole packets only and without comments, which may hold pictures.
 */
import { OggVorbisDecoder as Libvorbis } from '@wasm-audio-decoders/ogg-vorbis';
import { type OggPackets, OggReader, OggWriter } from '../format/ogg.ts';
import { LibraryDecoder } from './library-decoder.ts';
import { withBoundedErrors } from './library-errors.ts';
import { joined, NO_PCM, type Pcm } from './pcm-output.ts';

const CHANNELS_MAX = 8;
/** The library has room for 128 KiB of one packet; libvorbis itself never makes such a one. */
const PACKET_MAX_BYTES = 64 * 1024;
/** Vorbis I §5: the kind of the packet, no vendor, no comments, the framing bit. */
const NO_COMMENTS = Uint8Array.from([3, ...new TextEncoder().encode('vorbis'), 0, 0, 0, 0, 0, 0, 0, 0, 1]);

export class VorbisDecoder extends LibraryDecoder {
  readonly #ogg = new OggReader(isIdentification);
  #libvorbis: Libvorbis | undefined;
  #writer = new OggWriter();
  /** The three packets of the head, as far as they have come. */
  #head: Uint8Array[] = [];

  async push(bytes: Uint8Array): Promise<Pcm> {
    this.output.step();
    const parts: Pcm[] = [];
    for (const page of this.#ogg.push(bytes)) {
      if (page.first) {
        parts.push(await this.#flush());
        this.#head = [];
      }
      const heads = page.packets.filter(isHead);
      this.#head.push(...heads.map((packet) => packet.slice()));
      if (heads.length > 0 && this.#complete) {
        this.countStream();
        await this.#begin();
      }
      if (!this.#complete) continue;
      const packets = page.packets.filter((packet) => !isHead(packet) && packet.length > 0 && packet.length <= PACKET_MAX_BYTES);
      if (packets.length > 0) parts.push(await this.#decode({ ...page, first: false, packets }));
    }
    return joined(parts);
  }

  async end(): Promise<Pcm> {
    this.output.step();
    return joined([await this.#flush(), this.output.end()]);
  }

  protected free(): void {
    this.#libvorbis?.free();
  }

  /** Whether no packet of the head was lost. */
  get #complete(): boolean {
    return this.#head.length === 3 && this.#head.every((packet, i) => packet[0] === 2 * i + 1);
  }

  /** Begins a logical stream, or the one there is anew. */
  async #begin(): Promise<void> {
    const before = this.#libvorbis;
    this.#libvorbis = undefined;
    before?.free();
    const [identification = new Uint8Array(0), , setup = new Uint8Array(0)] = this.#head;
    // The library looks for the framing bit from the end of the packet, for ever where there is none.
    if (setup.length > PACKET_MAX_BYTES || (setup[setup.length - 1] ?? 0) === 0) throw new Error('a Vorbis set-up that is none');
    this.#writer = new OggWriter();
    this.#libvorbis = new Libvorbis();
    await this.#libvorbis.ready;
    const flags = { last: false, granule: 0n };
    await this.#libvorbis.decode(this.#writer.write({ ...flags, first: true, packets: [identification] }));
    await this.#libvorbis.decode(this.#writer.write({ ...flags, first: false, packets: [NO_COMMENTS, setup] }));
  }

  async #decode(page: OggPackets): Promise<Pcm> {
    return await this.#sound((libvorbis) => libvorbis.decode(this.#writer.write(page)));
  }

  /** The last page, which the library keeps until another follows. */
  async #flush(): Promise<Pcm> {
    return await this.#sound((libvorbis) => libvorbis.flush());
  }

  async #sound(call: (libvorbis: Libvorbis) => ReturnType<Libvorbis['decode']>): Promise<Pcm> {
    const libvorbis = this.#libvorbis;
    if (libvorbis === undefined) return NO_PCM;
    try {
      const decoded = await withBoundedErrors(() => call(libvorbis));
      if (decoded.samplesDecoded <= 0) return NO_PCM;
      this.isHeard = true;
      return this.output.add(decoded.channelData, decoded.sampleRate);
    } catch (error) {
      this.countRestart(error);
      await this.#begin();
      return NO_PCM;
    }
  }
}

/** Vorbis I §4.2.1: packets of the head are of odd kinds, packets of sound of even ones. */
const isHead = (packet: Uint8Array): boolean => ((packet[0] ?? 0) & 1) === 1;

/** Vorbis I §4.2.2. */
const isIdentification = (packet: Uint8Array): boolean =>
  packet.length >= 30 &&
  String.fromCharCode(...packet.subarray(0, 7)) === '\x01vorbis' &&
  (packet[11] ?? 0) >= 1 &&
  (packet[11] ?? 0) <= CHANNELS_MAX;
