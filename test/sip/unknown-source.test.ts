/** Requests from sources that belong to no trunk and no call: refused without state, a few a second, then ignored. */
import { describe, expect, test } from 'bun:test';
import { SIP_REFUSALS_MAX, SIP_REFUSALS_PER_SOURCE, SIP_REFUSED_SOURCES_MAX } from '../../src/limits.ts';
import { RefusalLimit } from '../../src/sip/refusal-limit.ts';
import fc from '../support/fast-check.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, START } from './pair.ts';

const STRANGER = { transport: 'udp', host: '203.0.113.9', port: 5060, flow: 1 } as const;
const request = (method: string, more: { to?: string; from?: string; callId?: string } = {}) =>
  `${method} sip:x@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP ${STRANGER.host}:5060;branch=z9hG4bKs${method}\r\nFrom: ${more.from ?? '<sip:s@x>;tag=s'}\r\n` +
  `To: ${more.to ?? '<sip:x@192.0.2.2>'}\r\nCall-ID: ${more.callId ?? 's'}\r\nCSeq: 900 ${method}\r\nContact: <sip:s@${STRANGER.host}>\r\nContent-Length: 0\r\n\r\n`;

/** Bob accepts requests from Alice's address only. */
function screened() {
  const random = seeded(3);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random, { screen: (_request, { host }) => (host === '192.0.2.1' ? 'accept' : 'refuse') });
  const network = new Network([alice, bob], CALM, random);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  const hear = (message: string) => {
    const before = network.wire.length;
    bob.agent.receive(bytes(message), STRANGER, network.now);
    network.run(network.now - START + 40_000);
    return network.wire.slice(before).map((each) => each.line);
  };
  return { alice, bob, network, hear };
}

describe('a source that belongs to no trunk', () => {
  test('gets one 403 for each request outside a dialog, which is never repeated and leaves nothing behind', () => {
    const { bob, hear } = screened();
    for (const method of ['INVITE', 'OPTIONS', 'REGISTER', 'MESSAGE', 'NEWMETHOD', 'BYE'])
      expect(hear(request(method))).toEqual(['SIP/2.0 403 Forbidden']);
    expect(hear(request('ACK'))).toEqual([]);
    expect({ ...bob.agent.load(), ...bob.agent.holdings() }).toEqual({ dialogs: 0, transactions: 0, deadlines: 0, keys: 0 });
  });

  test('cannot hang up, change or cancel a call whose tags it knows', () => {
    const { alice, bob, network, hear } = screened();
    const call = dial(network, alice, bob);
    network.run(100);
    const ok = network.wire.find((each) => each.line.startsWith('SIP/2.0 200'))?.data ?? '';
    const field = (name: string) => new RegExp(`\\r\\n${name}: ([^\\r]*)`).exec(ok)?.[1] ?? '';
    const known = { from: field('From'), to: field('To'), callId: field('Call-ID') };
    for (const method of ['BYE', 'INVITE', 'UPDATE', 'INFO'])
      expect(hear(request(method, known))).toEqual(['SIP/2.0 403 Forbidden']);
    const [callee] = bob.invited;
    expect(bob.types(callee)).toEqual(['accepted', 'confirmed']);
    call.hangUp(network.now);
    network.run();
    expect(bob.types(callee)).toEqual(['accepted', 'confirmed', 'ended']);
  });

  test('does not touch the calls of a trunk that was taken down: their own requests still count', () => {
    let listed = true;
    const random = seeded(4);
    const alice = new Party('192.0.2.1', random);
    const bob = new Party('192.0.2.2', random, { screen: () => (listed ? 'accept' : 'refuse') });
    const network = new Network([alice, bob], CALM, random);
    bob.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
    };
    const call = dial(network, alice, bob);
    network.run(100);
    listed = false;
    call.hangUp(network.now);
    network.run();
    expect(alice.ends(call)).toEqual([{ type: 'ended', end: { why: 'local' } }]);
    expect(bob.ends(bob.invited[0] ?? call)).toMatchObject([{ end: { why: 'bye' } }]);
  });
});

describe('the limit of refusals', () => {
  test('lets five a second through for each source and fifty in all', () => {
    const limit = new RefusalLimit();
    const allowed = (host: string, times: number, at: number) =>
      Array.from({ length: times }, () => limit.allow(host, at)).filter(Boolean).length;
    expect(allowed('203.0.113.1', 100, START)).toBe(SIP_REFUSALS_PER_SOURCE);
    expect(allowed('203.0.113.1', 100, START + 1_000)).toBe(SIP_REFUSALS_PER_SOURCE);
    const all = Array.from({ length: 100 }, (_, i) => allowed(`198.51.100.${i}`, 5, START + 2_000)).reduce((a, b) => a + b);
    expect(all).toBe(SIP_REFUSALS_MAX);
  });

  test('counts an IPv6 /64 as one source', () => {
    const limit = new RefusalLimit();
    const hosts = [
      '2001:db8::1',
      '2001:db8:0:0:1::2',
      '2001:DB8:0:0:ffff:1:2:3',
      '2001:db8::',
      '2001:db8:0:0::9',
      '2001:db8::7:8',
    ];
    expect(hosts.filter((host) => limit.allow(host, START))).toHaveLength(SIP_REFUSALS_PER_SOURCE);
    expect(limit.size).toBe(1);
  });

  test('never lets more through than its rate, and never remembers more sources than its table holds', () => {
    const step = fc.record({ source: fc.nat(3_000), waitMs: fc.nat(50) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 3_000 }), (steps) => {
        const limit = new RefusalLimit();
        let now = START;
        let allowed = 0;
        for (const { source, waitMs } of steps) {
          now += waitMs;
          if (limit.allow(`10.0.${source >> 8}.${source & 255}`, now)) allowed++;
        }
        expect(allowed).toBeLessThanOrEqual(SIP_REFUSALS_MAX + ((now - START) * SIP_REFUSALS_MAX) / 1000 + 1);
        expect(limit.size).toBeLessThanOrEqual(SIP_REFUSED_SOURCES_MAX);
      }),
      { numRuns: 50 },
    );
  });
});
