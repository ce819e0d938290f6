/** The system's randomness and hashes, which the user agent is given. */
import { createHash, randomBytes } from 'node:crypto';
import type { Entropy } from '../sip/flow.ts';
import type { Hash } from '../sip/message/digest.ts';

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

const NAMES = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' } as const;

export const systemHash: Hash = (name, text) => createHash(NAMES[name]).update(text).digest('hex');
