/** MPEG audio, or AAC, in an MPEG transport stream. */
import type { TransportDemux } from '../format/mpeg-ts.ts';
import type { Pcm } from './pcm-output.ts';
import type { SourceDecoder } from './source-decoder.ts';

export class MpegTsDecoder implements SourceDecoder {
  readonly #demux: TransportDemux;
  readonly #audio: SourceDecoder;

  /** `audio` decodes what the demultiplexer finds. */
  constructor(demux: TransportDemux, audio: SourceDecoder) {
    this.#demux = demux;
    this.#audio = audio;
  }

  get samples(): number {
    return this.#audio.samples;
  }

  get heard(): boolean {
    return this.#audio.heard;
  }

  async push(bytes: Uint8Array): Promise<Pcm> {
    const audio = this.#demux.push(bytes);
    if (this.#demux.unsupported) throw new Error('the audio in it is not of the kind that it began with');
    return await this.#audio.push(audio);
  }

  async end(): Promise<Pcm> {
    return await this.#audio.end();
  }

  close(): void {
    this.#audio.close();
  }
}
