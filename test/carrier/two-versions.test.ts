/** A platform that listens on IPv4 and on IPv6: each far end is told an address of its own version (RFC 6157). */
import { afterEach, describe, expect, test } from 'bun:test';
import { spoken } from '../../src/carrier/socket/own-address.ts';
import type { SipListen } from '../../src/config.ts';
import { lookUp } from '../../src/outbound/lookup.ts';
import { heldNames } from '../support/name-server-peer.ts';
import { Alice } from './device-directory.ts';
import { asUser } from './device-peer.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { AUDIO, field, RawPeer, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const at = (...hosts: string[]): SipListen[] =>
  hosts.flatMap((host) => (['udp', 'tcp'] as const).map((transport) => ({ transport, host, port: 0 })));

const inSix = (text: string) => text.replaceAll('IN IP4 127.0.0.1', 'IN IP6 ::1');

/** A carrier that listens at those addresses, and takes all of loopback for its trunk. */
async function open(hosts: string[], more: Parameters<typeof TestCarrier.open>[1] = {}) {
  const devices = new Alice();
  const carrier = await TestCarrier.open([], { listen: at(...hosts), rtpHost: '::', devices, ...more });
  closers.push(() => carrier.close());
  const portAt = (host: string, transport: 'udp' | 'tcp') =>
    carrier.carrier.ports().find((port) => port.host === host && port.transport === transport)?.port ?? 0;
  const peer = async (host: string, transport: 'udp' | 'tcp' = 'udp', to = host.includes(':') ? '::1' : '127.0.0.1') => {
    const made = await RawPeer[transport](portAt(to, transport), host);
    closers.push(() => made.close());
    return made;
  };
  return { carrier, devices, peer, portAt };
}

/** The INVITE of a dial over a trunk at that peer. */
async function inviteTo(carrier: TestCarrier, peer: RawPeer, settings = {}): Promise<string> {
  carrier.trunks = [trunkTo(`sip:${peer.place}`, { inboundCidrs: ['127.0.0.0/8', '::1/128'], settings })];
  carrier.carrier.trunksChanged();
  const { leg } = await carrier.dial();
  const invite = await peer.until(/^INVITE/);
  peer.respond(invite, '486 Busy Here');
  leg.hangup();
  return invite;
}

const hostsOf = (message: string) => ({
  via: /^Via: [^ ]+ (.*):\d+;/m.exec(message)?.[1],
  contact: /^Contact: <sip:[^@]*@([^>;]*):\d+/m.exec(message)?.[1],
  from: /^From: .*@([^>]*)>/m.exec(message)?.[1],
  connection: /^c=IN (.*?)\r/m.exec(message)?.[1],
});

describe('a far end on IPv6 beside one on IPv4', () => {
  test('is called from our address of its version, which is in Via, Contact, From and SDP', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1']);
    expect(hostsOf(await inviteTo(carrier, await peer('::1')))).toEqual({
      via: '[::1]',
      contact: '[::1]',
      from: '[::1]',
      connection: 'IP6 ::1',
    });
    expect(hostsOf(await inviteTo(carrier, await peer('127.0.0.7')))).toEqual({
      via: '127.0.0.1',
      contact: '127.0.0.1',
      from: '127.0.0.1',
      connection: 'IP4 127.0.0.1',
    });
  });

  test('as a device of the same user is offered audio of its own version, over UDP and TCP', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1']);
    const phones = [await peer('127.0.0.7'), await peer('::1'), await peer('::1', 'tcp')];
    for (const phone of phones) {
      const contact = `<sip:alice@${phone.place};transport=${phone.transport.toLowerCase()}>`;
      expect((await asUser(phone, 'REGISTER', 'alice', { contact })).response).toMatch(/^SIP\/2.0 200/);
    }
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const invites = await Promise.all(phones.map((phone) => phone.until(/^INVITE/)));
    expect(invites.map((invite) => hostsOf(invite).contact)).toEqual(['127.0.0.1', '[::1]', '[::1]']);
    expect(invites.map((invite) => hostsOf(invite).connection)).toEqual(['IP4 127.0.0.1', 'IP6 ::1', 'IP6 ::1']);
    expect(carrier.media.opened).toBe(1);
    const [, , third] = phones;
    third?.respond(invites[2] ?? '', '200 OK', { body: inSix(sdp()) });
    await signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ remoteHost: '::1', remotePort: 6000 });
    leg.hangup();
  });

  test('is answered with the version that it offers, and by the other one once it offers that', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1']);
    carrier.trunks = [trunkTo('sip:127.0.0.1:9')];
    carrier.carrier.trunksChanged();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const caller = await peer('127.0.0.7');
    caller.send(caller.request('INVITE', { id: 'mixed', body: inSix(sdp()) }));
    const answer = await caller.until(/^SIP\/2.0 200/);
    expect(hostsOf(answer)).toMatchObject({ contact: '127.0.0.1', connection: 'IP6 ::1' });
    const to = field(answer, 'To');
    caller.send(caller.request('ACK', { id: 'mixed', to }));
    caller.send(caller.request('INVITE', { id: 'mixed', to, cseq: 2, body: sdp() }));
    const moved = await caller.until(/^SIP\/2.0 200[\s\S]*CSeq: 2 INVITE/);
    expect(moved).toContain('c=IN IP4 127.0.0.1');
    expect(/^o=- \d+ 2 IN IP4 127.0.0.1/m.test(moved)).toBe(true);
  });

  test('may be a phone that moves there in a call, from another network and over another transport', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1']);
    const before = await peer('127.0.0.7');
    await asUser(before, 'REGISTER', 'alice', { contact: `<sip:alice@${before.place}>` });
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const invite = await before.until(/^INVITE/);
    before.respond(invite, '200 OK', { body: sdp() });
    await before.until(/^ACK/);
    await signals.until('leg.answered');
    const after = await peer('::1', 'tcp');
    const call = { id: field(invite, 'Call-ID'), from: `${field(invite, 'To')};tag=raw`, to: field(invite, 'From') };
    const { response, parts } = await asUser(after, 'INVITE', 'alice', {
      ...call,
      body: inSix(sdp()).replaceAll('::1', '2001:db8::9'),
    });
    expect(response).toMatch(/^SIP\/2.0 200/);
    expect(hostsOf(response)).toMatchObject({ contact: '[::1]', connection: 'IP6 ::1' });
    after.send(after.request('ACK', { ...parts, cseq: 2, body: '' }));
    // Its audio may come from there as well, whatever address it describes.
    expect(carrier.media.negotiated.at(-1)?.learnFrom).toContain('::1');
    leg.hangup();
    after.respond(await after.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test('is refused where the RTP ports speak the other version only', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1'], { rtpHost: '127.0.0.1' });
    carrier.trunks = [trunkTo('sip:127.0.0.1:9')];
    carrier.carrier.trunksChanged();
    const caller = await peer('127.0.0.7');
    caller.send(caller.request('INVITE', { id: 'six', body: inSix(sdp()) }));
    await caller.until(/^SIP\/2.0 488/);
    caller.send(caller.request('INVITE', { id: 'both', body: sdp(AUDIO, 'c=IN IP6 ::1', 'm=audio 7000 RTP/AVP 0') }));
    await caller.until(/^SIP\/2.0 1/);
  });

  test('is told the advertised address of its version', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1'], { advertise: ['203.0.113.5', '2001:db8::5'] });
    expect(hostsOf(await inviteTo(carrier, await peer('::1')))).toMatchObject({
      contact: '[2001:db8::5]',
      connection: 'IP6 2001:db8::5',
    });
    expect(hostsOf(await inviteTo(carrier, await peer('127.0.0.7')))).toMatchObject({
      contact: '203.0.113.5',
      connection: 'IP4 203.0.113.5',
    });
  });

  test('is told the address that its trunk advertises, which is written in brackets there', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1']);
    expect(hostsOf(await inviteTo(carrier, await peer('::1'), { advertise: '[2001:db8::7]' }))).toEqual({
      via: '[2001:db8::7]',
      contact: '[2001:db8::7]',
      from: '[2001:db8::7]',
      connection: 'IP6 2001:db8::7',
    });
  });

  test('is told its own address where only one of IPv4 is advertised, as behind a NAT', async () => {
    const { carrier, peer } = await open(['127.0.0.1', '::1'], { advertise: ['203.0.113.5'] });
    expect(hostsOf(await inviteTo(carrier, await peer('::1')))).toMatchObject({ contact: '[::1]', connection: 'IP6 ::1' });
  });

  test('may be written in any form of its address: what it says in a call is heard', async () => {
    const { carrier, peer } = await open(['::1']);
    const far = await peer('::1');
    carrier.trunks = [trunkTo(`sip:[0:0:0:0:0:0:0:1]:${far.port}`, { inboundCidrs: ['127.0.0.200/32'] })];
    carrier.carrier.trunksChanged();
    const { signals } = await carrier.dial();
    const invite = await far.until(/^INVITE/);
    const contact = `<sip:x@[0::1]:${far.port}>`;
    far.respond(invite, '200 OK', { body: inSix(sdp()), fields: `Contact: ${contact}\r\n` });
    await far.until(/^ACK/);
    await signals.until('leg.answered');
    const to = field(invite, 'From');
    far.send(far.request('BYE', { id: field(invite, 'Call-ID'), from: `${field(invite, 'To')};tag=raw`, to, contact }));
    await far.until(/^SIP\/2.0 200/);
    await signals.until('leg.ended');
  });

  test('is reached over the one socket that listens on every address of both', async () => {
    const { carrier, peer } = await open(['::']);
    expect(hostsOf(await inviteTo(carrier, await peer('127.0.0.7', 'udp', '::')))).toMatchObject({
      via: '127.0.0.1',
      connection: 'IP4 127.0.0.1',
    });
    expect(hostsOf(await inviteTo(carrier, await peer('::1', 'udp', '::')))).toMatchObject({
      via: '[::1]',
      connection: 'IP6 ::1',
    });
  });

  test('whose name has addresses of IPv4 alone is dialled from the one socket that listens on all of both', async () => {
    const { carrier, peer } = await open(['::']);
    await lookUp('localhost');
    const names = await heldNames();
    closers.push(() => names.close());
    names.tell();
    const far = await peer('127.0.0.1', 'udp', '::');
    carrier.trunks = [trunkTo(`sip:four.test:${far.port}`, { inboundCidrs: ['127.0.0.0/8'] })];
    carrier.carrier.trunksChanged();
    const { leg } = await carrier.dial();
    const invite = await far.until(/^INVITE/);
    expect(hostsOf(invite)).toMatchObject({ via: '127.0.0.1', connection: 'IP4 127.0.0.1' });
    far.respond(invite, '486 Busy Here');
    leg.hangup();
  });

  test('is dialled by its name in the version that our sockets speak, and in the order of the system where one speaks all', () => {
    const at = (...hosts: string[]) => spoken(hosts.map((host) => ({ host })));
    expect([at(), at('127.0.0.1'), at('::', '0.0.0.0'), at('vm')]).toEqual(new Array(4).fill([4, 6]));
    expect([at('::1', '2001:db8::1'), at('::'), at('::1', '::')]).toEqual([[6], 'any', 'any']);
  });
});
