/** AAC in ADTS, by libavcodec through the addon (native/decode/aac_decoder.h). */
import { AdtsFramer } from '../format/adts.ts';
import { type AacHandle, native } from '../native.ts';
import { LibraryDecoder } from './library-decoder.ts';
import { joined, type Pcm } from './pcm-output.ts';

/** The most samples of one frame (native/decode/aac_decoder.h). */
const FRAME_MAX_SAMPLES = 8_192;
/** Room for one frame. Decoding is synchronous, so that all decoders of the thread share it. */
const sound = new Float32Array(FRAME_MAX_SAMPLES);
const status = new Uint32Array(2);

/** Whether AAC can be decoded by this build on this machine. */
export const decodesAac = (): boolean => native.aacAvailable();

export class AacDecoder extends LibraryDecoder {
  readonly #aac: AacHandle;
  readonly #framer = new AdtsFramer();

  /** The first `skip` samples at `rateHz` are thrown away. Throws where there is no decoder. */
  constructor(rateHz: number, skip: number, closed: () => void) {
    super(rateHz, skip, closed);
    const aac = native.aacCreate();
    if (aac === undefined) {
      closed();
      throw new Error('no AAC decoder');
    }
    this.#aac = aac;
  }

  push(bytes: Uint8Array): Pcm {
    this.output.step();
    return this.#decode(this.#framer.push(bytes));
  }

  end(): Pcm {
    this.output.step();
    return joined([this.#decode(this.#framer.end()), this.output.end()]);
  }

  protected free(): void {
    native.aacClose(this.#aac);
  }

  #decode(frames: readonly Uint8Array[]): Pcm {
    const parts: Pcm[] = [];
    for (const frame of frames) {
      if (!native.aacDecode(this.#aac, frame, sound, status)) {
        this.countRestart(new Error('damaged beyond what can be decoded'));
        continue;
      }
      const [samples = 0, hz = 0] = status;
      if (samples === 0) continue;
      this.isHeard = true;
      parts.push(this.output.add([sound.subarray(0, samples)], hz));
    }
    return joined(parts);
  }
}
