/** Hashes of texts, as digest authentication takes them. */
import { createHash } from 'node:crypto';

const NAMES = { MD5: 'md5', 'SHA-256': 'sha256', 'SHA-512-256': 'sha512-256' } as const;

/** The hash of the UTF-8 form of `text`, in lower-case hexadecimal. */
export const hexHash = (name: keyof typeof NAMES, text: string): string => createHash(NAMES[name]).update(text).digest('hex');
