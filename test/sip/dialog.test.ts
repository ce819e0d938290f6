import { expect, test } from 'bun:test';
import { type Dialog, nextHop } from '../../src/sip/call/dialog.ts';
import type { Peer } from '../../src/sip/flow.ts';

const dialog = (peer: Peer, target: string, routes: readonly string[] = []): Dialog => ({
  callId: 'c',
  localTag: 'l',
  remoteTag: 'r',
  local: '<sip:a@x>;tag=l',
  remote: '<sip:b@x>;tag=r',
  localNumber: 1,
  remoteNumber: undefined,
  routes,
  target,
  peer,
});
const tls = (staysOnTls: boolean): Peer => ({
  transport: 'tls',
  host: '203.0.113.1',
  port: 5061,
  flow: 7,
  profile: staysOnTls ? { staysOnTls } : {},
});

test('A dialog whose descriptions may hold keys stays on TLS, whatever transport a Contact or a route names', () => {
  const elsewhere: readonly (readonly [string, readonly string[]])[] = [
    ['sip:b@203.0.113.2:5060;transport=udp', []],
    ['sip:b@203.0.113.2', ['<sip:203.0.113.3;transport=udp;lr>']],
  ];
  for (const [target, routes] of elsewhere) {
    expect(nextHop(dialog(tls(true), target, routes))).toEqual(tls(true));
    expect(nextHop(dialog(tls(false), target, routes)).transport).toBe('udp');
  }
  expect(nextHop(dialog(tls(true), 'sip:b@203.0.113.2:5071;transport=tls'))).toMatchObject({
    transport: 'tls',
    host: '203.0.113.2',
    port: 5071,
  });
});

test('A Contact in a private network of IPv6 that the far end is not in is not where requests go', () => {
  const seen = { ...tls(false), host: '2001:db8::7' };
  const hop = (target: string, peer = seen) => nextHop({ ...dialog(tls(false), target), peer });
  for (const host of ['fd00::5', 'FD00::5', 'fe80::5', '::1', '10.0.0.5'])
    expect(hop(`sip:b@[${host}]:5060`.replace(/\[(10.*)\]/, '$1'))).toEqual(seen);
  expect(hop('sip:b@[2001:DB8:0::8]:5071')).toMatchObject({ host: '2001:db8::8', port: 5071 });
  expect(hop('sip:b@[fd00::5]:5071', { ...seen, host: 'fd00::7' })).toMatchObject({ host: 'fd00::5', port: 5071 });
  expect(hop('sip:b@[::ffff:203.0.113.2]')).toMatchObject({ host: '203.0.113.2' });
});

test('The maddr of a Contact or a route is where requests go, in place of its host (RFC 3263 §4)', () => {
  const target = 'sip:b@carrier.example:5070;maddr=203.0.113.9';
  expect(nextHop(dialog(tls(false), target))).toMatchObject({ host: '203.0.113.9', port: 5070 });
  const route = '<sip:edge.example;maddr=[2001:db8::1];transport=udp;lr>';
  expect(nextHop(dialog(tls(false), target, [route]))).toMatchObject({ transport: 'udp', host: '2001:db8::1', port: 5060 });
  expect(nextHop(dialog(tls(false), 'sip:b@carrier.example;maddr=a:b:c'))).toMatchObject({ host: 'carrier.example' });
});
