/** FLAC, by itself or in Ogg (RFC 9639 §10.1), by libFLAC in WebAssembly. */
import { FLACDecoder as Libflac } from '@wasm-audio-decoders/flac';
import { FlacFramer } from '../format/flac-framer.ts';
import { OggReader } from '../format/ogg.ts';
import { withBoundedErrors } from './library-errors.ts';
import { joined, NO_PCM, type Pcm, PcmOutput } from './pcm-output.ts';
import { Restarts } from './restarts.ts';
import type { SourceDecoder } from './source-decoder.ts';

/** A frame begins with 15 bits of synchronisation; packets of the head do not. */
const isFrame = (packet: Uint8Array): boolean => packet[0] === 0xff && ((packet[1] ?? 0) & 0xfe) === 0xf8;
const isMapping = (packet: Uint8Array): boolean => String.fromCharCode(...packet.subarray(0, 5)) === '\x7fFLAC';

export class FlacDecoder implements SourceDecoder {
  readonly #output: PcmOutput;
  readonly #closed: () => void;
  readonly #restarts = new Restarts();
  readonly #framer = new FlacFramer();
  readonly #ogg = new OggReader(isMapping);
  #libflac = new Libflac();
  /** Whether it is in Ogg; undefined until the first byte tells. */
  #inOgg: boolean | undefined;
  #heard = false;

  constructor(rateHz: number, skip: number, closed: () => void) {
    this.#output = new PcmOutput(rateHz, skip);
    this.#closed = closed;
  }

  get samples(): number {
    return this.#output.samples;
  }

  get heard(): boolean {
    return this.#heard;
  }

  async push(bytes: Uint8Array): Promise<Pcm> {
    if (bytes.length === 0) return NO_PCM;
    this.#output.step();
    this.#inOgg ??= bytes[0] === 0x4f;
    const frames = this.#inOgg
      ? this.#ogg.push(bytes).flatMap(({ packets }) => packets.filter(isFrame))
      : this.#framer.push(bytes);
    return await this.#decode(frames);
  }

  async end(): Promise<Pcm> {
    this.#output.step();
    return joined([await this.#decode(this.#framer.end()), this.#output.end()]);
  }

  close(): void {
    this.#libflac.free();
    this.#closed();
  }

  /** A frame at a time: few bytes may stand for 65,535 samples in eight channels. */
  async #decode(frames: readonly Uint8Array[]): Promise<Pcm> {
    const parts: Pcm[] = [];
    for (const frame of frames) {
      try {
        await this.#libflac.ready;
        const { channelData, samplesDecoded, sampleRate } = await withBoundedErrors(() => this.#libflac.decodeFrames([frame]));
        if (samplesDecoded <= 0) continue;
        this.#heard = true;
        parts.push(this.#output.add(channelData, sampleRate));
      } catch (error) {
        this.#restarts.count(error);
        this.#libflac = new Libflac();
      }
    }
    return joined(parts);
  }
}
