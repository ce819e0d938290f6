/**
 * TCP connections of devices, trunks and strangers: which ones are kept, and for how long, on a clock of the test's
 * own.
 */
import { afterEach, describe, expect, test } from 'bun:test';
import { InboundConnections } from '../../src/carrier/socket/inbound-connections.ts';
import {
  SIP_CONNECTION_IDLE_MS,
  SIP_CONNECTION_IDLE_PERIODS_MAX,
  SIP_FIRST_MESSAGE_MS,
  SIP_INBOUND_CONNECTIONS_OF_STRANGERS,
  SIP_REGISTER_STREAM_MAX_SEC,
} from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { Alice } from './device-directory.ts';
import { asUser } from './device-peer.ts';
import { Signals, TestCarrier, trunkTo } from './harness.ts';
import { RawPeer } from './raw-peer.ts';

const HOST = '127.0.0.7';
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function open() {
  const clock = new VirtualClock();
  const alice = new Alice();
  const elsewhere = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
  const carrier = await TestCarrier.open([elsewhere], { clock, devices: alice });
  closers.push(() => carrier.close());
  const peer = await RawPeer.tcp(carrier.port('tcp'), HOST);
  closers.push(() => peer.close());
  return { clock, carrier, peer, alice };
}

/** Registers alice over a connection for so many seconds. */
async function register(peer: RawPeer, seconds: number): Promise<void> {
  const contact = `<sip:alice@${HOST}:${peer.port};transport=tcp>;expires=${seconds}`;
  expect((await asUser(peer, 'REGISTER', 'alice', { contact })).response).toMatch(/^SIP\/2.0 200/);
}

/** Rings alice, who must hear the INVITE on that connection, and refuses. */
async function ring(carrier: TestCarrier, peer: RawPeer): Promise<void> {
  const signals = new Signals();
  const result = await carrier.carrier.dial({ appUuid: 'app', to: 'sip:alice', from: '+15550002', listener: signals.listener });
  if ('unavailable' in result) throw new Error(result.unavailable);
  result.leg.start();
  peer.respond(await peer.until(/^INVITE/), '486 Busy Here');
  await signals.until('leg.ended');
}

/** Waits until the far end has closed the connection. */
async function closed(peer: RawPeer): Promise<void> {
  for (let looks = 0; !peer.closed; looks++) {
    if (looks > 1_000) throw new Error('the connection is still up');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Asks the far end for an answer over that connection, which only one that is up can give. */
async function isUp(peer: RawPeer): Promise<void> {
  peer.send(peer.request('OPTIONS', { id: 'up' }));
  await peer.until(/^SIP\/2.0 [2-6]/);
}

describe('the TCP connection of a device', () => {
  test('is rung long after its REGISTER, which came when its address was unknown', async () => {
    const { clock, carrier, peer } = await open();
    await register(peer, 3_600);
    await clock.advance(2 * SIP_FIRST_MESSAGE_MS);
    await ring(carrier, peer);
  });

  test('is kept and pinged while it is bound, and closed some idle periods after', async () => {
    const { clock, carrier, peer } = await open();
    await register(peer, 3_600);
    const idle = SIP_CONNECTION_IDLE_MS * SIP_CONNECTION_IDLE_PERIODS_MAX;
    for (let passed = 0; passed < idle + 2 * SIP_CONNECTION_IDLE_MS; passed += SIP_CONNECTION_IDLE_MS) {
      await clock.advance(SIP_CONNECTION_IDLE_MS);
      await peer.until(/^\r\n\r\n$/);
    }
    await ring(carrier, peer);
    await clock.advance(SIP_REGISTER_STREAM_MAX_SEC * 1000 + idle);
    await closed(peer);
  });

  test('takes the bindings over it with it, and no other', async () => {
    const { carrier, peer, alice } = await open();
    const later = await RawPeer.tcp(carrier.port('tcp'), HOST);
    closers.push(() => later.close());
    await register(peer, 3_600);
    await register(later, 3_600);
    expect(alice.bound).toHaveLength(2);
    peer.close();
    for (let looks = 0; alice.bound.length > 1 && looks < 400; looks++) await Bun.sleep(5);
    expect(alice.bound.map(({ port }) => port)).toEqual([later.port]);
    await ring(carrier, later);
    await carrier.close();
    await Bun.sleep(20);
    expect(alice.bound).toHaveLength(1);
  });

  test('takes no binding with it that another node has got from the same address and port since', async () => {
    const { carrier, peer, alice } = await open();
    await register(peer, 3_600);
    alice.holder = 'elsewhere';
    let changes = 0;
    const { change } = alice;
    alice.change = (...given) => change(...given).finally(() => changes++);
    peer.close();
    for (let looks = 0; changes === 0 && looks < 1_000; looks++) await new Promise((resolve) => setTimeout(resolve, 5));
    expect([changes, alice.bound.map(({ port }) => port)]).toEqual([1, [peer.port]]);
    await carrier.close();
  });

  test('is kept as long as the last of its bindings lasts, also where the address was known before', async () => {
    const { clock, carrier, peer } = await open();
    await register(peer, 3_600);
    const later = await RawPeer.tcp(carrier.port('tcp'), HOST);
    closers.push(() => later.close());
    await register(later, 3_600);
    await register(later, 60);
    await clock.advance(SIP_CONNECTION_IDLE_MS * (SIP_CONNECTION_IDLE_PERIODS_MAX + 2));
    await isUp(later);
    await isUp(peer);
  });
});

describe('the TCP connection of a stranger', () => {
  test('is closed when it says nothing more', async () => {
    const { clock, peer } = await open();
    await isUp(peer);
    await clock.advance(SIP_FIRST_MESSAGE_MS);
    await closed(peer);
  });

  test('whose registration is refused is closed all the same', async () => {
    const { clock, peer } = await open();
    expect((await asUser(peer, 'REGISTER', 'alice', { password: 'guess' })).response).toMatch(/^SIP\/2.0 401/);
    await clock.advance(SIP_FIRST_MESSAGE_MS);
    await closed(peer);
  });

  test('is closed when it sends more than a hundred messages in ten seconds, of which the rest is not looked at', async () => {
    const { clock, carrier, peer } = await open();
    const stray = 'SIP/2.0 200 OK\r\nVia: SIP/2.0/TCP h;branch=z9hG4bKx\r\nl: 0\r\n\r\n';
    const keepalive = '\r\n\r\n';
    peer.send((stray + keepalive).repeat(48));
    await isUp(peer);
    await clock.advance(SIP_FIRST_MESSAGE_MS - 1);
    await isUp(peer);
    await clock.advance(SIP_FIRST_MESSAGE_MS - 1);
    peer.send((stray + keepalive).repeat(48));
    await isUp(peer);
    for (const flood of [stray, keepalive + stray]) {
      const flooding = await RawPeer.tcp(carrier.port('tcp'), HOST);
      closers.push(() => flooding.close());
      flooding.send(flood.repeat(101));
      await closed(flooding);
    }
    peer.send((stray + keepalive).repeat(4));
    await closed(peer);
  });

  test('stays when its address has become that of a trunk', async () => {
    const { clock, carrier, peer } = await open();
    await isUp(peer);
    carrier.trunks = [trunkTo('sip:127.0.0.1:9', { inboundCidrs: [`${HOST}/32`] })];
    carrier.carrier.trunksChanged();
    await clock.advance(2 * SIP_FIRST_MESSAGE_MS);
    await isUp(peer);
    await clock.advance(SIP_CONNECTION_IDLE_MS * (SIP_CONNECTION_IDLE_PERIODS_MAX + 1));
    await closed(peer);
  });
});

test('A connection that is no stranger’s any more gives its place among them back, once', () => {
  const connections = new InboundConnections();
  const address = (i: number) => `10.0.${i >> 8}.${i & 255}`;
  for (let i = 0; i < SIP_INBOUND_CONNECTIONS_OF_STRANGERS; i++) connections.opened(address(i), false);
  expect(connections.admits('192.0.2.1', false)).toBe(false);
  connections.becameKnown(address(0));
  expect(connections.admits('192.0.2.1', false)).toBe(true);
  connections.opened('192.0.2.1', false);
  connections.closed(address(0), true);
  expect(connections.admits('192.0.2.2', false)).toBe(false);
  connections.closed(address(1), false);
  expect(connections.admits('192.0.2.2', false)).toBe(true);
});
