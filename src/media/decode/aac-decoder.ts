/** AAC in ADTS, by libavcodec through the addon (native/decode/aac_decoder.h). */
import { AdtsFramer } from '../format/adts.ts';
import { type AacHandle, native } from '../native.ts';
import { joined, type Pcm, PcmOutput } from './pcm-output.ts';
import { Restarts } from './restarts.ts';
import type { SourceDecoder } from './source-decoder.ts';

/** The most samples of one frame (native/decode/aac_decoder.h). */
const FRAME_MAX_SAMPLES = 8_192;
/** Room for one frame. Decoding is synchronous, so that all decoders of the thread share it. */
const sound = new Float32Array(FRAME_MAX_SAMPLES);
const status = new Uint32Array(2);

/** Whether AAC can be decoded by this build on this machine. */
export const decodesAac = (): boolean => native.aacAvailable();

export class AacDecoder implements SourceDecoder {
  readonly #aac: AacHandle;
  readonly #closed: () => void;
  readonly #framer = new AdtsFramer();
  readonly #output: PcmOutput;
  readonly #restarts = new Restarts();
  #heard = false;

  /** The first `skip` samples at `rateHz` are thrown away. Throws where there is no decoder. */
  constructor(rateHz: number, skip: number, closed: () => void) {
    const aac = native.aacCreate();
    if (aac === undefined) {
      closed();
      throw new Error('no AAC decoder');
    }
    this.#aac = aac;
    this.#closed = closed;
    this.#output = new PcmOutput(rateHz, skip);
  }

  get samples(): number {
    return this.#output.samples;
  }

  get heard(): boolean {
    return this.#heard;
  }

  push(bytes: Uint8Array): Pcm {
    this.#output.step();
    return this.#decode(this.#framer.push(bytes));
  }

  end(): Pcm {
    this.#output.step();
    return joined([this.#decode(this.#framer.end()), this.#output.end()]);
  }

  close(): void {
    native.aacClose(this.#aac);
    this.#closed();
  }

  #decode(frames: readonly Uint8Array[]): Pcm {
    const parts: Pcm[] = [];
    for (const frame of frames) {
      if (!native.aacDecode(this.#aac, frame, sound, status)) {
        this.#restarts.count(new Error('damaged beyond what can be decoded'));
        continue;
      }
      const [samples = 0, hz = 0] = status;
      if (samples === 0) continue;
      this.#heard = true;
      parts.push(this.#output.add([sound.subarray(0, samples)], hz));
    }
    return joined(parts);
  }
}
