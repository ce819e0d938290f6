/** The system's randomness, which the user agent is given. */
import { createHmac, randomBytes } from 'node:crypto';
import type { Entropy } from '../sip/flow.ts';

const POOL_BYTES = 4_096;
/** 96 bits. RFC 3261 asks for 32 in a tag; 64 make one that nobody can guess. */
const TOKEN_BYTES = 12;

/** Makes tokens of 96 random bits. It draws POOL_BYTES from the system at a time. */
export function systemEntropy(): Entropy {
  let pool = randomBytes(POOL_BYTES);
  let used = 0;
  return {
    token() {
      if (used + TOKEN_BYTES > POOL_BYTES) {
        pool = randomBytes(POOL_BYTES);
        used = 0;
      }
      used += TOKEN_BYTES;
      return pool.toString('hex', used - TOKEN_BYTES, used);
    },
    fraction: () => randomBytes(4).readUInt32BE() / 2 ** 32,
  };
}

/** Random bytes for keys. */
export const systemRandom = (bytes: number): Uint8Array => new Uint8Array(randomBytes(bytes));

/** Makes a message authentication code of a text, under a key of this process: 96 bits in URL-safe base64. */
export function systemCode(): (text: string) => string {
  const key = randomBytes(32);
  return (text) => createHmac('sha256', key).update(text).digest('base64url').slice(0, 16);
}
