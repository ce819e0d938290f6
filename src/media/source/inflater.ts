/**
 * Takes a content coding (gzip, deflate) off a body piece by piece. It was not asked for, but some servers code
 * everything (RFC 9110 §8.4.1).
 */
import { createUnzip, type Unzip } from 'node:zlib';

/** Bytes inflated at once: 1,032 times as many may come out of them, which is the most that deflate can do. */
export const INFLATE_STEP_BYTES = 4 * 1024;

export class Inflater {
  readonly #unzip: Unzip = createUnzip();
  #made: Uint8Array[] = [];
  /** Rejects the step under way. The library does not call back for one in which the coding is damaged. */
  #broken: (error: Error) => void = () => {};

  constructor() {
    this.#unzip.on('data', (bytes: Buffer) => this.#made.push(new Uint8Array(bytes)));
    this.#unzip.on('error', (error) => this.#broken(error));
  }

  /** Unpacks at most `INFLATE_STEP_BYTES`. Rejects when they are of no such coding. */
  push(bytes: Uint8Array): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#broken = reject;
      this.#unzip.write(bytes, (error) => {
        if (error) reject(error);
        else resolve(this.#taken());
      });
    });
  }

  close(): void {
    this.#unzip.destroy();
  }

  #taken(): Uint8Array {
    const made = this.#made;
    this.#made = [];
    return new Uint8Array(Buffer.concat(made));
  }
}

/**
 * Whether the first bytes of a body may be of gzip or zlib. Some servers name the coding and send the bytes as they
 * are.
 */
export function mayBeDeflated([first = 0, second]: Uint8Array): boolean {
  if (first === 0x1f) return second === undefined || second === 0x8b;
  return (first & 0x0f) === 8 && (second === undefined || ((first << 8) | second) % 31 === 0);
}
