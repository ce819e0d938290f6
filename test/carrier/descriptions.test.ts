/** Session descriptions that come early, late, by another fork or not at all, over real sockets. */
import { afterEach, describe, expect, test } from 'bun:test';
import { type HeldNames, heldNames } from '../support/name-server-peer.ts';
import { type Incoming, TestCarrier, trunkTo } from './harness.ts';
import { AUDIO, field, RawPeer, sdp } from './raw-peer.ts';

const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
let names: HeldNames | undefined;
const open = async () => {
  const carrier = await TestCarrier.open();
  const peer = await RawPeer.udp(carrier.port('udp'));
  carriers.push(carrier);
  peers.push(peer);
  return { carrier, peer };
};
afterEach(async () => {
  names?.close();
  names = undefined;
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});
const RELIABLE = 'Require: 100rel\r\nRSeq: 1\r\n';
const at = (port: number) => sdp(`m=audio ${port} RTP/AVP 0`);
const endOf = async ({ signals }: Pick<Incoming, 'signals'>) => {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
};

/** A call without an offer that is answered; `ack` acknowledges the 200. */
async function lateOffer(carrier: TestCarrier, peer: RawPeer) {
  const { promise, resolve } = Promise.withResolvers<Incoming>();
  carrier.onIncoming = (incoming) => {
    incoming.call.leg.answer();
    resolve(incoming);
  };
  const invite = { id: 'late' };
  peer.send(peer.request('INVITE', invite));
  const incoming = await promise;
  const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
  return { incoming, to, ack: (body: string) => peer.send(peer.request('ACK', { ...invite, to, body })) };
}

/** A call that we place, answered by `tag`. */
async function dialled(carrier: TestCarrier, peer: RawPeer) {
  carrier.trunks = [trunkTo(`sip:127.0.0.1:${peer.port}`)];
  const call = await carrier.dial();
  return { ...call, invite: await peer.until(/^INVITE /) };
}

describe('the answer to our late offer', () => {
  test('comes with the ACK, and the call counts as answered from then on', async () => {
    const { carrier, peer } = await open();
    const { incoming, ack } = await lateOffer(carrier, peer);
    expect(incoming.signals.types()).toEqual([]);
    ack(sdp());
    await incoming.signals.until('leg.answered');
    expect([incoming.signals.types(), carrier.media.negotiated.length]).toEqual([['leg.answered'], 1]);
  });

  test('that is missing hangs the call up, as one that cannot be used does', async () => {
    for (const body of ['', sdp('m=audio 6000 RTP/AVP 96', 'a=rtpmap:96 unknown/8000')]) {
      const { carrier, peer } = await open();
      const { incoming, ack } = await lateOffer(carrier, peer);
      ack(body);
      peer.respond(await peer.until(/^BYE /), '200 OK');
      expect(await endOf(incoming)).toMatchObject({ cause: 'failed', by: 'system' });
      expect(incoming.signals.types()).toEqual(['leg.ended']);
    }
  });
});

describe('an answer to our hold that cannot be used', () => {
  test.each([
    ['refuses the stream', sdp('m=audio 0 RTP/AVP 0')],
    ['is missing', ''],
    ['names a host without an address', sdp(AUDIO, 'c=IN IP4 nobody.invalid')],
  ])('%s: the call goes on, held at our side', async (_why, body) => {
    const { carrier, peer } = await open();
    carrier.onIncoming = ({ call: { leg } }) => leg.answer();
    peer.send(peer.request('INVITE', { id: 'held', body: sdp() }));
    const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
    peer.send(peer.request('ACK', { id: 'held', to }));
    const [incoming] = carrier.incoming;
    if (incoming === undefined) throw new Error('no call came in');
    await incoming.signals.until('leg.answered');
    incoming.call.leg.hold?.(true);
    peer.respond(await peer.until(/^INVITE sip:x@/), '200 OK', { body });
    expect(await incoming.signals.until('leg.own_hold')).toEqual({ type: 'leg.own_hold', on: true });
    peer.send(peer.request('OPTIONS', { id: 'held', to, cseq: 9 }));
    await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 9 OPTIONS/);
    expect(incoming.signals.types()).toEqual(['leg.answered', 'leg.own_hold']);
    incoming.call.leg.hold?.(false);
    peer.respond(await peer.until(/^INVITE sip:x@/), '200 OK', { body });
    await peer.until(/^ACK [\s\S]*CSeq: [2-9] ACK/);
    const deadline = performance.now() + 5_000;
    while (incoming.signals.types().length < 3 && performance.now() < deadline) await new Promise(setImmediate);
    expect(incoming.signals.all.at(-1)).toEqual({ type: 'leg.own_hold', on: false });
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: true, receive: true, isHolding: false });
  });
});

test('recvonly as the answer to our hold leaves the hold of a far end that holds us', async () => {
  const { carrier, peer } = await open();
  carrier.onIncoming = ({ call: { leg } }) => leg.answer();
  peer.send(peer.request('INVITE', { id: 'both', body: sdp() }));
  const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
  peer.send(peer.request('ACK', { id: 'both', to }));
  peer.send(peer.request('INVITE', { id: 'both', to, cseq: 2, body: sdp(AUDIO, 'a=sendonly') }));
  await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 2 INVITE/);
  peer.send(peer.request('ACK', { id: 'both', to, cseq: 2 }));
  const [incoming] = carrier.incoming;
  await incoming?.signals.until('leg.held');
  incoming?.call.leg.hold?.(true);
  peer.respond(await peer.until(/^INVITE sip:x@/), '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
  await incoming?.signals.until('leg.own_hold');
  expect(incoming?.signals.types()).toEqual(['leg.answered', 'leg.held', 'leg.own_hold']);
  peer.send(peer.request('INVITE', { id: 'both', to, cseq: 3, body: sdp(AUDIO, 'a=sendrecv') }));
  await incoming?.signals.until('leg.resumed');
});

describe('a call that we place', () => {
  test('goes to the fork that answers, by the description of its reliable 183', async () => {
    const { carrier, peer } = await open();
    const { invite, signals, leg } = await dialled(carrier, peer);
    peer.respond(invite, '183 Session Progress', { tag: 'one', fields: RELIABLE, body: at(6002) });
    peer.respond(await peer.until(/^PRACK /), '200 OK', { tag: 'one' });
    peer.respond(invite, '183 Session Progress', { tag: 'two', body: at(6004) });
    peer.respond(invite, '200 OK', { tag: 'one' });
    await signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ remotePort: 6002, isRinging: false });
    leg.hangup();
  });

  test('sends where the 183 to its second INVITE says, though the first one was given one of the same tag', async () => {
    const { carrier, peer } = await open();
    const { invite, signals, leg } = await dialled(carrier, peer);
    peer.respond(invite, '183 Session Progress', { body: at(6002) });
    peer.respond(invite, '422 Session Interval Too Small', { fields: 'Min-SE: 3600\r\n' });
    const again = await peer.until(/^INVITE /);
    peer.respond(again, '183 Session Progress', { fields: RELIABLE, body: at(6004) });
    peer.respond(await peer.until(/^PRACK /), '200 OK');
    peer.respond(again, '200 OK');
    await signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ remotePort: 6004, isRinging: false });
    leg.hangup();
  });

  test('keeps what an UPDATE of the answering fork has changed since its 183', async () => {
    const { carrier, peer } = await open();
    const { invite, signals, leg } = await dialled(carrier, peer);
    for (const [tag, port] of [
      ['one', 6002],
      ['two', 6004],
    ] as const) {
      peer.respond(invite, '183 Session Progress', { tag, fields: RELIABLE, body: at(port) });
      peer.respond(await peer.until(/^PRACK /), '200 OK', { tag });
    }
    const dialog = { id: field(invite, 'Call-ID'), from: `${field(invite, 'To')};tag=one`, to: field(invite, 'From') };
    peer.send(peer.request('UPDATE', { ...dialog, cseq: 7, body: at(6010) }));
    await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 7 UPDATE/);
    peer.respond(invite, '200 OK', { tag: 'one' });
    await signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ remotePort: 6010, isRinging: false });
    leg.hangup();
  });

  test('whose 183 names a host sends where the 200 says, however long that name took', async () => {
    names = await heldNames();
    const { carrier, peer } = await open();
    const { invite, signals, leg } = await dialled(carrier, peer);
    const named = (port: number) => at(port).replace('IP4 127.0.0.1\r\nt', 'IP4 media.test\r\nt');
    peer.respond(invite, '183 Session Progress', { body: named(6002) });
    peer.respond(invite, '200 OK', { body: at(6004) });
    await signals.until('leg.answered');
    names.tell();
    // A second name is looked up after the first one: its answer comes when that of the first is in.
    peer.send(
      peer.request('INVITE', {
        id: field(invite, 'Call-ID'),
        from: `${field(invite, 'To')};tag=raw`,
        to: field(invite, 'From'),
        cseq: 7,
        body: named(6006),
      }),
    );
    await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 7 INVITE/);
    expect(carrier.media.negotiated.map(({ remotePort }) => remotePort)).toEqual([6004, 6006]);
    leg.hangup();
  });
});

test('a body that need not be understood is no offer, and no reason to refuse the call', async () => {
  const { carrier, peer } = await open();
  carrier.onIncoming = ({ call: { leg } }) => leg.ring();
  const fields = 'Content-Disposition: render;handling=optional\r\n';
  peer.send(peer.request('INVITE', { id: 'optional', type: 'text/plain', fields, body: 'hello' }));
  await peer.until(/^SIP\/2.0 180/);
  peer.send(peer.request('INVITE', { id: 'required', type: 'text/plain', body: 'hello' }));
  await peer.until(/^SIP\/2.0 415/);
});
