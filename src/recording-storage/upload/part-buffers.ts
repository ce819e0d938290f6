/**
 * The memory that parts are sent from, used again and again: new ones of 8 MiB would pile up faster than they are
 * collected (measured: 250 MiB for four uploads at once, instead of 80). One whose request failed is left to the
 * collector: the connection may still be reading it.
 */
export class PartBuffers {
  readonly #free: ArrayBuffer[] = [];
  readonly #most: number;
  readonly #partBytes: number;

  /** Keeps at most so many buffers of that size. */
  constructor(most: number, partBytes: number) {
    this.#most = most;
    this.#partBytes = partBytes;
  }

  /** Bytes with any content. */
  take(length: number): Uint8Array<ArrayBuffer> {
    const buffer = length > this.#partBytes ? undefined : this.#free.pop();
    return new Uint8Array(buffer ?? new ArrayBuffer(Math.max(length, this.#partBytes)), 0, length);
  }

  /** Nobody reads them any more. */
  give({ buffer }: Uint8Array<ArrayBuffer>): void {
    if (buffer.byteLength === this.#partBytes && this.#free.length < this.#most) this.#free.push(buffer);
  }

  /** Nothing is being sent: nothing is kept. */
  clear(): void {
    this.#free.length = 0;
  }
}
