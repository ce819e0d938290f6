/** The last place of each contact: when calls follow a device, and when it has perhaps restarted. */
import { expect, test } from 'bun:test';
import { LastPlaces } from '../../src/carrier/device/last-places.ts';
import { DEVICE_ADDRESSES_MAX } from '../../src/limits.ts';
import type { Binding } from '../../src/sip/registrar.ts';

const URI = 'sip:alice@192.168.1.10:5060';
const FIRST: Binding = {
  key: URI,
  uri: URI,
  callId: 'one',
  cseq: 1,
  expiresAt: 1_000,
  transport: 'udp',
  host: '203.0.113.5',
  port: 40_000,
  userAgent: '',
  instance: '',
  regId: 0,
  path: '',
};
const NAMED = { instance: '<urn:uuid:a>' };

test.each<[string, Partial<Binding>, Partial<Binding>, boolean, boolean]>([
  ['renews its registration', {}, { cseq: 2 }, false, false],
  ['starts anew at its place', {}, { callId: 'two' }, false, true],
  ['has another port of its NAT', {}, { port: 41_000 }, true, false],
  ['starts anew behind its NAT', {}, { port: 41_000, callId: 'two' }, true, true],
  ['has another address of its NAT', {}, { host: '192.0.2.9' }, true, false],
  ['is perhaps another one with its Contact', {}, { host: '192.0.2.9', callId: 'two' }, false, false],
  ['is another one with its Contact, bound beside it', {}, { key: `${URI};sidetone-contact=2`, port: 41_000 }, false, false],
  [
    'names itself, and starts anew elsewhere with another Contact',
    NAMED,
    { key: 'sip:alice@10.0.0.1', callId: 'two', host: '192.0.2.9' },
    true,
    true,
  ],
])('A device that %s', (_, about, change, moves, hasRestarted) => {
  const places = new LastPlaces();
  const before = { ...FIRST, ...about };
  expect(places.learn('alice', before)).toEqual({ isShared: false, hasRestarted: false });
  const learnt = places.learn('alice', { ...before, ...change });
  expect([learnt.moved?.port, learnt.hasRestarted]).toEqual([moves ? FIRST.port : undefined, hasRestarted]);
  expect(places.learn('bob', before)).toEqual({ isShared: false, hasRestarted: false });
});

test('A device that was behind a proxy, or is, shares that place with others', () => {
  const behind = { ...FIRST, path: '<sip:203.0.113.9;lr>' };
  for (const [one, two] of [
    [behind, FIRST],
    [FIRST, behind],
    [behind, behind],
  ] as const) {
    const places = new LastPlaces();
    places.learn('alice', one);
    expect(places.learn('alice', { ...two, port: 41_000 })).toMatchObject({ moved: { port: FIRST.port }, isShared: true });
  }
});

test('Places beyond what is remembered are those of the contacts that were bound longest ago', () => {
  const places = new LastPlaces();
  for (let i = 0; i < DEVICE_ADDRESSES_MAX; i++) places.learn(`${i}`, FIRST);
  for (const user of ['0', 'new']) places.learn(user, FIRST);
  const moved = (user: string) => places.learn(user, { ...FIRST, port: 41_000 }).moved?.port;
  // One that is asked for is bound anew, and takes the place of the next: those that are kept come first.
  expect(['new', '0', '2', '1'].map(moved)).toEqual([FIRST.port, FIRST.port, FIRST.port, undefined]);
});
