/** New calls that have waited for too long are refused without state; what belongs to a call is worked on still. */
import { expect, test } from 'bun:test';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf } from './pair.ts';

function parties() {
  const random = seeded(7);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random);
  const network = new Network([alice, bob], CALM, random);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  const late = (message: string) => {
    bob.agent.receive(bytes(message), peerOf(alice), network.now, { isLate: true });
    return bob.agent.take();
  };
  return { alice, bob, network, late };
}

const INVITE =
  'INVITE sip:x@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKlate\r\nFrom: <sip:s@x>;tag=s\r\n' +
  'To: <sip:x@192.0.2.2>\r\nCall-ID: late\r\nCSeq: 1 INVITE\r\nMax-Forwards: 70\r\nContact: <sip:s@192.0.2.1>\r\n' +
  'Content-Length: 0\r\n\r\n';

test('A late INVITE is answered 503 without Retry-After, and leaves nothing behind', () => {
  const { bob, late } = parties();
  const [answer, refused, ...more] = late(INVITE);
  if (answer?.type !== 'send') throw new Error('nothing is sent');
  const text = new TextDecoder().decode(answer.bytes);
  expect(text).toStartWith('SIP/2.0 503 Service Unavailable\r\n');
  expect(text).not.toMatch(/^Retry-After/im);
  expect(refused).toMatchObject({ type: 'refused', status: 503, isLate: true });
  expect(more).toEqual([]);
  expect({ ...bob.agent.load(), ...bob.agent.holdings() }).toEqual({ dialogs: 0, transactions: 0, deadlines: 0, keys: 0 });
});

test('An INVITE that comes again, and what is within a call, is never refused for being late', () => {
  const { alice, bob, network, late } = parties();
  const call = dial(network, alice, bob);
  network.run(100);
  expect(bob.types(bob.invited[0])).toEqual(['accepted', 'confirmed']);
  const sent = (method: string) => network.wire.findLast(({ line }) => line.startsWith(`${method} `))?.data ?? '';
  expect(late(sent('INVITE')).filter(({ type }) => type === 'refused')).toEqual([]);
  expect(late(sent('ACK'))).toEqual([]);

  call.hangUp(network.now);
  for (const output of alice.agent.take())
    if (output.type === 'send') bob.agent.receive(output.bytes, peerOf(alice), network.now, { isLate: true });
  network.run(100);
  expect(bob.types(bob.invited[0])).toContain('ended');
  expect(bob.agent.load().dialogs).toBe(0);
});
