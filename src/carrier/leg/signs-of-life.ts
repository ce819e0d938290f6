/** Whether a far end has given a sign of life since it was last asked for one: a message, or a packet of its audio. */
export class SignsOfLife {
  /** Packets received by the last look. */
  #packets: number | undefined;
  #hasSpoken = false;

  /** A message of the far end came. */
  spoken(): void {
    this.#hasSpoken = true;
  }

  /** A sign was told: the next look is for later ones. */
  told(): void {
    this.#hasSpoken = false;
  }

  /**
   * Looks for signs since the last look. `packets` are those received so far. Of a call that was answered the first
   * look tells nothing of its packets, which may all be from long ago.
   */
  look(packets: number, isAnswered: boolean): boolean {
    const before = this.#packets;
    const hasMoved = before === undefined ? !isAnswered && packets > 0 : packets !== before;
    const isAlive = hasMoved || this.#hasSpoken;
    this.#packets = packets;
    this.#hasSpoken = false;
    return isAlive;
  }
}
