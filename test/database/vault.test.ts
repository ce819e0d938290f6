import { describe, expect, test } from 'bun:test';
import { createSeal } from '../../src/database/vault/seal.ts';
import { createVault } from '../../src/database/vault/vault.ts';

const key = new Uint8Array(32).fill(7);
const owner = { appUuid: 'app_1', sessionUuid: 's1', reference: 'card_1' };
const card = [4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];

describe('the vault', () => {
  test('gives back what it was given, as bytes', () => {
    const vault = createVault(key);
    expect(Buffer.from(vault.open(vault.seal(card, owner), owner)).toString()).toBe('4111111111111111');
  });

  test('opens for no other application, Session, reference or key, and not when a bit was turned', () => {
    const vault = createVault(key);
    const sealed = vault.seal(card, owner);
    for (const other of [{ appUuid: 'app_2' }, { sessionUuid: 's2' }, { reference: 'card_2' }])
      expect(() => vault.open(sealed, { ...owner, ...other })).toThrow();
    expect(() => createVault(new Uint8Array(32).fill(8)).open(sealed, owner)).toThrow();
    for (const at of [0, 12, 30]) {
      const altered = sealed.with(at, (sealed[at] ?? 0) ^ 1);
      expect(() => vault.open(altered, owner)).toThrow();
    }
  });

  test('does not tell a CVV from a card number by its length, nor one sealing from the next', () => {
    const vault = createVault(key);
    expect(vault.seal([7, 3, 7], owner)).toHaveLength(vault.seal(card, owner).length);
    expect(vault.seal(card, owner)).not.toEqual(vault.seal(card, owner));
  });

  test('has a key of its own: what else MASTER_KEY seals does not open it', () => {
    const sealed = createVault(key).seal(card, owner);
    expect(() => createSeal(key).open(sealed, 'app_1 s1 card_1')).toThrow();
  });
});
