/** How long a registration lasts, when it is made anew, and how it is given up (RFC 3261 §10.2, RFC 5626 §4.4). */
import { expect, test } from 'bun:test';
import { SIP_REGISTER_RETRY_SEC, SIP_RETRIES_MAX } from '../../src/limits.ts';
import type { Peer } from '../../src/sip/flow.ts';
import type { RegistrationOptions } from '../../src/sip/registration.ts';
import { seeded } from '../support/random.ts';
import { bytes, Party, START, text } from './pair.ts';

const PEER: Peer = { transport: 'tcp', host: '203.0.113.1', port: 5060, flow: 1 };

/** A registration that was started, with a registrar that answers as it is told. */
function started(more: Partial<RegistrationOptions> = {}, peers: readonly Peer[] = [PEER]) {
  const party = new Party('192.0.2.1', seeded(3));
  let now = START;
  const registration = party.agent.register('trunk', {
    ...{ registrar: 'sip:reg.example', address: 'sip:gw@reg.example', credentials: { username: 'gw', password: 'secret' } },
    resolve: (found) => found(peers, now),
    ...more,
  });
  const states: string[] = [];
  const requests: string[] = [];
  let ticket = '';
  const look = () => {
    for (const output of party.agent.take()) {
      if (output.type === 'registration') states.push(`${output.state} ${output.status}`);
      if (output.type === 'send') {
        requests.push(text(output.bytes));
        ticket = output.ticket;
      }
    }
  };
  registration.start(START);
  look();
  /** Answers the last request. */
  const answer = (status: number, ...fields: readonly string[]) => {
    const request = requests.at(-1) ?? '';
    const said = request.replace(/^.*\r\n/, `SIP/2.0 ${status} X\r\n`).replace(/^(Contact|Expires): .*\r\n/gm, '');
    party.agent.receive(
      bytes(said.replace(/Content-Length/, `${fields.map((field) => `${field}\r\n`).join('')}Content-Length`)),
      PEER,
      now,
    );
    look();
  };
  const advance = (ms: number) => {
    now = START + ms;
    party.agent.advance(now);
    look();
  };
  /** When the next request is sent, by steps of a second. Undefined where none is until `to`. */
  const next = (from: number, to: number) => {
    const before = requests.length;
    for (let at = from; at <= to; at += 1_000) {
      advance(at);
      if (requests.length > before) return at;
    }
    return undefined;
  };
  const fail = () => {
    party.agent.sendFailed(ticket, now);
    look();
  };
  return { party, registration, states, requests, look, answer, advance, next, fail, now: () => now };
}

test('A registration lasts as long as it was granted, and counts for nothing once it was refused', () => {
  const { registration, answer, advance } = started();
  expect([registration.state, registration.until]).toEqual(['unregistered', undefined]);
  answer(200, 'Expires: 120');
  expect([registration.state, registration.until]).toEqual(['registered', START + 120_000]);
  advance(90_000);
  answer(403);
  expect([registration.state, registration.until]).toEqual(['refused', undefined]);
});

test('A registration is refreshed 30 s before its end, at half of a short one, and never more than once a second', () => {
  for (const [granted, at] of [
    [300, 270_000],
    [61, 31_000],
    [60, 30_000],
    [20, 10_000],
    [1, 1_000],
    [0, 1_000],
  ] as const) {
    const { answer, advance, requests } = started();
    answer(200, `Expires: ${granted}`);
    advance(at - 1);
    expect([granted, requests.length]).toEqual([granted, 1]);
    advance(at);
    expect([granted, requests.length]).toEqual([granted, 2]);
  }
});

test('A registrar that finds the expiry too brief is asked for what it wants, up to a day, and four times at most', () => {
  for (const [least, asked] of [
    ['301', '301'],
    ['86400', '86400'],
    ['300', undefined],
    ['86401', undefined],
    ['soon', undefined],
  ] as const) {
    const { answer, requests, states } = started();
    answer(423, `Min-Expires: ${least}`);
    const again = requests.length > 1 ? /Expires: (.*)\r/.exec(requests.at(-1) ?? '')?.[1] : undefined;
    expect([least, again, states]).toEqual([least, asked, asked === undefined ? ['refused 423'] : []]);
  }
  const { answer, requests, states } = started();
  for (let tries = 1; tries <= SIP_RETRIES_MAX + 1; tries++) answer(423, `Min-Expires: ${tries * 1_000}`);
  expect([requests.length, states]).toEqual([SIP_RETRIES_MAX + 1, ['refused 423']]);
  // Another refusal with the same field is none of these.
  const other = started();
  other.answer(400, 'Min-Expires: 900');
  expect([other.requests.length, other.states]).toEqual([1, ['refused 400']]);
});

test('The expiry that a registrar wanted is asked for from then on', () => {
  const { answer, advance, requests } = started();
  answer(423, 'Min-Expires: 900');
  answer(200, 'Expires: 900');
  advance(870_000);
  expect(requests.at(-1)).toContain('\r\nExpires: 900\r\n');
});

test('A registrar that has an error is asked again every half minute, or when it says so within an hour', () => {
  const again = (status: number, ...fields: string[]) => {
    const { answer, next } = started();
    answer(status, ...fields);
    return next(0, 3_700_000);
  };
  expect([again(500), again(599)]).toEqual([30_000, 30_000]);
  expect([again(500, 'Retry-After: 0'), again(500, 'Retry-After: 90 (busy)'), again(403, 'Retry-After: 9999')]).toEqual([
    1_000, 90_000, 3_600_000,
  ]);
  const { answer, next } = started();
  const pauses: number[] = [];
  let at = 0;
  for (let refusals = 0; refusals < 4; refusals++) {
    answer(refusals === 2 ? 500 : 403);
    const again = next(at, at + 700_000) ?? 0;
    pauses.push(again - at);
    at = again;
  }
  expect(pauses).toEqual([30_000, 60_000, 30_000, 120_000]);
});

test('A registration whose connection closes is made anew at once, but not within half a minute of the last one', () => {
  const lost = (at: number, from: Partial<Peer> = {}) => {
    const { registration, answer, advance, next, requests, look } = started();
    answer(200, 'Expires: 300');
    advance(at);
    registration.flowLost({ ...PEER, ...from }, START + at);
    look();
    return requests.length > 1 ? at : next(at, 290_000);
  };
  const retry = SIP_REGISTER_RETRY_SEC * 1_000;
  expect([lost(5_000), lost(retry - 1_000), lost(retry), lost(100_000)]).toEqual([retry, retry, retry, 100_000]);
  // Another connection is none of its own.
  for (const from of [{ transport: 'tls' }, { host: '203.0.113.2' }, { port: 5061 }] as const)
    expect(lost(100_000, from)).toBe(270_000);
  // The refresh that is due sooner is not put off, nor one that is under way begun anew.
  const brief = started();
  brief.answer(200, 'Expires: 20');
  brief.advance(1_000);
  brief.registration.flowLost(PEER, START + 1_000);
  expect(brief.next(1_000, 40_000)).toBe(10_000);
  brief.registration.flowLost(PEER, brief.now());
  brief.look();
  expect(brief.requests).toHaveLength(2);
  const unbound = started();
  unbound.registration.flowLost(PEER, START);
  unbound.answer(403);
  unbound.registration.flowLost(PEER, START);
  unbound.look();
  expect(unbound.requests).toHaveLength(1);
});

test('A registration that is stopped is taken back, and says when the registrar has answered, or will not', () => {
  const stopped = (end: (all: ReturnType<typeof started>) => void) => {
    const all = started();
    all.answer(200, 'Expires: 300');
    let overs = 0;
    all.registration.stop(START, () => overs++);
    all.look();
    expect([/\r\nExpires: (.*)\r/.exec(all.requests.at(-1) ?? '')?.[1], all.registration.state, overs]).toEqual([
      '0',
      'unregistered',
      0,
    ]);
    end(all);
    return overs;
  };
  expect(stopped((all) => all.answer(100))).toBe(0);
  expect(stopped((all) => all.answer(200))).toBe(1);
  expect(stopped((all) => all.answer(500))).toBe(1);
  expect(stopped((all) => all.fail())).toBe(1);
  expect(
    stopped((all) => {
      all.answer(200);
      all.advance(1_000_000);
      expect([all.requests.length, all.states]).toEqual([2, ['registered 200']]);
      let again = 0;
      all.registration.stop(START, () => again++);
      expect(again).toBe(1);
    }),
  ).toBe(1);
});

test('A registration that never was is stopped without a word, and what it asked is not waited for', () => {
  for (const refused of [false, true]) {
    const { registration, answer, advance, requests, states, party } = started();
    if (refused) answer(403);
    let overs = 0;
    registration.stop(START, () => overs++);
    if (!refused) answer(200, 'Expires: 300');
    advance(1_000_000);
    expect([overs, requests.length, states, registration.state]).toEqual([1, 1, refused ? ['refused 403'] : [], 'unregistered']);
    expect(party.agent.load().transactions).toBe(0);
  }
});

test('A registration that another one follows is let go without a word', () => {
  const { registration, answer, advance, requests } = started();
  answer(200, 'Expires: 300');
  registration.letGo();
  advance(1_000_000);
  expect([requests.length, registration.state]).toEqual([1, 'unregistered']);
});

test('A registration that is let go does not take up what it was looking for, nor an answer that comes late', () => {
  const found: ((peers: readonly Peer[], now: number) => void)[] = [];
  const searching = started({ resolve: (tell) => void found.push(tell) });
  searching.registration.letGo();
  found[0]?.([PEER], START);
  searching.look();
  expect(searching.requests).toEqual([]);
  const asked = started();
  asked.registration.letGo();
  asked.answer(200, 'Expires: 300');
  asked.advance(1_000_000);
  expect([asked.requests.length, asked.states, asked.party.agent.load().transactions]).toEqual([1, [], 0]);
});

test('Every REGISTER of a registration has the same From tag, and a redirection is a refusal', () => {
  const { answer, advance, requests, states } = started();
  answer(200, 'Expires: 300');
  advance(270_000);
  const tags = requests.map((each) => /\r\nFrom: <sip:gw@reg.example>;tag=([^\r;]+)\r/.exec(each)?.[1]);
  expect([tags.length, new Set(tags).size, (tags[0] ?? '').length > 8]).toEqual([2, 1, true]);
  answer(300);
  expect(states).toEqual(['registered 200', 'refused 300']);
});

test('A registrar that was content may find the expiry too brief four times again', () => {
  const { answer, requests, advance, now } = started();
  for (let tries = 1; tries <= SIP_RETRIES_MAX; tries++) answer(423, `Min-Expires: ${tries * 1_000}`);
  answer(200, 'Expires: 60');
  advance(now() - START + 30_000);
  const before = requests.length;
  for (let tries = 1; tries <= SIP_RETRIES_MAX; tries++) answer(423, `Min-Expires: ${10_000 + tries}`);
  expect(requests.length - before).toBe(SIP_RETRIES_MAX);
});

test('A REGISTER goes by way of the outbound proxy, and names the user that calls are to come in for', () => {
  const contact = ({ requests }: ReturnType<typeof started>) => /\r\nContact: (.*)\r/.exec(requests[0] ?? '')?.[1];
  const plain = started();
  expect(contact(plain)).toStartWith('<sip:gw@192.0.2.1');
  expect(plain.requests[0]).not.toContain('\r\nRoute:');
  const routed = started({ route: '<sip:edge.example;lr>' }, [{ ...PEER, profile: { contactUser: 'desk' } }]);
  expect(routed.requests[0]).toContain('\r\nRoute: <sip:edge.example;lr>\r\n');
  expect(contact(routed)).toStartWith('<sip:desk@192.0.2.1');
});

test('A user of our Contact that a URI cannot have as it is, is escaped alike in REGISTER and in INVITE', () => {
  const peer = { ...PEER, profile: { contactUser: 'a%b' } };
  const { requests, party, look } = started({}, [peer]);
  const ends = { uri: 'sip:x@reg.example', from: '<sip:gw@reg.example>', to: '<sip:x@reg.example>' };
  party.agent.invite({ peer, ...ends, body: bytes('v=0'), fields: [], credentials: undefined }, START);
  look();
  const contacts = requests.map((each) => /\r\nContact: <sip:([^@]*)@/.exec(each)?.[1]);
  expect(contacts).toEqual(['a%25b', 'a%25b']);
});
