/** The Path of a REGISTER (RFC 3327): what is kept of it, and whose a contact is behind a proxy. */
import { describe, expect, test } from 'bun:test';
import { DEVICE_PATH_MAX_CHARS, DEVICE_PATHS_MAX } from '../../src/limits.ts';
import type { Peer } from '../../src/sip/flow.ts';
import { Headers, NO_BODY, type SipRequest } from '../../src/sip/message/message.ts';
import { edgeOf, isSamePlace, pathOf, receivedFrom } from '../../src/sip/message/path.ts';
import { type Binding, register } from '../../src/sip/registrar.ts';

const headersOf = (...fields: string[]) => {
  const headers = new Headers();
  for (const each of fields) headers.add('path', each);
  return headers;
};
const path = (...fields: string[]) => pathOf(headersOf(...fields));
const KAMAILIO = '<sip:192.0.2.1:5060;lr;received=sip:203.0.113.4:40001%3Btransport%3Dtcp>';

describe('a Path', () => {
  test.each([
    ['with what Kamailio writes', KAMAILIO],
    ['with a flow token', '<sip:VskztcQ/S8p4WPbOnHbuyh5iJvJIW3ib@192.0.2.1;lr;ob>'],
    ['with an IPv6 reference', '<sip:[2001:db8::1]:5070;transport=tcp;lr>'],
    ['with a name, and a parameter behind it', '"Edge, one" <sip:edge.example;lr>;x=y'],
  ])('%s is kept byte for byte', (_, value) => {
    expect(path(value)).toBe(value);
  });

  test('may be in several fields, each of several values: their order is kept', () => {
    expect(path('<sip:a;lr>,<sip:b;lr>', '<sip:c;lr>')).toBe('<sip:a;lr>, <sip:b;lr>, <sip:c;lr>');
    expect([path(), path('')]).toEqual(['', '']);
  });

  test('without brackets gets them, so that lr is a parameter of the URI', () => {
    expect(path('sip:edge;lr')).toBe('<sip:edge;lr>');
  });

  test('that is malformed, too long or of too many values is none', () => {
    const long = (length: number) => `<sip:${'t'.repeat(length - '<sip:@h;lr>'.length)}@h;lr>`;
    expect(path(long(DEVICE_PATH_MAX_CHARS))).toHaveLength(DEVICE_PATH_MAX_CHARS);
    const many = Array.from({ length: DEVICE_PATHS_MAX }, () => '<sip:h;lr>');
    expect(path(...many)).toContain('lr');
    for (const each of ['nonsense', '<tel:+1>', '<sip:>', '<sip:h;lr', '<sip:h\x01;lr>', long(DEVICE_PATH_MAX_CHARS + 1)])
      expect([each, path('<sip:h;lr>', each)]).toEqual([each, undefined]);
    expect(path(...many, '<sip:h;lr>')).toBeUndefined();
  });

  test('begins with the proxy before us, and tells where the phone was seen', () => {
    expect(edgeOf('<sip:t@[2001:DB8:0::1]:5070;lr>, <sip:b>', 'udp')).toEqual({
      ...{ host: '2001:db8::1', port: 5070, isTls: false },
    });
    expect(edgeOf('<sip:edge.example;lr;transport=TLS>', 'tls')).toEqual({ host: 'edge.example', port: 5061, isTls: true });
    expect(edgeOf('<sips:edge.example;lr>', 'tls')?.isTls).toBe(true);
    expect(edgeOf('', 'udp')).toBeUndefined();
    expect(receivedFrom(`<sip:b;received=sip:[2001:db8::9]:5060>, ${KAMAILIO}, <sip:c>`)).toEqual(['2001:db8::9', '203.0.113.4']);
    expect(receivedFrom('<sip:b;received=x>')).toEqual([]);
  });

  test('leads to one place also by another port of that', () => {
    expect(isSamePlace(KAMAILIO, KAMAILIO.replace('40001', '40002'))).toBe(true);
    expect(isSamePlace(KAMAILIO, KAMAILIO.replace('203.0.113.4', '203.0.113.5'))).toBe(false);
    expect(isSamePlace(KAMAILIO, KAMAILIO.replace('192.0.2.1', '192.0.2.2'))).toBe(false);
    expect(isSamePlace('<sip:one@192.0.2.1;lr;ob>', '<sip:two@192.0.2.1;lr;ob>')).toBe(false);
    expect([isSamePlace('', ''), isSamePlace('', KAMAILIO)]).toEqual([true, false]);
  });
});

describe('a REGISTER through a proxy', () => {
  const EDGE: Peer = { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 1 };
  const CONTACT = '<sip:alice@192.168.1.10:5060>';
  const A = '<sip:192.0.2.1;lr;received=sip:203.0.113.4:5060>';
  const B = '<sip:192.0.2.1;lr;received=sip:203.0.113.5:5060>';
  interface Sent {
    readonly from?: Peer;
    readonly callId?: string;
    readonly cseq?: number;
    readonly contact?: string;
  }
  function sent(bound: readonly Binding[], by: string, { from = EDGE, callId = 'one', cseq = 1, contact = CONTACT }: Sent = {}) {
    const headers = new Headers().add('call-id', callId).add('cseq', `${cseq} REGISTER`).add('contact', contact);
    if (by !== '') headers.add('path', by);
    const request: SipRequest = { kind: 'request', method: 'REGISTER', uri: 'sip:x', headers, body: NO_BODY };
    return register(request, bound, from, 1_000);
  }
  function after(...given: Parameters<typeof sent>): readonly Binding[] {
    const outcome = sent(...given);
    if (outcome.status !== 200) throw new Error(String(outcome.status));
    return outcome.bound;
  }
  const paths = (bound: readonly Binding[]) => bound.map(({ path: each }) => each);

  test('is kept with its Path, the last of which counts, and refused where that is malformed', () => {
    const one = after([], A);
    expect(paths(one)).toEqual([A]);
    expect(paths(after(one, B, { cseq: 2 }))).toEqual([B]);
    expect(paths(after(one, '', { cseq: 2 }))).toEqual(['']);
    expect(sent([], 'nonsense').status).toBe(400);
  });

  test.each([
    ['without names', '', ''],
    ['with names', ';+sip.instance="<urn:uuid:1>"', ';+sip.instance="<urn:uuid:2>"'],
  ])('is of another phone with the same private Contact where the Path is another, %s', (_, one, two) => {
    const first = after([], A, { contact: CONTACT + one });
    const both = after(first, B, { contact: CONTACT + two, callId: 'two' });
    expect(paths(both)).toEqual([A, B]);
    expect(new Set(both.map(({ key }) => key)).size).toBe(2);
    // Each signs off for itself alone.
    expect(paths(after(both, A, { contact: `${CONTACT}${one};expires=0`, cseq: 2 }))).toEqual([B]);
    // Whatever cannot be told apart by the proxy either is one.
    expect(paths(after(first, A, { contact: CONTACT + two, callId: 'two' }))).toEqual([A]);
  });

  test('is of another phone where two that name themselves are behind one address of a carrier', () => {
    const named = (name: string) => `${CONTACT};+sip.instance="<urn:uuid:${name}>"`;
    const first = after([], A, { contact: named('1') });
    expect(after(first, A.replace(':5060>', ':61234>'), { contact: named('2'), callId: 'two' })).toHaveLength(2);
  });

  test('takes the place of the one before where the phone starts anew behind another port of its NAT', () => {
    const moved = A.replace(':5060>', ':61234>');
    expect(paths(after(after([], A), moved, { callId: 'two' }))).toEqual([moved]);
    // A proxy at another address is another way to the phone, for as long as it is bound.
    const other = { ...EDGE, host: '192.0.2.2' };
    expect(after(after([], A), A, { callId: 'two', from: other })).toHaveLength(2);
    expect(after(after([], A), A, { cseq: 2, from: other })).toHaveLength(1);
  });
});
