/** What a dial to a device carries, and how it ends where something stands in its way. */
import { afterEach, describe, expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCertificate } from '../support/certificate.ts';
import { Alice } from './device-directory.ts';
import { asUser } from './device-peer.ts';
import { type Signals, TestCarrier, trunkTo } from './harness.ts';
import { bodyOf, field, RawPeer, sdp } from './raw-peer.ts';

const ELSEWHERE = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function open(more: Parameters<typeof TestCarrier.open>[1] = {}) {
  const devices = new Alice();
  const carrier = await TestCarrier.open([ELSEWHERE], { devices, ...more });
  closers.push(() => carrier.close());
  return { carrier, devices };
}

/** Registers a phone of alice at its place, over UDP from a host or over TLS. */
async function phoneOf(carrier: TestCarrier, host: string | 'tls') {
  const phone = host === 'tls' ? await RawPeer.tls(carrier.port('tls')) : await RawPeer.udp(carrier.port('udp'), host);
  closers.push(() => phone.close());
  const { response } = await asUser(phone, 'REGISTER', 'alice', { contact: `<sip:alice@${phone.place}>` });
  expect(response).toMatch(/^SIP\/2.0 200/);
  return phone;
}

async function endOf(signals: Signals) {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
}

describe('a dial to a device', () => {
  test('is refused while the platform drains', async () => {
    const { carrier } = await open();
    const phone = await phoneOf(carrier, '127.0.0.7');
    carrier.carrier.drain();
    await expect(carrier.dial({ to: 'sip:alice' })).rejects.toThrow('draining');
    carrier.carrier.drain(false);
    const { leg } = await carrier.dial({ to: 'sip:alice' });
    phone.respond(await phone.until(/^INVITE/), '180 Ringing');
    leg.hangup();
    phone.respond(await phone.until(/^CANCEL/), '200 OK');
  });

  test('carries the name and the header fields that it was given, and tells its Call-ID', async () => {
    const { carrier } = await open();
    const phone = await phoneOf(carrier, '127.0.0.7');
    const placed: string[] = [];
    const { signals } = await carrier.dial({
      ...{ to: 'sip:alice', displayName: 'Front desk', sipHeaders: { 'X-Ticket': '42' } },
      onPlaced: (callId) => placed.push(callId),
    });
    const invite = await phone.until(/^INVITE/);
    expect(field(invite, 'From')).toStartWith('"Front desk" <sip:+15550002@');
    expect(field(invite, 'X-Ticket')).toBe('42');
    expect(placed).toEqual([field(invite, 'Call-ID')]);
    phone.respond(invite, '486 Busy Here');
    await endOf(signals);
  });

  test('ends as failed where the contacts cannot be read, and rings nobody whose registration is over', async () => {
    const { carrier, devices } = await open();
    const phone = await phoneOf(carrier, '127.0.0.7');
    devices.bound = devices.bound.map((binding) => ({ ...binding, expiresAt: Date.now() }));
    const over = await carrier.dial({ to: 'sip:alice' });
    expect(await endOf(over.signals)).toMatchObject({ cause: 'not_answered', description: 'The device is not registered' });
    devices.bindings = () => Promise.reject(new Error('away'));
    const unread = await carrier.dial({ to: 'sip:alice' });
    expect(await endOf(unread.signals)).toMatchObject({ cause: 'failed', by: 'system' });
    expect(phone.heard).toEqual([]);
  });

  test('that is hung up while its contacts are read, or its ports are opened, rings nobody and keeps no port', async () => {
    const { carrier, devices } = await open();
    const phone = await phoneOf(carrier, '127.0.0.7');
    const held = Promise.withResolvers<void>();
    const { bindings } = devices;
    devices.bindings = () => held.promise.then(bindings);
    const first = await carrier.dial({ to: 'sip:alice' });
    first.leg.hangup();
    held.resolve();
    expect(await endOf(first.signals)).toMatchObject({ cause: 'cancelled' });
    const opening = Promise.withResolvers<void>();
    const { openRtpLeg } = carrier.media;
    carrier.media.openRtpLeg = async (...order) => {
      opening.resolve();
      return openRtpLeg.apply(carrier.media, order);
    };
    const second = await carrier.dial({ to: 'sip:alice' });
    await opening.promise;
    second.leg.hangup();
    expect(await endOf(second.signals)).toMatchObject({ cause: 'cancelled' });
    // What was sent before it would have come.
    await asUser(phone, 'REGISTER', 'alice', { contact: `<sip:alice@${phone.place}>` });
    expect(phone.heard).toEqual([]);
    expect([carrier.media.opened, carrier.media.open.size]).toEqual([1, 0]);
  });

  test('ends as congested where no ports are free by then', async () => {
    const { carrier } = await open();
    await phoneOf(carrier, '127.0.0.7');
    carrier.media.openRtpLeg = async () => undefined;
    const { signals } = await carrier.dial({ to: 'sip:alice' });
    expect(await endOf(signals)).toMatchObject({ cause: 'carrier_congested', description: 'No media ports are free' });
  });

  test('is hung up on where the only device answers with audio that cannot be used', async () => {
    const { carrier } = await open();
    const phone = await phoneOf(carrier, '127.0.0.7');
    const { signals } = await carrier.dial({ to: 'sip:alice' });
    phone.respond(await phone.until(/^INVITE/), '200 OK', { body: sdp('m=audio 0 RTP/AVP 98') });
    phone.respond(await phone.until(/^BYE/), '200 OK');
    expect(await endOf(signals)).toMatchObject({ cause: 'failed', by: 'system' });
    await carrier.idle();
  });

  test('refuses an UPDATE of a device that rings, which is none of its audio yet', async () => {
    const { carrier } = await open();
    const phone = await phoneOf(carrier, '127.0.0.7');
    const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
    const invite = await phone.until(/^INVITE/);
    phone.respond(invite, '183 Session Progress', { fields: 'Require: 100rel\r\nRSeq: 1\r\n', body: sdp() });
    phone.respond(await phone.until(/^PRACK/), '200 OK');
    const dialog = { id: field(invite, 'Call-ID'), from: `${field(invite, 'To')};tag=raw`, to: field(invite, 'From') };
    phone.send(phone.request('UPDATE', { ...dialog, cseq: 7, body: sdp() }));
    expect(await phone.until(/^SIP\/2.0 [\s\S]*CSeq: 7 UPDATE/)).toStartWith('SIP/2.0 488');
    leg.hangup();
    phone.respond(await phone.until(/^CANCEL/), '200 OK');
    phone.respond(invite, '487 Request Terminated');
    expect(await endOf(signals)).toMatchObject({ cause: 'cancelled' });
    await carrier.idle();
  });
});

describe('a dial to a device over TLS', () => {
  async function withTls() {
    const directory = mkdtempSync(join(tmpdir(), 'sidetone-dials-'));
    closers.push(() => rmSync(directory, { recursive: true }));
    const tls = { certFile: join(directory, 'cert.pem'), keyFile: join(directory, 'key.pem') };
    makeCertificate(tls, { name: 'localhost', days: 1 });
    const listen = (['udp', 'tls'] as const).map((transport) => ({ transport, host: '127.0.0.1', port: 0 }));
    return open({ listen, tls });
  }

  test.each(['488 Not Acceptable Here', '415 Unsupported Media Type'])(
    'offers it encrypted audio, and clear audio where that is refused by %s; another is offered clear audio at once',
    async (refusal) => {
      const { carrier } = await withTls();
      const desk = await phoneOf(carrier, 'tls');
      const mobile = await phoneOf(carrier, '127.0.0.8');
      const { leg, signals } = await carrier.dial({ to: 'sip:alice' });
      const [secure, clear] = await Promise.all([desk.until(/^INVITE/), mobile.until(/^INVITE/)]);
      expect([secure, clear].map((invite) => [bodyOf(invite).includes('RTP/SAVP '), /^a=crypto:/m.test(invite)])).toEqual([
        [true, true],
        [false, false],
      ]);
      mobile.respond(clear, '180 Ringing');
      await signals.until('leg.ringing');
      desk.respond(secure, refusal);
      const again = await desk.until(/^INVITE/);
      expect(bodyOf(again)).not.toContain('SAVP');
      desk.respond(again, '200 OK', { body: sdp() });
      await signals.until('leg.answered');
      // The audio may come from either phone's address.
      expect(carrier.media.negotiated.at(-1)?.learnFrom).toEqual(expect.arrayContaining(['127.0.0.1', '127.0.0.8']));
      mobile.respond(await mobile.until(/^CANCEL/), '200 OK');
      mobile.respond(clear, '487 Request Terminated');
      leg.hangup();
      desk.respond(await desk.until(/^BYE/), '200 OK');
      await carrier.idle();
    },
  );
});
