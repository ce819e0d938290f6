/** An INVITE of ours to a far end whose every word is written here (RFC 3261 §13.2, §9.1, RFC 3262 §4). */
import { describe, expect, test } from 'bun:test';
import { SIP_CHALLENGES_MAX, SIP_FORKS_MAX, SIP_RETRIES_MAX } from '../../src/limits.ts';
import type { PeerProfile } from '../../src/sip/flow.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, Network, Party, peerOf, START, text } from './pair.ts';

const fieldOf = (message: string, name: string): string => new RegExp(`^${name}: (.*)\r$`, 'im').exec(message)?.[1] ?? '';

/** What is said besides the status: the tag of the fork, more header fields, a description, another method's CSeq. */
interface Words {
  readonly tag?: string;
  readonly fields?: readonly string[];
  readonly body?: string;
  /** The type of the body, where it is no session description. */
  readonly type?: string;
}

function calling(options: { profile?: PeerProfile; fields?: [string, string][]; known?: boolean } = {}) {
  const random = seeded(3);
  const alice = new Party('192.0.2.1', random);
  const far = new Party('192.0.2.2', random);
  const network = new Network([alice], CALM, random);
  const peer = { ...peerOf(far), profile: options.profile ?? {} };
  const call = alice.agent.invite(
    {
      ...{ peer, uri: 'sip:+15550100@192.0.2.2', from: '<sip:+15550199@192.0.2.1>', to: '<sip:+15550100@192.0.2.2>' },
      ...{ body: bytes('v=0 offer'), fields: options.fields ?? [] },
      credentials: options.known === true ? { username: 'u', password: 'p' } : undefined,
    },
    network.now,
  );
  if (call === undefined) throw new Error('no call');
  const run = (ms = 1) => network.run(network.now - START + ms);
  run();
  const sent = (method: string) => network.wire.filter(({ line }) => line.startsWith(`${method} `)).map(({ data }) => data);
  const invite = () => sent('INVITE').at(-1) ?? '';
  const receive = (message: string) => {
    alice.agent.receive(bytes(message), peerOf(far), network.now);
    run();
  };
  /** Answers the last INVITE, or the request that is given. */
  const say = (status: number, words: Words = {}, request = invite()) => {
    const { tag = 'one', fields = [], body = '', type = 'application/sdp' } = words;
    const lines = ['Via', 'From', 'Call-ID', 'CSeq'].map((name) => `${name}: ${fieldOf(request, name)}`);
    lines.push(`To: ${fieldOf(request, 'To').replace(/;tag=.*/, '')}${tag === '' ? '' : `;tag=${tag}`}`);
    lines.push(...(body === '' ? [] : [`Content-Type: ${type}`]), ...fields);
    lines.push(`Content-Length: ${body.length}`);
    receive(`SIP/2.0 ${status} Said\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  };
  /** A request of a fork; the answers to it. */
  const ask = (method: string, number: number, { tag = 'one', fields = [], body = '' }: Words = {}) => {
    const lines = [`Via: SIP/2.0/UDP 192.0.2.2:5060;branch=z9hG4bK${tag}${number}${method}`, `CSeq: ${number} ${method}`];
    lines.push(`From: ${fieldOf(invite(), 'To')};tag=${tag}`, `To: ${fieldOf(invite(), 'From')}`);
    lines.push(`Call-ID: ${fieldOf(invite(), 'Call-ID')}`, 'Contact: <sip:far@192.0.2.2>', ...fields);
    lines.push(...(body === '' ? [] : ['Content-Type: application/sdp']), `Content-Length: ${body.length}`);
    const before = network.wire.length;
    receive(`${method} sip:a@192.0.2.1 SIP/2.0\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
    return network.wire.slice(before).map(({ line }) => line.slice(8, 11));
  };
  const events = () => (alice.events.get(call) ?? []).filter(({ type }) => type !== 'trying');
  const ends = () => alice.ends(call).map((event) => (event.type === 'ended' ? event.end : undefined));
  return { alice, network, call, run, sent, invite, say, ask, events, ends };
}
const CONTACT = 'Contact: <sip:far@192.0.2.2>';
const reliable = (rseq: string) => ['Require: 100rel', `RSeq: ${rseq}`, CONTACT];

describe('a dialled call that is given up', () => {
  test('before any response is over at once; the CANCEL waits for the first one, and gives its reason', () => {
    const { call, network, say, sent, ends, run, invite, alice } = calling({ fields: [['route', '<sip:proxy.example;lr>']] });
    call.hangUp(network.now, 'SIP;cause=200;text="Call completed elsewhere"');
    run();
    expect([ends(), sent('CANCEL')]).toEqual([[{ why: 'local' }], []]);
    say(100, { tag: '' });
    say(180);
    const [cancel = '', ...more] = sent('CANCEL');
    expect(more).toEqual([]);
    for (const name of ['Via', 'From', 'To', 'Call-ID', 'Route'])
      expect([name, fieldOf(cancel, name)]).toEqual([name, fieldOf(invite(), name)]);
    expect([fieldOf(cancel, 'CSeq'), fieldOf(cancel, 'Route')]).toEqual(['1 CANCEL', '<sip:proxy.example;lr>']);
    expect(fieldOf(cancel, 'Reason')).toBe('SIP;cause=200;text="Call completed elsewhere"');
    say(200, {}, cancel);
    say(487);
    expect(sent('ACK')).toHaveLength(1);
    network.run();
    expect(alice.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('while it rings is over with its 487, or 5 s later', () => {
    for (const isAnswered of [true, false]) {
      const { call, network, say, sent, ends, run } = calling();
      say(180);
      call.hangUp(network.now);
      run();
      // Whoever is not patient does not end it sooner.
      call.hangUp(network.now);
      expect([ends(), fieldOf(sent('CANCEL')[0] ?? '', 'Reason')]).toEqual([[], '']);
      if (isAnswered) say(487);
      else run(4_900);
      expect(ends()).toEqual(isAnswered ? [{ why: 'local' }] : []);
      run(200);
      expect(ends()).toEqual([{ why: 'local' }]);
    }
  });

  test('is forgotten 32 s after its CANCEL where no final response comes (RFC 3261 §9.1)', () => {
    const { call, network, say, sent, run, alice } = calling();
    say(180);
    call.hangUp(network.now);
    run();
    say(200, {}, sent('CANCEL')[0]);
    run(31_500);
    expect(alice.agent.load()).not.toEqual({ dialogs: 0, transactions: 0 });
    run(2_000);
    expect(alice.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('and is answered all the same gets ACK and BYE, and is never told as answered', () => {
    const { call, network, say, sent, events } = calling();
    say(180);
    call.hangUp(network.now);
    say(200, { fields: [CONTACT], body: 'v=0 answer' });
    expect([sent('ACK').length, sent('BYE').length]).toEqual([1, 1]);
    expect(events().map(({ type }) => type)).toEqual(['ringing', 'ended']);
  });

  test('sends no second INVITE where the first is challenged meanwhile', () => {
    const { call, network, say, sent, ends } = calling({ known: true });
    say(180);
    call.hangUp(network.now);
    say(401, { fields: ['WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5'] });
    expect([sent('INVITE').length, ends()]).toEqual([1, [{ why: 'local' }]]);
  });

  test('after a challenge waits for a response to its second INVITE, and cancels that one', () => {
    const { call, network, run, say, sent } = calling({ known: true });
    say(180);
    say(401, { fields: ['WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5'] });
    expect(sent('INVITE')).toHaveLength(2);
    call.hangUp(network.now);
    run();
    expect(sent('CANCEL')).toEqual([]);
    say(100, { tag: '' });
    expect(sent('CANCEL').map((cancel) => fieldOf(cancel, 'CSeq'))).toEqual(['2 CANCEL']);
  });
});

describe('an INVITE that is challenged', () => {
  test('by a server and a proxy is acknowledged with the credentials that it was answered for (RFC 3261 §13.2.2.4)', () => {
    const { say, sent, invite } = calling({ known: true });
    say(401, { fields: ['WWW-Authenticate: Digest realm="server", nonce="n", algorithm=MD5'] });
    say(407, { fields: ['Proxy-Authenticate: Digest realm="proxy", nonce="m", algorithm=MD5'] });
    say(200, { fields: [CONTACT], body: 'v=0 answer' });
    const ack = sent('ACK').at(-1) ?? '';
    expect(fieldOf(ack, 'CSeq')).toBe('3 ACK');
    for (const [name, realm] of [
      ['Authorization', 'server'],
      ['Proxy-Authorization', 'proxy'],
    ] as const) {
      expect(fieldOf(ack, name)).toContain(`realm="${realm}"`);
      expect(fieldOf(ack, name)).toBe(fieldOf(invite(), name));
    }
  });

  test('again and again for an old nonce of one realm is given up, though each time another realm asks too', () => {
    const { say, sent, ends } = calling({ known: true });
    for (let i = 0; i < 2 * SIP_CHALLENGES_MAX && ends().length === 0; i++) {
      const old = `WWW-Authenticate: Digest realm="old", nonce="n${i}", algorithm=MD5, stale=true`;
      say(401, { fields: [old, `WWW-Authenticate: Digest realm="new ${i % 2}", nonce="m${i}", algorithm=MD5, stale=true`] });
    }
    expect([sent('INVITE').length, ends().length]).toEqual([SIP_CHALLENGES_MAX + 1, 1]);
  });
});

describe('a dialled call that is refused', () => {
  test('tells the status, and the Contact of a redirection alone', () => {
    for (const [status, contact] of [
      [300, 'sip:else@where'],
      [302, 'sip:else@where'],
      [399, 'sip:else@where'],
      [400, undefined],
      [486, undefined],
    ] as const) {
      const { say, ends } = calling();
      say(status, { fields: ['Contact: <sip:else@where>'] });
      const refused = { why: 'refused', status, q850: undefined, reason: 'Said', retryAfter: false } as const;
      expect(ends()).toEqual([contact === undefined ? refused : { ...refused, contact }]);
    }
  });

  test('for too short a session is tried again with the Min-SE of the 422, four times at most', () => {
    const { say, sent, invite, ends } = calling();
    for (let tries = 1; tries <= SIP_RETRIES_MAX; tries++) {
      say(422, { fields: [`Min-SE: ${tries * 1_000}`] });
      expect([sent('INVITE').length, fieldOf(invite(), 'Session-Expires')]).toEqual([tries + 1, `${tries * 1_000}`]);
      expect(fieldOf(invite(), 'Min-SE')).toBe(`${tries * 1_000}`);
    }
    say(422, { fields: ['Min-SE: 9000'] });
    expect([sent('INVITE').length, ends()]).toMatchObject([SIP_RETRIES_MAX + 1, [{ status: 422 }]]);
  });

  test.each([
    [422, 'Min-SE: 86400', 2],
    [422, 'Min-SE: 86401', 1],
    [422, 'Min-SE: long', 1],
    [422, 'X-Y: z', 1],
    [420, 'Min-SE: 1000', 1],
  ])('with %d and %s has sent %d INVITEs', (status, field, invites) => {
    const { say, sent } = calling();
    say(status, { fields: [field] });
    expect(sent('INVITE')).toHaveLength(invites);
  });
});

describe('a provisional response', () => {
  test('is told as the first sign of life once, whatever it is', () => {
    const { alice, call, say } = calling();
    const trying = () => (alice.events.get(call) ?? []).filter(({ type }) => type === 'trying').length;
    expect(trying()).toBe(0);
    say(100, { tag: '' });
    expect(trying()).toBe(1);
    say(180);
    say(183, { tag: 'two' });
    expect(trying()).toBe(1);
  });

  test('without a To tag is told, and makes no dialog', () => {
    const { say, events, ask } = calling();
    say(180, { tag: '' });
    expect(events()).toEqual([{ type: 'ringing' }]);
    expect(ask('UPDATE', 1, { tag: 'one' })).toEqual(['481']);
  });

  test('that is reliable gets its PRACK in order, once, however high its RSeq', () => {
    const { say, sent, events } = calling();
    const racks = () => sent('PRACK').map((prack) => fieldOf(prack, 'RAck'));
    say(180, { fields: reliable('2147483648') });
    say(180, { fields: reliable('2147483648') });
    say(180, { fields: reliable('2147483650') });
    expect([racks(), events()]).toEqual([['2147483648 1 INVITE'], [{ type: 'ringing' }]]);
    say(183, { fields: reliable('2147483649'), body: 'v=0 early' });
    expect(racks()).toEqual(['2147483648 1 INVITE', '2147483649 1 INVITE']);
    expect(events().map(({ type }) => type)).toEqual(['ringing', 'progress']);
    // Each fork counts for itself.
    say(180, { tag: 'two', fields: reliable('7') });
    expect(racks().at(-1)).toBe('7 1 INVITE');
  });

  test.each([
    ['422', 'Min-SE: 3600'],
    ['401', 'WWW-Authenticate: Digest realm="r", nonce="n"'],
  ])('to an INVITE that is sent again after %s is of no early dialog of before, though its tag is the same', (status, field) => {
    const { say, sent, invite, events } = calling({ known: true });
    say(183, { fields: reliable('100'), body: 'v=0 first' });
    say(Number(status), { fields: [field] });
    expect(fieldOf(invite(), 'CSeq')).toBe('2 INVITE');
    say(183, { fields: reliable('9'), body: 'v=0 second' });
    const prack = sent('PRACK').at(-1) ?? '';
    expect([fieldOf(prack, 'RAck'), fieldOf(prack, 'CSeq')]).toEqual(['9 2 INVITE', '3 PRACK']);
    say(200, { fields: [CONTACT] });
    expect(events().map(({ type }) => type)).toEqual(['progress', 'sent_anew', 'progress', 'answered']);
    const [first, second, answered] = events().flatMap((event) => ('fork' in event ? [event.fork] : []));
    expect([first === second, second === answered]).toEqual([false, true]);
  });

  test('whose PRACK is challenged after the answer leaves the numbers of the dialog in order', () => {
    const { call, network, run, say, sent } = calling({ known: true });
    say(180, { fields: reliable('1') });
    const [prack = ''] = sent('PRACK');
    say(200, { fields: [CONTACT], body: 'v=0 answer' });
    say(407, { fields: ['Proxy-Authenticate: Digest realm="r", nonce="n"'] }, prack);
    call.hangUp(network.now);
    run();
    expect([...sent('PRACK'), ...sent('BYE')].map((request) => fieldOf(request, 'CSeq'))).toEqual([
      '2 PRACK',
      '3 PRACK',
      '4 BYE',
    ]);
  });

  test('that names no Contact leaves the way of its dialog to the first one that does', () => {
    const { say, sent, run } = calling();
    say(181);
    const placed = ['Contact: <sip:gw7@192.0.2.2;x=1>', 'Record-Route: <sip:192.0.2.2;lr;r=2>, <sip:192.0.2.9;lr>'];
    say(183, { fields: ['Require: 100rel', 'RSeq: 1', ...placed], body: 'v=0 answer' });
    run();
    const [prack = ''] = sent('PRACK');
    expect(prack).toStartWith('PRACK sip:gw7@192.0.2.2;x=1 SIP/2.0');
    expect(prack.match(/^Route: .*$/gm)?.map((line) => line.trim())).toEqual([
      'Route: <sip:192.0.2.9;lr>',
      'Route: <sip:192.0.2.2;lr;r=2>',
    ]);
    expect(fieldOf(prack, 'CSeq')).toBe('2 PRACK');
  });

  test('that is reliable and has no RSeq, or no number there, counts for nothing', () => {
    const { say, sent, events } = calling();
    say(180, { fields: ['Require: 100rel'] });
    say(180, { fields: reliable('soon') });
    say(180, { fields: reliable('4294967296') });
    expect([sent('PRACK'), events()]).toEqual([[], []]);
  });

  test('lets its fork make an offer only once it has described the session reliably (RFC 3311 §5.2)', () => {
    const { say, ask, events } = calling();
    say(180, { fields: reliable('1') });
    expect(ask('UPDATE', 1, { body: 'v=0 hasty' })).toEqual(['491']);
    say(183, { fields: reliable('2'), body: 'v=0 early' });
    expect(ask('UPDATE', 2, { body: 'v=0 changed' })).toEqual([]);
    expect(events().map(({ type }) => type)).toEqual(['ringing', 'progress', 'offer']);
  });

  test('and a 200 whose body is no session description, as the ISUP of a gateway, describe nothing', () => {
    const { say, events } = calling();
    const type = 'application/isup;version=itu-t92+';
    say(183, { fields: reliable('1'), body: 'v=0 early' });
    say(183, { fields: reliable('2'), body: 'CPG', type });
    say(200, { fields: [CONTACT], body: 'ANM', type });
    expect(events().map((event) => [event.type, 'body' in event ? text(event.body) : ''])).toEqual([
      ['progress', 'v=0 early'],
      ['ringing', ''],
      ['answered', ''],
    ]);
  });

  test('of more forks than are kept is no dialog', () => {
    const { say, ask, events } = calling();
    for (let fork = 0; fork <= SIP_FORKS_MAX; fork++) say(180, { tag: `f${fork}`, fields: [CONTACT] });
    expect(events()).toHaveLength(SIP_FORKS_MAX);
    expect(ask('OPTIONS', 1, { tag: `f${SIP_FORKS_MAX - 1}` })).toEqual(['200']);
    expect(ask('OPTIONS', 1, { tag: `f${SIP_FORKS_MAX}` })).toEqual(['481']);
  });
});

describe('a dialled call that is answered', () => {
  const answered = (all: ReturnType<typeof calling>, fields: string[] = []) =>
    all.say(200, { fields: [CONTACT, ...fields], body: 'v=0 answer' });

  test('is told with its description, unless an UPDATE of that fork has changed it since', () => {
    for (const changed of ['one', 'two', undefined]) {
      const all = calling();
      for (const tag of ['one', 'two']) all.say(183, { tag, fields: reliable('1'), body: 'v=0 early' });
      if (changed !== undefined) {
        all.ask('UPDATE', 1, { tag: changed, body: 'v=0 changed' });
        all.call.answerOffer(bytes('v=0 ours'), all.network.now);
      }
      answered(all);
      const event = all.events().at(-1);
      const told = event?.type === 'answered' ? [text(event.body), event.isChanged] : [];
      expect([changed, ...told]).toEqual([changed, changed === 'one' ? '' : 'v=0 answer', changed === 'one']);
    }
  });

  test('goes on with the numbers of its early dialog, on both sides', () => {
    const all = calling();
    all.say(183, { fields: reliable('1'), body: 'v=0 early' });
    expect(all.ask('OPTIONS', 5)).toEqual(['200']);
    answered(all);
    expect(all.ask('OPTIONS', 4)).toEqual(['500']);
    expect(all.ask('OPTIONS', 6)).toEqual(['200']);
    all.call.hangUp(all.network.now);
    all.run();
    expect([...all.sent('PRACK'), ...all.sent('ACK'), ...all.sent('BYE')].map((message) => fieldOf(message, 'CSeq'))).toEqual([
      '2 PRACK',
      '1 ACK',
      '3 BYE',
    ]);
  });

  test('acknowledges each repetition of its 200, and hangs up every other fork that answers, within bounds', () => {
    const all = calling();
    answered(all);
    all.run(31_000);
    answered(all);
    // What has lost its way until then is history.
    all.say(180);
    expect([all.sent('ACK').length, all.sent('BYE').length]).toEqual([2, 0]);
    for (let fork = 1; fork <= SIP_FORKS_MAX; fork++) all.say(200, { tag: `f${fork}`, fields: [CONTACT] });
    const tags = all.sent('BYE').map((bye) => /tag=(.*)/.exec(fieldOf(bye, 'To'))?.[1]);
    expect(tags).toEqual(Array.from({ length: SIP_FORKS_MAX - 1 }, (_, at) => `f${at + 1}`));
    expect(all.events().map(({ type }) => type)).toEqual(['answered']);
  });

  test('has no session timer where its trunk takes no part in them', () => {
    for (const [sessionTimer, refreshes] of [
      [true, 1],
      [false, 0],
    ] as const) {
      const all = calling({ profile: { sessionTimer } });
      expect(fieldOf(all.invite(), 'Session-Expires')).toBe(sessionTimer ? '1800' : '');
      answered(all, ['Session-Expires: 1800;refresher=uac', 'Allow: UPDATE']);
      all.run(910_000);
      const requests = all.network.wire.filter(({ line, at }) => at > START + 100 && /^(INVITE|UPDATE)/.test(line));
      expect(new Set(requests.map(({ data }) => fieldOf(data, 'CSeq'))).size).toBe(refreshes);
    }
  });

  test('has none either where the far end asks for one in the answer to a change of ours', () => {
    for (const refresher of ['uac', 'uas']) {
      const all = calling({ profile: { sessionTimer: false } });
      answered(all, ['Allow: UPDATE']);
      all.call.offer(() => bytes('v=0 held'), all.network.now);
      all.run();
      all.say(200, { fields: [CONTACT, `Session-Expires: 1800;refresher=${refresher}`], body: 'v=0 holding' });
      all.run(2_000_000);
      expect([all.sent('INVITE').length, all.sent('UPDATE'), all.ends()]).toEqual([2, [], []]);
    }
  });
});
