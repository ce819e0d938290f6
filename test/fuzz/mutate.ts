/** Mutants of bytes, the same for the same numbers. */
import { oneOf } from '../support/random.ts';

const EDGES = [0x00, 0x01, 0x0a, 0x0d, 0x20, 0x22, 0x3a, 0x7f, 0x80, 0xff];
/** Numbers that stand where parsers have limits. */
const NUMBERS = [
  '0',
  '-1',
  '1',
  '255',
  '256',
  '65535',
  '65536',
  '2147483648',
  '4294967296',
  '99999999999999999999',
  '0x10',
  '1e9',
];
const LONGEST = 64 * 1024;

/** One mutant of `input`: a few changes, some with parts of `other`, some with words of the format. */
export function mutant(random: () => number, input: Uint8Array, other: Uint8Array, words: readonly string[]): Uint8Array {
  let bytes: Buffer = Buffer.from(input);
  for (let change = 1 + below(random, 4); change > 0; change -= 1) bytes = changed(random, bytes, Buffer.from(other), words);
  return new Uint8Array(bytes.subarray(0, LONGEST));
}

const below = (random: () => number, limit: number): number => Math.floor(random() * limit);

function changed(random: () => number, bytes: Buffer, other: Buffer, words: readonly string[]): Buffer {
  const at = below(random, bytes.length + 1);
  const length = 1 + below(random, oneOf(random, [2, 8, 64, 512]));
  const replace = (end: number, by: Uint8Array) => Buffer.concat([bytes.subarray(0, at), by, bytes.subarray(end)]);
  switch (below(random, 10)) {
    case 0: {
      const flipped = Buffer.from(bytes);
      if (at < bytes.length) flipped[at] = (bytes[at] ?? 0) ^ (1 << below(random, 8));
      return flipped;
    }
    case 1:
      return replace(at + 1, Buffer.of(oneOf(random, EDGES)));
    case 2:
      return replace(at + length, Buffer.alloc(0));
    case 3:
      return replace(at, bytes.subarray(at, at + length));
    case 4:
      return replace(at, Buffer.alloc(length * oneOf(random, [1, 1, 40]), oneOf(random, EDGES)));
    case 5:
      return replace(at, Buffer.from(Array.from({ length: Math.min(length, 16) }, () => below(random, 256))));
    case 6:
      return replace(at, other.subarray(below(random, other.length + 1)).subarray(0, length));
    case 7:
      return words.length === 0 ? bytes : replace(at + below(random, 3), Buffer.from(oneOf(random, words), 'latin1'));
    case 8: {
      const text = bytes.toString('latin1');
      const numbers = [...text.matchAll(/[0-9]+/g)];
      if (numbers.length === 0) return bytes;
      const found = oneOf(random, numbers);
      return Buffer.from(
        text.slice(0, found.index) + oneOf(random, NUMBERS) + text.slice(found.index + found[0].length),
        'latin1',
      );
    }
    default:
      return bytes.subarray(0, at);
  }
}
