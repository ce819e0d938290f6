/** Keys that come by INFO and in the audio. */
import { expect, test } from 'bun:test';
import { TwinKeys } from '../../src/carrier/leg/twin-keys.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

/** Plays a phone that sends keys in the ways given; returns what is told of them. */
function told(keys: readonly (readonly ['info' | 'audio', digit: string, at: number, durationMs?: number])[]): string[] {
  const twins = new TwinKeys();
  return keys.flatMap(([way, digit, at, durationMs = 100]) => {
    const isTold = way === 'info' ? twins.isToldByAudio(digit, at) : twins.isToldByInfo(digit, durationMs, at);
    return isTold ? [] : [`${digit} ${way}`];
  });
}

test('a key that comes both ways is told once, whichever comes first and however long it is held', () => {
  expect(
    told([
      ['info', '1', 0],
      ['audio', '1', 100],
      ['info', '1', 300],
      ['audio', '1', 400],
    ]),
  ).toEqual(['1 info', '1 info']);
  expect(
    told([
      ['audio', '1', 100],
      ['info', '1', 110],
      ['audio', '1', 300],
      ['info', '1', 310],
    ]),
  ).toEqual(['1 audio', '1 audio']);
  expect(
    told([
      ['info', '5', 0],
      ['audio', '5', 4_000, 3_900],
    ]),
  ).toEqual(['5 info']);
});

test('keys that come one way, other keys, and the same key later are all told', () => {
  expect(
    told([
      ['info', '1', 0],
      ['info', '1', 100],
      ['info', '1', 200],
    ]),
  ).toHaveLength(3);
  expect(
    told([
      ['audio', '1', 0],
      ['audio', '1', 200],
    ]),
  ).toHaveLength(2);
  expect(
    told([
      ['info', '1', 0],
      ['audio', '2', 100],
    ]),
  ).toHaveLength(2);
  expect(
    told([
      ['info', '1', 0],
      ['audio', '1', 5_000],
    ]),
  ).toHaveLength(2);
  const many = Array.from({ length: 50 }, (_, at) => ['info', '1', at] as const);
  expect(told(many)).toHaveLength(50);
});

test('a press in the audio is none where its key was told by INFO just before, and is not used up by being looked at', () => {
  const twins = new TwinKeys();
  twins.isToldByAudio('1', 0);
  expect([twins.isPressToldByInfo('1', 600), twins.isPressToldByInfo('1', 700)]).toEqual([true, true]);
  expect([twins.isPressToldByInfo('2', 600), twins.isPressToldByInfo('1', 701)]).toEqual([false, false]);
  expect(twins.isToldByInfo('1', 600, 1_200)).toBe(true);
  expect(twins.isPressToldByInfo('1', 650)).toBe(false);
});

test('a leg tells no press of a key that came by INFO before, and that a key is up whose digit is told by INFO', async () => {
  const carrier = await TestCarrier.open([]);
  const peer = await RawPeer.udp(carrier.port('udp'));
  carrier.trunks.push(trunkTo(`sip:${peer.place}`, { inboundCidrs: ['127.0.0.1/32'] }));
  carrier.carrier.trunksChanged();
  const { signals, leg } = await carrier.dial({ to: '+972501112222', from: '+97237654321' });
  const invite = await peer.until(/^INVITE /);
  peer.respond(invite, '200 OK', { body: sdp('m=audio 4000 RTP/AVP 0 101') });
  await signals.until('leg.answered');
  const info = async (key: string, cseq: number) => {
    const dialog = { id: field(invite, 'Call-ID'), from: `${field(invite, 'To')};tag=raw`, to: field(invite, 'From') };
    peer.send(peer.request('INFO', { ...dialog, cseq, type: 'application/dtmf', body: key }));
    await peer.until(/^SIP\/2.0 200/);
  };
  const down = (digit: string) => carrier.media.notify({ type: 'key.down', digit, method: 'rfc4733' });
  const up = (digit: string) => carrier.media.notify({ type: 'digit', digit, durationMs: 100, method: 'rfc4733' });
  await info('1', 1);
  down('1');
  up('1');
  down('2');
  await info('2', 2);
  up('2');
  down('3');
  up('3');
  const told = signals.all.slice(1).map((signal) => {
    const { type, ...key } = signal.type === 'leg.media' ? signal.notice : signal;
    return 'digit' in key ? `${type} ${key.digit}` : type;
  });
  expect(told).toEqual(['leg.digit 1', 'key.up', 'key.down 2', 'leg.digit 2', 'key.up', 'key.down 3', 'digit 3']);
  leg.hangup();
  peer.respond(await peer.until(/^BYE /), '200 OK');
  peer.close();
  await carrier.close();
}, 30_000);

test('of a flood of keys by INFO a leg tells 256 at once and 25 a second, and answers each', async () => {
  const clock = new VirtualClock();
  const carrier = await TestCarrier.open([], { clock });
  const peer = await RawPeer.tcp(carrier.port('tcp'));
  carrier.trunks.push(trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.1/32'] }));
  carrier.carrier.trunksChanged();
  carrier.onIncoming = ({ call }) => call.leg.answer();
  peer.send(peer.request('INVITE', { id: 'flood', body: sdp() }));
  const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
  peer.send(peer.request('ACK', { id: 'flood', to }));
  const signals = carrier.incoming[0]?.signals;
  await signals?.until('leg.answered');
  const told = () => signals?.all.filter(({ type }) => type === 'leg.digit').length;
  let cseq = 1;
  const flood = async (keys: number) => {
    for (let key = 0; key < keys; key++)
      peer.send(peer.request('INFO', { id: 'flood', to, cseq: ++cseq, type: 'application/dtmf', body: '1' }));
    for (let key = 0; key < keys; key++) await peer.until(/^SIP\/2.0 200/);
    return told();
  };
  expect(await flood(300)).toBe(256);
  await clock.advance(2_000);
  expect(await flood(100)).toBe(256 + 50);
  carrier.incoming[0]?.call.leg.hangup();
  peer.respond(await peer.until(/^BYE /), '200 OK');
  await carrier.close();
  peer.close();
});
