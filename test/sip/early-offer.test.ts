/**
 * Offers before the answer: UPDATE in an early dialog (RFC 3311 §5.2) and offers in PRACK (RFC 3262 §5), on both sides.
 */
import { expect, test } from 'bun:test';
import type { Call } from '../../src/sip/call/call.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf, START } from './pair.ts';

const NONE = new Uint8Array(0);
const RELIABLE: [string, string][] = [['require', '100rel']];

/** Alice has called Bob, who has answered her offer in a 183. With `fields` she asks for reliable responses. */
function early(fields: [string, string][] = RELIABLE) {
  const random = seeded(11);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random);
  const network = new Network([alice, bob], CALM, random);
  const call = dial(network, alice, bob, { fields });
  bob.react = (each, event) => {
    if (event.type === 'invite') each.provisional(183, bytes('v=0 early'), network.now);
    else if (event.type === 'offer') each.answerOffer(bytes('v=0 bob again'), network.now);
  };
  alice.react = (each, event) => {
    if (event.type === 'offer') each.answerOffer(bytes('v=0 alice again'), network.now);
  };
  network.run(50);
  const [callee] = bob.invited;
  if (callee === undefined) throw new Error('no call came');
  const sent = (line: RegExp) => network.wire.filter((each) => line.test(each.line));
  return { alice, bob, network, call, callee, sent };
}
type Early = ReturnType<typeof early>;

const header = (message: string, name: string) => new RegExp(`\\r\\n${name}: ([^\\r]*)`, 'i').exec(message)?.[1] ?? '';

/** Sends a request within the early dialog, from Alice to Bob or back, and returns the responses to it. */
function within(all: Early, from: 'alice' | 'bob', method: string, body: string, number: number, more = ''): string[] {
  const { network, alice, bob } = all;
  const [sender, receiver] = from === 'alice' ? [alice, bob] : [bob, alice];
  const progress = all.sent(/^SIP\/2\.0 183/)[0]?.data ?? '';
  const [mine, theirs] =
    from === 'alice' ? [header(progress, 'From'), header(progress, 'To')] : [header(progress, 'To'), header(progress, 'From')];
  const type = body === '' ? '' : 'Content-Type: application/sdp\r\n';
  const message =
    `${method} sip:x@${receiver.host} SIP/2.0\r\nVia: SIP/2.0/UDP ${sender.host}:5060;branch=z9hG4bKe${number}${method}\r\n` +
    `From: ${mine}\r\nTo: ${theirs}\r\nCall-ID: ${header(progress, 'Call-ID')}\r\nCSeq: ${number} ${method}\r\n` +
    `Contact: <sip:x@${sender.host}>\r\n${more}${type}Content-Length: ${body.length}\r\n\r\n${body}`;
  const before = network.wire.length;
  receiver.agent.receive(bytes(message), peerOf(sender), network.now);
  network.run(network.now - START + 5);
  return network.wire
    .slice(before)
    .filter((each) => each.from === receiver.host && header(each.data, 'CSeq') === `${number} ${method}`)
    .map((each) => `${each.line.slice(8, 11)} ${each.data.slice(each.data.indexOf('\r\n\r\n') + 4)}`);
}
const answer = (all: Early, callee: Call) => {
  callee.accept(bytes('v=0 final'), all.network.now);
  all.network.run(all.network.now - START + 50);
};

test('an UPDATE with an offer from the caller is answered 200 once the 183 with the answer has its PRACK', () => {
  const all = early();
  expect(within(all, 'alice', 'UPDATE', 'v=0 changed', 9)).toEqual(['200 v=0 bob again']);
  expect(all.bob.types(all.callee)).toEqual(['offer']);
  answer(all, all.callee);
  // The session was changed since: the 200 has no description that would change it back.
  const ok = all.sent(/^SIP\/2\.0 200/).find((each) => header(each.data, 'CSeq') === '1 INVITE');
  expect(header(ok?.data ?? '', 'Content-Length')).toBe('0');
  expect(all.alice.types(all.call)).toEqual(['progress', 'answered']);
});

test('an UPDATE with an offer from the callee is answered 200, and the 200 of the INVITE does not change the session back', () => {
  const all = early();
  expect(within(all, 'bob', 'UPDATE', 'v=0 from bob', 3)).toEqual(['200 v=0 alice again']);
  answer(all, all.callee);
  const events = all.alice.events.get(all.call) ?? [];
  expect(events.map((event) => event.type)).toEqual(['trying', 'progress', 'offer', 'answered']);
  expect(events.at(-1)).toMatchObject({ type: 'answered', body: NONE });
});

test('an UPDATE with an offer while the offer of the INVITE has no answer is 500 with Retry-After at the callee, 491 at the caller', () => {
  const all = early([]);
  expect(within(all, 'alice', 'UPDATE', 'v=0 hasty', 9)[0]).toStartWith('500');
  expect(within(all, 'bob', 'UPDATE', 'v=0 glare', 3)[0]).toStartWith('491');
  answer(all, all.callee);
  expect(all.alice.types(all.call)).toEqual(['progress', 'answered']);
});

test.each([true, false])('an offer in PRACK is answered with that, and the 200 of the INVITE waits for it: %p', (takes) => {
  const random = seeded(12);
  const carol = new Party('192.0.2.3', random);
  const bob = new Party('192.0.2.2', random);
  const network = new Network([carol, bob], CALM, random);
  network.eat = (from, message) => from === carol && message.startsWith('PRACK');
  bob.react = (each, event) => {
    if (event.type === 'invite') each.provisional(183, bytes('v=0 early'), network.now);
  };
  dial(network, carol, bob, { fields: RELIABLE });
  network.run(60);
  const [call] = bob.invited;
  if (call === undefined) throw new Error('no call came');
  call.accept(bytes('v=0 final'), network.now);
  const progress = network.wire.find((each) => each.line.startsWith('SIP/2.0 183'))?.data ?? '';
  const prack =
    `PRACK sip:x@${bob.host} SIP/2.0\r\nVia: SIP/2.0/UDP ${carol.host}:5060;branch=z9hG4bKprack\r\nFrom: ${header(progress, 'From')}\r\n` +
    `To: ${header(progress, 'To')}\r\nCall-ID: ${header(progress, 'Call-ID')}\r\nCSeq: 7 PRACK\r\nRAck: ${header(progress, 'RSeq')} 1 INVITE\r\n` +
    'Content-Type: application/sdp\r\nContent-Length: 11\r\n\r\nv=0 changed';
  const before = network.wire.length;
  const oks = () => network.wire.slice(before).filter((each) => /^SIP\/2\.0 (200|488)/.test(each.line));
  bob.agent.receive(bytes(prack), peerOf(carol), network.now);
  network.run(network.now - START + 1);
  expect(bob.types(call)).toEqual(['offer']);
  expect(oks()).toEqual([]);
  if (takes) call.answerOffer(bytes('v=0 bob again'), network.now);
  else call.refuseOffer(488, network.now);
  network.run(network.now - START + 1);
  const answers = oks().map((each) => [each.line.slice(8, 11), header(each.data, 'CSeq'), each.data.split('\r\n\r\n')[1]]);
  expect(answers).toEqual(
    takes
      ? [
          ['200', '7 PRACK', 'v=0 bob again'],
          ['200', '1 INVITE', ''],
        ]
      : [
          ['488', '7 PRACK', ''],
          ['200', '1 INVITE', 'v=0 final'],
        ],
  );
});

test('an offer in PRACK while that of an UPDATE has no answer is 500, acknowledges all the same, and holds up no 200', () => {
  const all = early();
  all.bob.react = () => {};
  all.network.eat = (from, message) => from === all.alice && message.startsWith('PRACK');
  all.callee.provisional(180, NONE, all.network.now);
  answer(all, all.callee);
  const oks = () => all.sent(/^SIP\/2\.0 200/).filter((each) => header(each.data, 'CSeq') === '1 INVITE').length;
  const rack = `RAck: ${header(all.sent(/^SIP\/2\.0 180/)[0]?.data ?? '', 'RSeq')} 1 INVITE\r\n`;
  expect([within(all, 'alice', 'UPDATE', 'v=0 one', 9), oks()]).toEqual([[], 0]);
  expect([within(all, 'alice', 'PRACK', 'v=0 two', 10, rack), oks()]).toEqual([['500 '], 1]);
  all.callee.answerOffer(bytes('v=0 to one'), all.network.now);
  all.network.run(all.network.now - START + 5);
  expect(all.sent(/^SIP\/2\.0 200/).find((each) => header(each.data, 'CSeq') === '9 UPDATE')?.data).toEndWith('v=0 to one');
});
