/** Pings of devices over UDP, on a clock of the test's own. */
import { afterEach, expect, test } from 'bun:test';
import { DevicePings } from '../../src/carrier/device/device-pings.ts';
import { DEVICE_PING_MS, DEVICE_PINGS_A_TURN, SIP_T1_MS } from '../../src/limits.ts';
import type { Binding } from '../../src/sip/registrar.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Alice } from './device-directory.ts';
import { asUser } from './device-peer.ts';
import { TestCarrier } from './harness.ts';
import { RawPeer } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const KEY = 'sip:alice@192.168.1.4';

function opened() {
  const clock = new VirtualClock();
  const asked: { readonly ping: string; readonly uri: string; readonly port: number }[] = [];
  const pings = new DevicePings(clock, (ping, uri, { port }) => void asked.push({ ping, uri, port }));
  const contact = { key: KEY, expiresAt: clock.now() + 3_600_000 };
  const bound = (more: Partial<Binding> = {}): Binding => ({
    ...contact,
    uri: KEY,
    transport: 'udp',
    host: '192.0.2.7',
    port: 5060,
    callId: 'call',
    cseq: 1,
    userAgent: '',
    instance: '',
    regId: 0,
    path: '',
    ...more,
  });
  /** The ping that was sent last. */
  const last = () => asked.at(-1)?.ping ?? '';
  return { clock, pings, asked, contact, bound, last };
}

test('A device over UDP is pinged every 25 s at its place until its contact expires, and one over TLS is not', async () => {
  const { clock, pings, asked, bound, last } = opened();
  pings.keep('alice', bound({ expiresAt: clock.now() + 60_000 }));
  pings.keep('bob', bound({ transport: 'tls' }));
  for (let round = 0; round < 5; round++) {
    await clock.advance(DEVICE_PING_MS);
    pings.onProbed(last(), 200);
  }
  expect(asked.map(({ uri, port }) => [uri, port])).toEqual([
    [KEY, 5060],
    [KEY, 5060],
  ]);
  // Nothing is kept of it, nor is there a round to come.
  expect(clock.armed).toBe(0);
});

test('A device that registers over TCP after UDP is pinged no more, nor silent for a ping that it did not answer', async () => {
  const { clock, pings, asked, bound, last, contact } = opened();
  pings.keep('alice', bound());
  for (const status of [200, 0]) {
    await clock.advance(DEVICE_PING_MS);
    pings.onProbed(last(), status);
  }
  expect(pings.isSilent('alice', contact)).toBe(true);
  pings.keep('alice', bound({ transport: 'tcp' }));
  expect(pings.isSilent('alice', contact)).toBe(false);
  await clock.advance(2 * DEVICE_PING_MS);
  expect(asked).toHaveLength(2);
});

test('A device that answered and does not any more is silent until it answers or registers again', async () => {
  const { clock, pings, asked, bound, last, contact } = opened();
  pings.keep('alice', bound());
  const silent = () => pings.isSilent('alice', contact);
  const hear = async (isAnswered: boolean) => {
    await clock.advance(DEVICE_PING_MS);
    pings.onProbed(last(), isAnswered ? 481 : 0);
    return silent();
  };
  // One that never answers a ping may be there all the same.
  expect([await hear(false), await hear(true), await hear(false), await hear(true)]).toEqual([false, false, true, false]);
  expect(await hear(false)).toBe(true);
  pings.keep('alice', bound());
  expect(silent()).toBe(false);
  expect(await hear(false)).toBe(true);
  pings.forget('alice', KEY);
  expect(silent()).toBe(false);
  await clock.advance(10 * DEVICE_PING_MS);
  expect(asked).toHaveLength(6);
});

test('A ping that is lost says nothing about the place where the device has registered meanwhile', async () => {
  const { clock, pings, asked, bound, last, contact } = opened();
  pings.keep('alice', bound());
  await clock.advance(DEVICE_PING_MS);
  pings.onProbed(last(), 200);
  await clock.advance(DEVICE_PING_MS);
  const lost = last();
  pings.keep('alice', bound({ port: 40_000 }));
  pings.onProbed(lost, 0);
  expect(pings.isSilent('alice', contact)).toBe(false);
  await clock.advance(DEVICE_PING_MS);
  expect(asked.at(-1)?.port).toBe(40_000);
  // It is not asked twice at once.
  await clock.advance(DEVICE_PING_MS);
  expect(asked).toHaveLength(3);
  pings.onProbed('1 somebody else', 0);
  pings.onProbed(last(), 0);
  expect(pings.isSilent('alice', contact)).toBe(true);
});

test('Many devices are pinged a part at a time, and none after the end', async () => {
  const { clock, pings, asked, bound } = opened();
  const count = 2 * DEVICE_PINGS_A_TURN + 1;
  for (let at = 0; at < count; at++) pings.keep(`user${at}`, bound());
  await clock.advance(DEVICE_PING_MS);
  expect(asked).toHaveLength(DEVICE_PINGS_A_TURN);
  await clock.advance(1);
  expect(asked).toHaveLength(2 * DEVICE_PINGS_A_TURN);
  await clock.advance(1);
  expect(asked).toHaveLength(count);
  pings.close();
  await clock.advance(10 * DEVICE_PING_MS);
  expect(asked).toHaveLength(count);
});

test('A proxy that says that the phone behind it is not there answers for no phone', async () => {
  const { clock, pings, bound, last, contact } = opened();
  pings.keep('alice', bound({ path: '<sip:192.0.2.7;lr>' }));
  pings.keep('bob', bound());
  const hear = async (status: number) => {
    await clock.advance(DEVICE_PING_MS);
    const ping = last();
    pings.onProbed(ping, status);
    pings.onProbed(
      ping.replace(/^[0-9]+ bob/, (name) => `${Number.parseInt(name, 10) - 1} alice`),
      status,
    );
    return [pings.isSilent('alice', contact), pings.isSilent('bob', contact)];
  };
  expect(await hear(200)).toEqual([false, false]);
  for (const status of [408, 430, 477]) {
    expect(await hear(status)).toEqual([true, false]);
    expect(await hear(404)).toEqual([false, false]);
  }
});

test('A device that is silent where it was, and has registered at another node since, is rung where that node had it', async () => {
  const clock = new VirtualClock();
  const devices = new Alice();
  const carrier = await TestCarrier.open([], { clock, devices });
  closers.push(() => carrier.close());
  const peer = async (host: string) => {
    const made = await RawPeer.udp(carrier.port('udp'), host);
    closers.push(() => made.close());
    return made;
  };
  const [before, since] = [await peer('127.0.0.7'), await peer('127.0.0.8')];
  const contact = '<sip:alice@192.168.1.4:5060>';
  await asUser(before, 'REGISTER', 'alice', { contact });
  await clock.advance(DEVICE_PING_MS);
  before.respond(await before.until(/^OPTIONS/), '200 OK');
  // The answer to the ping has been worked on when this is.
  await asUser(before, 'INVITE', 'alice', { contact, body: 'x' });
  await clock.advance(DEVICE_PING_MS + 64 * SIP_T1_MS);
  const first = await carrier.dial({ to: 'sip:alice' });
  expect(await first.signals.until('leg.ended')).toMatchObject({ end: { description: 'The device did not respond' } });
  devices.bound = devices.bound.map((binding) => ({
    ...binding,
    ...{ host: since.host, port: since.port, expiresAt: binding.expiresAt + DEVICE_PING_MS },
  }));
  const second = await carrier.dial({ to: 'sip:alice' });
  since.respond(await since.until(/^INVITE/), '486 Busy Here');
  expect(await second.signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
});
