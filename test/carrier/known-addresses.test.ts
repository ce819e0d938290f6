/** The addresses of devices: they are known for as long as a contact of the device is bound there. */
import { expect, test } from 'bun:test';
import { isFrom, KnownAddresses } from '../../src/carrier/device/known-addresses.ts';
import { DEVICE_ADDRESSES_MAX, DEVICE_CONTACTS_MAX, DEVICES_MAX } from '../../src/limits.ts';

const at = (host: string, key: string, expiresAt = 1_000) => ({ transport: 'udp', key, host, port: 5060, expiresAt }) as const;

test('An address is known until the last contact there expires, moves or is removed', () => {
  const known = new KnownAddresses();
  known.learn('alice', at('a', 'sip:one'));
  known.learn('alice', at('a', 'sip:two', 2_000));
  known.learn('bob', at('a', 'sip:bob', 500));
  expect([known.has('a', 1_500), known.hasUser('a', 'alice', 1_500), known.hasUser('a', 'bob', 1_500)]).toEqual([
    true,
    true,
    false,
  ]);
  known.forget('alice', 'sip:two');
  expect([known.has('a', 900), known.has('a', 1_500)]).toEqual([true, false]);
  known.learn('alice', at('b', 'sip:one'));
  expect([known.has('a', 900), known.has('b', 900)]).toEqual([false, true]);
  expect(known.forgetUser('alice')).toEqual(['sip:one']);
  expect(known.has('b', 900)).toBe(false);
});

test('A user is known at the addresses of as many contacts as it may have', () => {
  const known = new KnownAddresses();
  for (let i = 0; i <= DEVICE_CONTACTS_MAX; i++) known.learn('alice', at(`h${i}`, `sip:${i}`));
  expect([known.has('h0', 0), known.has('h1', 0), known.has(`h${DEVICE_CONTACTS_MAX}`, 0)]).toEqual([false, true, true]);
});

test('Contacts, users and addresses beyond what is remembered are those that registered longest ago', () => {
  const contacts = new KnownAddresses();
  for (let i = 0; i < DEVICE_CONTACTS_MAX; i++) contacts.learn('alice', at(`h${i}`, `sip:${i}`));
  for (const host of ['h0', 'new']) contacts.learn('alice', at(host, host === 'h0' ? 'sip:0' : 'sip:new'));
  expect(['h0', 'h1', 'h2', 'new'].map((host) => contacts.has(host, 0))).toEqual([true, false, true, true]);

  const users = new KnownAddresses();
  for (let i = 0; i < DEVICES_MAX; i++) users.learn(`u${i}`, at('a', 'sip:one'));
  for (const user of ['u0', 'new']) users.learn(user, at('a', 'sip:one'));
  expect(['u0', 'u1', 'u2', 'new'].map((user) => users.hasUser('a', user, 0))).toEqual([true, false, true, true]);

  const addresses = new KnownAddresses();
  const learn = (i: number) => addresses.learn(`u${Math.floor(i / DEVICE_CONTACTS_MAX)}`, at(`h${i}`, `sip:${i}`));
  for (let i = 0; i < DEVICE_ADDRESSES_MAX; i++) learn(i);
  for (const i of [0, DEVICE_ADDRESSES_MAX]) learn(i);
  expect([0, 1, 2, DEVICE_ADDRESSES_MAX].map((i) => addresses.has(`h${i}`, 0))).toEqual([true, false, true, true]);
});

test('A user is at a place by its transport, address and port together: others are behind the same NAT', () => {
  const place = { transport: 'tcp', host: 'a', port: 5060 } as const;
  const others = [{ transport: 'udp' }, { host: 'b' }, { port: 5061 }] as const;
  const known = new KnownAddresses();
  known.learn('alice', { ...at('a', 'sip:one'), ...place });
  for (const [i, other] of others.entries()) {
    known.learn(`other ${i}`, { ...at('a', 'sip:one'), ...place, ...other });
    expect([other, isFrom({ ...place, ...other }, place)]).toEqual([other, false]);
  }
  expect([isFrom({ ...place }, place), known.usersAt(place)]).toEqual([true, ['alice']]);
});
