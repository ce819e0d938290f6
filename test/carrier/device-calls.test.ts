/** The calls that a device begins: how many are taken, and that others are not refused for it. */
import { afterEach, expect, test } from 'bun:test';
import { DEVICE_CALLS } from '../../src/limits.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { SeveralUsers } from './device-directory.ts';
import { answerTo } from './device-peer.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

test('a device that begins calls without end has so many a second, and another device is not refused for it', async () => {
  const clock = new VirtualClock();
  const devices = new SeveralUsers('alice', 'bob');
  const elsewhere = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
  const carrier = await TestCarrier.open([elsewhere], { devices, clock });
  const alice = await RawPeer.udp(carrier.port('udp'), '127.0.0.7');
  const bob = await RawPeer.udp(carrier.port('udp'), '127.0.0.8');
  closers.push(
    () => carrier.close(),
    () => alice.close(),
    () => bob.close(),
  );
  const outcomes: string[] = [];
  /** A user that was challenged once and answers that for each call. */
  const callerAt = async (peer: RawPeer, username: string) => {
    const begin = (id: string, fields = '') =>
      peer.send(peer.request('INVITE', { id, from: `<sip:${username}@x>;tag=t`, number: '100', fields, body: sdp() }));
    begin(username);
    const challenge = await peer.until(/^SIP\/2.0 401/);
    return async (number: number) => {
      const id = `${username}${number}`;
      begin(id, answerTo(challenge, 'INVITE', 'sip:100@127.0.0.1', username, undefined, number));
      const answer = await peer.until(new RegExp(`^SIP/2.0 (100|503)[\\s\\S]*Call-ID: ${id}\r`));
      outcomes.push(`${answer.slice(8, 11)} ${field(answer, 'Retry-After')}`);
    };
  };
  const call = await callerAt(alice, 'alice');
  for (let number = 1; number <= DEVICE_CALLS.capacity + 2; number++) await call(number);
  expect(outcomes.splice(0)).toEqual([...new Array(DEVICE_CALLS.capacity).fill('100 '), '503 1', '503 1']);
  expect(carrier.incoming).toHaveLength(DEVICE_CALLS.capacity);
  expect(carrier.carrier.refusals()).toMatchObject([{ status: 503, count: 2, source: '127.0.0.7' }]);
  await (await callerAt(bob, 'bob'))(1);
  expect(outcomes.splice(0)).toEqual(['100 ']);
  await clock.advance(1_000);
  for (let number = 1; number <= DEVICE_CALLS.refill + 1; number++) await call(100 + number);
  expect(outcomes).toEqual([...new Array(DEVICE_CALLS.refill).fill('100 '), '503 1']);
});

test.each([
  ['a codec of ours', 'm=audio 6000 RTP/AVP 18', 488, /device/, /PCMU, PCMA or G722 .*telephone/],
  ['audio that is not encrypted, over UDP', 'm=audio 6000 RTP/SAVP 0', 488, /encrypted/, /telephone .*TLS/],
  ['a free port of ours', 'm=audio 6000 RTP/AVP 0', 503, /^Every RTP port/, /^Widen RTP_PORTS$/],
] as const)(
  'a device that calls without %s is refused, and no setting of a trunk is named',
  async (_, media, status, reason, remedy) => {
    const elsewhere = trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.200/32'] });
    const carrier = await TestCarrier.open([elsewhere], { devices: new SeveralUsers('alice') });
    const alice = await RawPeer.udp(carrier.port('udp'), '127.0.0.7');
    closers.push(
      () => carrier.close(),
      () => alice.close(),
    );
    if (status === 503) carrier.media.portsFree = 0;
    const begin = (fields = '') =>
      alice.send(alice.request('INVITE', { from: '<sip:alice@x>;tag=t', number: '100', fields, body: sdp(media) }));
    begin();
    begin(answerTo(await alice.until(/^SIP\/2.0 401/), 'INVITE', 'sip:100@127.0.0.1', 'alice', undefined, 1));
    expect(await alice.until(/^SIP\/2.0 (4(?!01)|5)/)).toStartWith(`SIP/2.0 ${status}`);
    const [told] = carrier.carrier.refusals();
    expect(told).toMatchObject({ status, reason: expect.stringMatching(reason), remedy: expect.stringMatching(remedy) });
    expect(`${told?.reason} ${told?.remedy}`).not.toMatch(/trunk|max_channels/);
  },
);
