import { describe, expect, test } from 'bun:test';
import { SIP_REGISTER_RETRY_SEC, SIP_REGISTER_SILENT_MS } from '../../src/limits.ts';
import { glareWaitMs } from '../../src/sip/call/refresh.ts';
import type { Peer } from '../../src/sip/flow.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, START, text } from './pair.ts';

const PEER = { transport: 'udp', host: '203.0.113.1', port: 5060, flow: 1 } as const;

const OTHER = { ...PEER, host: '203.0.113.2' };
const THIRD = { ...PEER, host: '203.0.113.3' };

/** `peers` is where the registrar is, for each search anew. */
function registrar(peers: () => readonly Peer[] = () => [PEER]) {
  const party = new Party('192.0.2.1', seeded(3));
  /** The time of the last input. */
  let at = START;
  const advance = (to: number) => {
    at = to;
    party.agent.advance(to);
  };
  const registration = party.agent.register('trunk', {
    registrar: 'sip:reg.example',
    address: 'sip:gw@reg.example',
    resolve: (found) => found(peers(), at),
    credentials: { username: 'gw', password: 'secret' },
  });
  const states: string[] = [];
  /** What has been sent since the last look. */
  const sent = () =>
    party.agent.take().flatMap((output) => {
      if (output.type === 'registration') states.push(`${output.state} ${output.status}`);
      return output.type === 'send' ? [text(output.bytes)] : [];
    });
  const answer = (request: string, status: number, fields: string, when: number) => {
    at = when;
    party.agent.receive(
      bytes(request.replace(/^.*\r\n/, `SIP/2.0 ${status} X\r\n`).replace(/Content-Length/, `${fields}Content-Length`)),
      PEER,
      when,
    );
  };
  /** The peers that the requests since the last look went to, with their tickets. */
  const asked = () =>
    party.agent.take().flatMap((output) => {
      if (output.type === 'registration') states.push(`${output.state} ${output.status}`);
      return output.type === 'send' ? [{ host: output.peer.host, request: text(output.bytes), ticket: output.ticket }] : [];
    });
  return { party, registration, states, sent, answer, asked, advance };
}
const one = (all: string[]): string => {
  expect(all).toHaveLength(1);
  return all[0] ?? '';
};

describe('a registration', () => {
  test('answers the challenge, is refreshed before it runs out under the same Call-ID, and is taken back', () => {
    const { registration, states, sent, answer, advance } = registrar();
    registration.start(START);
    const first = one(sent());
    expect(first).toMatch(/^REGISTER sip:reg.example SIP\/2.0[\s\S]*CSeq: 1 REGISTER[\s\S]*Expires: 300/);
    answer(first, 401, 'WWW-Authenticate: Digest realm="r", nonce="n"\r\n', START);
    const second = one(sent());
    expect(second).toMatch(/CSeq: 2 REGISTER[\s\S]*Authorization: Digest username="gw"/);
    const contact = /Contact: (<[^>]*>)/.exec(second)?.[1];
    answer(second, 200, `Contact: <sip:other@192.0.2.7>;expires=7\r\nContact: ${contact};expires=120\r\n`, START);
    expect(sent()).toEqual([]);
    advance(START + 89_999);
    expect(sent()).toEqual([]);
    advance(START + 90_000);
    const refresh = one(sent());
    const callId = (message: string) => /Call-ID: (.*)\r/.exec(message)?.[1];
    expect([callId(refresh), /CSeq: (.*)\r/.exec(refresh)?.[1]]).toEqual([callId(first), '3 REGISTER']);
    answer(refresh, 200, 'Expires: 300\r\n', START + 90_000);
    registration.stop(START + 91_000);
    expect(one(sent())).toMatch(/Expires: 0\r\n/);
    expect(states).toEqual(['registered 200', 'registered 200']);
  });

  test('finds its own binding as URIs are compared, and takes a single one in other words for it', () => {
    for (const spelled of ['sip:gw@192.0.2.1:5060;x=1', 'SIP:gw@192.0.2.1:5060', 'sip:gw@198.51.100.9:1024']) {
      const { registration, sent, answer, advance } = registrar();
      registration.start(START);
      const request = one(sent());
      answer(request.replace(/^Contact: .*\r\n/m, ''), 200, `Contact: <${spelled}>;expires=10\r\n`, START);
      advance(START + 4_999);
      expect([spelled, sent()]).toEqual([spelled, []]);
      advance(START + 5_000);
      expect([spelled, one(sent()).startsWith('REGISTER')]).toEqual([spelled, true]);
    }
  });

  test('takes no binding of others for its own, where its own is listed without an expiry or in other words', () => {
    for (const ours of ['sip:gw@192.0.2.1:5060', 'sip:gw@198.51.100.9:1024']) {
      const { registration, sent, answer, advance } = registrar();
      registration.start(START);
      const request = one(sent()).replace(/^Contact: .*\r\n/m, '');
      const listed = `Contact: <${ours}>\r\nContact: <sip:desk@192.0.2.7>;expires=3000\r\n`;
      answer(request.replace(/^Expires: .*\r\n/m, ''), 200, `${listed}Expires: 60\r\n`, START);
      advance(START + 30_000);
      expect([ours, one(sent()).startsWith('REGISTER')]).toEqual([ours, true]);
    }
  });

  test('takes the freshest of several bindings in other words for its own, where nothing else tells the expiry', () => {
    const { registration, sent, answer, advance } = registrar();
    registration.start(START);
    const request = one(sent()).replace(/^(?:Contact|Expires): .*\r\n/gm, '');
    const listed = [12, 3000, 40].map((expires, at) => `<sip:gw@198.51.100.9:${1024 + at}>;expires=${expires}`).join(', ');
    answer(request, 200, `Contact: ${listed}\r\n`, START);
    advance(START + 19_999);
    expect(sent()).toEqual([]);
    advance(START + 20_000);
    expect(one(sent())).toStartWith('REGISTER');
  });

  test('keeps the way that the registrar names until the next answer, if it is made of loose routes', () => {
    const { registration, sent, answer } = registrar();
    const [edge, core] = ['<sip:edge.example;lr>', '<sip:core.example;lr>'];
    /** Registers anew, and tells which way is kept after that answer. */
    const after = (fields: string) => {
      registration.start(START);
      const asked = one(sent());
      expect(asked).toContain('Supported: path\r\n');
      answer(asked, 200, fields, START);
      return registration.serviceRoute;
    };
    for (const refused of ['Service-Route: <sip:edge.example>\r\n', `Service-Route: <sip:${'e'.repeat(600)};lr>\r\n`, '']) {
      expect(after(`Service-Route: ${edge}\r\nService-Route: ${core}\r\n`)).toEqual([edge, core]);
      expect(after(refused)).toEqual([]);
    }
    expect(after(`Service-Route: ${edge}, ${core}\r\n`)).toEqual([edge, core]);
    registration.stop(START);
    expect(registration.serviceRoute).toEqual([]);
  });

  test('asks for longer when it is told that its expiry is too brief', () => {
    const { registration, sent, answer } = registrar();
    registration.start(START);
    answer(one(sent()), 423, 'Min-Expires: 900\r\n', START);
    expect(one(sent())).toMatch(/Expires: 900\r\n/);
  });

  test('that is refused or finds nobody is tried again later, and says so', () => {
    const { registration, states, sent, answer, advance } = registrar();
    registration.start(START);
    answer(one(sent()), 403, 'Retry-After: 60\r\n', START);
    sent();
    advance(START + 59_000);
    expect(sent()).toEqual([]);
    advance(START + 60_000);
    expect(one(sent())).toContain('REGISTER');
    for (let at = START + 60_000; at < START + 95_000; at += 500) advance(at);
    sent();
    expect(states).toEqual(['refused 403', 'unreachable 0']);
    advance(START + 130_000);
    expect(one(sent())).toContain('REGISTER');
  });

  test('that is refused is tried again after pauses that double up to ten minutes, until it succeeds', () => {
    const { registration, sent, answer, advance } = registrar();
    registration.start(START);
    let at = START;
    for (const pauseSec of [30, 60, 120, 240, 480, 600, 600]) {
      answer(one(sent()), 403, '', at);
      advance(at + pauseSec * 1000 - 1);
      expect(sent()).toEqual([]);
      at += pauseSec * 1000;
      advance(at);
    }
    answer(one(sent()), 200, 'Expires: 300\r\n', at);
    advance(at + 270_000);
    answer(one(sent()), 403, '', at + 270_000);
    advance(at + 270_000 + SIP_REGISTER_RETRY_SEC * 1000);
    expect(one(sent())).toContain('REGISTER');
  });
});

describe('a registrar at several addresses', () => {
  const hosts = (all: readonly { readonly host: string }[]) => [...new Set(all.map(({ host }) => host))];

  test('is asked at the next one after silence, which tells the outcome; a late answer of the first changes nothing', () => {
    const { registration, states, answer, asked, advance } = registrar(() => [PEER, OTHER]);
    registration.start(START);
    const [first] = asked();
    expect(first?.host).toBe(PEER.host);
    for (let at = START; at < START + SIP_REGISTER_SILENT_MS; at += 100) advance(at);
    expect(hosts(asked())).toEqual([PEER.host]);
    advance(START + SIP_REGISTER_SILENT_MS);
    const [second, ...more] = asked();
    expect([second?.host, more]).toEqual([OTHER.host, []]);
    answer(first?.request ?? '', 403, '', START + 4_100);
    answer(second?.request ?? '', 200, 'Expires: 300\r\n', START + 4_200);
    expect([asked(), states]).toEqual([[], ['registered 200']]);
  });

  test('is asked at the next one after a failure to send and after 503, and fails when none is left', () => {
    const { party, registration, states, answer, asked, advance } = registrar(() => [PEER, OTHER, THIRD]);
    registration.start(START);
    party.agent.sendFailed(asked()[0]?.ticket ?? '', START);
    const [second] = asked();
    expect(second?.host).toBe(OTHER.host);
    answer(second?.request ?? '', 503, 'Retry-After: 100\r\n', START);
    const [third] = asked();
    expect([third?.host, states]).toEqual([THIRD.host, []]);
    answer(third?.request ?? '', 503, 'Retry-After: 100\r\n', START);
    expect([asked(), states]).toEqual([[], ['refused 503']]);
    advance(START + 99_999);
    expect(asked()).toEqual([]);
    advance(START + 100_000);
    expect(hosts(asked())).toEqual([PEER.host]);
  });

  test('that answers provisionally is waited for, and other refusals are believed', () => {
    const { registration, states, answer, asked, advance } = registrar(() => [PEER, OTHER]);
    registration.start(START);
    const [first] = asked();
    answer(first?.request ?? '', 100, '', START + 1_000);
    advance(START + SIP_REGISTER_SILENT_MS);
    expect(hosts(asked())).toEqual([PEER.host]);
    answer(first?.request ?? '', 403, '', START + 5_000);
    expect([asked(), states]).toEqual([[], ['refused 403']]);
  });

  test('that asks for credentials is waited for, as long as the request with them lives', () => {
    const { registration, states, answer, asked, advance } = registrar(() => [PEER, OTHER]);
    registration.start(START);
    const [first] = asked();
    answer(first?.request ?? '', 401, 'WWW-Authenticate: Digest realm="r", nonce="n"\r\n', START + 1_000);
    const [second] = asked();
    advance(START + SIP_REGISTER_SILENT_MS);
    expect(hosts(asked())).toEqual([PEER.host]);
    answer(second?.request ?? '', 200, 'Expires: 300\r\n', START + SIP_REGISTER_SILENT_MS + 500);
    expect([asked(), states]).toEqual([[], ['registered 200']]);
  });

  test('is looked up before each REGISTER, and unregistered from where the binding is', () => {
    let peers: readonly Peer[] = [PEER];
    const { registration, answer, asked, advance } = registrar(() => peers);
    registration.start(START);
    answer(asked()[0]?.request ?? '', 200, 'Expires: 300\r\n', START);
    peers = [OTHER];
    advance(START + 270_000);
    const [refresh] = asked();
    expect(refresh?.host).toBe(OTHER.host);
    answer(refresh?.request ?? '', 200, 'Expires: 300\r\n', START + 270_000);
    asked();
    peers = [THIRD];
    advance(START + 540_000);
    expect(hosts(asked())).toEqual([THIRD.host]);
    registration.stop(START + 540_001);
    const [last, ...more] = asked();
    expect([last?.host, more]).toEqual([OTHER.host, []]);
    expect(last?.request).toMatch(/Expires: 0\r\n/);
  });

  test('that could not be refreshed is taken back until its binding has expired', () => {
    const stopped = (afterMs: number) => {
      const { registration, states, answer, asked, advance } = registrar();
      registration.start(START);
      answer(asked()[0]?.request ?? '', 200, 'Expires: 300\r\n', START);
      asked();
      advance(START + 270_000);
      answer(asked()[0]?.request ?? '', 500, '', START + 270_000);
      asked();
      let isOver = false;
      registration.stop(START + afterMs, () => {
        isOver = true;
      });
      const requests = asked().map(({ request }) => request);
      return [states.at(-1), requests.map((request) => /Expires: \d+/.exec(request)?.[0]), isOver];
    };
    expect(stopped(299_999)).toEqual(['refused 500', ['Expires: 0'], false]);
    expect(stopped(300_000)).toEqual(['refused 500', [], true]);
  });

  test('without any address is looked up again later, and a search that ends too late is not heard', () => {
    const searches: ((peers: readonly Peer[], now: number) => void)[] = [];
    const party = new Party('192.0.2.1', seeded(3));
    const registration = party.agent.register('trunk', {
      registrar: 'sip:reg.example',
      address: 'sip:gw@reg.example',
      resolve: (found) => void searches.push(found),
      credentials: { username: 'gw', password: 'secret' },
    });
    registration.start(START);
    searches[0]?.([], START);
    expect(party.agent.take()).toEqual([{ type: 'registration', name: 'trunk', state: 'unreachable', status: 0 }]);
    party.agent.advance(START + SIP_REGISTER_RETRY_SEC * 1_000);
    registration.start(START + 30_001);
    expect(searches).toHaveLength(3);
    searches[1]?.([PEER], START + 30_002);
    expect(party.agent.take()).toEqual([]);
    searches[2]?.([OTHER], START + 30_003);
    expect(party.agent.take()).toMatchObject([{ type: 'send', peer: OTHER }]);
    registration.start(START + 30_004);
    registration.stop(START + 30_005);
    searches[3]?.([PEER], START + 30_006);
    expect(party.agent.take()).toEqual([]);
    expect(party.agent.holdings().deadlines).toBe(0);
  });
});

describe('a probe', () => {
  test('tells the status that came back, or 0 when none did', () => {
    const random = seeded(5);
    const alice = new Party('192.0.2.1', random);
    const bob = new Party('192.0.2.2', random);
    const network = new Network([alice, bob], CALM, random);
    const peer = { transport: 'udp', host: bob.host, port: 5060, flow: 1 } as const;
    alice.agent.probe({ whom: 'trunk', name: 'up' }, 'sip:192.0.2.2', peer, network.now);
    network.run();
    network.eat = () => true;
    alice.agent.probe({ whom: 'device', name: 'down' }, 'sip:192.0.2.2', peer, network.now);
    network.run();
    expect(alice.outputs.filter((output) => output.type === 'probed')).toEqual([
      { type: 'probed', whom: 'trunk', name: 'up', status: 200, tookMs: 2, seenAt: `${alice.host}:5060` },
      { type: 'probed', whom: 'device', name: 'down', status: 0, tookMs: 32_000, seenAt: '' },
    ]);
  });
});

describe('glare', () => {
  test('is waited out for 2.1 to 4 s by the owner of the Call-ID, up to 2 s by the other', () => {
    expect([glareWaitMs(true, 0), glareWaitMs(true, 0.999999), glareWaitMs(false, 0), glareWaitMs(false, 0.999999)]).toEqual([
      2_100, 4_000, 0, 2_000,
    ]);
  });

  test('of two re-INVITEs is answered 491 on both sides, and the refresh is sent again', () => {
    const random = seeded(11);
    const alice = new Party('192.0.2.1', random);
    const bob = new Party('192.0.2.2', random);
    const network = new Network([alice, bob], CALM, random);
    bob.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
    };
    const receive = alice.agent.receive.bind(alice.agent);
    alice.agent.receive = (data, source, now) => receive(bytes(text(data).replace(', UPDATE', '')), source, now);
    dial(network, alice, bob);
    network.run(100);
    // Alice's refresh is on its way when a re-INVITE of Bob's arrives.
    const ok = network.wire.find((each) => each.line === 'SIP/2.0 200 OK')?.data ?? '';
    const from = /\r\nTo: ([^\r]*)/.exec(ok)?.[1];
    const to = /\r\nFrom: ([^\r]*)/.exec(ok)?.[1];
    const callId = /\r\nCall-ID: ([^\r]*)/.exec(ok)?.[1];
    network.eat = (sender, message) => sender === alice && message.startsWith('INVITE');
    network.run(900_002);
    const body = 'v=0 other';
    const invite = `INVITE sip:sidetone@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2:5060;branch=z9hG4bKglare\r\nFrom: ${from}\r\nTo: ${to}\r\nCall-ID: ${callId}\r\nCSeq: 77 INVITE\r\nContact: <sip:b@192.0.2.2>\r\nContent-Type: application/sdp\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    alice.agent.receive(bytes(invite), { transport: 'udp', host: '192.0.2.2', port: 5060, flow: 1 }, network.now);
    network.run(900_003);
    expect(network.wire.some((each) => each.from === alice.host && each.line === 'SIP/2.0 491 Request Pending')).toBe(true);
    // Bob has one of his own pending, too: his 491 makes Alice wait and try again.
    const sent = network.wire.filter((each) => each.line.startsWith('INVITE')).at(-1)?.data ?? '';
    const pending = sent
      .replace(/^.*\r\n/, 'SIP/2.0 491 Request Pending\r\n')
      .replace(/Content-Length[\s\S]*/, 'Content-Length: 0\r\n\r\n');
    alice.agent.receive(bytes(pending), { transport: 'udp', host: '192.0.2.2', port: 5060, flow: 1 }, network.now);
    const before = network.now;
    const count = network.wire.filter((each) => each.line.startsWith('INVITE')).length;
    network.run(before - START + 2_099);
    expect(network.wire.filter((each) => each.line.startsWith('INVITE'))).toHaveLength(count);
    network.run(before - START + 4_001);
    expect(network.wire.filter((each) => each.line.startsWith('INVITE')).length).toBeGreaterThan(count);
  });
});

test('early media of a call without an offer goes out reliably, and its PRACK brings the answer', () => {
  const random = seeded(13);
  const bob = new Party('192.0.2.2', random);
  const source = { transport: 'udp', host: '192.0.2.9', port: 5060, flow: 1 } as const;
  const network = new Network([bob], CALM, random);
  const message = (method: string, cseq: number, to: string, fields: string, body = '') =>
    bytes(
      `${method} sip:x@192.0.2.2 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.9;branch=z9hG4bK${method}${cseq}\r\nFrom: <sip:x@192.0.2.9>;tag=f\r\nTo: <sip:y@192.0.2.2>${to}\r\n` +
        `Call-ID: c\r\nCSeq: ${cseq} ${method}\r\nContact: <sip:x@192.0.2.9>\r\n${fields}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
  bob.agent.receive(message('INVITE', 1, '', 'Supported: 100rel\r\n'), source, network.now);
  network.run(1);
  const [call] = bob.invited;
  expect(call?.canDescribeEarly).toBe(true);
  call?.provisional(183, bytes('v=0 our offer'), network.now);
  // The 200 waits for the PRACK (RFC 3262 §3).
  call?.accept(bytes('v=0 our offer'), network.now);
  network.run(600);
  const early = network.wire.filter((each) => each.line.startsWith('SIP/2.0 183'));
  expect(early).toHaveLength(2);
  expect(network.wire.some((each) => each.line.startsWith('SIP/2.0 200'))).toBe(false);
  const [, tag] = /To:[^\r]*;tag=([^\r]*)/.exec(early[0]?.data ?? '') ?? [];
  const [, rseq] = /RSeq: ([0-9]*)/.exec(early[0]?.data ?? '') ?? [];
  bob.agent.receive(message('PRACK', 2, `;tag=${tag}`, `RAck: ${Number(rseq) + 1} 1 INVITE\r\n`), source, network.now);
  network.run(601);
  expect(network.wire.at(-1)?.line).toBe('SIP/2.0 481 Call/Transaction Does Not Exist');
  bob.agent.receive(message('PRACK', 3, `;tag=${tag}`, `RAck: ${rseq} 1 INVITE\r\n`, 'v=0 their answer'), source, network.now);
  network.run(602);
  expect(network.wire.slice(-2).map((each) => each.data.match(/CSeq: .*/)?.[0]?.trim())).toEqual([
    'CSeq: 3 PRACK',
    'CSeq: 1 INVITE',
  ]);
  expect(network.wire.at(-1)?.data).not.toContain('v=0');
  expect(bob.types(call)).toEqual(['answer', 'accepted']);
});
