/** MPEG audio in an MPEG transport stream. */
import { TransportDemux } from '../format/mpeg-ts.ts';
import type { MpegDecoder } from './mpeg-decoder.ts';
import type { Pcm } from './pcm-output.ts';
import type { SourceDecoder } from './source-decoder.ts';

export class MpegTsDecoder implements SourceDecoder {
  readonly #demux = new TransportDemux();
  readonly #mpeg: MpegDecoder;

  constructor(mpeg: MpegDecoder) {
    this.#mpeg = mpeg;
  }

  get samples(): number {
    return this.#mpeg.samples;
  }

  get heard(): boolean {
    return this.#mpeg.heard;
  }

  async push(bytes: Uint8Array): Promise<Pcm> {
    const audio = this.#demux.push(bytes);
    if (this.#demux.unsupported) throw new Error('no MPEG audio in it');
    return await this.#mpeg.push(audio);
  }

  async end(): Promise<Pcm> {
    return await this.#mpeg.end();
  }

  close(): void {
    this.#mpeg.close();
  }
}
