/** A trunk without a carrier: a call leaves by our own SIP port and comes back in, over real sockets. */
import { afterEach, expect, test } from 'bun:test';
import { Signals, TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

let carrier: TestCarrier;
const peers: RawPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  await carrier.idle();
  await carrier.close();
});
const loopback = trunkTo('loopback:', { name: 'loop', inboundCidrs: [] });
const order = async (more: object = {}) => {
  const signals = new Signals();
  const result = await carrier.carrier.dial({
    appUuid: 'app',
    to: '+15550002',
    from: '+15550003',
    listener: signals.listener,
    ...more,
  });
  if ('leg' in result) result.leg.start();
  return { result, signals };
};

test('A dial to a number of this platform comes back in as a call of the trunk, and both ends hang up together', async () => {
  carrier = await TestCarrier.open([loopback]);
  carrier.onIncoming = ({ call: { leg } }) => {
    leg.ring();
    leg.answer();
  };
  const { result, signals } = await order();
  await signals.until('leg.answered');
  expect(carrier.incoming[0]?.call).toMatchObject({ callerId: '+15550003', did: '+15550002', trunk: 'loop' });
  expect(carrier.media.negotiated).toHaveLength(2);
  expect(carrier.media.open.size).toBe(2);
  if ('leg' in result) result.leg.hangup();
  await carrier.incoming[0]?.signals.until('leg.ended');
  expect(signals.types()).toEqual(['leg.ringing', 'leg.answered', 'leg.ended']);
});

test('A dial leaves with five hops, so that a call that is passed on and on over the trunk ends', async () => {
  const hops: string[] = [];
  carrier = await TestCarrier.open([loopback], {
    trace(direction, bytes) {
      const text = new TextDecoder().decode(bytes);
      if (direction === 'out' && text.startsWith('INVITE '))
        hops.push(...text.split('\r\n').filter((line) => /^max-forwards/i.test(line)));
    },
  });
  carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
  const { signals } = await order();
  await signals.until('leg.ended');
  expect(hops).toEqual(['Max-Forwards: 5']);
});

test('A dial to a number that is not assigned ends as invalid_number', async () => {
  carrier = await TestCarrier.open([loopback]);
  const { signals } = await order({ to: '+15551111' });
  expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'invalid_number' } });
});

test('The trunk is taken only when it is named, or when there is no other', async () => {
  carrier = await TestCarrier.open([]);
  const peer = await RawPeer.udp(carrier.port('udp'));
  peers.push(peer);
  carrier.trunks = [loopback, trunkTo(`sip:127.0.0.1:${peer.port}`)];
  carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
  const named = await order({ trunk: 'loop' });
  expect(await named.signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
  const other = await order();
  peer.respond(await peer.until(/^INVITE /), '486 Busy Here');
  await other.signals.until('leg.ended');
  expect(carrier.incoming).toHaveLength(1);
});

test('One of several that are no carriers is taken only when it is named', async () => {
  carrier = await TestCarrier.open([]);
  carrier.trunks = [loopback, { ...loopback, name: 'other' }];
  carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
  expect((await order()).result).toEqual({ unavailable: 'no_trunk' });
  const named = await order({ trunk: 'other' });
  expect(await named.signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
});

test('A stranger who writes the header is refused: only the secret of this process counts', async () => {
  carrier = await TestCarrier.open([loopback]);
  const peer = await RawPeer.udp(carrier.port('udp'));
  peers.push(peer);
  peer.send(peer.request('INVITE', { body: sdp(), fields: 'X-Sidetone-Loopback: guess loop\r\n' }));
  await peer.until(/^SIP\/2.0 403/);
  expect(carrier.incoming).toEqual([]);
});

test('A dial comes back in also where its application writes the header itself, whose value is left out', async () => {
  carrier = await TestCarrier.open([loopback]);
  carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
  const { signals } = await order({ sipHeaders: { 'X-Sidetone-Loopback': 'guess loop', 'X-Customer': '42' } });
  expect(await signals.until('leg.ended')).toMatchObject({ end: { cause: 'busy' } });
  expect(carrier.incoming[0]?.call.sip?.headers).toEqual({ 'X-Customer': '42' });
});
