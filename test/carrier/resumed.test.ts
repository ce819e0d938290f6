/** A call that was answered elsewhere and goes on here, at a far end written by hand. */
import { afterEach, expect, test } from 'bun:test';
import { type Incoming, TestCarrier } from './harness.ts';
import { AUDIO, field, RawPeer, sdp } from './raw-peer.ts';

const open: { close: () => void | Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

/** A call that one carrier has answered and another goes on with; `peer` is its far end as the other one hears it. */
async function handedOver(prepare: (after: TestCarrier) => void = () => {}, body = sdp()) {
  const before = await TestCarrier.open();
  const after = await TestCarrier.open();
  const caller = await RawPeer.udp(before.port('udp'));
  const peer = await RawPeer.udp(after.port('udp'));
  open.push(caller, peer, before, after);
  const taken = new Promise<Incoming>((resolve) => {
    before.onIncoming = (incoming) => {
      incoming.call.leg.answer();
      resolve(incoming);
    };
  });
  const invite = { id: 'up', body, contact: `<sip:x@${peer.place}>` };
  caller.send(caller.request('INVITE', invite));
  const incoming = await taken;
  const to = field(await caller.until(/^SIP\/2.0 200/), 'To');
  caller.send(caller.request('ACK', { ...invite, to, body: '' }));
  await incoming.signals.until('leg.answered');
  const { handOver } = incoming.call.leg;
  const snapshot = handOver?.kept();
  if (handOver === undefined || snapshot === undefined) throw new Error('the call cannot be handed over');
  handOver.release();
  prepare(after);
  return { peer, after, resumed: after.carrier.resume?.(snapshot, 1_000, 8_000) };
}

test('a far end that follows to this node and is answered goes on here', async () => {
  const { peer, after, resumed } = await handedOver();
  peer.respond(await peer.until(/^INVITE sip:x@/), '200 OK', { body: sdp() });
  await peer.until(/^ACK /);
  expect(await resumed).toHaveProperty('leg');
  expect(after.media.open.size).toBe(1);
  expect(after.carrier.load().dialogs).toBe(1);
});

test('a far end is offered every m-line of before in its place (RFC 3264 §8)', async () => {
  const { peer, resumed } = await handedOver(undefined, sdp('m=video 6002 RTP/AVP 97', 'a=rtpmap:97 H264/90000', AUDIO));
  const offer = await peer.until(/^INVITE sip:x@/);
  const [video, audio, ...more] = [...offer.matchAll(/^m=([^\r]*)/gm)].map(([, line]) => line);
  expect([video, more]).toEqual(['video 0 RTP/AVP 97', []]);
  expect(audio).toStartWith('audio ');
  peer.respond(offer, '200 OK', { body: sdp('m=video 0 RTP/AVP 97', AUDIO) });
  expect(await resumed).toHaveProperty('leg');
});

test('a far end that follows with no audio that can be used is not left waiting: it gets a BYE', async () => {
  const { peer, after, resumed } = await handedOver();
  const useless = sdp(AUDIO.replace(' 0', ' 18'));
  peer.respond(await peer.until(/^INVITE sip:x@/), '200 OK', { body: useless });
  await peer.until(/^ACK /);
  expect(await resumed).toEqual({ failed: 'the far end answered with no audio that can be used', asked: true });
  peer.respond(await peer.until(/^BYE /), '200 OK');
  await after.idle();
  expect(after.media.open.size).toBe(0);
});

test('a far end that refuses to follow stays with its own node, and hears no BYE', async () => {
  const { peer, after, resumed } = await handedOver();
  peer.respond(await peer.until(/^INVITE sip:x@/), '481 Call Does Not Exist');
  await peer.until(/^ACK /);
  expect(await resumed).toEqual({ failed: 'the far end refused with 481', asked: true });
  await after.idle();
  expect(peer.heard.filter((message) => message.startsWith('BYE'))).toEqual([]);
  expect(after.media.open.size).toBe(0);
});

test('a far end is not asked to follow to a node that drains, or has no such trunk', async () => {
  for (const prepare of [
    (after: TestCarrier) => after.carrier.drain(),
    (after: TestCarrier) => {
      after.trunks = [];
    },
  ]) {
    const { peer, after, resumed } = await handedOver(prepare);
    expect(await resumed).toEqual({ failed: 'the trunk is not here, or the node drains', asked: false });
    expect([peer.heard, after.carrier.load().dialogs, after.carrier.channelsHeld()]).toEqual([[], 0, {}]);
  }
});
