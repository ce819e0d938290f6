/**
 * The way to a device: over the connection that it opened (RFC 5626), or to where its datagrams come from, and never to
 * a Contact that its network keeps to itself. Each Contact here is at an address where nobody of the device listens.
 */
import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEVICE_PING_MS, DEVICE_RESTARTED_MS, DEVICE_SILENT_MS, SIP_FLOW_REPLY_MS } from '../../src/limits.ts';
import { makeCertificate } from '../support/certificate.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Alice } from './device-directory.ts';
import { answerTo, asUser } from './device-peer.ts';
import { type Signals, TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const HOST = '127.0.0.7';
/** The address in a Contact, which is no address of the device to anybody but itself. */
const INSIDE = '127.0.0.9';

async function open(more: Parameters<typeof TestCarrier.open>[1] = {}) {
  const devices = new Alice();
  const elsewhere = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
  const carrier = await TestCarrier.open([elsewhere], { devices, ...more });
  closers.push(() => carrier.close());
  const phone = async (transport: 'udp' | 'tcp' = 'tcp', host = HOST) => {
    const peer = await RawPeer[transport](carrier.port(transport), host);
    closers.push(() => peer.close());
    return peer;
  };
  return { carrier, devices, phone };
}

/** A listener for TCP at an address, and how many connections it took. */
async function listener(host: string) {
  let taken = 0;
  const server = createServer((socket) => {
    taken++;
    socket.on('error', () => {}).destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  return { port: typeof address === 'object' && address !== null ? address.port : 0, taken: () => taken };
}

let registrations = 0;

async function register(phone: RawPeer, contact: string): Promise<void> {
  const { response } = await asUser(phone, 'REGISTER', 'alice', { contact, id: `flow${++registrations}` });
  expect(response).toMatch(/^SIP\/2.0 200/);
}

/** Calls alice, who answers at `phone` with `contact`. */
async function answered(carrier: TestCarrier, phone: RawPeer, contact: string) {
  const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
  const invite = await phone.until(/^INVITE/);
  phone.respond(invite, '200 OK', { body: sdp(), fields: `Contact: ${contact}\r\n` });
  await phone.until(/^ACK/);
  await signals.until('leg.answered');
  return { leg, signals, invite };
}

async function gone(devices: Alice): Promise<void> {
  for (let looks = 0; devices.bound.length > 0; looks++) {
    if (looks > 1_000) throw new Error('still bound');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function endOf(signals: Signals) {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
}

describe('a call with a device', () => {
  test.each(['udp', 'tcp'] as const)(
    'over %s is acknowledged and hung up where the device is, not at its Contact',
    async (transport) => {
      const { carrier, phone } = await open();
      const inside = await listener(INSIDE);
      const contact = `<sip:alice@${INSIDE}:${inside.port};transport=${transport}>`;
      const alice = await phone(transport);
      await register(alice, contact);
      const { leg } = await answered(carrier, alice, contact);
      leg.hangup();
      alice.respond(await alice.until(/^BYE/), '200 OK');
      await carrier.idle();
      expect(inside.taken()).toBe(0);
    },
  );

  test('that the device has placed is hung up over its connection', async () => {
    const { carrier, phone } = await open();
    const inside = await listener(INSIDE);
    const alice = await phone();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const contact = `<sip:alice@${INSIDE}:${inside.port};transport=tcp>`;
    const { response, parts } = await asUser(alice, 'INVITE', 'alice', { contact, body: sdp() });
    alice.send(alice.request('ACK', { ...parts, cseq: 2, to: field(response, 'To') }));
    const [incoming] = carrier.incoming;
    await incoming?.signals.until('leg.answered');
    incoming?.call.leg.hangup();
    alice.respond(await alice.until(/^BYE/), '200 OK');
    await carrier.idle();
    expect(inside.taken()).toBe(0);
  });

  test.each([
    ['by its URI', '<sip:alice@127.0.0.9:5060;transport=tcp>', '<sip:alice@127.0.0.9:5060;transport=tcp>'],
    ['by its name', '<sip:a@127.0.0.9:1>;+sip.instance="<urn:uuid:1>"', '<sip:a@127.0.0.9:2>;+sip.instance="<urn:uuid:1>"'],
    ['by a Contact that may be reached', `<sip:a@${HOST}:1;transport=tcp>`, `<sip:a@${HOST}:1;transport=tcp>`],
  ])('goes on over the connection that the device, known %s, registers over when the first one breaks', async (_, one, two) => {
    const { carrier, devices, phone } = await open();
    const before = await phone();
    await register(before, one);
    const { leg } = await answered(carrier, before, one);
    before.close();
    if (!one.includes(HOST)) await gone(devices);
    const after = await phone();
    await register(after, two);
    leg.hangup();
    after.respond(await after.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test('is to the address of its user, by which it is known in the calls that follow', async () => {
    const { carrier, phone } = await open();
    const alice = await phone();
    await register(alice, `<sip:line-7@${HOST}:${alice.port};transport=tcp>`);
    const { leg } = await carrier.dial({ to: 'sip:alice' });
    const invite = await alice.until(/^INVITE/);
    expect(invite).toStartWith(`INVITE sip:line-7@${HOST}:${alice.port};transport=tcp SIP/2.0`);
    expect(field(invite, 'To')).toBe('<sip:alice@127.0.0.1>');
    alice.respond(invite, '486 Busy Here');
    leg.hangup();
  });

  test('that it was called for is transferred to a number at our port, over the transport that it uses', async () => {
    const { carrier, phone } = await open();
    for (const [transport, tail] of [
      ['udp', ''],
      ['tcp', ';transport=tcp'],
    ] as const) {
      const alice = await phone(transport);
      const contact = `<sip:alice@${HOST}:${alice.port};transport=${transport}>`;
      await register(alice, contact);
      const { leg } = await answered(carrier, alice, contact);
      leg.transfers?.transfer({ number: '+972501112222' });
      const refer = await alice.until(/^REFER /);
      expect(field(refer, 'Refer-To')).toBe(`<sip:+972501112222@127.0.0.1:${carrier.port(transport)}${tail}>`);
      alice.respond(refer, '202 Accepted');
      leg.hangup();
      alice.respond(await alice.until(/^BYE/), '200 OK');
      await asUser(alice, 'REGISTER', 'alice', { contact: `${contact};expires=0`, id: `off-${transport}` });
    }
  });

  test('that rings is cancelled over the connection that it has registered over since', async () => {
    const { carrier, devices, phone } = await open();
    const contact = `<sip:alice@${INSIDE}:5060;transport=tcp>`;
    const before = await phone();
    await register(before, contact);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    before.respond(await before.until(/^INVITE/), '180 Ringing', { fields: `Contact: ${contact}\r\n` });
    await signals.until('leg.ringing');
    before.close();
    await gone(devices);
    const after = await phone();
    await register(after, contact);
    leg.hangup();
    after.respond(await after.until(/^CANCEL/), '200 OK');
  });

  test('is acknowledged over the connection that its answer comes by, and hung up over it', async () => {
    const { carrier, devices, phone } = await open();
    const contact = `<sip:alice@${INSIDE}:5060;transport=tcp>`;
    const before = await phone();
    await register(before, contact);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const invite = await before.until(/^INVITE/);
    before.respond(invite, '180 Ringing', { fields: `Contact: ${contact}\r\n` });
    await signals.until('leg.ringing');
    before.close();
    await gone(devices);
    const after = await phone();
    after.respond(invite, '200 OK', { body: sdp(), fields: `Contact: ${contact}\r\n` });
    await after.until(/^ACK/);
    leg.hangup();
    after.respond(await after.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test('that is held while its connection is broken is told of that over the one that it registers over next', async () => {
    const { carrier, devices, phone } = await open();
    const contact = `<sip:alice@${INSIDE}:5060;transport=tcp>`;
    const before = await phone();
    await register(before, contact);
    const { leg, signals } = await answered(carrier, before, contact);
    before.close();
    await gone(devices);
    leg.hold?.(true);
    leg.probe?.();
    const after = await phone();
    await register(after, contact);
    const invite = await after.until(/^INVITE/);
    expect(invite).toContain('a=sendonly');
    after.respond(invite, '200 OK', { body: sdp().replace('sendrecv', 'recvonly'), fields: `Contact: ${contact}\r\n` });
    await after.until(/^ACK/);
    await signals.until('leg.own_hold');
    expect(signals.types()).not.toContain('leg.ended');
    leg.hangup();
    after.respond(await after.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test.each(['udp', 'tcp'] as const)('is heard from the address that it registers from next, over %s', async (transport) => {
    const { carrier, phone } = await open();
    const contact = `<sip:alice@${INSIDE}:5060;transport=${transport}>;+sip.instance="<urn:uuid:1>"`;
    const before = await phone(transport);
    await register(before, contact);
    const { leg } = await answered(carrier, before, contact);
    expect(carrier.media.negotiated.at(-1)?.learnFrom).not.toContain('127.0.0.8');
    const after = await phone(transport, '127.0.0.8');
    await register(after, contact);
    expect(carrier.media.negotiated.at(-1)?.learnFrom).toContain('127.0.0.8');
    leg.hangup();
    after.respond(await after.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test('goes on over the connection that its re-INVITE comes by', async () => {
    const { carrier, devices, phone } = await open();
    const contact = `<sip:alice@${INSIDE}:5060;transport=tcp>`;
    const before = await phone();
    await register(before, contact);
    const { leg, invite } = await answered(carrier, before, contact);
    before.close();
    await gone(devices);
    const after = await phone();
    const parts = { id: field(invite, 'Call-ID'), from: `${field(invite, 'To')};tag=raw`, to: field(invite, 'From'), contact };
    after.send(after.request('INVITE', { ...parts, body: sdp() }));
    await after.until(/^SIP\/2.0 200/);
    after.send(after.request('ACK', parts));
    leg.hangup();
    after.respond(await after.until(/^BYE/), '200 OK');
    await carrier.idle();
  });
});

describe('a device of sips: URIs', () => {
  async function overTls() {
    const directory = mkdtempSync(join(tmpdir(), 'sidetone-sips-'));
    closers.push(() => rmSync(directory, { recursive: true }));
    const tls = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
    makeCertificate(tls, { name: 'localhost', days: 1 });
    const { carrier } = await open({ listen: [{ transport: 'tls', host: '127.0.0.1', port: 0 }], tls });
    const alice = await RawPeer.tls(carrier.port('tls'));
    closers.push(() => alice.close());
    return { carrier, alice };
  }

  test('that calls is answered with a Contact of that kind, and is hung up by one', async () => {
    const { carrier, alice } = await overTls();
    carrier.onIncoming = ({ call }) => call.leg.answer();
    const contact = `<sips:alice@${alice.place}>`;
    const { response, parts } = await asUser(alice, 'INVITE', 'alice', { scheme: 'sips', contact, body: sdp() });
    expect(field(response, 'Contact')).toBe(`<sips:sidetone@127.0.0.1:${carrier.port('tls')}>`);
    alice.send(alice.request('ACK', { ...parts, cseq: 2, to: field(response, 'To') }));
    const [incoming] = carrier.incoming;
    await incoming?.signals.until('leg.answered');
    incoming?.call.leg.hold?.(true);
    const reinvite = await alice.until(/^INVITE sips:/);
    expect(field(reinvite, 'Contact')).toBe(`<sips:sidetone@127.0.0.1:${carrier.port('tls')}>`);
    alice.respond(reinvite, '200 OK', { body: sdp(), fields: `Contact: ${contact}\r\n` });
    incoming?.call.leg.hangup();
    alice.respond(await alice.until(/^BYE sips:/), '200 OK');
  });

  test('is called with a Contact of that kind, and one of sip: URIs with its own', async () => {
    const { carrier, alice } = await overTls();
    for (const [kind, ours] of [
      ['sips', `<sips:sidetone@127.0.0.1:${carrier.port('tls')}>`],
      ['sip', `<sip:sidetone@127.0.0.1:${carrier.port('tls')};transport=tls>`],
    ] as const) {
      const contact = `<${kind}:alice@${alice.place};transport=tls>`;
      await register(alice, `${contact};+sip.instance="<urn:uuid:1>"`);
      const { leg } = await carrier.dial({ to: 'sip:alice' });
      const invite = await alice.until(/^INVITE/);
      expect(field(invite, 'Contact')).toBe(ours);
      alice.respond(invite, '486 Busy Here');
      leg.hangup();
    }
  });
});

describe('a phone that takes TCP connections at its Contact', () => {
  /** What a phone hears that listens there, and answers 200 to all but INVITE. */
  async function listening() {
    const heard: string[] = [];
    let tell = () => {};
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        heard.push(data.toString());
        const via = /^Via: .*\r\n/m.exec(data.toString())?.[0] ?? '';
        const rest = ['From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${field(data.toString(), name)}\r\n`).join('');
        const status = data.toString().startsWith('INVITE') ? '486 Busy Here' : '200 OK';
        socket.write(`SIP/2.0 ${status}\r\n${via}${rest}Content-Length: 0\r\n\r\n`);
        tell();
      });
      closers.push(() => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
    closers.push(() => server.close());
    const address = server.address();
    const until = async (pattern: RegExp) => {
      while (!heard.some((each) => pattern.test(each)))
        await new Promise<void>((resolve, reject) => {
          const timer = setTimeout(() => reject(new Error(`no ${pattern}`)), 8_000);
          tell = () => {
            clearTimeout(timer);
            resolve();
          };
        });
    };
    return { contact: `<sip:alice@${HOST}:${typeof address === 'object' ? address?.port : 0};transport=tcp>`, until };
  }

  test.each([
    ['its Contact', (contact: string) => contact],
    ['the port of its connection', () => `<sip:alice@${HOST}:1;transport=tcp>`],
  ])('is called and hung up there once it has closed its connection, also where the call names %s', async (_, inCall) => {
    const { carrier, devices, phone } = await open();
    const { contact, until } = await listening();
    const alice = await phone();
    await register(alice, contact);
    const { leg, signals } = await answered(carrier, alice, inCall(contact));
    const other = await phone('udp', '127.0.0.8');
    alice.close();
    // The platform has seen the end of the connection when it has taken a later message.
    await register(other, `<sip:alice@127.0.0.8:${other.port}>`);
    leg.hangup();
    await until(/^BYE/);
    await signals.until('leg.ended');
    await asUser(other, 'REGISTER', 'alice', { contact: `<sip:alice@127.0.0.8:${other.port}>;expires=0`, id: 'gone' });
    expect(devices.bound).toHaveLength(1);
    const next = await carrier.dial({ to: 'sip:alice' });
    await until(/^INVITE/);
    expect(await endOf(next.signals)).toMatchObject({ cause: 'busy' });
  });
});

describe('a contact whose connection is gone with the process that had it', () => {
  /** A contact that the database kept over a restart. */
  async function kept(uri: string, transport: 'tcp' | 'tls', port: number) {
    const { carrier, devices } = await open();
    const expiresAt = Date.now() + 60_000;
    devices.bound = [
      {
        key: uri,
        uri,
        callId: 'x',
        cseq: 1,
        expiresAt,
        transport,
        host: HOST,
        port,
        userAgent: '',
        instance: '',
        regId: 0,
        path: '',
      },
    ];
    return (await carrier.dial({ to: 'sip:alice' })).signals;
  }

  test('is not tried at a port that the device used once', async () => {
    const once = await listener(HOST);
    const unreachable = { cause: 'not_answered', description: 'The device could not be reached' };
    expect(await endOf(await kept(`sip:alice@192.168.1.4:5060;transport=tcp`, 'tcp', once.port))).toMatchObject(unreachable);
    expect(await endOf(await kept(`sip:alice@${HOST}:5061;transport=tls`, 'tls', once.port))).toMatchObject(unreachable);
    expect(once.taken()).toBe(0);
  });

  test('is called at its Contact where no NAT is before it', async () => {
    const once = await listener(HOST);
    const contact = await listener(HOST);
    await endOf(await kept(`sip:alice@${HOST}:${contact.port};transport=tcp`, 'tcp', once.port));
    expect([once.taken(), contact.taken() > 0]).toEqual([0, true]);
  });
});

describe('a device that went away without a word', () => {
  test('keeps a caller for ten seconds, and the next one not at all', async () => {
    const clock = new VirtualClock();
    const { carrier, devices, phone } = await open({ clock });
    const alice = await phone();
    await register(alice, `<sip:alice@${HOST}:${alice.port};transport=tcp>`);
    const { signals } = await carrier.dial({ to: 'sip:alice' });
    await alice.until(/^INVITE/);
    await clock.advance(SIP_FLOW_REPLY_MS - 1);
    expect(signals.types()).not.toContain('leg.ended');
    await clock.advance(1);
    expect(await endOf(signals)).toMatchObject({ cause: 'not_answered' });
    await gone(devices);
    const next = await carrier.dial({ to: 'sip:alice' });
    expect(await endOf(next.signals)).toMatchObject({ description: 'The device is not registered' });
  });

  test('is none where it answers, however slowly it is picked up', async () => {
    const clock = new VirtualClock();
    const { carrier, devices, phone } = await open({ clock });
    const alice = await phone();
    await register(alice, `<sip:alice@${HOST}:${alice.port};transport=tcp>`);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    alice.respond(await alice.until(/^INVITE/), '180 Ringing');
    await signals.until('leg.ringing');
    await clock.advance(3 * SIP_FLOW_REPLY_MS);
    expect(devices.bound).toHaveLength(1);
    leg.hangup();
    alice.respond(await alice.until(/^CANCEL/), '200 OK');
  });
});

describe('a phone that is bound as the platform starts', () => {
  test('is pinged as if it had registered since', async () => {
    const before = await open();
    const alice = await before.phone('udp');
    await register(alice, `<sip:alice@${INSIDE}:5060>`);
    const clock = new VirtualClock(Date.now());
    const { carrier } = await open({ clock });
    carrier.carrier.devicesBound(before.devices.bound.map((binding) => ({ username: 'alice', binding })));
    await clock.advance(DEVICE_PING_MS);
    const ping = await alice.until(/^OPTIONS/);
    expect(ping).toContain(`:${carrier.port('udp')}`);
    alice.respond(ping, '200 OK');
  });
});

describe('another phone of a user whose phone is in a call', () => {
  const [CONTACT, OTHER] = ['<sip:alice@192.168.1.10:5060>', '<sip:alice@192.168.2.20:5060>'];

  test('may come over a new connection, or start anew, and the call stays where it is', async () => {
    const clock = new VirtualClock();
    const { carrier, phone } = await open({ clock });
    const home = await phone();
    await register(home, CONTACT);
    const { leg } = await answered(carrier, home, CONTACT);
    for (let connections = 0; connections < 2; connections++) {
      const office = await phone('tcp', '127.0.0.8');
      for (let starts = 0; starts < 2; starts++) await register(office, OTHER);
    }
    await clock.advance(2 * DEVICE_RESTARTED_MS);
    leg.hangup();
    home.respond(await home.until(/^(INVITE|BYE)/), '200 OK');
    await carrier.idle();
    expect(home.heard.filter((message) => /^(INVITE|BYE)/.test(message))).toEqual([]);
  });
});

describe('two phones of a user that have one private Contact', () => {
  const CONTACT = '<sip:alice@192.168.1.10:5060>';
  const ELSEWHERE = '127.0.0.8';

  test('both ring; one answers, and the other is told that the call was completed elsewhere', async () => {
    const { carrier, phone } = await open();
    const [home, office] = [await phone('udp'), await phone('udp', ELSEWHERE)];
    await register(home, CONTACT);
    await register(office, CONTACT);
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const [first, second] = await Promise.all([home.until(/^INVITE/), office.until(/^INVITE/)]);
    for (const invite of [first, second]) expect(invite).toStartWith('INVITE sip:alice@192.168.1.10:5060 SIP/2.0');
    home.respond(first, '180 Ringing');
    office.respond(second, '200 OK', { body: sdp(), fields: `Contact: ${CONTACT}\r\n` });
    await signals.until('leg.answered');
    expect(field(await home.until(/^CANCEL/), 'Reason')).toBe('SIP;cause=200;text="Call completed elsewhere"');
    home.respond(first, '487 Request Terminated');
    leg.hangup();
    office.respond(await office.until(/^BYE/), '200 OK');
    await carrier.idle();
  });

  test('ring once each where a node of the release before has bound one of them a second time', async () => {
    const { carrier, devices, phone } = await open();
    const [home, office] = [await phone('udp'), await phone('udp', ELSEWHERE)];
    await register(home, CONTACT);
    await register(office, CONTACT);
    const [first, second] = devices.bound;
    if (first === undefined || second === undefined) throw new Error('not bound');
    devices.bound = [{ ...second, key: first.key }, second, { ...first, key: 'sip:alice@192.168.1.10:5060;sidetone-contact=3' }];
    const { signals } = await carrier.dial({ to: 'sip:alice' });
    for (const each of [home, office]) each.respond(await each.until(/^INVITE/), '486 Busy Here');
    expect(await endOf(signals)).toMatchObject({ cause: 'busy' });
    await carrier.idle();
    expect([...home.heard, ...office.heard].filter((message) => message.startsWith('INVITE'))).toEqual([]);
  });

  test('sign off each for itself, and a call with one is not taken to the other when that registers', async () => {
    const { carrier, phone } = await open();
    const [home, office] = [await phone('udp'), await phone('udp', ELSEWHERE)];
    await register(home, CONTACT);
    const { leg } = await answered(carrier, home, CONTACT);
    await register(office, CONTACT);
    leg.hangup();
    home.respond(await home.until(/^BYE/), '200 OK');
    await register(office, `${CONTACT};expires=0`);
    const next = await answered(carrier, home, CONTACT);
    expect(office.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
    // The place in the table that the one has left is no way to the other's call.
    await register(home, `${CONTACT};expires=0`);
    await register(office, CONTACT);
    next.leg.hangup();
    home.respond(await home.until(/^BYE/), '200 OK');
    await carrier.idle();
  });
});

describe('a user with a contact that says nothing', () => {
  const contactOf = (phone: RawPeer) => `<sip:alice@${phone.host}:${phone.port}>`;

  /** Two phones of the user, one of which is silent. Both have been sent an INVITE. */
  async function twoPhones() {
    const clock = new VirtualClock();
    const { carrier, phone } = await open({ clock });
    const [silent, other] = [await phone('udp'), await phone('udp', '127.0.0.8')];
    await register(silent, contactOf(silent));
    await register(other, contactOf(other));
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const [unheard, invite] = await Promise.all([silent.until(/^INVITE/), other.until(/^INVITE/)]);
    return { clock, carrier, silent, other, leg, signals, unheard, invite };
  }

  test('is busy five seconds after the INVITE where the other phone is, and not when the ringing times out', async () => {
    const { clock, other, signals, invite } = await twoPhones();
    other.respond(invite, '486 Busy Here');
    await other.until(/^ACK/);
    await clock.advance(DEVICE_SILENT_MS - 1);
    expect(signals.types()).not.toContain('leg.ended');
    await clock.advance(1);
    expect(await endOf(signals)).toMatchObject({ cause: 'busy', by: 'callee' });
  });

  test('is busy at once where the other phone refuses later', async () => {
    const { clock, other, signals, invite } = await twoPhones();
    other.respond(invite, '180 Ringing');
    await signals.until('leg.ringing');
    await clock.advance(2 * DEVICE_SILENT_MS);
    other.respond(invite, '486 Busy Here');
    expect(await endOf(signals)).toMatchObject({ cause: 'busy', by: 'callee' });
  });

  test.each(['100 Trying', '180 Ringing'])('rings on while a phone has said %s', async (status) => {
    const { clock, silent, other, leg, signals, unheard, invite } = await twoPhones();
    silent.respond(unheard, status);
    // What it has said has been taken when this is answered.
    await register(silent, contactOf(silent));
    other.respond(invite, '486 Busy Here');
    await other.until(/^ACK/);
    await clock.advance(4 * DEVICE_SILENT_MS);
    expect(signals.types()).not.toContain('leg.ended');
    leg.hangup();
    silent.respond(await silent.until(/^CANCEL/), '200 OK');
  });
});

describe('a phone that has started anew', () => {
  const OLD = '<sip:alice@192.168.1.10:5060>';

  /** A phone in a call, which registers once more after it, with another Call-ID. */
  async function restarted(clock: VirtualClock) {
    const { carrier, phone } = await open({ clock });
    const alice = await phone('udp');
    await register(alice, OLD);
    const { leg, signals, invite } = await answered(carrier, alice, OLD);
    await register(alice, OLD);
    return { alice, leg, signals, invite };
  }

  test('is asked whether it knows its call when two seconds pass without audio, and its call ends where it does not', async () => {
    const clock = new VirtualClock();
    const { alice, signals, invite } = await restarted(clock);
    await clock.advance(DEVICE_RESTARTED_MS - 1);
    expect(alice.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
    await clock.advance(1);
    const asked = await alice.until(/^INVITE/);
    expect(field(asked, 'Call-ID')).toBe(field(invite, 'Call-ID'));
    alice.respond(asked, '481 Call/Transaction Does Not Exist');
    expect(await endOf(signals)).toMatchObject({ cause: 'timeout', description: 'The far end no longer knows the call' });
  });

  test('keeps its call where it knows it, and is not asked while it only renews its registration', async () => {
    const clock = new VirtualClock();
    const { alice, leg } = await restarted(clock);
    await clock.advance(DEVICE_RESTARTED_MS);
    const goesOn = async () => {
      alice.respond(await alice.until(/^INVITE/), '200 OK', { body: sdp(), fields: `Contact: ${OLD}\r\n` });
      await alice.until(/^ACK/);
    };
    await goesOn();
    const renew = async (cseq: number) => {
      const from = '<sip:alice@x>;tag=renewed';
      const parts = { id: 'renewed', from, to: '<sip:alice@x>', contact: OLD, cseq };
      alice.send(alice.request('REGISTER', parts));
      const challenge = await alice.until(/^SIP\/2.0 401/);
      const fields = answerTo(challenge, 'REGISTER', 'sip:+15550002@127.0.0.1', 'alice');
      alice.send(alice.request('REGISTER', { ...parts, cseq: cseq + 1, fields }));
      await alice.until(/^SIP\/2.0 200[\s\S]* REGISTER\r/);
    };
    await renew(1);
    await clock.advance(DEVICE_RESTARTED_MS);
    await goesOn();
    await renew(3);
    await clock.advance(10 * DEVICE_RESTARTED_MS);
    expect(alice.heard.filter((message) => message.startsWith('INVITE'))).toEqual([]);
    leg.hangup();
    alice.respond(await alice.until(/^BYE/), '200 OK');
  });
});
