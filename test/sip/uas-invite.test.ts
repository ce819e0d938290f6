/** An INVITE from a caller whose every word is written here (RFC 3261 §13.3, RFC 3262 §3, §5). */
import { describe, expect, test } from 'bun:test';
import { SIP_RELIABLE_QUEUE_MAX } from '../../src/limits.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, Network, Party, peerOf, START, text } from './pair.ts';

const NONE = new Uint8Array(0);
const SDP = bytes('v=0 answer');
const fieldOf = (message: string, name: string): string => new RegExp(`^${name}: (.*)\r$`, 'im').exec(message)?.[1] ?? '';
const bodyOf = (message: string): string => message.slice(message.indexOf('\r\n\r\n') + 4);

/** `fields` of the INVITE; without a `body` it makes no offer. */
function called({ fields = [] as readonly string[], body = 'v=0 offer' } = {}) {
  const random = seeded(3);
  const bob = new Party('192.0.2.2', random);
  const caller = new Party('192.0.2.1', random);
  const network = new Network([bob], CALM, random);
  const run = (ms = 0) => network.run(network.now - START + ms);
  let toTag = '';
  let branches = 0;
  /** Sends a request of the caller, and gives the statuses of the answers to it. */
  const ask = (method: string, number: number, { fields: more = [] as readonly string[], body: description = '' } = {}) => {
    const lines = [`Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKu${++branches}`, `CSeq: ${number} ${method}`];
    lines.push('From: <sip:a@192.0.2.1>;tag=f', `To: <sip:b@192.0.2.2>${toTag}`, 'Call-ID: c', 'Contact: <sip:a@192.0.2.1>');
    lines.push(
      ...(description === '' ? [] : ['Content-Type: application/sdp']),
      ...more,
      `Content-Length: ${description.length}`,
    );
    const before = network.wire.length;
    bob.agent.receive(
      bytes(`${method} sip:b@192.0.2.2 SIP/2.0\r\n${lines.join('\r\n')}\r\n\r\n${description}`),
      peerOf(caller),
      network.now,
    );
    run();
    return network.wire
      .slice(before)
      .filter(({ data }) => fieldOf(data, 'CSeq') === `${number} ${method}`)
      .map(({ line }) => line.slice(8, 11));
  };
  ask('INVITE', 1, { fields, body });
  const [call] = bob.invited;
  if (call === undefined) throw new Error('no call came');
  /** What was answered to the INVITE with that status. */
  const said = (status: number) =>
    network.wire.filter(({ line, data }) => line.startsWith(`SIP/2.0 ${status}`) && / INVITE\r/.test(data));
  const provisional = (status: 180 | 183, description: Uint8Array = NONE) => {
    call.provisional(status, description, network.now);
    run();
    toTag = fieldOf(said(status)[0]?.data ?? '', 'To').replace(/^[^;]*/, '') || toTag;
  };
  const accept = (description: Uint8Array = SDP) => {
    call.accept(description, network.now);
    run();
    toTag = fieldOf(said(200)[0]?.data ?? '', 'To').replace(/^[^;]*/, '') || toTag;
  };
  const prack = (number: number, rack: string, more: { fields?: string[]; body?: string } = {}) =>
    ask('PRACK', number, { ...more, fields: [`RAck: ${rack}`] });
  const rseq = (status: number) => Number(fieldOf(said(status).at(-1)?.data ?? '', 'RSeq'));
  const events = () => (bob.events.get(call) ?? []).map((event) => event.type);
  const answers = () => (bob.events.get(call) ?? []).flatMap((event) => (event.type === 'answer' ? [text(event.body)] : []));
  return { bob, network, call, run, ask, said, provisional, accept, prack, rseq, events, answers };
}
const REQUIRED = { fields: ['Require: 100rel'] };
const SUPPORTED = { fields: ['Supported: 100rel'] };

describe('a call that comes in', () => {
  test('is up where the ACK of its 200 is lost and the caller goes on to another INVITE; not where the ACK has the answer', () => {
    const { accept, ask, events, run, said } = called();
    accept();
    expect(ask('INVITE', 2, { body: 'v=0 held' })).toEqual(['100']);
    const wentOn = events();
    expect(wentOn).toEqual(['accepted', 'confirmed', 'offer']);
    ask('ACK', 1);
    run(40_000);
    expect([events(), said(200).length]).toEqual([wentOn, 1]);
    const late = called({ body: '' });
    late.accept();
    expect(late.ask('INVITE', 2, { body: 'v=0 held' })).toEqual(['500']);
    late.ask('ACK', 1, { body: 'v=0 answer' });
    expect([late.events(), late.answers()]).toEqual([['accepted', 'answer', 'confirmed'], ['v=0 answer']]);
  });

  test('rings with our Contact and what we can do, and describes the session where it is described', () => {
    const { provisional, accept, said } = called();
    provisional(180);
    provisional(183, bytes('v=0 early'));
    accept();
    const [ringing = '', progress = '', ok = ''] = [180, 183, 200].map((status) => said(status)[0]?.data ?? '');
    for (const response of [ringing, progress, ok]) {
      expect(fieldOf(response, 'Contact')).toContain('192.0.2.2');
      expect(fieldOf(response, 'Allow')).toContain('UPDATE');
      expect([fieldOf(response, 'RSeq'), fieldOf(response, 'Require')]).toEqual(['', '']);
    }
    expect([ringing, progress, ok].map((response) => [fieldOf(response, 'Content-Type'), bodyOf(response)])).toEqual([
      ['', ''],
      ['application/sdp', 'v=0 early'],
      ['application/sdp', 'v=0 answer'],
    ]);
  });

  test('is answered once: what is ordered after the answer, or after a refusal, has no effect', () => {
    const up = called();
    up.accept();
    up.accept();
    up.provisional(183, SDP);
    up.call.refuse(486, [], up.network.now);
    up.run();
    expect([200, 183, 486].map((status) => up.said(status).length)).toEqual([1, 0, 0]);
    const refused = called();
    refused.call.refuse(486, [['x-why', 'busy']], refused.network.now);
    refused.call.refuse(480, [], refused.network.now);
    refused.accept();
    expect([486, 480, 200].map((status) => refused.said(status).length)).toEqual([1, 0, 0]);
    expect(fieldOf(refused.said(486)[0]?.data ?? '', 'x-why')).toBe('busy');
  });

  test('is told to take part in the session timer where it is the caller that refreshes (RFC 4028 §9)', () => {
    for (const [refresher, require] of [
      ['uac', 'timer'],
      ['uas', ''],
    ] as const) {
      const { accept, said } = called({ fields: ['Supported: timer', `Session-Expires: 600;refresher=${refresher}`] });
      accept();
      const ok = said(200)[0]?.data ?? '';
      expect([fieldOf(ok, 'Session-Expires'), fieldOf(ok, 'Require')]).toEqual([`600;refresher=${refresher}`, require]);
    }
  });

  test('whose 200 is not acknowledged gets it again, each time after twice as long and at most 4 s, for 32 s', () => {
    const { accept, said, run, network, bob, call } = called();
    accept();
    run(60_000);
    const times = said(200).map(({ at }) => at - START);
    expect(times).toEqual([0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500]);
    expect(bob.ends(call)).toEqual([{ type: 'ended', end: { why: 'unacknowledged' } }]);
    expect(network.wire.find(({ line }) => line.startsWith('BYE'))?.at).toBe(START + 32_000);
  });

  test('without an offer is made one, and its answer is in the ACK', () => {
    const { accept, ask, said, events, answers } = called({ body: '' });
    accept(bytes('v=0 our offer'));
    expect(bodyOf(said(200)[0]?.data ?? '')).toBe('v=0 our offer');
    // The ACK of another request is none of its own.
    ask('ACK', 7, { body: 'v=0 other' });
    expect(events()).toEqual(['accepted']);
    ask('ACK', 1, { body: 'v=0 answer' });
    ask('ACK', 1, { body: 'v=0 again' });
    expect([events(), answers()]).toEqual([['accepted', 'answer', 'confirmed'], ['v=0 answer']]);
  });

  test('can be described before its answer where it made an offer, or hears reliable responses', () => {
    const may = (options: Parameters<typeof called>[0]) => called(options).call.canDescribeEarly;
    expect([may({}), may({ body: '' })]).toEqual([true, false]);
    expect([may({ ...SUPPORTED, body: '' }), may({ ...REQUIRED, body: '' })]).toEqual([true, true]);
  });

  test('is told each minute that it is not answered yet, or a proxy gives it up after three (RFC 3261 §13.3.1.1)', () => {
    const { provisional, accept, ask, said, run } = called();
    provisional(180);
    run(59_000);
    expect(said(180)).toHaveLength(1);
    run(2_000);
    expect(said(180)).toHaveLength(2);
    provisional(183, bytes('v=0 early'));
    run(200_000);
    expect([said(180).length, said(183).length]).toEqual([2, 4]);
    expect(new Set(said(183).map(({ data }) => data)).size).toBe(1);
    accept();
    ask('ACK', 1);
    run(200_000);
    expect([said(183).length, said(200).length]).toEqual([4, 1]);
  });

  test('is told so by a reliable response of its own where it wants such, and by no other while one waits for its PRACK', () => {
    const { provisional, prack, said, rseq, run } = called(REQUIRED);
    provisional(183, bytes('v=0 early'));
    prack(2, `${rseq(183)} 1 INVITE`);
    run(61_000);
    const [first, second] = [...new Set(said(183).map(({ data }) => data))];
    expect(Number(fieldOf(second ?? '', 'RSeq'))).toBe(Number(fieldOf(first ?? '', 'RSeq')) + 1);
    expect([bodyOf(first ?? ''), bodyOf(second ?? '')]).toEqual(['v=0 early', '']);

    const late = called({ ...SUPPORTED, body: '' });
    late.provisional(183, SDP);
    late.provisional(180);
    late.run(2_000);
    expect(late.said(183).length).toBeGreaterThan(2);
  });

  test('is told nothing more once it is refused, whether it rang reliably or not', () => {
    for (const wants of [{}, REQUIRED]) {
      const { call, provisional, said, run, network } = called(wants);
      provisional(180);
      call.refuse(486, [], network.now);
      // Without an ACK it is told for 32 s (timer H).
      run(33_000);
      expect([said(180).length, said(486).length]).toEqual([1, 11]);
      run(200_000);
      expect([said(180).length, said(486).length]).toEqual([1, 11]);
    }
  });

  test('that is hung up before its answer is told that nobody is there, and after it gets one BYE', () => {
    const unanswered = called();
    unanswered.call.hangUp(unanswered.network.now);
    unanswered.run();
    expect([unanswered.said(480).length, unanswered.bob.ends(unanswered.call).length]).toEqual([1, 1]);
    const { accept, ask, call, network, run } = called();
    accept();
    ask('ACK', 1);
    for (let times = 0; times < 2; times++) call.hangUp(network.now);
    run();
    expect(network.wire.filter(({ line }) => line.startsWith('BYE'))).toHaveLength(1);
  });

  test('that its caller hangs up before the ACK is not answered again', () => {
    const { accept, ask, said, run, bob, call } = called();
    accept();
    expect(ask('BYE', 2)).toEqual(['200']);
    run(60_000);
    expect([said(200).length, bob.ends(call).length]).toEqual([1, 1]);
    expect(bob.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });
});

describe('a reliable provisional response', () => {
  test('is sent where the caller requires it, again and again until its PRACK, each time after twice as long', () => {
    const { provisional, prack, rseq, said, run } = called(REQUIRED);
    provisional(180);
    expect(fieldOf(said(180)[0]?.data ?? '', 'Require')).toBe('100rel');
    expect(rseq(180)).toBeGreaterThan(0);
    run(10_000);
    expect(said(180).map(({ at }) => at - START)).toEqual([0, 500, 1_500, 3_500, 7_500]);
    expect(new Set(said(180).map(({ data }) => data)).size).toBe(1);
    expect(prack(2, `${rseq(180)} 1 INVITE`)).toEqual(['200']);
    run(50_000);
    expect(said(180)).toHaveLength(5);
  });

  test('that is not acknowledged within 32 s ends the call with 504 (RFC 3262 §3)', () => {
    const { provisional, accept, said, run, bob, call } = called(REQUIRED);
    provisional(180);
    accept();
    run(31_900);
    expect(bob.ends(call)).toEqual([]);
    run(200);
    expect([said(504)[0]?.at, said(200)]).toEqual([START + 32_000, []]);
    expect(bob.ends(call)).toEqual([{ type: 'ended', end: { why: 'unacknowledged' } }]);
    run(40_000);
    expect(bob.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('is acknowledged by a PRACK of its own numbers alone; others are 481', () => {
    const { provisional, prack, rseq } = called(REQUIRED);
    provisional(180);
    const number = rseq(180);
    const wrong = [`${number + 1} 1 INVITE`, `${number} 2 INVITE`, `${number} 1 UPDATE`, `${number} 1`, '', 'x y INVITE'];
    for (const [at, rack] of wrong.entries()) expect([rack, prack(at + 2, rack)]).toEqual([rack, ['481']]);
    expect(prack(9, `  ${number}  1 INVITE `)).toEqual(['200']);
    expect(prack(10, `${number} 1 INVITE`)).toEqual(['481']);
  });

  test('holds up the next ones and the 200, which follow its PRACK in their order', () => {
    const { provisional, accept, prack, rseq, said, events } = called(REQUIRED);
    provisional(180);
    const first = rseq(180);
    provisional(183, bytes('v=0 early'));
    accept();
    // What is ordered after the answer is not sent any more.
    provisional(180);
    expect([said(180).length, said(183).length, said(200).length]).toEqual([1, 0, 0]);
    expect(prack(2, `${first} 1 INVITE`)).toEqual(['200']);
    expect([rseq(183), bodyOf(said(183)[0]?.data ?? '')]).toEqual([first + 1, 'v=0 early']);
    expect([said(200), events()]).toEqual([[], []]);
    expect(prack(3, `${first + 1} 1 INVITE`)).toEqual(['200']);
    expect([said(180).length, said(200).length, events()]).toEqual([1, 1, ['accepted']]);
    expect(prack(4, `${first + 1} 1 INVITE`)).toEqual(['481']);
  });

  test('is not followed by the next one where a change is answered before its PRACK', () => {
    const { provisional, prack, ask, rseq, said, call, network, run } = called(REQUIRED);
    provisional(183, SDP);
    prack(2, `${rseq(183)} 1 INVITE`);
    provisional(180);
    provisional(183);
    ask('UPDATE', 3, { body: 'v=0 changed' });
    call.answerOffer(bytes('v=0 ours'), network.now);
    run();
    expect([said(180).length, said(183).length]).toEqual([1, 1]);
    prack(4, `${rseq(180)} 1 INVITE`);
    expect(said(183)).toHaveLength(2);
  });

  test('is not queued beyond eight others', () => {
    const { provisional, prack, rseq, said } = called(REQUIRED);
    for (let count = 0; count < SIP_RELIABLE_QUEUE_MAX + 3; count++) provisional(180);
    for (let cseq = 2; cseq < 20; cseq++) prack(cseq, `${rseq(180)} 1 INVITE`);
    expect(said(180)).toHaveLength(1 + SIP_RELIABLE_QUEUE_MAX);
  });

  test('and what waits for it is not sent after a refusal, a hangup or a BYE', () => {
    for (const how of ['refuse', 'hangup', 'BYE']) {
      const { provisional, accept, ask, said, run, call, network } = called(REQUIRED);
      provisional(180);
      provisional(183);
      if (how !== 'refuse') accept();
      if (how === 'refuse') call.refuse(486, [], network.now);
      else if (how === 'BYE') ask('BYE', 2);
      else call.hangUp(network.now);
      run(100_000);
      expect([how, said(180).length, said(183).length, said(200).length]).toEqual([how, 1, 0, 0]);
    }
  });

  test('makes our offer where the INVITE made none; the PRACK has its answer, and the 200 says nothing of it again', () => {
    const { provisional, accept, prack, ask, rseq, said, events, answers } = called({ ...SUPPORTED, body: '' });
    provisional(180);
    expect(fieldOf(said(180)[0]?.data ?? '', 'RSeq')).toBe('');
    provisional(183, bytes('v=0 our offer'));
    expect(prack(2, `${rseq(183)} 1 INVITE`, { body: 'v=0 their answer' })).toEqual(['200']);
    expect(answers()).toEqual(['v=0 their answer']);
    accept();
    const ok = said(200)[0]?.data ?? '';
    expect([bodyOf(ok), fieldOf(ok, 'Content-Type')]).toEqual(['', '']);
    ask('ACK', 1);
    expect([events(), answers().length]).toEqual([['answer', 'accepted', 'confirmed'], 1]);
  });

  test('whose PRACK has no answer to our offer leaves the offer to the 200', () => {
    const { provisional, accept, prack, ask, rseq, said, answers } = called({ ...SUPPORTED, body: '' });
    provisional(183, bytes('v=0 our offer'));
    expect(prack(2, `${rseq(183)} 1 INVITE`)).toEqual(['200']);
    accept(bytes('v=0 our offer'));
    expect([bodyOf(said(200)[0]?.data ?? ''), answers()]).toEqual(['v=0 our offer', []]);
    ask('ACK', 1, { body: 'v=0 their answer' });
    expect(answers()).toEqual(['v=0 their answer']);
  });

  test('that answers nothing gets no offer in its PRACK: that is 488, and a PRACK without one is still waited for', () => {
    const { provisional, prack, rseq, events, ask } = called(REQUIRED);
    provisional(180);
    const rack = `${rseq(180)} 1 INVITE`;
    expect(prack(2, rack, { body: 'v=0 hasty' })).toEqual(['488']);
    expect(prack(3, rack)).toEqual(['200']);
    // Nor in an UPDATE, though that PRACK has come.
    expect(ask('UPDATE', 10, { body: 'v=0 hasty' })).toEqual(['500']);
    // The 183 answers the offer of the INVITE: a new one may come.
    provisional(183, SDP);
    expect(prack(11, `${rseq(183)} 1 INVITE`, { body: 'v=0 changed' })).toEqual([]);
    expect(events()).toEqual(['offer']);
  });
});
