/** Requests that belong to no call and are answered at once: they leave nothing behind that calls need a place for. */
import { expect, test } from 'bun:test';
import { SIP_TRANSACTIONS_OF_CALL_MAX } from '../../src/limits.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party } from './pair.ts';

const TRUNK = { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 1 } as const;
const request = (method: string, branch: string, to = '<sip:x@192.0.2.2>') =>
  `${method} sip:x@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK${branch}\r\nFrom: <sip:s@x>;tag=s\r\n` +
  `To: ${to}\r\nCall-ID: c\r\nCSeq: 900 ${method}\r\nMax-Forwards: 70\r\nContact: <sip:s@192.0.2.1>\r\nContent-Length: 0\r\n\r\n`;

test('a flood of requests outside of all calls, whose sources may be forged, keeps no call out', () => {
  const random = seeded(5);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random, { maxTransactions: 4 });
  const network = new Network([alice, bob], CALM, random);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  const answersTo = (message: string): string[] => {
    bob.agent.receive(bytes(message), TRUNK, network.now);
    return bob.agent.take().flatMap((output) => (output.type === 'send' ? new TextDecoder().decode(output.bytes) : []));
  };
  const lost = '<sip:x@192.0.2.2>;tag=nobody';
  const flood = [
    ...['OPTIONS', 'REGISTER', 'MESSAGE', 'REFER', 'CANCEL', 'NEWMETHOD'].map((method) => ({ method, to: undefined })),
    ...['BYE', 'UPDATE', 'INFO'].map((method) => ({ method, to: lost })),
  ];
  const statuses = flood.flatMap(({ method, to }) => {
    const message = request(method, method, to);
    const first = answersTo(message);
    // What comes again is answered in the same words, as by one who keeps the answer.
    expect(answersTo(message)).toEqual(first);
    return first.map((each) => each.slice(8, 11));
  });
  expect(statuses).toEqual(['200', '405', '405', '403', '481', '501', '481', '481', '481']);
  expect({ ...bob.agent.load(), ...bob.agent.holdings() }).toEqual({ dialogs: 0, transactions: 0, deadlines: 0, keys: 0 });

  const call = dial(network, alice, bob);
  network.run(100);
  expect(bob.types(bob.invited[0])).toEqual(['accepted', 'confirmed']);
  call.hangUp(network.now);
  network.run(100);
  // The BYE of a call is kept: the call is gone when it comes again.
  const bye = network.wire.find((each) => each.line.startsWith('BYE '))?.data ?? '';
  expect(answersTo(bye).map((each) => each.slice(8, 11))).toEqual(['200']);
});

test('requests of one far end within its call, however many, take no place of other calls', () => {
  const random = seeded(6);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random, { maxTransactions: 2 * SIP_TRANSACTIONS_OF_CALL_MAX });
  const network = new Network([alice, bob], CALM, random);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  dial(network, alice, bob);
  network.run(100);
  const ack = network.wire.find((each) => each.line.startsWith('ACK '))?.data ?? '';
  const field = (name: string): string => new RegExp(`^${name}: .*$`, 'm').exec(ack)?.[0].trim() ?? '';
  const answerTo = (number: number): string => {
    const message =
      `INFO sip:x@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bK${number}\r\n${field('From')}\r\n` +
      `${field('To')}\r\n${field('Call-ID')}\r\nCSeq: ${number} INFO\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n`;
    bob.agent.receive(bytes(message), TRUNK, network.now);
    const [sent] = bob.agent.take();
    return sent?.type === 'send' ? new TextDecoder().decode(sent.bytes) : '';
  };
  const first = answerTo(1_000);
  for (let number = 1_001; number < 1_000 + 3 * SIP_TRANSACTIONS_OF_CALL_MAX; number++)
    expect(answerTo(number)).toStartWith('SIP/2.0 200 ');
  expect(bob.agent.load().transactions).toBeLessThanOrEqual(SIP_TRANSACTIONS_OF_CALL_MAX + 1);
  // The last ones are known when they come again, and the first ones are late ones (RFC 3261 §12.2.2).
  const last = 999 + 3 * SIP_TRANSACTIONS_OF_CALL_MAX;
  expect(answerTo(last)).toStartWith('SIP/2.0 200 ');
  expect(first).toStartWith('SIP/2.0 200 ');
  expect(answerTo(1_000)).toStartWith('SIP/2.0 500 ');

  const other = dial(network, alice, bob);
  network.run(200);
  expect(alice.types(other)).toEqual(['answered']);
  network.run(64_000);
  expect(bob.agent.load().transactions).toBe(0);
});
