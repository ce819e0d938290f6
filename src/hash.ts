/** Hashes of texts: of keys and tokens, and as digest authentication takes them. */
import { createHash, hash } from 'node:crypto';

const NAMES = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' } as const;

/** The hash of bytes, or of the UTF-8 form of a text, in lower-case hexadecimal. */
export const hexHash = (name: keyof typeof NAMES, of: string | Uint8Array): string =>
  createHash(NAMES[name]).update(of).digest('hex');

/**
 * The SHA-256 of the UTF-8 form of `text`, 32 bytes. In one call, since each request has a key: 0.2 µs instead of 1.0.
 */
export const sha256 = (text: string): Uint8Array => hash('sha256', text, 'buffer');
