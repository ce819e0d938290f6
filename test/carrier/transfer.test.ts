/** Transfers, asked for by the application and by the far end (RFC 3515, RFC 3891), over real sockets. */
import { afterEach, describe, expect, test } from 'bun:test';
import type { TrunkSettings } from '../../src/database/trunk/trunk-settings.ts';
import { type Incoming, TestCarrier, trunkTo } from './harness.ts';
import { bodyOf, field, RawPeer, sdp } from './raw-peer.ts';

let carrier: TestCarrier;
let peer: RawPeer;
afterEach(async () => {
  peer.close();
  await carrier.close();
});

/** A call from the peer that is answered and acknowledged. `within` makes a request of the peer in its dialog. */
async function answered(settings: TrunkSettings = {}, id = 'up') {
  if (id === 'up') {
    carrier = await TestCarrier.open([trunkTo('sip:carrier.example', { settings })]);
    peer = await RawPeer.udp(carrier.port('udp'));
  }
  const taken = new Promise<Incoming>((resolve) => {
    carrier.onIncoming = (incoming) => {
      incoming.call.leg.answer();
      resolve(incoming);
    };
  });
  peer.send(peer.request('INVITE', { id, body: sdp() }));
  const { call, signals } = await taken;
  const to = field(await peer.until(/^SIP\/2.0 200/), 'To');
  peer.send(peer.request('ACK', { id, to }));
  await signals.until('leg.answered');
  const within = (method: string, cseq: number, parts = {}) => peer.request(method, { id, to, cseq, ...parts });
  const notify = (cseq: number, line: string, state = 'active;expires=60', id = '') => {
    const body = `${line}\r\n`;
    const fields = `Event: refer${id}\r\nSubscription-State: ${state}\r\n`;
    peer.send(within('NOTIFY', cseq, { fields, type: 'message/sipfrag;version=2.0', body }));
  };
  const outcomes = () => signals.all.flatMap((signal) => (signal.type === 'leg.transfer' ? [signal] : []));
  const until = async (phase: string) => {
    for (let looks = 0; !outcomes().some((each) => each.phase === phase); looks++) {
      if (looks > 500) throw new Error(`no ${phase}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const leg = call.leg;
  if (leg.transfers === undefined) throw new Error('nothing can be transferred');
  return { leg, transfers: leg.transfers, signals, within, notify, outcomes, until, to };
}

describe('a transfer by the application', () => {
  test('is a REFER with the number in the form of the trunk; a final NOTIFY of 200 completes it', async () => {
    const call = await answered({ country_code: '972', outbound_format: 'national', outbound_prefix: '9' });
    call.transfers.transfer({ number: '+972501112222' });
    const refer = await peer.until(/^REFER /);
    expect(field(refer, 'Refer-To')).toBe('<sip:90501112222@carrier.example>');
    expect(field(refer, 'Referred-By')).toStartWith('<sip:');
    peer.respond(refer, '202 Accepted');
    await call.until('accepted');
    call.notify(2, 'SIP/2.0 100 Trying');
    call.notify(3, 'SIP/2.0 180 Ringing');
    call.notify(4, 'SIP/2.0 200 OK', 'terminated;reason=noresource');
    await call.until('completed');
    expect(call.outcomes().map(({ phase }) => phase)).toEqual(['accepted', 'completed']);
    for (let answers = 0; answers < 3; answers++) await peer.until(/^SIP\/2.0 200[\s\S]*NOTIFY/);
    call.notify(5, 'SIP/2.0 200 OK');
    await peer.until(/^SIP\/2.0 481[\s\S]*NOTIFY/);
  });

  test('says in Refer-To that it is a number, where the trunk wants that', async () => {
    const call = await answered({ user_phone: true });
    call.transfers.transfer({ number: '+972501112222' });
    expect(field(await peer.until(/^REFER /), 'Refer-To')).toBe('<sip:+972501112222@carrier.example;user=phone>');
  });

  test('fails with the status of the refusal, or of the call that the far end tried', async () => {
    const call = await answered();
    call.transfers.transfer({ uri: 'sip:agent@pbx.example' });
    const refer = await peer.until(/^REFER /);
    expect(field(refer, 'Refer-To')).toBe('<sip:agent@pbx.example>');
    peer.respond(refer, '603 Decline');
    await call.until('refused');
    call.transfers.transfer({ uri: 'sip:agent@pbx.example' });
    peer.respond(await peer.until(/^REFER /), '202 Accepted');
    call.notify(2, 'SIP/2.0 486 Busy Here', 'terminated;reason=noresource');
    await call.until('failed');
    expect(call.outcomes()).toMatchObject([
      { phase: 'refused', status: 603 },
      { phase: 'accepted' },
      { phase: 'failed', status: 486 },
    ]);
  });

  test('is asked for again after one without an end, and is told only what is its own', async () => {
    const call = await answered();
    call.transfers.transfer({ uri: 'sip:first@pbx.example' });
    const first = await peer.until(/^REFER /);
    peer.respond(first, '202 Accepted');
    await call.until('accepted');
    call.transfers.transfer({ uri: 'sip:second@pbx.example' });
    const second = await peer.until(/^REFER /);
    expect(field(second, 'Refer-To')).toBe('<sip:second@pbx.example>');
    const idOf = (refer: string) => `;id=${Number.parseInt(field(refer, 'CSeq'), 10)}`;
    call.notify(2, 'SIP/2.0 200 OK', 'terminated;reason=noresource', idOf(first));
    await peer.until(/^SIP\/2.0 481[\s\S]*NOTIFY/);
    peer.respond(second, '202 Accepted');
    call.notify(3, 'SIP/2.0 486 Busy Here', 'terminated;reason=noresource', idOf(second));
    await call.until('failed');
    expect(call.outcomes().map(({ phase }) => phase)).toEqual(['accepted', 'accepted', 'failed']);
  });

  test('is not ended by a NOTIFY that nobody asked for, which is a bad event (489) and no end of the dialog', async () => {
    const call = await answered();
    const lamp = { fields: 'Event: talk\r\nSubscription-State: active\r\n' };
    peer.send(call.within('NOTIFY', 2, lamp));
    await peer.until(/^SIP\/2.0 489/);
    peer.send(call.within('NOTIFY', 3, { fields: 'Event: refer\r\nSubscription-State: active\r\n' }));
    await peer.until(/^SIP\/2.0 481/);
    call.transfers.transfer({ number: '+15550100' });
    peer.respond(await peer.until(/^REFER /), '202 Accepted');
    peer.send(call.within('NOTIFY', 4, lamp));
    await peer.until(/^SIP\/2.0 489/);
    call.notify(5, 'SIP/2.0 200 OK', 'terminated;reason=noresource');
    await call.until('completed');
  });

  test('to another call of the same far end carries a Replaces with its tags, seen from there', async () => {
    const first = await answered();
    const second = await answered({}, 'other');
    first.transfers.transfer({ referTo: second.transfers.replacement() ?? '' });
    const referTo = field(await peer.until(/^REFER /), 'Refer-To');
    const [, target, replaces] = /^<([^?]*)\?Replaces=(.*)>$/.exec(referTo) ?? [];
    expect(target).toBe(`sip:x@127.0.0.1:${peer.port}`);
    const ourTag = /tag=([^;]*)/.exec(second.to)?.[1];
    expect(decodeURIComponent(replaces ?? '')).toBe(`other;to-tag=other;from-tag=${ourTag}`);
  });

  test('to a URI is judged by the number that its user part is on the trunk, or by that part itself', async () => {
    const { transfers } = await answered({ country_code: '972', inbound_format: 'national' });
    const dialled = (user: string) => transfers.dialled(`sip:${user}@carrier.example`);
    expect(['0501112222', '00442071234567', '%2B19005550100', 'alice', '*97'].map(dialled)).toEqual([
      ...['+972501112222', '+442071234567', '+19005550100', 'alice', '*97'],
    ]);
  });

  test('may name only the hosts that the trunk permits', async () => {
    const { transfers } = await answered({ transfer_hosts: ['PBX.example', '[2001:db8::1]'] });
    for (const [uri, permitted] of [
      ['sip:a@pbx.example', true],
      ['sip:a@pbx.example:5070;transport=tcp', true],
      ['sip:a@[2001:db8::1]', true],
      ['sip:a@evil.example', false],
      ['sip:pbx.example@evil.example', false],
      ['sip:a@pbx.example;maddr=evil.example', false],
      ['sip:a@pbx.example;MADDR=pbx.example', true],
    ] as const)
      expect(transfers.permits(uri)).toBe(permitted);
  });
});

describe('a REFER of the far end', () => {
  const REFER = { fields: 'Refer-To: <sip:+15550111@x;user=phone>\r\n' };

  test('is answered 202 and NOTIFY 100, told with its target, and closed with NOTIFY 200 when the call ends', async () => {
    const call = await answered();
    peer.send(call.within('REFER', 2, REFER));
    await peer.until(/^SIP\/2.0 202/);
    const trying = await peer.until(/^NOTIFY /);
    expect([field(trying, 'Event'), field(trying, 'Subscription-State'), bodyOf(trying)]).toEqual([
      'refer;id=2',
      'active;expires=60',
      'SIP/2.0 100 Trying\r\n',
    ]);
    peer.respond(trying, '200 OK');
    expect(await call.signals.until('leg.transfer_requested')).toMatchObject({ target: 'sip:+15550111@x;user=phone' });
    peer.send(call.within('REFER', 3, REFER));
    await peer.until(/^SIP\/2.0 491/);
    call.leg.hangup();
    const last = await peer.until(/^NOTIFY /);
    expect([field(last, 'Subscription-State'), bodyOf(last)]).toEqual(['terminated;reason=noresource', 'SIP/2.0 200 OK\r\n']);
    peer.respond(last, '200 OK');
    peer.respond(await peer.until(/^BYE /), '200 OK');
  });

  test('is 400 without a target or with one beyond 1,024 characters, and 403 outside a dialog', async () => {
    const call = await answered();
    peer.send(call.within('REFER', 2));
    await peer.until(/^SIP\/2.0 400/);
    peer.send(call.within('REFER', 3, { fields: `Refer-To: <sip:${'x'.repeat(1_100)}@x>\r\n` }));
    await peer.until(/^SIP\/2.0 400/);
    peer.send(peer.request('REFER', { id: 'outside', ...REFER }));
    await peer.until(/^SIP\/2.0 403/);
    expect(call.signals.types()).toEqual(['leg.answered']);
  });
});
