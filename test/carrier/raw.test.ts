/** A far end written by hand, over real sockets: what no well-behaved peer does. */
import { afterEach, describe, expect, test } from 'bun:test';
import { settle, VirtualClock } from '../support/virtual-clock.ts';
import { type Incoming, TestCarrier, trunkTo } from './harness.ts';
import { AUDIO, bodyOf, field, RawPeer, sdp } from './raw-peer.ts';

const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
const carrierWith = async (...from: Parameters<typeof TestCarrier.open>) => {
  const carrier = await TestCarrier.open(...from);
  carriers.push(carrier);
  return carrier;
};
const peerOf = async (carrier: TestCarrier, transport: 'udp' | 'tcp' = 'udp', host?: string) => {
  const peer = await RawPeer[transport](carrier.port(transport), host);
  peers.push(peer);
  return peer;
};
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});
const answers = (carrier: TestCarrier): Promise<Incoming> =>
  new Promise((resolve) => {
    carrier.onIncoming = (incoming) => {
      incoming.call.leg.answer();
      resolve(incoming);
    };
  });
const endOf = async ({ signals }: Pick<Incoming, 'signals'>) => {
  const signal = await signals.until('leg.ended');
  return signal.type === 'leg.ended' ? signal.end : undefined;
};
/** A call from the peer that is answered and acknowledged. */
async function answered(carrier: TestCarrier, peer: RawPeer, more: Parameters<RawPeer['request']>[1] = {}) {
  const taken = answers(carrier);
  const invite = { id: 'up', body: sdp(), ...more };
  peer.send(peer.request('INVITE', invite));
  const incoming = await taken;
  const ok = await peer.until(/^SIP\/2.0 200/);
  const to = field(ok, 'To');
  peer.send(peer.request('ACK', { ...invite, to, body: '' }));
  await incoming.signals.until('leg.answered');
  return {
    incoming,
    ok,
    to,
    within: (method: string, cseq: number, parts = {}) => peer.request(method, { id: 'up', to, cseq, ...parts }),
  };
}

describe('a source that is in no trunk', () => {
  const elsewhere = () => carrierWith([trunkTo('sip:127.0.0.1:9', { inboundCidrs: ['127.0.0.1/32'] })]);

  test('gets five 403 a second at most and is told to the operator in one row', async () => {
    const carrier = await elsewhere();
    const stranger = await peerOf(carrier, 'udp', '127.0.0.66');
    // Fewer than one turn of the event loop takes of strangers (stranger-limit.ts).
    for (let i = 0; i < 12; i++) stranger.send(stranger.request('INVITE', { id: `scan${i}`, body: sdp(), number: `00${i}` }));
    const known = await peerOf(carrier);
    known.send(known.request('OPTIONS'));
    await known.until(/^SIP\/2.0 200/);
    expect(stranger.heard.every((each) => each.startsWith('SIP/2.0 403'))).toBe(true);
    expect(stranger.heard.length).toBeGreaterThanOrEqual(5);
    expect(stranger.heard.length).toBeLessThanOrEqual(6);
    expect(carrier.carrier.load()).toEqual({ dialogs: 0, transactions: 0, trunksDown: 0, datagramsLost: 0, callsLate: 0 });
    expect(carrier.carrier.refusals()).toMatchObject([
      { source: '127.0.0.66', transport: 'udp', method: 'INVITE', status: 403, count: 12, from: 'sip:+15550199@x' },
    ]);
    expect(carrier.carrier.refusals()[0]?.remedy).toContain('127.0.0.66/32');
  });

  test('cannot hang up, change or probe a call of a trunk, although it knows its tags', async () => {
    const carrier = await elsewhere();
    const peer = await peerOf(carrier);
    const { incoming, within } = await answered(carrier, peer);
    const stranger = await peerOf(carrier, 'udp', '127.0.0.66');
    for (const [cseq, method] of [
      [8, 'BYE'],
      [9, 'INVITE'],
      [10, 'UPDATE'],
    ] as const) {
      stranger.send(within(method, cseq).replace(/branch=z9hG4bK/, 'branch=z9hG4bKstranger'));
      await stranger.until(/^SIP\/2.0 403/);
    }
    expect(incoming.signals.types()).toEqual(['leg.answered']);
    expect(carrier.carrier.refusals().map(({ method, status }) => [method, status])).toEqual([
      ['UPDATE', 403],
      ['INVITE', 403],
      ['BYE', 403],
    ]);
    peer.send(within('BYE', 2));
    await peer.until(/^SIP\/2.0 200/);
    expect(await endOf(incoming)).toMatchObject({ cause: 'completed', by: 'caller' });
  });

  test('cannot cancel a call of a trunk that rings, although it knows its branch', async () => {
    const carrier = await elsewhere();
    const ringing = new Promise<Incoming>((resolve) => {
      carrier.onIncoming = (incoming) => {
        incoming.call.leg.ring();
        resolve(incoming);
      };
    });
    const peer = await peerOf(carrier);
    const invite = peer.request('INVITE', { id: 'rings', body: sdp() });
    const cancel = invite
      .slice(0, invite.indexOf('Content-Type'))
      .replaceAll('INVITE', 'CANCEL')
      .concat('Content-Length: 0\r\n\r\n');
    peer.send(invite);
    const { signals } = await ringing;
    await peer.until(/^SIP\/2.0 180/);
    const stranger = await peerOf(carrier, 'udp', '127.0.0.66');
    stranger.send(cancel);
    await stranger.until(/^SIP\/2.0 403/);
    expect(signals.types()).not.toContain('leg.ended');
    // The same from the caller itself cancels it.
    peer.send(cancel);
    await peer.until(/^SIP\/2.0 487/);
    expect(await endOf({ signals })).toMatchObject({ by: 'caller' });
  });

  test('holds sixteen TCP connections at most, and no further one keeps a trunk out', async () => {
    const carrier = await elsewhere();
    const all = await Promise.all(Array.from({ length: 40 }, () => peerOf(carrier, 'tcp', '127.0.0.66')));
    const trunk = await peerOf(carrier, 'tcp');
    trunk.send(trunk.request('OPTIONS'));
    await trunk.until(/^SIP\/2.0 200/);
    expect(all.filter((each) => !each.closed)).toHaveLength(16);
  });

  test('is told why a trunk’s own call was refused too', async () => {
    const carrier = await elsewhere();
    const peer = await peerOf(carrier);
    peer.send(peer.request('INVITE', { id: 'u', number: '+15551111', body: sdp() }));
    await peer.until(/^SIP\/2.0 404/);
    peer.send(peer.request('INVITE', { id: 'n', number: 'nobody', body: sdp() }));
    await peer.until(/^SIP\/2.0 404/);
    peer.send(peer.request('INVITE', { id: 'c', body: sdp('m=audio 6000 RTP/AVP 18') }));
    await peer.until(/^SIP\/2.0 488/);
    peer.send(peer.request('INVITE', { id: 'x', body: sdp(), fields: 'Require: nobody-knows\r\n' }));
    await peer.until(/^SIP\/2.0 420/);
    expect(carrier.carrier.refusals().map(({ status, reason }) => [status, reason.split(' ').slice(0, 4).join(' ')])).toEqual([
      [420, 'The INVITE requires an'],
      [488, 'The offer has no'],
      [404, 'The called user is'],
      [404, 'The called number is'],
    ]);
  });
});

describe('a call from a peer', () => {
  test('goes on as it began when its trunk is deleted: other addresses of it are heard, our Contact stays', async () => {
    const settings = { advertise: '127.0.0.9', contact_user: 'us', session_timer: 'off' } as const;
    const inboundCidrs = ['127.0.0.1/32', '127.0.0.2/32'];
    const carrier = await carrierWith([trunkTo('sip:127.0.0.1:9', { inboundCidrs, settings })]);
    const peer = await peerOf(carrier);
    const { incoming, ok, within } = await answered(carrier, peer);
    expect(field(ok, 'Contact')).toStartWith('<sip:us@127.0.0.9:');
    carrier.trunks = [];
    carrier.carrier.trunksChanged();
    const other = await peerOf(carrier, 'udp', '127.0.0.2');
    const from = (request: string) => request.replace(`127.0.0.1:${peer.port};branch`, `127.0.0.2:${other.port};branch`);
    const timer = 'Supported: timer\r\nSession-Expires: 1800\r\n';
    other.send(from(within('INVITE', 5, { body: sdp(), fields: timer })));
    const again = await other.until(/^SIP\/2.0 [2-6]/);
    expect(again).toStartWith('SIP/2.0 200');
    expect(field(again, 'Contact')).toBe(field(ok, 'Contact'));
    expect(field(again, 'Session-Expires')).toBe('');
    other.send(from(within('ACK', 5)));
    const stranger = await peerOf(carrier, 'udp', '127.0.0.3');
    stranger.send(within('BYE', 6));
    await stranger.until(/^SIP\/2.0 403/);
    other.send(from(within('BYE', 6)));
    await other.until(/^SIP\/2.0 200/);
    expect(await endOf(incoming)).toMatchObject({ cause: 'completed', by: 'caller' });
  });

  test('whose Contact has no address is hung up at the address that it came from', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer, { contact: '<sip:x@nobody.invalid>' });
    incoming.call.leg.hangup();
    const bye = await peer.until(/^BYE /, 15_000);
    expect(bye).toStartWith('BYE sip:x@nobody.invalid ');
    peer.respond(bye, '200 OK');
    expect(await endOf(incoming)).toMatchObject({ cause: 'completed', by: 'callee' });
  }, 30_000);

  test('that is recvonly or inactive from the start is held from its answer on', async () => {
    for (const [direction, transport] of [
      ['recvonly', 'udp'],
      ['inactive', 'tcp'],
      ['sendonly', 'udp'],
    ] as const) {
      const carrier = await carrierWith();
      const peer = await peerOf(carrier, transport);
      const { incoming, within } = await answered(carrier, peer, { body: sdp(AUDIO, `a=${direction}`) });
      await incoming.signals.until('leg.held');
      peer.send(within('INVITE', 2, { body: sdp(AUDIO, 'a=sendrecv') }));
      await incoming.signals.until('leg.resumed');
      expect(incoming.signals.types()).toEqual(['leg.answered', 'leg.held', 'leg.resumed']);
    }
  });

  test('that we place and that is answered recvonly is held from its answer on', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    carrier.trunks = [trunkTo(`sip:127.0.0.1:${peer.port}`)];
    const { leg, signals } = await carrier.dial();
    peer.respond(await peer.until(/^INVITE /), '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
    await signals.until('leg.held');
    expect(signals.types()).toEqual(['leg.answered', 'leg.held']);
    leg.hangup();
  });

  test('that we place awaits audio from its answer on, not while it rings with audio', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    carrier.trunks = [trunkTo(`sip:127.0.0.1:${peer.port}`)];
    const { leg, signals } = await carrier.dial();
    const invite = await peer.until(/^INVITE /);
    peer.respond(invite, '183 Session Progress', { body: sdp() });
    await signals.until('leg.early_media');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ receive: true, isRinging: true });
    peer.respond(invite, '200 OK', { body: sdp() });
    await signals.until('leg.answered');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ receive: true, isRinging: false });
    leg.hangup();
  });

  test('that comes in and hears something before its answer is expected to speak from the answer on', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    carrier.onIncoming = ({ call: { leg } }) => leg.startEarlyMedia();
    peer.send(peer.request('INVITE', { body: sdp() }));
    await peer.until(/^SIP\/2.0 183/);
    expect(carrier.media.negotiated.map(({ isRinging }) => isRinging)).toEqual([true]);
    carrier.incoming[0]?.call.leg.answer();
    await peer.until(/^SIP\/2.0 200/);
    expect(carrier.media.negotiated.map(({ isRinging }) => isRinging)).toEqual([true, false]);
  });

  test('with a name in c= is answered once the name is resolved; a name without an address is 488', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    await answered(carrier, peer, { body: sdp(AUDIO, 'c=IN IP4 localhost') });
    expect(['127.0.0.1', '::1']).toContain(carrier.media.negotiated[0]?.remoteHost ?? '');
    const unanswerable = answers(carrier);
    peer.send(peer.request('INVITE', { id: 'name', body: sdp(AUDIO, 'c=IN IP4 nobody.invalid') }));
    await peer.until(/^SIP\/2.0 488/);
    expect(await endOf(await unanswerable)).toMatchObject({ cause: 'failed', by: 'network' });
  }, 20_000);

  test('with IPv6 in its description is 488 on IPv4 ports, before anyone is told of it', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    peer.send(peer.request('INVITE', { body: sdp(AUDIO, 'c=IN IP6 2001:db8::1') }));
    await peer.until(/^SIP\/2.0 488/);
    expect(carrier.incoming).toEqual([]);
  });

  test('asks for our offer by an offerless re-INVITE and finds every m-line of before in it', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { within } = await answered(carrier, peer, { body: sdp(AUDIO, 'm=video 5000 RTP/AVP 31') });
    peer.send(within('INVITE', 2));
    const ok = await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 2 INVITE/);
    expect(
      bodyOf(ok)
        .match(/^m=.*$/gm)
        ?.map((line) => line.trim().replace(/ [1-9][0-9]+ /, ' PORT ')),
    ).toEqual(['m=audio PORT RTP/AVP 0 8 9 101', 'm=video 0 RTP/AVP 31']);
  });

  test('speaks the first codec of its offer that every trunk has: G.722 too', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { ok } = await answered(carrier, peer, { body: sdp('m=audio 6000 RTP/AVP 9 0') });
    expect(bodyOf(ok)).toMatch(/^m=audio \d+ RTP\/AVP 9\b/m);
    expect(carrier.media.negotiated[0]).toMatchObject({ codec: 'G722' });
  });

  test('carries its description in a multipart body', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const part = `Content-Type: application/sdp\r\n\r\n${sdp()}`;
    const body = `--b\r\n${part}\r\n--b\r\nContent-Type: application/pidf+xml\r\nContent-Disposition: render;handling=optional\r\n\r\n<x/>\r\n--b--\r\n`;
    await answered(carrier, peer, { type: 'multipart/mixed;boundary=b', body });
    expect(carrier.media.negotiated[0]).toMatchObject({ remotePort: 6000, codec: 'PCMU' });
  });

  test.each([
    [
      'full',
      '',
      { reason: /application has as many live Sessions .* or the node/, remedy: /raise APP_SESSIONS_MAX, or add a node/ },
    ],
    ['away', '5', { reason: /could not be stored/, remedy: /database/ }],
  ] as const)('is refused 503 by an application side that is %s', async (why, retryAfter, { reason, remedy }) => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    carrier.onIncoming = ({ call }) => call.refuse(why);
    peer.send(peer.request('INVITE', { body: sdp() }));
    expect(field(await peer.until(/^SIP\/2.0 503/), 'Retry-After')).toBe(retryAfter);
    expect(carrier.carrier.refusals()[0]).toMatchObject({
      reason: expect.stringMatching(reason),
      remedy: expect.stringMatching(remedy),
    });
  });

  test('is refused 503 without Retry-After where no media port is free at its answer', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    carrier.onIncoming = ({ call }) => {
      call.listen(() => {});
      carrier.media.portsFree = 0;
      call.leg.answer();
    };
    peer.send(peer.request('INVITE', { body: sdp() }));
    expect(field(await peer.until(/^SIP\/2.0 503/), 'Retry-After')).toBe('');
  });
});

describe('a probe of a silent call', () => {
  test('is an OPTIONS within the dialog; any answer but 481 and 408 is a sign of life', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer, { body: sdp(AUDIO, 'a=inactive') });
    incoming.call.leg.probe?.();
    peer.respond(await peer.until(/^OPTIONS /), '405 Method Not Allowed');
    await incoming.signals.until('leg.alive');
    incoming.call.leg.probe?.();
    peer.respond(await peer.until(/^OPTIONS /), '481 Call/Transaction Does Not Exist');
    expect(await endOf(incoming)).toMatchObject({ cause: 'timeout', by: 'system' });
    await peer.until(/^BYE /);
  });

  test('finds no sign of life in a REFER that the far end has not answered', async () => {
    const clock = new VirtualClock();
    const carrier = await carrierWith(undefined, { clock });
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer, { body: sdp(AUDIO, 'a=inactive') });
    const { leg } = incoming.call;
    leg.probe?.();
    const first = await peer.until(/^OPTIONS /);
    peer.respond(first, '200 OK');
    await incoming.signals.until('leg.alive');
    leg.transfers?.transfer({ number: '+15550111' });
    await peer.until(/^REFER /);
    await clock.advance(40_000);
    expect(await incoming.signals.until('leg.transfer')).toMatchObject({ phase: 'refused', status: 0 });
    leg.probe?.();
    await settle();
    expect(incoming.signals.types().filter((type) => type === 'leg.alive')).toHaveLength(1);
    await peer.until(new RegExp(`^OPTIONS [\\s\\S]*CSeq: ${Number.parseInt(field(first, 'CSeq'), 10) + 2} `));
  });
});

describe('a connection that sends more than its share', () => {
  test('is worked on a few messages a turn, and every message is answered', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier, 'tcp');
    const other = await peerOf(carrier);
    peer.send(Array.from({ length: 2_000 }, (_, i) => peer.request('OPTIONS', { id: `flood${i}` })).join(''));
    other.send(other.request('OPTIONS', { id: 'between' }));
    await other.until(/^SIP\/2.0 200/);
    const answeredBefore = peer.heard.length;
    await peer.until(/Call-ID: flood1999\r/, 20_000);
    expect(answeredBefore).toBeLessThan(1_900);
    expect(peer.heard.length).toBe(1_999);
  }, 30_000);
});

describe('our own hold', () => {
  const reinvite = (peer: RawPeer) => peer.until(/^INVITE sip:x@/);

  test('is a re-INVITE with sendonly, and sendrecv at its end; audio is still sent and none expected', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer);
    incoming.call.leg.hold?.(true);
    const held = await reinvite(peer);
    expect(bodyOf(held)).toContain('a=sendonly');
    expect(incoming.signals.types()).not.toContain('leg.own_hold');
    peer.respond(held, '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
    await peer.until(/^ACK /);
    expect(await incoming.signals.until('leg.own_hold')).toEqual({ type: 'leg.own_hold', on: true });
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: true, receive: false });
    incoming.call.leg.hold?.(false);
    const resumed = await reinvite(peer);
    expect(bodyOf(resumed)).toContain('a=sendrecv');
    peer.respond(resumed, '200 OK', { body: sdp() });
    await peer.until(/^ACK /);
    expect(incoming.signals.types().filter((type) => type !== 'leg.media')).toEqual([
      'leg.answered',
      'leg.own_hold',
      'leg.own_hold',
    ]);
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: true, receive: true });
  });

  test('is tried again after 491, and takes effect at our side where the far end refuses it', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer);
    incoming.call.leg.hold?.(true);
    peer.respond(await reinvite(peer), '491 Request Pending');
    peer.respond(await reinvite(peer), '488 Not Acceptable Here');
    expect(await incoming.signals.until('leg.own_hold')).toEqual({ type: 'leg.own_hold', on: true });
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: true, receive: false });
  }, 20_000);

  test('is told although it is taken back before the far end has answered', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer);
    incoming.call.leg.hold?.(true);
    incoming.call.leg.hold?.(false);
    peer.respond(await reinvite(peer), '200 OK', { body: sdp() });
    await peer.until(/^ACK /);
    const told = incoming.signals.all.flatMap((signal) => (signal.type === 'leg.own_hold' ? [signal.on] : []));
    expect(told).toEqual([true, false]);
  });

  test('ends at our side where it is taken back before its answer and the far end refuses the re-INVITE of its end', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming } = await answered(carrier, peer);
    incoming.call.leg.hold?.(true);
    const held = await reinvite(peer);
    incoming.call.leg.hold?.(false);
    peer.respond(held, '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
    await peer.until(/^ACK /);
    peer.respond(await reinvite(peer), '488 Not Acceptable Here');
    await peer.until(/^ACK /);
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: true, receive: true, isHolding: false });
    const told = incoming.signals.all.flatMap((signal) => (signal.type === 'leg.own_hold' ? [signal.on] : []));
    expect(told).toEqual([true, false]);
  });

  test('does not hide a hold of the far end: each has its own pair of signals', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming, within } = await answered(carrier, peer);
    incoming.call.leg.hold?.(true);
    peer.respond(await reinvite(peer), '200 OK', { body: sdp(AUDIO, 'a=recvonly') });
    await incoming.signals.until('leg.own_hold');
    peer.send(within('INVITE', 5, { body: sdp(AUDIO, 'a=sendonly') }));
    const ok = await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 5 INVITE/);
    expect(bodyOf(ok)).toContain('a=inactive');
    await incoming.signals.until('leg.held');
    expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: false, receive: false, held: true, isHolding: true });
    peer.send(within('ACK', 5));
    peer.send(within('INVITE', 6, { body: sdp(AUDIO, 'a=sendrecv') }));
    expect(bodyOf(await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 6 INVITE/))).toContain('a=sendonly');
    await incoming.signals.until('leg.resumed');
    expect(incoming.signals.types()).toEqual(['leg.answered', 'leg.own_hold', 'leg.held', 'leg.resumed']);
  });

  test('ends at our side where the far end, which holds us too, refuses the re-INVITE of its end', async () => {
    const carrier = await carrierWith();
    const peer = await peerOf(carrier);
    const { incoming, within } = await answered(carrier, peer);
    peer.send(within('INVITE', 5, { body: sdp(AUDIO, 'a=sendonly') }));
    await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 5 INVITE/);
    peer.send(within('ACK', 5));
    await incoming.signals.until('leg.held');
    for (const on of [true, false]) {
      incoming.call.leg.hold?.(on);
      peer.respond(await reinvite(peer), '488 Not Acceptable Here');
      await peer.until(/^ACK /);
      expect(carrier.media.negotiated.at(-1)).toMatchObject({ send: false, receive: false, isHolding: on });
    }
    expect(incoming.signals.types()).toEqual(['leg.answered', 'leg.held', 'leg.own_hold', 'leg.own_hold']);
  });
});
