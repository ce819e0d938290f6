import { expect, test } from 'bun:test';
import { SIP_ROUTES_MAX } from '../../src/limits.ts';
import {
  contactOf,
  type Dialog,
  dialogOfRequest,
  dialogOfResponse,
  dialogRequest,
  localDomain,
  mayComeFrom,
  nextHop,
  preferredContact,
  replacing,
} from '../../src/sip/call/dialog.ts';
import type { Peer } from '../../src/sip/flow.ts';
import { Headers, NO_BODY, type SipRequest, type SipResponse } from '../../src/sip/message/message.ts';

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

test('A Contact in a private network of IPv4 is not where requests go, and one beside it is', () => {
  const host = (target: string) => nextHop(dialog(tls(false), `sip:b@${target}`)).host;
  const inside = ['10.0.0.0', '10.255.255.255', '127.0.0.1', '169.254.9.9', '192.168.0.1', '0.0.0.0'];
  inside.push('172.16.0.1', '172.20.0.1', '172.31.0.1', '100.64.0.1', '100.70.0.1', '100.99.0.1', '100.100.0.1', '100.127.0.1');
  expect(inside.filter((each) => host(each) !== '203.0.113.1')).toEqual([]);
  const beside = ['9.0.0.1', '11.0.0.1', '126.0.0.1', '128.0.0.1', '169.253.0.1', '169.255.0.1', '192.167.0.1', '192.169.0.1'];
  beside.push('172.15.0.1', '172.32.0.1', '171.16.0.1', '100.63.0.1', '100.128.0.1', '101.64.0.1', '1.10.0.1', '110.0.0.1');
  expect(beside.filter((each) => host(each) !== each)).toEqual([]);
});

test('The maddr of a Contact or a route is where requests go, in place of its host (RFC 3263 §4)', () => {
  const target = 'sip:b@carrier.example:5070;maddr=203.0.113.9';
  expect(nextHop(dialog(tls(false), target))).toMatchObject({ host: '203.0.113.9', port: 5070 });
  const route = '<sip:edge.example;maddr=[2001:db8::1];transport=udp;lr>';
  expect(nextHop(dialog(tls(false), target, [route]))).toMatchObject({ transport: 'udp', host: '2001:db8::1', port: 5060 });
  expect(nextHop(dialog(tls(false), 'sip:b@carrier.example;maddr=a:b:c'))).toMatchObject({ host: 'carrier.example' });
});

const fields = (...pairs: readonly (readonly [string, string])[]) => {
  const headers = new Headers();
  for (const [name, value] of pairs) headers.add(name, value);
  return headers;
};
const seen = (transport: Peer['transport'], profile: Peer['profile'] = {}): Peer => ({
  ...{ transport, host: '203.0.113.1', port: transport === 'tls' ? 5061 : 5060, flow: 7, profile },
});

test('The first Contact is where a dialog leads, and one that is no SIP URI leads nowhere', () => {
  const first = (...values: string[]) => contactOf(fields(...values.map((value) => ['contact', value] as const)));
  expect(first('<sip:a@x>')).toBe('sip:a@x');
  expect(first('"Doe, J" <sip:a@x>;expires=3, <sip:b@x>')).toBe('sip:a@x');
  expect(first('sip:a@x', 'sip:b@x')).toBe('sip:a@x');
  for (const bad of ['*', '<mailto:a@x>', '<>', '<sip:a b@x>']) expect([bad, first(bad)]).toEqual([bad, undefined]);
  expect(first()).toBeUndefined();
});

test('A redirect is followed to the Contact with the highest q, the first of equals, and never to what is no SIP URI', () => {
  const best = (value: string) => preferredContact(fields(['contact', value]));
  expect(best('<sip:a@x>;q=0.5, <sip:b@x>;q=0.9, <sip:c@x>;q=0.9')).toBe('sip:b@x');
  // A Contact without q has 1.
  expect(best('<sip:a@x>;q=0.999, <sip:b@x>, <sip:c@x>;q=1.000')).toBe('sip:b@x');
  expect(best('<sip:a@x>;q=0')).toBe('sip:a@x');
  expect(best('<sip:a@x>;q=7, <sip:b@x>;q=0.1')).toBe('sip:b@x');
  expect(best('<mailto:a@x>, <sip:b@x>;q=0.1')).toBe('sip:b@x');
  expect(best('<mailto:a@x>')).toBeUndefined();
});

test('A dialog takes its route set in order as the callee and in reverse as the caller, unless it is too long', () => {
  const routes = (count: number) => Array.from({ length: count }, (_, at) => `<sip:p${at}.example;lr>`);
  const invite = (count: number, contact = '<sip:a@203.0.113.1>'): SipRequest => ({
    ...{ kind: 'request', method: 'INVITE', uri: 'sip:b@x', body: NO_BODY },
    headers: fields(
      ...routes(count).map((route) => ['record-route', route] as const),
      ...([
        ['from', '<sip:a@x>;tag=f'],
        ['to', '<sip:b@x>'],
        ['call-id', 'c'],
        ['cseq', '8 INVITE'],
      ] as const),
      ...(contact === '' ? [] : ([['contact', contact]] as const)),
    ),
  });
  const ok = (count: number): SipResponse => ({
    ...{ kind: 'response', status: 200, reason: 'OK', body: NO_BODY },
    headers: fields(...routes(count).map((route) => ['record-route', route] as const), ['to', '<sip:b@x>;tag=t']),
  });
  const callee = dialogOfRequest(invite(3), 'l', seen('udp'));
  expect(callee).toMatchObject({ callId: 'c', localTag: 'l', remoteTag: 'f', remoteNumber: 8, routes: routes(3) });
  expect(callee).toMatchObject({ local: '<sip:b@x>;tag=l', remote: '<sip:a@x>;tag=f', target: 'sip:a@203.0.113.1' });
  const caller = dialogOfResponse(invite(0), ok(3), seen('udp'));
  expect(caller).toMatchObject({ callId: 'c', localTag: 'f', remoteTag: 't', localNumber: 8, remoteNumber: undefined });
  // A 200 without a Contact leaves the Request-URI.
  expect(caller).toMatchObject({ routes: routes(3).reverse(), target: 'sip:b@x' });
  for (const [count, known] of [
    [SIP_ROUTES_MAX, true],
    [SIP_ROUTES_MAX + 1, false],
  ] as const) {
    expect(dialogOfRequest(invite(count), 'l', seen('udp')) !== undefined).toBe(known);
    expect(dialogOfResponse(invite(0), ok(count), seen('udp')) !== undefined).toBe(known);
  }
  expect(dialogOfRequest(invite(0, ''), 'l', seen('udp'))).toBeUndefined();
});

test('A request of a dialog goes through its route set; a strict router ahead is its Request-URI (RFC 3261 §12.2.1.1)', () => {
  const sent = (...routes: string[]) => {
    const { uri, headers } = dialogRequest(dialog(seen('udp'), 'sip:b@203.0.113.2', routes), 'BYE');
    return [uri, headers.fields('route'), headers.get('cseq')];
  };
  const target = 'sip:b@203.0.113.2';
  expect(sent()).toEqual([target, [], '2 BYE']);
  expect(sent('<sip:p1;lr>', '<sip:p2>')).toEqual([target, ['<sip:p1;lr>', '<sip:p2>'], '2 BYE']);
  expect(sent('<sip:p1>', '<sip:p2;lr>')).toEqual(['sip:p1', ['<sip:p2;lr>', `<${target}>`], '2 BYE']);
  expect(sent('<sip:p1>')).toEqual(['sip:p1', [`<${target}>`], '2 BYE']);
});

test('A request goes to the first route, or to the Contact, and back to where the far end was seen if that fails', () => {
  const peer = { ...seen('tcp'), name: 'sip.example' };
  const hop = (target: string, ...routes: string[]) => nextHop(dialog(peer, target, routes));
  expect(hop('sip:b@198.51.100.2', '<sip:198.51.100.9:5070;lr>')).toMatchObject({ host: '198.51.100.9', port: 5070 });
  // A route is where a request goes, however private: the proxy that wrote it is reached there.
  expect(hop('sip:b@198.51.100.2', '<sip:10.0.0.9;lr>')).toMatchObject({ host: '10.0.0.9' });
  expect(hop('sip:b@198.51.100.2')).toEqual({
    ...{ transport: 'tcp', host: '198.51.100.2', port: 5060, isPortless: true, flow: 7, profile: {}, fallback: peer },
  });
  // The certificate's name goes with the address that it was resolved to, and with no other.
  expect(hop('sip:b@203.0.113.1:5060')).toEqual(peer);
  expect(hop('sip:b@203.0.113.1:5070')).toEqual({ ...peer, port: 5070, fallback: peer });
  for (const nowhere of ['tel:+15550100', 'sip:b@10.0.0.2', 'sip:b@0.0.0.0']) expect(hop(nowhere)).toEqual(peer);
});

test('The transport of a request is the one that its URI names, or that the far end was seen on', () => {
  const by = (uri: string, transport: Peer['transport']) => {
    const peer = nextHop(dialog(seen(transport), uri));
    return [peer.transport, peer.port, peer.flow];
  };
  const host = 'b@198.51.100.2';
  expect(by(`sip:${host}`, 'udp')).toEqual(['udp', 5060, 7]);
  expect(by(`sip:${host}`, 'tls')).toEqual(['tls', 5061, 7]);
  expect(by(`sip:${host};transport=UDP`, 'tcp')).toEqual(['udp', 5060, 0]);
  expect(by(`sip:${host};transport=TCP`, 'udp')).toEqual(['tcp', 5060, 0]);
  expect(by(`sip:${host};transport=tls`, 'udp')).toEqual(['tls', 5061, 0]);
  expect(by(`sips:${host}`, 'udp')).toEqual(['tls', 5061, 0]);
  // TCP is what TLS runs over, and no way out of it.
  expect(by(`sips:${host};transport=tcp`, 'tls')).toEqual(['tls', 5061, 7]);
  expect(by(`sip:${host};transport=tcp`, 'tls')).toEqual(['tls', 5061, 7]);
  // A name is the far end as it was resolved on the transport that it was resolved for, and on no other.
  const named = { ...seen('udp'), name: 'sip.example' };
  expect(nextHop(dialog(named, 'sip:b@SIP.example'))).toEqual(named);
  expect(nextHop(dialog(named, 'sips:b@sip.example'))).toMatchObject({ transport: 'tls', host: 'sip.example', port: 5061 });
});

test('A device is reached on its flow: over its connection, or where its datagrams come from', () => {
  const flow = { staysOnFlow: true };
  const hop = (peer: Peer, target: string, ...routes: string[]) => nextHop(dialog(peer, target, routes));
  for (const transport of ['tcp', 'tls'] as const) {
    const peer = seen(transport, flow);
    for (const target of ['sip:b@198.51.100.2', 'sip:b@10.0.0.2:5070', `sip:b@203.0.113.1:${peer.port}`])
      expect(hop(peer, target)).toEqual(peer);
  }
  const udp = seen('udp', flow);
  expect(hop(udp, 'sip:b@198.51.100.2')).toEqual(udp);
  expect(hop(udp, 'sip:b@203.0.113.1;transport=tcp')).toEqual(udp);
  // A phone without a NAT may listen on another port than it sends from.
  expect(hop(udp, 'sip:b@203.0.113.1:5070')).toMatchObject({ transport: 'udp', port: 5070, fallback: udp });
  const tcp = seen('tcp', flow);
  expect(hop(tcp, 'sip:b@203.0.113.1:5070')).toMatchObject({ port: 5060, flow: 7, fallback: { port: 5070, flow: 0 } });
  expect(hop(tcp, 'sip:b@198.51.100.2', '<sip:198.51.100.9;lr>')).toEqual(tcp);
});

test('A request of a call may come from its far end, from the next hop towards it, or from the addresses of its trunk', () => {
  const within = (host: string, ranges: readonly string[]) => host === '192.0.2.7' && ranges[0] === '192.0.2.0/24';
  const peer = seen('udp', { ranges: ['192.0.2.0/24'] });
  const up = dialog({ ...seen('udp'), host: '203.0.113.5' }, 'sip:b@203.0.113.6');
  const may = (host: string, end: Parameters<typeof mayComeFrom>[1]) => mayComeFrom(host, end, within);
  for (const host of ['203.0.113.1', '203.0.113.5', '203.0.113.6', '192.0.2.7'])
    expect(may(host, { peer, dialog: up })).toBe(true);
  for (const host of ['203.0.113.9', '192.0.2.8', '10.0.0.1']) expect(may(host, { peer, dialog: up })).toBe(false);
  expect([may('203.0.113.5', { peer, dialog: undefined }), may('192.0.2.7', { peer, dialog: undefined })]).toEqual([false, true]);
  expect(may('192.0.2.7', { peer: seen('udp'), dialog: up })).toBe(false);
  expect(may('203.0.113.1', { peer: undefined, dialog: undefined })).toBe(false);
});

test('A Refer-To that puts one call in the place of another is an URI whose headers hold the tags of its far end', () => {
  const to = (target: string) => replacing(dialog(seen('udp'), target));
  const replaces = 'Replaces=c%3Bto-tag%3Dr%3Bfrom-tag%3Dl';
  expect(to('sip:b@x')).toBe(`<sip:b@x?${replaces}>`);
  expect(to('sip:b@x?Subject=y')).toBe(`<sip:b@x?Subject=y&${replaces}>`);
});

test('Our domain in a dialog is the host that the far end called, with its port', () => {
  const domain = (local: string) => localDomain({ ...dialog(seen('udp'), 'sip:b@x'), local });
  expect(domain('"We" <sip:a@voice.example:5070;transport=tcp>;tag=l')).toBe('voice.example:5070');
  expect(domain('<sip:a@[2001:db8::1]>;tag=l')).toBe('[2001:db8::1]');
  expect([domain('<tel:+15550100>;tag=l'), domain('<mailto:a@x>'), domain('"open')]).toEqual(['', '', '']);
});

test('The proxy before a device is where its messages come from, whatever host its Record-Route names', () => {
  const seen: Peer = { transport: 'udp', host: '203.0.113.1', port: 5060, flow: 1 };
  for (const host of ['10.0.0.5', '203.0.113.9', 'edge.example']) {
    const routes = [`<sip:${host}:5070;lr>`];
    for (const staysOnFlow of [true, false])
      expect(nextHop(dialog({ ...seen, profile: { staysOnFlow } }, 'sip:b@192.168.1.10', routes)).host).toBe(seen.host);
    expect(nextHop(dialog(seen, 'sip:b@192.168.1.10', routes)).host).toBe(host);
  }
  const device: Peer = { ...seen, profile: { staysOnFlow: true } };
  const { host, port, fallback } = nextHop(dialog(device, 'sip:b@192.168.1.10', ['<sip:203.0.113.1:5070;lr>']));
  expect([host, port, fallback]).toEqual([seen.host, 5070, device]);
  expect(nextHop(dialog({ ...seen, profile: { staysOnFlow: false } }, 'sip:b@203.0.113.9')).host).toBe(seen.host);
});
