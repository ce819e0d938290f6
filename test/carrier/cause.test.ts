import { describe, expect, test } from 'bun:test';
import { causeOfResponse, legEnd, REJECT_STATUS } from '../../src/carrier/leg/cause.ts';
import { digitOfInfo } from '../../src/carrier/leg/info-digit.ts';
import { TrunkRanges, trunkAddress, trunkCodecs } from '../../src/carrier/trunk/trunk.ts';
import { trunkTo } from './harness.ts';

describe('hangup_cause', () => {
  const table: [statuses: number[], q850s: number[], cause: string, by: string][] = [
    [[486, 600], [17], 'busy', 'callee'],
    [[403, 433, 603, 607, 608], [21], 'rejected', 'callee'],
    [[408], [], 'timeout', 'system'],
    [[], [19], 'timeout', 'callee'],
    [[480, 410, 300, 302, 380], [18, 20], 'not_answered', 'callee'],
    [[404, 484, 485, 604], [1, 28], 'invalid_number', 'network'],
    [[503], [34, 41, 42, 44, 47], 'carrier_congested', 'network'],
    [[502, 504, 401, 407], [3, 27, 38], 'carrier_unreachable', 'network'],
    [[500, 400, 406, 415, 481, 488, 501, 513, 606], [], 'failed', 'network'],
  ];
  for (const [statuses, q850s, cause, by] of table) {
    test(`is ${cause}, by ${by}, for ${[...statuses, ...q850s.map((each) => `Q.850 ${each}`)].join(', ')}`, () => {
      const ends = [
        ...statuses.map((status) => ({ why: 'refused', status, q850: undefined, retryAfter: false }) as const),
        ...q850s.map((q850) => ({ why: 'refused', status: 500, q850, retryAfter: false }) as const),
      ];
      for (const end of ends) expect(legEnd(end, 'outbound')).toMatchObject({ cause, by });
    });
  }

  test('is the reason of a rejected call, which its caller hears as the status for that', () =>
    expect(REJECT_STATUS).toEqual({
      ...{ number_not_found: 404, invalid_number: 484, timeout: 480, busy: 486, rejected: 603 },
    }));

  test('is carrier_congested for a 500 that says when to come back', () =>
    expect(causeOfResponse(500, undefined, true)).toBe('carrier_congested'));

  test('of a Q.850 cause that says nothing new is that of the status', () =>
    expect(causeOfResponse(486, 16, false)).toBe('busy'));

  test('of a call that the far end hangs up is completed, by the party it is', () => {
    for (const q850 of [undefined, 16, 31]) {
      expect(legEnd({ why: 'bye', q850 }, 'inbound')).toMatchObject({ cause: 'completed', by: 'caller' });
      expect(legEnd({ why: 'bye', q850 }, 'outbound')).toMatchObject({ cause: 'completed', by: 'callee' });
    }
  });

  test('has the reason of the far end beside it, on one line and cut between characters', () => {
    const reason = (text: string) => legEnd({ why: 'bye', q850: 16, reason: text }, 'inbound').sip;
    expect(reason('Gone\0\thome')).toEqual({ q850: 16, reason: 'Gone  home' });
    expect(reason(`${'x'.repeat(511)}😀`)?.reason).toBe(`${'x'.repeat(511)}\ufffd`);
  });

  test('of what nobody did is the network’s or the system’s', () => {
    expect(legEnd({ why: 'bye', q850: 38 }, 'inbound')).toMatchObject({
      cause: 'carrier_unreachable',
      by: 'network',
      hungUp: true,
    });
    expect(legEnd({ why: 'unreachable' }, 'outbound')).toMatchObject({ cause: 'carrier_unreachable', by: 'network' });
    expect(legEnd({ why: 'no_response' }, 'outbound')).toMatchObject({ cause: 'timeout', by: 'system' });
    expect(legEnd({ why: 'gone' }, 'outbound')).toMatchObject({ cause: 'timeout', by: 'system' });
    expect(legEnd({ why: 'unresponsive' }, 'inbound')).toMatchObject({ cause: 'timeout', by: 'system', orphaned: true });
    expect(legEnd({ why: 'expired' }, 'inbound')).toMatchObject({ cause: 'timeout', by: 'caller' });
    expect(legEnd({ why: 'session_expired' }, 'inbound')).toMatchObject({ cause: 'timeout', by: 'system' });
    expect(legEnd({ why: 'unacknowledged' }, 'inbound')).toMatchObject({ cause: 'failed', by: 'network' });
    expect(legEnd({ why: 'cancelled', q850: undefined }, 'inbound')).toMatchObject({ cause: 'cancelled', by: 'caller' });
  });
});

describe('a trunk', () => {
  test('points where its URI says', () => {
    expect(trunkAddress('sip:sip.example')).toEqual({ host: 'sip.example', port: undefined, transport: 'udp' });
    expect(trunkAddress('sip:192.0.2.1:5070;transport=TCP')).toEqual({ host: '192.0.2.1', port: 5070, transport: 'tcp' });
    expect(trunkAddress('sip:[2001:db8::1]:5061;transport=tls')).toEqual({ host: '2001:db8::1', port: 5061, transport: 'tls' });
    for (const wrong of ['', 'http://x', 'sip:', 'sip:a:0', 'sip:a:99999', 'sip:a;transport=sctp', 'tel:+1555'])
      expect(trunkAddress(wrong)).toBeUndefined();
  });

  test('is found by the narrowest of its ranges, IPv4 in IPv6 clothes included', () => {
    const ranges = new TrunkRanges([
      trunkTo('sip:a', { name: 'wide', inboundCidrs: ['10.0.0.0/8', '2001:db8::/32', 'nonsense'] }),
      trunkTo('sip:b', { name: 'narrow', inboundCidrs: ['10.1.2.0/24', '192.0.2.5'] }),
    ]);
    expect(
      ['10.9.9.9', '10.1.2.3', '::ffff:10.1.2.3', '192.0.2.5', '2001:db8::9'].map((each) => ranges.trunksOf(each)[0]),
    ).toEqual(['wide', 'narrow', 'narrow', 'narrow', 'wide']);
    expect(['192.0.2.6', '2001:db9::1', 'x', ''].map((each) => ranges.trunksOf(each)[0])).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('speaks the codecs it names, G.711 and G.722 when it names none it could', () => {
    const able = ['PCMU', 'PCMA', 'G722', 'opus'] as const;
    const codecs = (names: string[] | undefined) => trunkCodecs(trunkTo('sip:a', { codecs: names }), able);
    expect([codecs(undefined), codecs(['ilbc']), codecs(['g722', 'PCMA', 'pcma'])]).toEqual([
      ['PCMU', 'PCMA', 'G722'],
      ['PCMU', 'PCMA', 'G722'],
      ['G722', 'PCMA'],
    ]);
    expect(trunkCodecs(trunkTo('sip:a', { codecs: ['OPUS', 'PCMU'] }), able)).toEqual(['opus', 'PCMU']);
    expect(trunkCodecs(trunkTo('sip:a', { codecs: ['opus'] }), ['PCMU', 'PCMA'])).toEqual(['PCMU', 'PCMA', 'G722']);
  });
});

describe('INFO', () => {
  const key = (type: string, body: string) => digitOfInfo(type, new TextEncoder().encode(body));
  test('carries a key in either form', () => {
    expect(key('application/dtmf-relay', 'Signal=5\r\nDuration=160\r\n')).toEqual({ digit: '5', durationMs: 160 });
    expect(key('application/dtmf-relay', 'Signal= *\nDuration= 99')).toEqual({ digit: '*', durationMs: 99 });
    expect(key('application/dtmf-relay', 'Signal=11\r\n')).toEqual({ digit: '#', durationMs: 100 });
    expect(key('application/dtmf', '7')).toEqual({ digit: '7', durationMs: 100 });
    expect(key('application/dtmf', 'd\r\n')).toEqual({ digit: 'D', durationMs: 100 });
  });
  test('that carries none is no key', () => {
    for (const [type, body] of [
      ['application/dtmf', ''],
      ['application/dtmf', '55'],
      ['application/dtmf-relay', 'Duration=5'],
      ['application/dtmf-relay', 'Signal=E'],
      ['text/plain', '5'],
      ['application/dtmf', '5'.repeat(999)],
    ] as const) {
      expect(key(type, body)).toBeUndefined();
    }
  });
});
