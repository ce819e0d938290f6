/** Which number a call from a carrier is for, where its message names several. Over real sockets. */
import { afterEach, expect, test } from 'bun:test';
import type { Trunk } from '../../src/carrier/trunk/trunk.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { RawPeer, sdp } from './raw-peer.ts';

const PILOT = '+4930123450';
const EXTENSION = '+4930123456';
const ELSEWHERE = '+4989999999';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
});

/** The number that an INVITE with that Request-URI and To is told as, or the status that refuses it. */
async function called(user: string, to: string, fields = '', trunk: Partial<Trunk> = {}): Promise<string> {
  const carrier = await TestCarrier.open([trunkTo('sip:127.0.0.1:9', trunk)]);
  const peer = await RawPeer.udp(carrier.port('udp'));
  open.push(carrier, peer);
  carrier.numberOwner = async (e164) => (e164 === PILOT || e164 === EXTENSION ? 'app' : undefined);
  carrier.onIncoming = ({ call: { leg } }) => leg.reject('busy');
  peer.send(peer.request('INVITE', { number: user, to: `<sip:${to}@tel.example;user=phone>`, fields, body: sdp() }));
  const answer = await peer.until(/^SIP\/2.0 [2-6]/);
  return carrier.incoming[0]?.call.did ?? answer.slice(8, 11);
}

test('A call that an IMS forwards to our Contact is for the number in P-Called-Party-ID', async () => {
  const fields = `P-Called-Party-ID: <sip:${EXTENSION}@tel.example;user=phone>\r\n`;
  expect(await called('sidetone', ELSEWHERE, fields)).toBe(EXTENSION);
  expect(await called(PILOT, ELSEWHERE, fields)).toBe(EXTENSION);
  expect(await called('sidetone', ELSEWHERE, fields.replace('sip:', 'tel:').replace('@tel.example', ''))).toBe(EXTENSION);
});

test('A P-Called-Party-ID that names nobody here leaves the Request-URI and To', async () => {
  for (const uri of [`sip:${ELSEWHERE}@tel.example`, 'sip:dana@tel.example']) {
    expect(await called(EXTENSION, ELSEWHERE, `P-Called-Party-ID: <${uri}>\r\n`)).toBe(EXTENSION);
    expect(await called('sidetone', EXTENSION, `P-Called-Party-ID: <${uri}>\r\n`)).toBe(EXTENSION);
  }
  expect(await called('sidetone', ELSEWHERE)).toBe('404');
});

test('A call to the Contact that a trunk is registered with, its own number, is for the number in To', async () => {
  const registered = { register: true, username: PILOT, password: 'p' };
  expect(await called(PILOT, EXTENSION, '', registered)).toBe(EXTENSION);
  expect(await called(PILOT, ELSEWHERE, '', registered)).toBe(PILOT);
  const settings = { contact_user: EXTENSION.replace('+', '%2B') };
  expect(await called(EXTENSION, PILOT, '', { ...registered, settings })).toBe(PILOT);
  // Any other Request-URI was dialled.
  expect(await called(EXTENSION, PILOT, '', registered)).toBe(EXTENSION);
  expect(await called(PILOT, EXTENSION, '', { username: PILOT, password: 'p' })).toBe(PILOT);
});
