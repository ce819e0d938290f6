/**
 * mpg123, one instance for each source: the library of the machine where it is there (native/decode/mpeg_decoder.h),
 * else in WebAssembly, which takes four times as long and has a megabyte of memory more. Layers I and II are always
 * decoded there, because of some of their frames the library tells standard error in words that are not of our log.
 */
import type { MPEGDecoder } from 'mpg123-decoder';
import { type MpegHandle, native } from '../native.ts';
import { withBoundedErrors } from './library-errors.ts';

/** Takes decoded sound, one array of equal length for each channel. It may be overwritten by what is decoded next. */
type TakeSound = (channels: readonly Float32Array[], samples: number, hz: number) => void;

export interface Mpg123 {
  /** Decodes bytes of whole frames. Throws where mpg123 stumbles over them; then it is of no more use. */
  decode(bytes: Uint8Array, take: TakeSound): void;
  /** Gives its memory back. */
  close(): void;
}

/** The most samples of one call (native/decode/mpeg_decoder.h). */
const SOUND_MAX_SAMPLES = 4 * 1152;
/** Instances in WebAssembly that wait to be used again: making one costs ten times a reset. */
const SPARE_MAX = 8;

/** Room for one call. Decoding is synchronous, so that all decoders of the thread share it. */
const sound = new Float32Array(SOUND_MAX_SAMPLES);
const status = new Uint32Array(3);
const NO_BYTES = new Uint8Array(0);
const spare: MPEGDecoder[] = [];

/** A new instance for frames of that layer, 1 to 3. */
export async function openMpg123(layer: number): Promise<Mpg123> {
  const handle = layer === 3 ? native.mpegCreate() : undefined;
  return handle === undefined ? await openWasmMpg123() : new NativeMpg123(handle);
}

class NativeMpg123 implements Mpg123 {
  readonly #mpeg: MpegHandle;

  constructor(mpeg: MpegHandle) {
    this.#mpeg = mpeg;
  }

  decode(bytes: Uint8Array, take: TakeSound): void {
    for (let more = bytes; ; more = NO_BYTES) {
      if (!native.mpegDecode(this.#mpeg, more, sound, status)) throw new Error('damaged beyond what can be decoded');
      const [samples = 0, hz = 0, isMore = 0] = status;
      if (samples > 0) take([sound.subarray(0, samples)], samples, hz);
      if (isMore === 0) return;
    }
  }

  close(): void {
    native.mpegClose(this.#mpeg);
  }
}

/** A new instance in WebAssembly. It is exported for tests, which compare the two. */
export async function openWasmMpg123(): Promise<Mpg123> {
  const { MPEGDecoder } = await import('mpg123-decoder');
  const again = spare.pop();
  const mpg123 = again ?? new MPEGDecoder();
  await (again === undefined ? mpg123.ready : mpg123.reset());
  return {
    decode: (bytes, take) => {
      const { channelData, samplesDecoded, sampleRate } = withBoundedErrors(() => mpg123.decode(bytes));
      if (samplesDecoded > 0) take(channelData, samplesDecoded, sampleRate);
    },
    close: () => {
      if (spare.length < SPARE_MAX) spare.push(mpg123);
      else mpg123.free();
    },
  };
}
