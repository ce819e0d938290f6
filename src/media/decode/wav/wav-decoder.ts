/**
 * WAV of every kind we know. Plain samples that lie as the addon reads them go to it as they are, under a head of our
 * own that names no length; all others are unpacked here first.
 */

import { WavContainer } from '../../format/wav-container.ts';
import type { PacketFormat, PlainFormat, WavFormat } from '../../format/wav-format.ts';
import { wavHead } from '../../format/wav-head.ts';
import { native, type WavHandle } from '../../native.ts';
import { joined, NO_PCM, type Pcm, PcmOutput, scratch } from '../pcm-output.ts';
import type { SourceDecoder } from '../source-decoder.ts';
import { decodeImaBlock, decodeMsBlock } from './adpcm.ts';
import { GsmDecoder } from './gsm.ts';
import { floatsOf } from './plain-samples.ts';

/** Opens the decoder of MPEG audio inside a WAV. */
type OpenMpeg = () => SourceDecoder;

/** The reader of the bytes of the data part. */
interface Samples {
  push(bytes: Uint8Array): Pcm | Promise<Pcm>;
  end(): Pcm | Promise<Pcm>;
}

export class WavDecoder implements SourceDecoder {
  readonly #container = new WavContainer();
  readonly #output: PcmOutput;
  readonly #rateHz: number;
  readonly #openMpeg: OpenMpeg;
  #samples: Samples | undefined;
  #mpeg: SourceDecoder | undefined;

  constructor(rateHz: number, skip: number, openMpeg: OpenMpeg) {
    this.#rateHz = rateHz;
    this.#output = new PcmOutput(rateHz, skip);
    this.#openMpeg = openMpeg;
  }

  get samples(): number {
    return this.#mpeg?.samples ?? this.#output.samples;
  }

  /** An empty WAV is a WAV: it was heard to its end. */
  get heard(): boolean {
    return this.#mpeg?.heard ?? this.#container.state !== 'head';
  }

  async push(bytes: Uint8Array): Promise<Pcm> {
    this.#output.step();
    const sound = this.#container.push(bytes);
    const { format, state } = this.#container;
    if (state === 'unsupported') throw new Error('not a WAV this platform reads');
    if (sound.length === 0 || format === undefined) return NO_PCM;
    this.#samples ??= this.#open(format);
    return await this.#samples.push(sound);
  }

  async end(): Promise<Pcm> {
    return (await this.#samples?.end()) ?? NO_PCM;
  }

  close(): void {
    this.#mpeg?.close();
  }

  #open(format: WavFormat): Samples {
    switch (format.encoding) {
      case 'mpeg':
        this.#mpeg = this.#openMpeg();
        return this.#mpeg;
      case 'ima-adpcm':
      case 'ms-adpcm':
      case 'gsm':
        return new PacketSamples(format, this.#output);
      default:
        return isNative(format)
          ? new NativeSamples(format, this.#rateHz, this.#output)
          : new UnpackedSamples(format, this.#output);
    }
  }
}

const isNative = (format: PlainFormat): boolean =>
  !format.highFirst && format.channels <= 2 && format.sampleBytes <= 8 && !isWide(format);
/** Integers of 64 bits, which the addon does not read. */
const isWide = (format: PlainFormat): boolean => format.encoding === 'integer' && format.sampleBytes > 4;

class NativeSamples implements Samples {
  readonly #wav: WavHandle;
  readonly #output: PcmOutput;
  readonly #status = new Uint32Array(4);

  constructor(format: PlainFormat, rateHz: number, output: PcmOutput) {
    this.#wav = native.wavCreate(rateHz);
    this.#output = output;
    native.wavRead(this.#wav, wavHead(format, Infinity), scratch, this.#status);
  }

  push(bytes: Uint8Array): Pcm {
    const parts: Pcm[] = [];
    for (let at = 0; at < bytes.length; ) {
      native.wavRead(this.#wav, bytes.subarray(at), scratch, this.#status);
      const [consumed = 0, made = 0, state = 0] = this.#status;
      if (state === 3) throw new Error('not a WAV this platform reads');
      if (made > 0) parts.push(this.#output.count(scratch.subarray(0, made)));
      if (consumed === 0 && made === 0) break;
      at += consumed;
    }
    return joined(parts);
  }

  end(): Pcm {
    return this.#output.count(scratch.subarray(0, native.wavFlush(this.#wav, scratch)));
  }
}

class UnpackedSamples implements Samples {
  readonly #format: PlainFormat;
  readonly #output: PcmOutput;
  #rest: Uint8Array = new Uint8Array(0);

  constructor(format: PlainFormat, output: PcmOutput) {
    this.#format = format;
    this.#output = output;
  }

  push(bytes: Uint8Array): Pcm {
    const all = new Uint8Array(Buffer.concat([this.#rest, bytes]));
    const whole = all.length - (all.length % (this.#format.channels * this.#format.sampleBytes));
    this.#rest = all.slice(whole);
    return this.#output.add(floatsOf(this.#format, all.subarray(0, whole)), this.#format.hz);
  }

  end(): Pcm {
    return this.#output.end();
  }
}

class PacketSamples implements Samples {
  readonly #format: PacketFormat;
  readonly #output: PcmOutput;
  readonly #gsm = new GsmDecoder();
  #rest: Uint8Array = new Uint8Array(0);

  constructor(format: PacketFormat, output: PcmOutput) {
    this.#format = format;
    this.#output = output;
  }

  push(bytes: Uint8Array): Pcm {
    const all = new Uint8Array(Buffer.concat([this.#rest, bytes]));
    const { blockBytes } = this.#format;
    const parts: Pcm[] = [];
    let at = 0;
    for (; at + blockBytes <= all.length; at += blockBytes) parts.push(this.#block(all.subarray(at, at + blockBytes)));
    this.#rest = all.slice(at);
    return joined(parts);
  }

  /** The last block may be short. */
  end(): Pcm {
    const last = this.#format.encoding === 'gsm' ? NO_PCM : this.#block(this.#rest);
    return joined([last, this.#output.end()]);
  }

  #block(block: Uint8Array): Pcm {
    const { encoding, channels, coefficients, hz } = this.#format;
    const samples =
      encoding === 'gsm'
        ? [this.#gsm.decode(block)]
        : encoding === 'ima-adpcm'
          ? decodeImaBlock(block, channels)
          : decodeMsBlock(block, channels, coefficients);
    return this.#output.add(
      samples.map((channel) => Float32Array.from(channel, (sample) => sample / 32_768)),
      hz,
    );
  }
}
