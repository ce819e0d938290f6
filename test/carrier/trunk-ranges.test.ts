import { describe, expect, spyOn, test } from 'bun:test';
import ipaddr from 'ipaddr.js';
import { isWithin, TrunkRanges, trunkProfile } from '../../src/carrier/trunk/trunk.ts';
import type { TrunkSettings } from '../../src/database/trunk/trunk-settings.ts';
import { trunkTo } from './harness.ts';

const trunk = (name: string, inboundCidrs: readonly string[]) => trunkTo('sip:carrier.example', { name, inboundCidrs });

describe('the ranges of trunks', () => {
  const ranges = new TrunkRanges([
    trunk('all', ['0.0.0.0/0']),
    trunk('wide', ['192.0.0.0/9', '2001:db8::/33', 'nonsense', '10.0.0.0/99']),
    trunk('first', ['192.0.2.77/24', '2001:db8:0:1::/64']),
    trunk('second', ['192.0.2.0/24', '192.0.2.7', '2001:db8:0:1::7', '198.51.100.4/30']),
  ]);
  const EXPECTED: Readonly<Record<string, string | undefined>> = {
    '192.0.2.7': 'second',
    '192.0.2.8': 'first',
    '::ffff:192.0.2.7': 'second',
    '192.127.255.255': 'wide',
    '192.128.0.0': 'all',
    '198.51.100.7': 'second',
    '198.51.100.8': 'all',
    '2001:db8:0:1::7': 'second',
    '2001:db8:0:1::8': 'first',
    '2001:db8:7fff::1': 'wide',
    '2001:db8:8000::1': undefined,
    'carrier.example': undefined,
    '': undefined,
  };
  for (const [address, name] of Object.entries(EXPECTED))
    test(`give '${address}' to ${name ?? 'nobody'}: the narrowest counts, and of two the same the first`, () => {
      expect(ranges.trunksOf(address)[0]).toBe(name);
    });

  test('tell whether an address is within, whatever it is after its prefix', () => {
    const cidrs = ['192.0.2.9/31', '2001:db8::/127', '203.0.113.1'];
    const within = ['192.0.2.8', '192.0.2.9', '2001:db8::1', '203.0.113.1'];
    for (const address of within) expect([address, isWithin(address, cidrs)]).toEqual([address, true]);
    for (const address of ['192.0.2.10', '2001:db8::2', '203.0.113.2', 'h'])
      expect([address, isWithin(address, cidrs)]).toEqual([address, false]);
    expect(isWithin('192.0.2.8', [])).toBe(false);
  });

  test('are looked through at once for an address that nobody has sent from, however many there are', () => {
    const many = Array.from({ length: 200 }, (_, at) =>
      trunk(
        `carrier-${at}`,
        Array.from({ length: 100 }, (_each, low) => `10.${at}.${low}.0/28`),
      ),
    );
    const table = new TrunkRanges(many);
    const began = performance.now();
    for (let stranger = 0; stranger < 2_000; stranger++) table.trunksOf(`192.0.${stranger >> 8}.${stranger & 255}`);
    // One range after the other took a second for these, each of which may be the forged source of one datagram.
    expect(performance.now() - began).toBeLessThan(200);
    expect(table.trunksOf('10.199.99.15')).toEqual(['carrier-199']);
  });
});

describe('the profile of a trunk', () => {
  const profile = (uri: string, settings: TrunkSettings, hasTcp = true) => trunkProfile(trunkTo(uri, { settings }), hasTcp);

  test('keeps a call on TLS where descriptions may hold keys, unless the trunk permits them in clear', () => {
    const stays = (settings: TrunkSettings) => profile('sip:carrier.example;transport=tls', settings).staysOnTls === true;
    expect([{}, { srtp: 'off' } as const].map(stays)).toEqual([false, false]);
    for (const srtp of ['optional', 'required'] as const)
      expect([{ srtp }, { srtp, srtp_without_tls: true }].map(stays)).toEqual([true, false]);
  });

  test('takes TCP for what is too long for UDP where we listen on it and no URI names a transport (RFC 3261 §18.1.1)', () => {
    const hasTcp = (...given: Parameters<typeof profile>) => profile(...given).tcp === true;
    expect([hasTcp('sip:carrier.example', {}), hasTcp('sip:carrier.example', {}, false)]).toEqual([true, false]);
    expect(hasTcp('sip:carrier.example;transport=udp', {})).toBe(false);
    expect(hasTcp('sip:carrier.example', { outbound_proxy: 'sip:proxy.example;transport=UDP' })).toBe(false);
    expect(hasTcp('sip:carrier.example;transport=udp', { outbound_proxy: 'sip:proxy.example' })).toBe(true);
  });
});

test('What the ranges of trunks say is read once, however often one of the trunks is changed', () => {
  const trunks = Array.from({ length: 50 }, (_, at) => trunk(`carrier-${at}`, [`198.18.${at}.0/24`, `198.19.${at}.7`]));
  const before = new TrunkRanges(trunks);
  const read = spyOn(ipaddr, 'parseCIDR');
  const after = new TrunkRanges([...trunks.slice(1), trunk('another', ['198.18.99.0/24'])]);
  expect(read.mock.calls).toEqual([['198.18.99.0/24']]);
  read.mockRestore();
  expect(
    [before, after].map((each) => ['198.18.0.1', '198.19.7.7', '198.18.99.1'].map((address) => each.trunksOf(address)[0])),
  ).toEqual([
    ['carrier-0', 'carrier-7', undefined],
    [undefined, 'carrier-7', 'another'],
  ]);
});
