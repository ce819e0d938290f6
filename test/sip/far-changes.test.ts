/** Re-INVITE and UPDATE of the far end, request by request, as they come over the wire. */
import { describe, expect, test } from 'bun:test';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf, START, text } from './pair.ts';

/** A call that came to us. `say` has the far end send a request within it, and returns what we have answered. */
function answered() {
  const random = seeded(3);
  const [far, own] = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)];
  const network = new Network([far, own], CALM, random);
  own.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 first'), network.now);
  };
  dial(network, far, own);
  network.run(100);
  const [call] = own.invited;
  if (call === undefined) throw new Error('no call came');
  own.react = () => {};
  const invite = network.wire[0]?.data ?? '';
  const to = /\r\n(To: [^\r]*)/.exec(network.wire.find(({ line }) => line.startsWith('SIP/2.0 200'))?.data ?? '')?.[1] ?? '';
  const head = invite.slice(0, invite.indexOf('\r\n\r\n'));
  // The other side of the call is us in this file: what it gets would only be answered by an agent that knows nothing.
  network.eat = (from) => from === own;
  const sent = () => network.wire.filter(({ from }) => from === own.host).map(({ data }) => data);
  const say = (method: string, number: number, given: { body?: string; fields?: readonly string[]; without?: RegExp } = {}) => {
    const { body = '', fields = [], without = /^$/ } = given;
    const kept = head
      .split('\r\n')
      .filter((line) => !/^Content-/i.test(line) && !without.test(line))
      .map((line) => line.replace(/branch=[^;]*/, `branch=z9hG4bK${method}${number}`).replace(/^To: .*/, to));
    const request = [...kept, ...fields, `Content-Length: ${body.length}`, '', body]
      .join('\r\n')
      .replace(/^INVITE/, method)
      .replace('CSeq: 1 INVITE', `CSeq: ${number} ${method}`);
    const before = sent().length;
    own.agent.receive(bytes(request), peerOf(far), network.now);
    network.run(network.now - START + 10);
    return sent().slice(before);
  };
  const told = (type: 'offer' | 'answer') =>
    (own.events.get(call) ?? []).flatMap((event) => (event.type === type ? [text(event.body)] : []));
  const run = (ms: number) => network.run(network.now - START + ms);
  return { call, network, own, say, told, run, sent };
}
const SDP = 'Content-Type: application/sdp';
const line = (message: string | undefined) => message?.split('\r\n')[0];

describe('a re-INVITE without a description', () => {
  test('gets an offer of ours, whose answer is in the ACK; an ACK without one tells nothing', () => {
    for (const body of ['v=0 theirs', '']) {
      const { call, network, say, told, run, sent } = answered();
      say('INVITE', 2);
      expect(told('offer')).toEqual(['']);
      call.answerOffer(bytes('v=0 ours'), network.now);
      run(10);
      const ok = sent().at(-1);
      expect([line(ok), ok?.endsWith('\r\n\r\nv=0 ours'), ok?.includes(SDP)]).toEqual(['SIP/2.0 200 OK', true, true]);
      say('ACK', 2, { body, fields: [SDP] });
      expect(told('answer')).toEqual(body === '' ? [] : [body]);
      // The exchange is over: the next one is taken.
      expect(line(say('UPDATE', 3)[0])).toBe('SIP/2.0 200 OK');
    }
  });

  test('whose 200 is never acknowledged ends the call with BYE after 32 s', () => {
    const { call, network, own, say, run, sent } = answered();
    say('INVITE', 2);
    call.answerOffer(bytes('v=0 ours'), network.now);
    run(31_000);
    expect(own.ends(call)).toEqual([]);
    run(2_000);
    expect(own.ends(call)).toEqual([{ type: 'ended', end: { why: 'unacknowledged' } }]);
    expect(line(sent().findLast((each) => each.startsWith('BYE')))).toBe('BYE sip:sidetone@192.0.2.1:5060 SIP/2.0');
  });
});

describe('a change of the far end', () => {
  test('of a type that is no SDP is refused with 415, and leaves the session free for the next', () => {
    const { say, told } = answered();
    const [refused] = say('UPDATE', 2, { body: 'x', fields: ['Content-Type: text/plain'] });
    expect([line(refused), refused?.includes('\r\nAccept: application/sdp')]).toEqual([
      'SIP/2.0 415 Unsupported Media Type',
      true,
    ]);
    say('UPDATE', 3, { body: 'v=0 theirs', fields: [SDP] });
    expect(told('offer')).toEqual(['v=0 theirs']);
  });

  test.each(['INVITE', 'UPDATE'])('by %s that is compressed is refused with 415, and taken where it is not', (method) => {
    const { say, told } = answered();
    const refused = say(method, 2, { body: 'x', fields: [SDP, 'Content-Encoding: gzip'] }).at(-1);
    expect([line(refused), refused?.includes('\r\nAccept-Encoding: identity')]).toEqual([
      'SIP/2.0 415 Unsupported Media Type',
      true,
    ]);
    say(method, 3, { body: 'v=0 theirs', fields: [SDP, 'Content-Encoding: Identity'] });
    expect(told('offer')).toEqual(['v=0 theirs']);
  });

  test('while another waits for its answer is refused with 500 and Retry-After, whichever request brings it', () => {
    const { call, network, say, told } = answered();
    say('UPDATE', 2, { body: 'v=0 one', fields: [SDP] });
    for (const [method, number] of [
      ['UPDATE', 3],
      ['INVITE', 4],
    ] as const) {
      const answer = say(method, number, { body: 'v=0 two', fields: [SDP] }).at(-1);
      expect(answer).toMatch(/^SIP\/2.0 500 [\s\S]*\r\nRetry-After: (10|[0-9])\r\n/);
    }
    const waits = Array.from({ length: 9 }, (_, at) => /Retry-After: (.*)\r/.exec(say('INVITE', 5 + at).at(-1) ?? '')?.[1]);
    expect(new Set(waits).size).toBeGreaterThan(2);
    expect(told('offer')).toEqual(['v=0 one']);
    call.answerOffer(bytes('v=0 ours'), network.now);
    // An answer that nobody waits for goes nowhere.
    call.answerOffer(bytes('v=0 again'), network.now);
    expect(line(say('UPDATE', 14)[0])).toBe('SIP/2.0 200 OK');
  });

  test('after a 200 whose ACK is lost is taken all the same, because the far end has that 200', () => {
    const { call, network, own, say, told, run, sent } = answered();
    const answer = () => call.answerOffer(bytes('v=0 ours'), network.now);
    say('INVITE', 2, { body: 'v=0 one', fields: [SDP] });
    answer();
    say('INVITE', 3, { body: 'v=0 two', fields: [SDP] });
    answer();
    run(10);
    const before = sent().length;
    expect(told('offer')).toEqual(['v=0 one', 'v=0 two']);
    // The ACK of the first comes late, and that of the second is waited for.
    say('ACK', 2);
    run(600);
    expect(
      sent()
        .slice(before)
        .map((each) => /CSeq: (.*)\r/.exec(each)?.[1]),
    ).toEqual(['3 INVITE']);
    say('ACK', 3);
    run(40_000);
    expect([sent().length, own.ends(call)]).toEqual([before + 1, []]);
  });

  test('after a 200 with our offer, whose answer the ACK brings, has to wait for that', () => {
    const { call, network, say, told } = answered();
    say('INVITE', 2);
    call.answerOffer(bytes('v=0 ours'), network.now);
    expect(line(say('INVITE', 3, { body: 'v=0 theirs', fields: [SDP] }).at(-1))).toStartWith('SIP/2.0 500');
    say('ACK', 2, { body: 'v=0 answer', fields: [SDP] });
    expect([told('offer'), told('answer')]).toEqual([[''], ['v=0 answer']]);
  });

  test('is not described by a 200 that needs no description, and sets up the session timer that it asks for', () => {
    const { say } = answered();
    const timed = { fields: ['Session-Expires: 1200;refresher=uac'], without: /^Session-Expires/ };
    const [ok] = say('UPDATE', 2, timed);
    expect(ok).not.toContain('Content-Type');
    expect(ok).toMatch(/\r\nSupported: [^\r]*timer/);
    expect(ok).toMatch(/\r\nSession-Expires: 1200;refresher=uac\r\n/);
    expect(ok).toContain('\r\nRequire: timer\r\n');
    const [brief] = say('UPDATE', 3, { ...timed, fields: ['Session-Expires: 60'] });
    expect(brief).toMatch(/^SIP\/2.0 422 [\s\S]*\r\nMin-SE: 90\r\n/);
  });

  test('moves the target of what we send to its Contact, and leaves it where it names none', () => {
    const { call, network, say, run, sent } = answered();
    say('UPDATE', 2, { fields: ['Contact: <sip:moved@192.0.2.1:5090>'], without: /^Contact/ });
    say('UPDATE', 3, { without: /^Contact/ });
    call.hangUp(network.now);
    run(10);
    expect(line(sent().findLast((each) => each.startsWith('BYE')))).toBe('BYE sip:moved@192.0.2.1:5090 SIP/2.0');
  });

  test('that waits for its answer when the call is hung up is refused with 487', () => {
    const { call, network, say, run, sent } = answered();
    say('INVITE', 2, { body: 'v=0 theirs', fields: [SDP] });
    const before = sent().length;
    call.hangUp(network.now);
    run(10);
    expect(sent().slice(before).map(line).toSorted()).toEqual([expect.stringMatching(/^BYE /), 'SIP/2.0 487 Request Terminated']);
  });

  test('has its 200 no more after the call is over, acknowledged or not', () => {
    const { call, network, own, say, run, sent } = answered();
    say('INVITE', 2, { body: 'v=0 theirs', fields: [SDP] });
    call.answerOffer(bytes('v=0 ours'), network.now);
    run(10);
    expect(say('BYE', 3).map(line)).toEqual(['SIP/2.0 200 OK']);
    const before = sent().length;
    run(40_000);
    expect([sent().slice(before).map(line), own.ends(call).length]).toEqual([[], 1]);
  });
});

describe('a change that is not answered yet when another node goes on with the call', () => {
  test.each(['INVITE', 'UPDATE'])('by %s is refused for a while, so that the far end makes it again', (method) => {
    const { call, own, say, told, run, sent } = answered();
    say(method, 2, { body: 'v=0 theirs', fields: [SDP] });
    expect(told('offer')).toEqual(['v=0 theirs']);
    call.abandon();
    run(0);
    const refused = sent().at(-1);
    expect([line(refused), refused?.includes('\r\nRetry-After: ')]).toEqual(['SIP/2.0 500 Server Internal Error', true]);
    run(64_000);
    expect([own.agent.load(), own.ends(call)]).toEqual([{ dialogs: 0, transactions: 0 }, []]);
  });
});

describe('a request within a call', () => {
  test('of a method that is not taken is 405 with those that are, which OPTIONS is told too', () => {
    const { say } = answered();
    for (const [method, status] of [
      ['OPTIONS', 'SIP/2.0 200 OK'],
      ['MESSAGE', 'SIP/2.0 405 Method Not Allowed'],
    ] as const) {
      const [answer] = say(method, method === 'OPTIONS' ? 2 : 3);
      expect([line(answer), answer?.includes('\r\nAllow: INVITE, ')]).toEqual([status, true]);
    }
  });

  test('of a number that was used before is 500, on a branch of its own too', () => {
    const { say, told } = answered();
    say('UPDATE', 2);
    for (const number of [2, 1])
      expect(line(say('INVITE', number, { body: 'v=0 again', fields: [SDP] })[0])).toStartWith('SIP/2.0 500');
    expect(told('offer')).toEqual([]);
  });

  test('that we have hung up is 481, but BYE, and so is a PRACK where nothing waits for one', () => {
    const { call, network, say } = answered();
    expect(line(say('PRACK', 2, { fields: ['RAck: 1 1 INVITE'] })[0])).toStartWith('SIP/2.0 481');
    call.hangUp(network.now);
    expect(
      ['UPDATE', 'BYE'].map((method, at) => line(say(method, 3 + at).find((each) => each.startsWith('SIP')))?.slice(8, 11)),
    ).toEqual(['481', '200']);
  });
});
