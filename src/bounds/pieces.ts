import { BODY_PIECES_MAX } from '../limits.ts';

/**
 * Counts the pieces of a body, which its sender cuts as it likes where it is chunked (RFC 9112 §7.1). Each takes 1 to 2
 * µs and some 100 bytes, and all that have come are given out in one turn of the event loop: a megabyte in a million of
 * them would hold up everybody else for seconds.
 */
export class Pieces {
  readonly #leastBytes: number;
  #count = 0;
  #bytes = 0;

  /** `leastBytes`: what pieces have on average, beyond the first BODY_PIECES_MAX. */
  constructor(leastBytes: number) {
    this.#leastBytes = leastBytes;
  }

  /** Takes a piece. False: they are too many for what is in them. */
  take({ length }: Uint8Array): boolean {
    this.#count += 1;
    this.#bytes += length;
    return this.#count <= BODY_PIECES_MAX + this.#bytes / this.#leastBytes;
  }
}
