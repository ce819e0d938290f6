/** Via, as it comes, as it is answered, and as ours is written (RFC 3261 §20.42, RFC 3581). */
import { expect, test } from 'bun:test';
import { formatVia, parseVia, parseViaLeniently, stampVia } from '../../src/sip/message/via.ts';

const read = (value: string) => {
  const via = parseVia(value);
  return via && [via.transport, via.host, via.port, via.branch];
};

test('The first Via of a field is read, however it is spaced', () => {
  for (const [value, ...expected] of [
    ['SIP/2.0/UDP h.example', 'udp', 'h.example', undefined, ''],
    ['SIP/2.0/TCP 192.0.2.1:5070;branch=z9hG4bKa;rport', 'tcp', '192.0.2.1', 5070, 'z9hG4bKa'],
    ['sip / 2.0 / Tls\th : 5071 ; Branch = x', 'tls', 'h', 5071, 'x'],
    ['SIP/2.0/UDP [2001:db8::1]:5060;branch=a', 'udp', '2001:db8::1', 5060, 'a'],
    ['SIP/2.0/UDP [2001:db8::1];branch=a', 'udp', '2001:db8::1', undefined, 'a'],
    ['SIP/2.0/UDP a;branch=1, SIP/2.0/UDP b;branch=2, SIP/2.0/UDP c', 'udp', 'a', undefined, '1'],
    ['SIP/2.0/UDP a;x="1,2";branch=1', 'udp', 'a', undefined, '1'],
    ['SIP/2.0/WSS a;branch=1', 'wss', 'a', undefined, '1'],
  ] as const)
    expect([value, read(value)]).toEqual([value, [...expected]]);
  for (const bad of [
    '',
    'SIP/2.0/UDP',
    'SIP/2.0/UDP ',
    'SIP/3.0/UDP h',
    'SIP/2.0 h',
    'SIP/2.0/UDP h;',
    'SIP/2.0/UDP h:0',
    'SIP/2.0/UDP h h',
    'SIP/2.0/UDP ;branch=a',
    ', SIP/2.0/UDP a',
  ])
    expect([bad, read(bad)]).toEqual([bad, undefined]);
});

test('A Via that is malformed is read far enough to answer its request, by its port and with its branch', () => {
  const lenient = (value: string) => {
    const via = parseViaLeniently(value);
    return via && [via.transport, via.host, via.port, via.branch, [...via.parameters.keys()]];
  };
  expect(lenient('SIP/2.0/UDP h:5070;branch=a;x=1')).toEqual(['udp', 'h', 5070, 'a', ['branch', 'x']]);
  expect(lenient(' SIP/7.0/Udp h:5070;;rport;branch=a ')).toEqual(['udp', 'h', 5070, 'a', ['rport']]);
  expect(lenient('SIP/2.0/TCP h;;branch = a;,')).toEqual(['tcp', 'h', undefined, 'a', []]);
  expect(lenient('SIP/2.0/UDP h;;rport=7')).toEqual(['udp', 'h', undefined, '', ['rport']]);
  expect(lenient('SIP/2.0/UDP h;;xrport;rportx')).toEqual(['udp', 'h', undefined, '', []]);
  for (const bad of ['', 'HTTP/1.1 h', 'SIP/2.0/UDP :5060;;', 'SIP/2.0/UDP h:99999;;', 'SIP/x/UDP h'])
    expect([bad, lenient(bad)]).toEqual([bad, undefined]);
});

test('A malformed Via of 30,000 characters is read within 20 ms, also where a separator of lines follows', () => {
  for (const separator of ['\n', '\u2028']) {
    const value = `SIP/3.0/UDP ${'0'.repeat(30_000)};${separator}x`;
    const took = Array.from({ length: 5 }, () => {
      const began = performance.now();
      expect(parseViaLeniently(value)?.host.length).toBe(30_000);
      return performance.now() - began;
    });
    // The best of five: the others may have waited for the machine. It took a second.
    expect(Math.min(...took)).toBeLessThan(20);
  }
});

test('Ours names where we are, and asks for the answer to come where the request came from', () => {
  expect(formatVia('tcp', '192.0.2.1', 5060, 'z9hG4bKa')).toBe('SIP/2.0/TCP 192.0.2.1:5060;branch=z9hG4bKa;rport');
  expect(formatVia('udp', '2001:db8::1', 5061, 'z9hG4bKa')).toBe('SIP/2.0/UDP [2001:db8::1]:5061;branch=z9hG4bKa;rport');
});

test('A Via is stamped with the source where that is another one, or was asked for, and is else echoed as it came', () => {
  const source = { host: '192.0.2.9', port: 5099 };
  const stamped = (value: string, from = source) => {
    const via = parseVia(value);
    if (via === undefined) throw new Error(`no Via: ${value}`);
    return stampVia(value, via, from);
  };
  expect(stamped('SIP/2.0/UDP 192.0.2.9;branch=a')).toBe('SIP/2.0/UDP 192.0.2.9;branch=a');
  expect(stamped('SIP/2.0/UDP h;branch=a')).toBe('SIP/2.0/UDP h;branch=a;received=192.0.2.9');
  expect(stamped('SIP/2.0/UDP 192.0.2.9;rport;branch=a')).toBe('SIP/2.0/UDP 192.0.2.9;branch=a;received=192.0.2.9;rport=5099');
  // What the sender claims of it is not believed; a parameter that only begins alike is another one.
  expect(stamped('SIP/2.0/UDP h;received=10.0.0.1 ; RPORT = 1;branch=a')).toBe(
    'SIP/2.0/UDP h;branch=a;received=192.0.2.9;rport=5099',
  );
  expect(stamped('SIP/2.0/UDP h;rport-x=1;received.by=2;branch=a')).toBe(
    'SIP/2.0/UDP h;rport-x=1;received.by=2;branch=a;received=192.0.2.9',
  );
  // The others of the field are those of proxies before.
  expect(stamped('SIP/2.0/UDP h;branch=a, SIP/2.0/UDP p;rport;branch=b,SIP/2.0/UDP q')).toBe(
    'SIP/2.0/UDP h;branch=a;received=192.0.2.9, SIP/2.0/UDP p;rport;branch=b,SIP/2.0/UDP q',
  );
  expect(stamped('SIP/2.0/UDP h;x="a,b";branch=a')).toBe('SIP/2.0/UDP h;x="a,b";branch=a;received=192.0.2.9');
});
