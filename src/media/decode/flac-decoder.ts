/** FLAC, by itself or in Ogg (RFC 9639 §10.1), by libFLAC in WebAssembly. */
import { FLACDecoder as Libflac } from '@wasm-audio-decoders/flac';
import { FlacFramer } from '../format/flac-framer.ts';
import { OggReader } from '../format/ogg.ts';
import { LibraryDecoder } from './library-decoder.ts';
import { withBoundedErrors } from './library-errors.ts';
import { joined, NO_PCM, type Pcm } from './pcm-output.ts';

/** A frame begins with 15 bits of synchronisation; packets of the head do not. */
const isFrame = (packet: Uint8Array): boolean => packet[0] === 0xff && ((packet[1] ?? 0) & 0xfe) === 0xf8;
const isMapping = (packet: Uint8Array): boolean => String.fromCharCode(...packet.subarray(0, 5)) === '\x7fFLAC';

export class FlacDecoder extends LibraryDecoder {
  readonly #framer = new FlacFramer();
  readonly #ogg = new OggReader(isMapping);
  #libflac = new Libflac();
  /** Whether it is in Ogg; undefined until the first byte tells. */
  #inOgg: boolean | undefined;

  async push(bytes: Uint8Array): Promise<Pcm> {
    if (bytes.length === 0) return NO_PCM;
    this.output.step();
    this.#inOgg ??= bytes[0] === 0x4f;
    const frames = this.#inOgg
      ? this.#ogg.push(bytes).flatMap(({ packets }) => packets.filter(isFrame))
      : this.#framer.push(bytes);
    return await this.#decode(frames);
  }

  async end(): Promise<Pcm> {
    this.output.step();
    return joined([await this.#decode(this.#framer.end()), this.output.end()]);
  }

  protected free(): void {
    this.#libflac.free();
  }

  /** A frame at a time: few bytes may stand for 65,535 samples in eight channels. */
  async #decode(frames: readonly Uint8Array[]): Promise<Pcm> {
    const parts: Pcm[] = [];
    for (const frame of frames) {
      try {
        await this.#libflac.ready;
        const { channelData, samplesDecoded, sampleRate } = await withBoundedErrors(() => this.#libflac.decodeFrames([frame]));
        if (samplesDecoded <= 0) continue;
        this.isHeard = true;
        parts.push(this.output.add(channelData, sampleRate));
      } catch (error) {
        this.countRestart(error);
        this.#libflac = new Libflac();
      }
    }
    return joined(parts);
  }
}
