/**
 * The decoding thread: WAV natively, MP3 by mpg123 in WebAssembly, both converted natively to 16-bit mono at the rate of the leg. One request
 * at a time a stream, so what is in memory here is one step's input and output.
 */
import { MPEGDecoder } from 'mpg123-decoder';
import { DECODERS_MAX, MP3_DECODERS_MAX } from '../../limits.ts';
import { native, type PcmHandle, type WavHandle } from '../native.ts';
import { MpegSkim } from '../source/mpeg-seek.ts';

export type SourceKind = 'wav' | 'mp3';

export type DecodeRequest =
  /** `skip`: samples at `rateHz` before the place to begin at. */
  | { readonly type: 'open'; readonly stream: number; readonly kind: SourceKind; readonly rateHz: number; readonly skip: number }
  | { readonly type: 'push'; readonly stream: number; readonly bytes: Uint8Array<ArrayBuffer> }
  /** The last byte was pushed. */
  | { readonly type: 'end'; readonly stream: number }
  | { readonly type: 'close'; readonly stream: number }
  | { readonly type: 'quit' };

export interface DecodeAnswer {
  readonly stream: number;
  readonly pcm: Int16Array<ArrayBuffer>;
  /** Samples so far, those that were skipped included: after the end, the length of the source. */
  readonly samples: number;
  /** The source is broken from here on; `pcm` is what came before. */
  readonly error: string | undefined;
}

declare const self: Worker;

interface Decoder {
  readonly samples: number;
  push(bytes: Uint8Array): Int16Array<ArrayBuffer>;
  end(): Int16Array<ArrayBuffer>;
  close(): void;
}

const EMPTY = new Int16Array(0);
/** Room for what one step or a flush can make: 11,025 Hz mu-law to 16 kHz is the worst, 1.5 samples a byte. */
const scratch = new Int16Array(256 * 1024);

class WavDecoder implements Decoder {
  readonly #wav: WavHandle;
  readonly #status = new Uint32Array(4);
  readonly #skip: number;
  #made = 0;

  constructor(rateHz: number, skip: number) {
    this.#wav = native.wavCreate(rateHz);
    this.#skip = skip;
  }

  get samples(): number {
    return this.#made;
  }

  /** What of the next `made` samples comes after the place to begin at. */
  #after(made: number): Int16Array {
    const unheard = Math.min(made, Math.max(0, this.#skip - this.#made));
    this.#made += made;
    return scratch.slice(unheard, made);
  }

  push(bytes: Uint8Array): Int16Array<ArrayBuffer> {
    const parts: Int16Array[] = [];
    for (let at = 0; at < bytes.length; ) {
      native.wavRead(this.#wav, bytes.subarray(at), scratch, this.#status);
      const [consumed = 0, made = 0, state = 0] = this.#status;
      if (state === 3) throw new Error('not a WAV this platform reads');
      if (made > 0) parts.push(this.#after(made));
      if (consumed === 0 && made === 0) break;
      at += consumed;
    }
    return join(parts);
  }

  end(): Int16Array<ArrayBuffer> {
    const made = native.wavFlush(this.#wav, scratch);
    native.wavRead(this.#wav, new Uint8Array(0), scratch.subarray(made), this.#status);
    if (this.#status[3] !== 0) throw new Error('the file ends before its data does');
    return join([this.#after(made)]);
  }

  close(): void {}
}

class Mp3Decoder implements Decoder {
  readonly #decoder: MPEGDecoder;
  readonly #rateHz: number;
  #pcm: PcmHandle | undefined;
  #sourceHz = 0;
  #decoded = false;
  #made: number;
  /** While the place to begin at has not come. */
  #skim: MpegSkim | undefined;
  /** Source samples to throw away, and those to keep after them. */
  #discard = 0;
  #left = Infinity;

  constructor(decoder: MPEGDecoder, rateHz: number, skip: number) {
    this.#decoder = decoder;
    this.#rateHz = rateHz;
    this.#made = skip;
    this.#skim = skip > 0 ? new MpegSkim(skip, rateHz) : undefined;
  }

  get samples(): number {
    return this.#made;
  }

  push(bytes: Uint8Array): Int16Array<ArrayBuffer> {
    if (this.#skim === undefined) return this.#decode(bytes);
    const found = this.#skim.push(bytes);
    if (found === undefined) return EMPTY;
    this.#discard = this.#skim.discard;
    this.#left = this.#skim.left ?? Infinity;
    this.#skim = undefined;
    return this.#decode(found);
  }

  #decode(bytes: Uint8Array): Int16Array<ArrayBuffer> {
    decodeErrors = 0;
    const { channelData, sampleRate, samplesDecoded } = this.#decoder.decode(bytes);
    if (decodeErrors > 0) throw new Error('damaged MP3');
    const [first] = channelData;
    if (first === undefined || samplesDecoded === 0) return EMPTY;
    this.#decoded = true;
    const unheard = Math.min(this.#discard, samplesDecoded);
    this.#discard -= unheard;
    const heard = Math.min(this.#left, samplesDecoded - unheard);
    this.#left -= heard;
    const left = first.subarray(unheard, unheard + heard);
    const right = (channelData[1] ?? first).subarray(unheard, unheard + heard);
    if (this.#pcm === undefined || sampleRate !== this.#sourceHz) {
      this.#pcm = native.pcmCreate(sampleRate, this.#rateHz);
      this.#sourceHz = sampleRate;
    }
    const out = new Int16Array(Math.ceil((left.length * this.#rateHz) / sampleRate) + 1024);
    const parts: Int16Array[] = [];
    for (let at = 0; at < left.length; at += 8192) {
      const made = native.pcmConvert(this.#pcm, left.subarray(at, at + 8192), right.subarray(at, at + 8192), out);
      parts.push(out.slice(0, made));
      this.#made += made;
    }
    return join(parts);
  }

  end(): Int16Array<ArrayBuffer> {
    if (this.#skim !== undefined) {
      this.#made = this.#skim.outLength; // the place was past the end
      if (this.#made === 0) throw new Error('no MPEG frame in it');
      return EMPTY;
    }
    if (!this.#decoded) throw new Error('no MPEG frame in it');
    const made = this.#pcm === undefined ? 0 : native.pcmFlush(this.#pcm, scratch);
    this.#made += made;
    return scratch.slice(0, made);
  }

  /** The instance goes back to be used again: making one costs ten times a reset. */
  close(): void {
    if (spare.length < 8) spare.push(this.#decoder);
    else this.#decoder.free();
    mp3Open--;
  }
}

function join(parts: readonly Int16Array[]): Int16Array<ArrayBuffer> {
  const out = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

const decoders = new Map<number, Decoder>();
const spare: MPEGDecoder[] = [];
let mp3Open = 0;
let decodeErrors = 0;

// mpg123-decoder says every error on the console and then reads on, without end where the error stays: counting there is also the way out.
const ERRORS_A_STEP_MAX = 16;
console.error = () => {
  decodeErrors++;
  if (decodeErrors > ERRORS_A_STEP_MAX) throw new Error('damaged MP3');
};

async function openMp3(rateHz: number, skip: number): Promise<Decoder> {
  if (mp3Open >= MP3_DECODERS_MAX) throw new Error('too many MP3 decoders');
  mp3Open++;
  const again = spare.pop();
  const decoder = again ?? new MPEGDecoder();
  await (again === undefined ? decoder.ready : decoder.reset());
  return new Mp3Decoder(decoder, rateHz, skip);
}

function opened(stream: number): Decoder {
  const decoder = decoders.get(stream);
  if (decoder === undefined) throw new Error('no such stream');
  return decoder;
}

async function decode(request: DecodeRequest): Promise<Int16Array<ArrayBuffer>> {
  switch (request.type) {
    case 'open':
      if (decoders.size >= DECODERS_MAX) throw new Error('too many decoders');
      decoders.set(
        request.stream,
        request.kind === 'wav' ? new WavDecoder(request.rateHz, request.skip) : await openMp3(request.rateHz, request.skip),
      );
      return EMPTY;
    case 'push':
      return opened(request.stream).push(request.bytes);
    case 'end':
      return opened(request.stream).end();
    case 'close':
      decoders.get(request.stream)?.close();
      decoders.delete(request.stream);
      return EMPTY;
    case 'quit':
      process.exit(0);
  }
}

self.onmessage = async (event: MessageEvent<DecodeRequest>) => {
  const request = event.data;
  if (request.type === 'quit') process.exit(0);
  let pcm: Int16Array<ArrayBuffer> = EMPTY;
  let error: string | undefined;
  const samples = () => decoders.get(request.stream)?.samples ?? 0;
  try {
    pcm = await decode(request);
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  }
  if (request.type === 'close') return;
  const answer: DecodeAnswer = { stream: request.stream, pcm, samples: samples(), error };
  self.postMessage(answer, pcm.length > 0 ? [pcm.buffer] : []);
};
