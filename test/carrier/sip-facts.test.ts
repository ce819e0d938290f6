/** What the application is told of a call's SIP and of its sound, over real sockets. */
import { afterEach, expect, test } from 'bun:test';
import { TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

let carrier: TestCarrier;
let peer: RawPeer;
afterEach(async () => {
  peer.close();
  await carrier.close();
});

test('A call that comes in carries its Call-ID, trunk, codec, X- headers as they were sent, and what the carrier says of the caller', async () => {
  carrier = await TestCarrier.open();
  peer = await RawPeer.udp(carrier.port('udp'));
  carrier.onIncoming = ({ call: { leg } }) => leg.answer();
  const fields =
    'X-Customer-Ref: 42\r\nx-Lower: yes\r\nX-Route: a;b\r\nX-Route: c\r\nP-Asserted-Identity: <sip:+15550199@x;user=phone;verstat=TN-Validation-Passed>\r\n' +
    'Diversion: <sip:+15550111@x>;reason=no-answer\r\nHistory-Info: <sip:+15550111@x>;index=1, <sip:+15550002@x>;index=1.1\r\n';
  peer.send(peer.request('INVITE', { id: 'facts', body: sdp(), fields }));
  await peer.until(/^SIP\/2.0 200/);
  const facts = {
    call_id: 'facts',
    trunk: 'carrier',
    codec: 'PCMU',
    headers: { 'X-Customer-Ref': '42', 'x-Lower': 'yes', 'X-Route': 'a;b, c' },
    p_asserted_identity: '<sip:+15550199@x;user=phone;verstat=TN-Validation-Passed>',
    diversion: '<sip:+15550111@x>;reason=no-answer',
    history_info: '<sip:+15550111@x>;index=1, <sip:+15550002@x>;index=1.1',
    verstat: 'TN-Validation-Passed',
  };
  const incoming = carrier.incoming[0];
  expect(incoming?.call.sip).toEqual(facts);
  expect(await incoming?.signals.until('leg.answered')).toEqual({ type: 'leg.answered', sip: facts });
});

test('No password of an address that a caller sends is told: not to the application, and not of a refused call', async () => {
  carrier = await TestCarrier.open();
  peer = await RawPeer.udp(carrier.port('udp'));
  carrier.onIncoming = ({ call: { leg } }) => leg.answer();
  const fields =
    'P-Asserted-Identity: <sip:a:hidden@x>\r\nDiversion: <sip:b:hidden@x>;reason=no-answer\r\nHistory-Info: <sip:c:hidden@x:5070>;index=1\r\n';
  peer.send(peer.request('INVITE', { id: 'told', body: sdp(), fields }));
  await peer.until(/^SIP\/2.0 200/);
  expect(carrier.incoming[0]?.call.sip).toMatchObject({
    p_asserted_identity: '<sip:a:(not kept)@x>',
    diversion: '<sip:b:(not kept)@x>;reason=no-answer',
    history_info: '<sip:c:(not kept)@x:5070>;index=1',
  });
  peer.send(peer.request('INVITE', { id: 'refused', number: 'nobody', from: '<sip:d:hidden@x>;tag=d', body: sdp() }));
  await peer.until(/^SIP\/2.0 4\d\d /);
  expect(carrier.carrier.refusals()[0]).toMatchObject({ from: 'sip:d:(not kept)@x' });
});

test('A call whose caller withholds its number does not tell it in the asserted identity either', async () => {
  carrier = await TestCarrier.open();
  peer = await RawPeer.udp(carrier.port('udp'));
  carrier.onIncoming = ({ call: { leg } }) => leg.answer();
  const asserted = 'P-Asserted-Identity: <sip:+15550199@x;verstat=No-TN-Validation>\r\n';
  for (const [id, privacy] of [
    ['id', 'Privacy: id\r\n'],
    ['remote', 'Remote-Party-ID: <sip:+15550199@x>;privacy=full\r\n'],
  ] as const) {
    const from = `"Anonymous" <sip:anonymous@anonymous.invalid>;tag=${id}`;
    peer.send(peer.request('INVITE', { id, from, body: sdp(), fields: `${asserted}${privacy}` }));
    await peer.until(/^SIP\/2.0 200/);
    const call = carrier.incoming.at(-1)?.call;
    expect(call).toMatchObject({ callerId: '', sip: { call_id: id, verstat: 'No-TN-Validation' } });
    expect(JSON.stringify(call?.sip)).not.toContain('5550199');
  }
});

test('A call that we place carries the facts of its answer, and at its end the Reason of the far end and how it sounded', async () => {
  carrier = await TestCarrier.open();
  peer = await RawPeer.udp(carrier.port('udp'));
  carrier.trunks = [trunkTo(`sip:127.0.0.1:${peer.port}`)];
  const { signals } = await carrier.dial();
  const invite = await peer.until(/^INVITE /);
  peer.respond(invite, '200 OK', { body: sdp('m=audio 6000 RTP/AVP 8'), fields: 'X-Node: 7\r\n' });
  const ack = await peer.until(/^ACK /);
  expect(await signals.until('leg.answered')).toMatchObject({
    sip: { trunk: 'carrier', codec: 'PCMA', headers: { 'X-Node': '7' } },
  });
  const to = /^To: ([^\r]*)/m.exec(ack)?.[1] ?? '';
  const from = /^From: ([^\r]*)/m.exec(ack)?.[1] ?? '';
  const id = /^Call-ID: ([^\r]*)/m.exec(ack)?.[1] ?? '';
  peer.send(
    peer.request('BYE', { id, from: to, to: from, cseq: 9, fields: 'Reason: Q.850;cause=16;text="Normal call clearing"\r\n' }),
  );
  expect(await signals.until('leg.ended')).toMatchObject({
    end: {
      cause: 'completed',
      sip: { q850: 16, reason: 'Normal call clearing' },
      quality: { packets_in: 0, packets_out: 0, packets_lost: 0, packets_late: 0, mos: 0, codec: 'PCMA' },
    },
  });
});

test('A refusal carries its status and its reason phrase', async () => {
  carrier = await TestCarrier.open();
  peer = await RawPeer.udp(carrier.port('udp'));
  carrier.trunks = [trunkTo(`sip:127.0.0.1:${peer.port}`)];
  const { signals } = await carrier.dial();
  peer.respond(await peer.until(/^INVITE /), '486 Busy Elsewhere');
  const ended = await signals.until('leg.ended');
  expect(ended).toMatchObject({ end: { cause: 'busy', sip: { status: 486, reason: 'Busy Elsewhere' } } });
  // Nothing was agreed on that could have sounded.
  expect(ended).not.toHaveProperty('end.quality');
});
