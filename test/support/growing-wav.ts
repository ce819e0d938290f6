/** A recording's file as the media plane writes it: sizes without an end while it grows, exact ones at last. */
import { closeSync, openSync, writeSync } from 'node:fs';

const HEADER_BYTES = 44;

export class GrowingWav {
  readonly path: string;
  readonly state = 'growing';
  readonly appUuid = 'app';
  readonly #rateHz: number;
  #fd = -1;
  #bytes = 0;
  #over = false;

  constructor(path: string, rateHz = 8000) {
    this.path = path;
    this.#rateHz = rateHz;
  }

  over = (): boolean => this.#over;

  /** The file appears, with its header. */
  begin(): this {
    this.#fd = openSync(this.path, 'w');
    this.#writeHeader(0xffffffff, 0xffffffff);
    return this;
  }

  append(samples: Uint8Array): void {
    writeSync(this.#fd, samples, 0, samples.length, HEADER_BYTES + this.#bytes);
    this.#bytes += samples.length;
  }

  finish(): void {
    this.#writeHeader(this.#bytes + HEADER_BYTES - 8, this.#bytes);
    closeSync(this.#fd);
    this.#over = true;
  }

  #writeHeader(riffBytes: number, dataBytes: number): void {
    const header = Buffer.alloc(HEADER_BYTES);
    header.write('RIFF', 0);
    header.writeUInt32LE(riffBytes, 4);
    header.write('WAVEfmt ', 8);
    header.writeUInt32LE(16, 16);
    header.writeUInt16LE(1, 20);
    header.writeUInt16LE(1, 22);
    header.writeUInt32LE(this.#rateHz, 24);
    header.writeUInt32LE(this.#rateHz * 2, 28);
    header.writeUInt16LE(2, 32);
    header.writeUInt16LE(16, 34);
    header.write('data', 36);
    header.writeUInt32LE(dataBytes, 40);
    writeSync(this.#fd, header, 0, HEADER_BYTES, 0);
  }
}
