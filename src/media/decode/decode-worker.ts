/**
 * The decoding thread: sources of every format to 16-bit mono at the rate of the leg. One request at a time a stream,
 * so what is in memory here is one step's input and output. Applications have the thread's time in equal shares: a step
 * of 4 KiB may take 1.5 s where somebody means harm.
 */
import { Shares } from '../../bounds/shares.ts';
import { TimeShares } from '../../bounds/time-shares.ts';
import { DECODE_TOLD_MS, DECODER_SHARES, LIBRARY_DECODER_SHARES } from '../../limits.ts';
import { TransportDemux } from '../format/mpeg-ts.ts';
import type { AudioKind } from '../format/sniff.ts';
import { AacDecoder } from './aac-decoder.ts';
import type { DecodeAnswer, DecodeAnswers, DecodeRequest } from './decode-request.ts';
import { muteConsole } from './library-errors.ts';
import { MpegDecoder } from './mpeg-decoder.ts';
import { MpegTsDecoder } from './mpeg-ts-decoder.ts';
import { openMpg123 } from './mpg123.ts';
import { NO_PCM, type Pcm } from './pcm-output.ts';
import type { SourceDecoder } from './source-decoder.ts';
import { WavDecoder } from './wav/wav-decoder.ts';

declare const self: Worker;

/** What is worked on in its turn. */
type Asked = Exclude<DecodeRequest, { readonly type: 'quit' }>;

const decoders = new Map<number, SourceDecoder>();
const places = new Shares(DECODER_SHARES);
const libraryPlaces = new Shares(LIBRARY_DECODER_SHARES);

/** Takes one of the places for decoders of libraries, whose memory is not ours to bound. Returns what gives it back. */
function libraryPlace(owner: string): () => void {
  if (!libraryPlaces.take(owner)) throw new Error('too many decoders');
  let given = false;
  return () => {
    if (!given) libraryPlaces.give(owner);
    given = true;
  };
}

const mpegOf = (owner: string) => (rateHz: number, skip: number) =>
  new MpegDecoder(openMpg123, rateHz, skip, libraryPlace(owner));

/** Makes decoders of a kind. The libraries in WebAssembly are loaded for the first source that needs them. */
async function makerOf(kind: AudioKind, owner: string): Promise<(rateHz: number, skip: number) => SourceDecoder> {
  const openMpeg = mpegOf(owner);
  switch (kind) {
    case 'wav':
      return (rateHz, skip) => new WavDecoder(rateHz, skip, () => openMpeg(rateHz, skip));
    case 'mpeg':
      return openMpeg;
    case 'mpegts':
      return (rateHz, skip) => new MpegTsDecoder(new TransportDemux('mpeg'), openMpeg(rateHz, skip));
    case 'mpegts-aac':
      return (rateHz, skip) => new MpegTsDecoder(new TransportDemux('aac'), new AacDecoder(rateHz, skip, libraryPlace(owner)));
    case 'aac':
      return (rateHz, skip) => new AacDecoder(rateHz, skip, libraryPlace(owner));
    case 'opus': {
      const { OpusDecoder } = await import('./opus-decoder.ts');
      return (rateHz, skip) => new OpusDecoder(rateHz, skip, libraryPlace(owner));
    }
    case 'vorbis': {
      const { VorbisDecoder } = await import('./vorbis-decoder.ts');
      return (rateHz, skip) => new VorbisDecoder(rateHz, skip, libraryPlace(owner));
    }
    case 'flac': {
      const { FlacDecoder } = await import('./flac-decoder.ts');
      return (rateHz, skip) => new FlacDecoder(rateHz, skip, libraryPlace(owner));
    }
  }
}

async function open({ stream, owner, kind, rateHz, skip }: Extract<DecodeRequest, { readonly type: 'open' }>): Promise<void> {
  const make = await makerOf(kind, owner);
  if (!places.take(owner)) throw new Error('too many decoders');
  try {
    decoders.set(stream, make(rateHz, skip));
  } catch (error) {
    places.give(owner);
    throw error;
  }
}

function opened(stream: number): SourceDecoder {
  const decoder = decoders.get(stream);
  if (decoder === undefined) throw new Error('no such stream');
  return decoder;
}

async function decode(request: Asked): Promise<Pcm> {
  switch (request.type) {
    case 'open':
      await open(request);
      return NO_PCM;
    case 'push':
      return await opened(request.stream).push(request.bytes);
    case 'end': {
      const decoder = opened(request.stream);
      const pcm = await decoder.end();
      if (!decoder.heard) throw new Error('nothing in it that could be heard');
      return pcm;
    }
    case 'close': {
      const decoder = decoders.get(request.stream);
      if (decoders.delete(request.stream)) places.give(request.owner);
      decoder?.close();
      return NO_PCM;
    }
  }
}

let answers: DecodeAnswer[] = [];
let toldAt = 0;

/** Tells what was asked in one turn of the event loop together, and nothing later than `DECODE_TOLD_MS` and a step. */
function answer(one: DecodeAnswer): void {
  answers.push(one);
  if (performance.now() - toldAt >= DECODE_TOLD_MS) tell();
  else if (answers.length === 1) setImmediate(tell);
}

function tell(): void {
  if (answers.length === 0) return;
  const told: DecodeAnswers = answers;
  answers = [];
  toldAt = performance.now();
  self.postMessage(
    told,
    told.flatMap(({ pcm }) => (pcm.length > 0 ? [pcm.buffer] : [])),
  );
}

muteConsole();

async function serve(request: Asked): Promise<void> {
  let pcm: Pcm = NO_PCM;
  let error: string | undefined;
  const samples = () => decoders.get(request.stream)?.samples ?? 0;
  try {
    pcm = await decode(request);
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  }
  if (request.type === 'close') return;
  answer({ stream: request.stream, pcm, samples: samples(), error });
}

const waiting = new TimeShares<Asked>();
let isWorking = false;

/** Works on what waits. Others are heard after `DECODE_TOLD_MS` and a step, and may have their turn next. */
async function work(): Promise<void> {
  const until = performance.now() + DECODE_TOLD_MS;
  for (let now = 0; now < until; ) {
    const request = waiting.take();
    isWorking = request !== undefined;
    if (request === undefined) return;
    const began = performance.now();
    await serve(request);
    now = performance.now();
    waiting.spend(request.owner, now - began);
  }
  setImmediate(work);
}

self.onmessage = ({ data }: MessageEvent<DecodeRequest>) => {
  if (data.type === 'quit') process.exit(0);
  waiting.add(data.owner, data);
  if (isWorking) return;
  isWorking = true;
  void work();
};
