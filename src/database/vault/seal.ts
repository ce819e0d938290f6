/**
 * Secrets at rest: AES-256-GCM under MASTER_KEY, bound to what they belong to, so that a row copied to another owner
 * does not open.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export interface Seal {
  /** Nonce, tag, ciphertext. `owner` is authenticated, not stored. */
  close(plain: string, owner: string): Uint8Array;
  /** Throws when the bytes were altered, belong to another owner or were sealed under another key. */
  open(sealed: Uint8Array, owner: string): string;
}

/** Is told whose secrets do not open. */
export type TellLost = (what: 'devices' | 'trunks', names: readonly string[]) => void;

/** The secret, or undefined where it does not open: it was sealed under another key, or for another owner. */
export function opened(seal: Seal, sealed: Uint8Array, owner: string): string | undefined {
  try {
    return seal.open(new Uint8Array(sealed), owner);
  } catch {
    return undefined;
  }
}

/** `masterKey` is 32 bytes; the key used here is derived from it, for this use alone (RFC 5869). */
export function createSeal(masterKey: Uint8Array): Seal {
  if (masterKey.length !== 32) throw new Error('the master key is 32 bytes');
  const key = new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), 'sidetone: secrets at rest', 32));
  return {
    close(plain, owner) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      cipher.setAAD(Buffer.from(owner));
      const text = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
      return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), text]));
    },
    open(sealed, owner) {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(Buffer.from(owner));
      decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const text = sealed.subarray(NONCE_BYTES + TAG_BYTES);
      return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
    },
  };
}
