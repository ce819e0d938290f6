/** A device that calls from the address of a trunk, as behind one NAT with an exchange, over real sockets. */
import { afterEach, expect, test } from 'bun:test';
import { Alice } from './device-directory.ts';
import { asUser } from './device-peer.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const HOST = '127.0.0.200';
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A call of alice that is up, from the address of a trunk which has a password, with that Contact. */
async function callOf(contactHost: string) {
  const secrets = { username: 'trunk-user', password: 'trunk-secret' };
  const trunk = trunkTo('sip:127.0.0.1:9', { inboundCidrs: [`${HOST}/32`], ...secrets });
  const carrier = await TestCarrier.open([trunk], { devices: new Alice() });
  closers.push(() => carrier.close());
  const alice = await RawPeer.udp(carrier.port('udp'), HOST);
  const other = await RawPeer.udp(carrier.port('udp'), contactHost);
  closers.push(
    () => alice.close(),
    () => other.close(),
  );
  carrier.onIncoming = ({ call }) => call.leg.answer();
  const contact = `<sip:alice@${contactHost}:${contactHost === HOST ? alice.port : other.port}>`;
  const { response, parts } = await asUser(alice, 'INVITE', 'alice', { number: '100', body: sdp(), contact });
  alice.send(alice.request('ACK', { ...parts, cseq: 2, to: field(response, 'To'), body: '' }));
  const [incoming] = carrier.incoming;
  await incoming?.signals.until('leg.answered');
  return { carrier, alice, other, leg: incoming?.call.leg };
}

test('a device at the address of a trunk is not answered with the password of the trunk', async () => {
  const { carrier, alice, leg } = await callOf(HOST);
  leg?.hangup();
  const bye = await alice.until(/^BYE /);
  alice.respond(bye, '401 Unauthorized', { fields: 'WWW-Authenticate: Digest realm="trunk", nonce="chosen"\r\n' });
  await carrier.idle();
  expect(alice.heard.filter((message) => /^(?:Proxy-)?Authorization:/im.test(message))).toEqual([]);
});

test('a device at the address of a trunk is reached there, and nobody else at the address that its Contact has', async () => {
  const { alice, other, leg } = await callOf('127.0.0.9');
  leg?.hangup();
  alice.respond(await alice.until(/^BYE /, 1_000), '200 OK');
  expect(other.heard).toEqual([]);
});
