/** Seeded randomness (sfc32): the same seed gives the same numbers on every machine. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, stream = 0) {
    this.#a = seed | 0;
    this.#b = Math.floor(seed / 2 ** 32) | 0;
    this.#c = Math.imul(stream + 1, 0x9e3779b9);
    for (let turn = 0; turn < 12; turn++) this.#draw();
  }

  #draw(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** A number in [0, 1). */
  fraction(): number {
    return this.#draw() / 2 ** 32;
  }

  /** An integer from `least` to `most`, both included. */
  int(least: number, most: number): number {
    return least + Math.floor(this.fraction() * (most - least + 1));
  }

  /** A number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(items: readonly [T, ...T[]]): T;
  pick<T>(items: readonly T[]): T | undefined;
  pick<T>(items: readonly T[]): T | undefined {
    return items[this.int(0, items.length - 1)];
  }

  /** A version 4 UUID in lower case. */
  uuid(): string {
    const hex = (bits: number) =>
      this.#draw()
        .toString(16)
        .padStart(8, '0')
        .slice(0, bits / 4);
    const variant = '89ab'[this.#draw() & 3];
    return `${hex(32)}-${hex(16)}-4${hex(12)}-${variant}${hex(12)}-${hex(32)}${hex(16)}`;
  }
}
