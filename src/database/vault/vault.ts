/**
 * Card numbers and CVVs at rest: AES-256-GCM under a key of its own, derived from MASTER_KEY, which is not in the
 * database. Each ciphertext is bound to application, Session and reference, so that a row copied elsewhere does not
 * open. Digits go in and come out as bytes that their user wipes.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Padded to one length: a ciphertext does not tell a CVV from a card number, or how long it is. */
const PADDED_BYTES = 24;
const ZERO = 0x30;

/** The owner of a secret. */
export interface Owner {
  readonly appUuid: string;
  readonly sessionUuid: string;
  readonly reference: string;
}

export interface Vault {
  /** `digits`: 0 to 9, at most 23 of them. */
  seal(digits: readonly number[], owner: Owner): Uint8Array;
  /**
   * The digits as ASCII; the caller wipes them (`fill(0)`). Throws when the bytes were altered, or belong to something
   * else.
   */
  open(sealed: Uint8Array, owner: Owner): Uint8Array;
}

/** Makes the vault of a process. `masterKey` has 32 bytes; any other length throws. */
export function createVault(masterKey: Uint8Array): Vault {
  if (masterKey.length !== 32) throw new Error('the master key is 32 bytes');
  const key = new Uint8Array(hkdfSync('sha256', masterKey, new Uint8Array(0), 'sidetone: payment references', 32));
  const bound = ({ appUuid, sessionUuid, reference }: Owner) => Buffer.from(`${appUuid} ${sessionUuid} ${reference}`);
  return {
    seal(digits, owner) {
      if (digits.length >= PADDED_BYTES) throw new Error('too many digits');
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      cipher.setAAD(bound(owner));
      const plain = new Uint8Array(PADDED_BYTES);
      plain[0] = digits.length;
      for (const [at, digit] of digits.entries()) plain[at + 1] = ZERO + digit;
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
      plain.fill(0);
      return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), sealed]));
    },
    open(sealed, owner) {
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
      decipher.setAAD(bound(owner));
      decipher.setAuthTag(sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const plain = decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES));
      try {
        decipher.final();
        return new Uint8Array(plain.subarray(1, 1 + (plain[0] ?? 0)));
      } finally {
        plain.fill(0);
      }
    },
  };
}
