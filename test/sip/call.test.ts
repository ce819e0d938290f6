import { describe, expect, test } from 'bun:test';
import type { Call } from '../../src/sip/call/call.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf, START, text } from './pair.ts';

const NONE = new Uint8Array(0);

function pair(options: { alice?: object; bob?: object } = {}) {
  const random = seeded(7);
  const alice = new Party('192.0.2.1', random, options.alice);
  const bob = new Party('192.0.2.2', random, options.bob);
  const network = new Network([alice, bob], CALM, random);
  const lines = (from: Party) =>
    network.wire.filter((each) => each.from === from.host).map((each) => each.line.replace(/ sip:.*/, ''));
  const callee = (): Call => {
    const [call] = bob.invited;
    if (call === undefined) throw new Error('no call came');
    return call;
  };
  return { alice, bob, network, lines, callee };
}
type Pair = ReturnType<typeof pair>;

function established(options: Parameters<typeof pair>[0] = {}, fields: [string, string][] = []) {
  const all = pair(options);
  const call = dial(all.network, all.alice, all.bob, { fields });
  all.bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), all.network.now);
  };
  all.network.run(100);
  all.bob.react = () => {};
  expect(all.alice.types(call)).toEqual(['answered']);
  expect(all.bob.types(all.callee())).toEqual(['accepted', 'confirmed']);
  return { ...all, call };
}

/** Sends text as Alice's address to Bob and gives what Bob says to it. */
function say({ bob, network }: Pair, message: string, transport: 'udp' | 'tcp' = 'udp'): string[] {
  const before = bob.outputs.length;
  bob.agent.receive(bytes(message), { transport, host: '192.0.2.9', port: 5060, flow: 1 }, network.now);
  network.run(network.now - START);
  return bob.outputs.slice(before).flatMap((output) => (output.type === 'send' ? [text(output.bytes)] : []));
}
const request = (
  method: string,
  more: { to?: string; branch?: string; fields?: string; uri?: string; body?: string; callId?: string; cseq?: number } = {},
) =>
  `${method} ${more.uri ?? 'sip:+15550100@192.0.2.2'} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.9:5060;branch=${more.branch ?? 'z9hG4bKx'};rport\r\n` +
  `From: <sip:x@192.0.2.9>;tag=f\r\nTo: <sip:y@192.0.2.2>${more.to ?? ''}\r\nCall-ID: ${more.callId ?? 'c'}\r\nCSeq: ${more.cseq ?? 1} ${method}\r\n` +
  `Contact: <sip:x@192.0.2.9>\r\n${more.fields ?? ''}Content-Length: ${more.body?.length ?? 0}\r\n\r\n${more.body ?? ''}`;
const status = (all: string[]) => all.map((each) => each.slice(8, 11));

test('a call that goes on here is found by its far end, also once one that was to go on here before is let go', () => {
  const { alice, bob, network, call, callee } = established();
  const snapshot = callee().snapshot(true);
  if (snapshot === undefined) throw new Error('no dialog');
  callee().abandon();
  const given = bob.agent.resume(snapshot, 1_000, undefined, network.now);
  const taken = bob.agent.resume(snapshot, 4_000, undefined, network.now);
  if (given === undefined || taken === undefined) throw new Error('too many calls');
  given.abandon();
  call.hangUp(network.now);
  network.run();
  expect(bob.ends(taken)).toMatchObject([{ end: { why: 'bye' } }]);
  expect(alice.ends(call)).toHaveLength(1);
  expect(network.wire.at(-1)?.line).toBe('SIP/2.0 200 OK');
});

test('a call with which another node goes on repeats no 200 of its own any more', () => {
  const { bob, network, call } = established();
  bob.react = (each, event) => {
    if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
  };
  call.offer(() => bytes('v=0 changed'), network.now);
  const ok = () => network.wire.filter(({ line, data }) => line === 'SIP/2.0 200 OK' && data.includes('v=0 answer')).length;
  network.eat = (_, message) => message.startsWith('ACK');
  network.run(2_000);
  const repeated = ok();
  expect(repeated).toBeGreaterThan(1);
  bob.invited[0]?.abandon();
  network.run(40_000);
  expect(ok()).toBe(repeated);
});

test('a call with which another node goes on before its 200 is acknowledged does not repeat that', () => {
  const random = seeded(7);
  const [alice, bob] = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)];
  const network = new Network([alice, bob], CALM, random);
  network.eat = (_, message) => message.startsWith('ACK');
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  dial(network, alice, bob);
  network.run(2_000);
  const ok = () => network.wire.filter(({ line }) => line === 'SIP/2.0 200 OK').length;
  const repeated = ok();
  expect(repeated).toBeGreaterThan(1);
  bob.invited[0]?.abandon();
  network.run(60_000);
  expect(ok()).toBe(repeated);
});

test('a call that goes on here keeps its session timer: the far end is told of it, and this node refreshes the session', () => {
  const { alice, bob, network, call } = established();
  const snapshot = call.snapshot(true);
  if (snapshot === undefined) throw new Error('no dialog');
  call.abandon();
  const taken = alice.agent.resume(snapshot, 1_000, undefined, network.now);
  bob.react = (each, event) => {
    if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
  };
  taken?.offer(() => bytes('v=0 here'), network.now);
  network.run(network.now - START + 1_000_000);
  const [invite, refresh] = network.wire.filter(({ line }) => /^(INVITE|UPDATE)/.test(line)).slice(1);
  expect(invite?.data).toContain('Session-Expires: 1800;refresher=uac');
  expect(refresh?.line).toMatch(/^UPDATE/);
  expect(bob.ends(bob.invited[0] ?? call)).toEqual([]);
});

describe('a call', () => {
  test('rings, is answered, and is hung up by either side; every part of it is forgotten', () => {
    for (const who of ['caller', 'callee'] as const) {
      const all = established();
      const { network, alice, bob, call, callee } = all;
      (who === 'caller' ? call : callee()).hangUp(network.now);
      network.run();
      expect(alice.ends(call)).toEqual([
        { type: 'ended', end: who === 'caller' ? { why: 'local' } : { why: 'bye', q850: undefined } },
      ]);
      for (const party of [alice, bob])
        expect({ ...party.agent.load(), ...party.agent.holdings() }).toEqual({
          dialogs: 0,
          transactions: 0,
          deadlines: 0,
          keys: 0,
        });
    }
  });

  test('whose ACK is lost gets the 200 again until one arrives', () => {
    const all = pair();
    const { network, alice, bob } = all;
    let eaten = 0;
    network.eat = (from, message) => from === alice && message.startsWith('ACK') && eaten++ < 3;
    bob.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
    };
    dial(network, alice, bob);
    network.run(10_000);
    const times = network.wire.filter((each) => each.line === 'SIP/2.0 200 OK').map((each) => each.at - START);
    expect(times).toEqual([1, 501, 1501, 3501]);
    expect(bob.types(all.callee())).toEqual(['accepted', 'confirmed']);
  });

  test('that is never acknowledged is hung up after 64*T1', () => {
    const all = pair();
    const { network, alice, bob } = all;
    network.eat = (from, message) => from === alice && message.startsWith('ACK');
    bob.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
    };
    const call = dial(network, alice, bob);
    network.run();
    expect(bob.ends(all.callee())).toEqual([{ type: 'ended', end: { why: 'unacknowledged' } }]);
    expect(alice.ends(call)).toMatchObject([{ end: { why: 'bye' } }]);
    expect(network.wire.find((each) => each.line.startsWith('BYE'))?.at).toBe(START + 1 + 32_000);
  });

  test('to nobody is sent seven times and ends after 64*T1', () => {
    const { network, alice, bob, lines } = pair();
    network.eat = () => true;
    const call = dial(network, alice, bob);
    network.run();
    expect(lines(alice)).toEqual(Array(7).fill('INVITE'));
    expect(alice.ends(call)).toEqual([{ type: 'ended', end: { why: 'no_response' } }]);
    expect(network.now).toBe(START + 32_000);
  });

  test('that the transport cannot carry ends as unreachable at once', () => {
    const { network, alice, bob } = pair();
    network.eat = () => true;
    const call = dial(network, alice, bob, { transport: 'tcp' });
    network.run(1);
    const sent = alice.outputs.find((output) => output.type === 'send');
    if (sent?.type === 'send') alice.agent.sendFailed(sent.ticket, network.now);
    network.run();
    expect(alice.ends(call)).toEqual([{ type: 'ended', end: { why: 'unreachable' } }]);
  });

  test('whose connection is lost is sent again once, unless something has come back or it was given up', () => {
    for (const [what, invites, ends] of [
      ['silence', 2, [{ why: 'unreachable' }]],
      ['a response', 1, []],
      ['a hang-up', 1, [{ why: 'local' }]],
    ] as const) {
      const { network, alice, bob, lines } = pair();
      network.eat = (from) => from === alice && what !== 'a response';
      const call = dial(network, alice, bob, { transport: 'tcp' });
      network.run(10);
      const sent = alice.outputs.find((output) => output.type === 'send');
      const ticket = sent?.type === 'send' ? sent.ticket : '';
      if (what === 'a hang-up') call.hangUp(network.now);
      for (let times = 0; times < 2; times++) {
        alice.agent.sendFailed(ticket, network.now, 'lost');
        network.run(10);
      }
      expect(lines(alice)).toEqual(Array(invites).fill('INVITE'));
      expect(alice.ends(call)).toEqual(ends.map((end) => ({ type: 'ended', end })));
    }
  });

  test('that is refused tells the status, the Q.850 cause and Retry-After, and the refusal is acknowledged', () => {
    const { network, alice, bob, lines } = pair();
    bob.react = (each, event) => {
      if (event.type === 'invite')
        each.refuse(
          503,
          [
            ['reason', 'SIP;cause=503, Q.850;cause=34;text="no circuit"'],
            ['retry-after', '5'],
          ],
          network.now,
        );
    };
    const call = dial(network, alice, bob);
    network.run();
    expect(alice.ends(call)).toEqual([
      { type: 'ended', end: { why: 'refused', status: 503, q850: 34, retryAfter: true, reason: 'no circuit' } },
    ]);
    expect(lines(alice)).toEqual(['INVITE', 'ACK']);
  });

  test('whose refusal is not acknowledged is told it again, ever more slowly, for 64*T1', () => {
    const { network, alice, bob } = pair();
    network.eat = (from, message) => from === alice && message.startsWith('ACK');
    bob.react = (each, event) => {
      if (event.type === 'invite') each.refuse(486, [], network.now);
    };
    dial(network, alice, bob);
    network.run();
    const times = network.wire.filter((each) => each.line === 'SIP/2.0 486 Busy Here').map((each) => each.at - START);
    expect(times).toEqual([1, 501, 1501, 3501, 7501, 11_501, 15_501, 19_501, 23_501, 27_501, 31_501]);
    expect(bob.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('is not moved by a response that was meant for somebody behind us', () => {
    const { network, alice, bob } = pair();
    network.eat = (from) => from === alice;
    const call = dial(network, alice, bob);
    network.run(1);
    const invite = network.wire[0]?.data ?? '';
    const foreign = invite
      .replace(/^.*\r\n/, 'SIP/2.0 486 Busy\r\n')
      .replace(/\r\nMax-F/, '\r\nVia: SIP/2.0/UDP 192.0.2.50;branch=z9hG4bKq\r\nMax-F');
    alice.agent.receive(bytes(foreign.replace(/Content-Length[\s\S]*/, 'Content-Length: 0\r\n\r\n')), peerOf(bob), network.now);
    network.run(2);
    expect(alice.types(call)).toEqual([]);
  });

  test('of a merged request is refused with 482, a retransmitted one is answered again', () => {
    const all = pair();
    const first = say(all, request('INVITE'));
    expect(status(first)).toEqual(['100']);
    expect(status(say(all, request('INVITE')))).toEqual(['100']);
    expect(status(say(all, request('INVITE', { branch: 'z9hG4bKother' })))).toEqual(['482']);
    expect(all.bob.invited).toHaveLength(1);
  });
});

describe('CANCEL', () => {
  test('waits for the first response, and its 487 is acknowledged', () => {
    const { network, alice, bob, lines, callee } = pair();
    const call = dial(network, alice, bob);
    call.hangUp(network.now);
    expect(lines(alice)).toEqual([]);
    network.run();
    expect(lines(alice)).toEqual(['INVITE', 'CANCEL', 'ACK']);
    const order = network.wire.map((each) => each.line.slice(0, 11));
    expect(order.indexOf('CANCEL sip:')).toBeGreaterThan(order.indexOf('SIP/2.0 100'));
    expect(lines(bob)).toEqual(['SIP/2.0 100 Trying', 'SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated']);
    expect(alice.ends(call)).toHaveLength(1);
    expect(bob.ends(callee())).toMatchObject([{ end: { why: 'cancelled' } }]);
  });

  test('that crosses the 200 is followed by ACK and BYE', () => {
    const { network, alice, bob, lines, callee } = pair();
    const call = dial(network, alice, bob);
    network.run(10);
    call.hangUp(network.now);
    callee().accept(bytes('v=0 answer'), network.now);
    network.run();
    expect(lines(alice)).toEqual(['INVITE', 'CANCEL', 'ACK', 'BYE']);
    expect(alice.types(call)).toEqual(['ended']);
    expect(bob.ends(callee())).toMatchObject([{ end: { why: 'bye' } }]);
    expect(bob.agent.load().dialogs).toBe(0);
  });

  test('of nothing we know is 481', () => {
    expect(status(say(pair(), request('CANCEL')))).toEqual(['481']);
  });
});

describe('forking', () => {
  const respond = (invite: string, code: number, tag: string, body = '', fields = '') =>
    invite
      .replace(/^.*\r\n/, `SIP/2.0 ${code} X\r\n`)
      .replace(/(\r\nTo: [^\r]*)/, `$1;tag=${tag}`)
      .replace(/\r\nContact:[^\r]*/, `\r\nContact: <sip:${tag}@192.0.2.2>`)
      .replace(/Content-Length.*$/s, `${fields}Content-Length: ${body.length}\r\n\r\n${body}`);
  const forked = (more: Parameters<typeof dial>[3] = {}) => {
    const { network, alice, bob, lines } = pair();
    network.eat = (from) => from === alice;
    const call = dial(network, alice, bob, more);
    network.run(1);
    const invite = network.wire[0]?.data ?? '';
    const hear = (message: string) => {
      alice.agent.receive(bytes(message), peerOf(bob), network.now);
      network.run(network.now - START);
    };
    return { network, alice, lines, call, invite, hear };
  };

  test('gives the call to the first 200; each further one is acknowledged and hung up', () => {
    const { network, alice, lines, call, invite, hear } = forked();
    hear(respond(invite, 180, 'one'));
    hear(respond(invite, 183, 'two', 'v=0 early'));
    hear(respond(invite, 200, 'two', 'v=0 two'));
    hear(respond(invite, 200, 'one', 'v=0 one'));
    hear(respond(invite, 200, 'two', 'v=0 two'));
    expect(alice.types(call)).toEqual(['ringing', 'progress', 'answered']);
    expect(lines(alice)).toEqual(['INVITE', 'ACK', 'ACK', 'BYE', 'ACK']);
    expect(network.wire.find((each) => each.line.startsWith('BYE'))?.line).toContain('sip:one@');
    call.hangUp(network.now);
    network.run();
    expect(alice.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  /** What a fork asks of Alice within its dialog. */
  const ask = (invite: string, method: string, tag: string, cseq: number) => {
    const field = (name: string) => new RegExp(`^${name}: (.*)\\r$`, 'm').exec(invite)?.[1] ?? '';
    const contact = /<([^>]*)>/.exec(field('Contact'))?.[1];
    return (
      `${method} ${contact} SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2:5060;branch=z9hG4bK${tag}${method}${cseq}\r\n` +
      `From: ${field('To')};tag=${tag}\r\nTo: ${field('From')}\r\nCall-ID: ${field('Call-ID')}\r\n` +
      `CSeq: ${cseq} ${method}\r\nContact: <sip:${tag}@192.0.2.2>\r\nContent-Length: 0\r\n\r\n`
    );
  };

  test('leaves what a fork without the call asks to that fork: its BYE and its numbers are not the call’s', () => {
    const { network, alice, lines, call, invite, hear } = forked();
    hear(respond(invite, 180, 'one'));
    hear(respond(invite, 200, 'two', 'v=0 two'));
    const before = lines(alice).length;
    hear(ask(invite, 'UPDATE', 'one', 30_000));
    hear(ask(invite, 'BYE', 'one', 30_001));
    expect(alice.types(call)).toEqual(['ringing', 'answered']);
    hear(ask(invite, 'BYE', 'two', 1));
    expect(
      lines(alice)
        .slice(before)
        .map((line) => line.slice(0, 11)),
    ).toEqual(['SIP/2.0 481', 'SIP/2.0 200', 'SIP/2.0 200']);
    expect(alice.ends(call)).toMatchObject([{ end: { why: 'bye' } }]);
    network.run();
    expect(alice.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('is forgotten 64*T1 after the answer: what a fork without the call asks then is 481, and the call goes on', () => {
    const { network, alice, lines, call, invite, hear } = forked();
    hear(respond(invite, 180, 'one'));
    hear(respond(invite, 200, 'two', 'v=0 two'));
    const answers = (from: number) =>
      lines(alice)
        .slice(from)
        .map((line) => line.slice(0, 11));
    network.run(network.now - START + 64 * 500 - 1);
    const before = lines(alice).length;
    hear(ask(invite, 'OPTIONS', 'one', 1));
    expect(answers(before)).toEqual(['SIP/2.0 481']);
    expect(alice.agent.load().dialogs).toBe(1);
    network.run(network.now - START + 2);
    const after = lines(alice).length;
    for (const [at, method] of ['OPTIONS', 'UPDATE', 'BYE'].entries()) hear(ask(invite, method, 'one', 2 + at));
    expect(answers(after)).toEqual(['SIP/2.0 481', 'SIP/2.0 481', 'SIP/2.0 481']);
    expect(alice.types(call)).toEqual(['ringing', 'answered']);
    hear(ask(invite, 'BYE', 'two', 1));
    expect(alice.ends(call)).toMatchObject([{ end: { why: 'bye' } }]);
    network.run();
    expect(alice.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('that has hung up before its 200 came is answered and over when it comes', () => {
    for (const lost of ['once', 'for good']) {
      const { network, alice, bob } = pair();
      let oks = 0;
      network.eat = (from, message) =>
        from === bob && /^SIP\/2.0 200[\s\S]*INVITE/.test(message) && (++oks === 1 || lost === 'for good');
      bob.react = (each, event) => {
        if (event.type !== 'invite') return;
        each.provisional(180, NONE, network.now);
        network.after(100, () => each.accept(bytes('v=0 answer'), network.now));
        network.after(200, () => {
          const ok = network.wire.find(({ line, from }) => from === bob.host && line.startsWith('SIP/2.0 200'))?.data ?? '';
          const header = (name: string) => new RegExp(`^${name}: (.*)\r$`, 'm').exec(ok)?.[1];
          const bye = `BYE sip:x@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP ${bob.host};branch=z9hG4bKearly\r\nFrom: ${header('To')}\r\nTo: ${header('From')}\r\nCall-ID: ${header('Call-ID')}\r\nCSeq: 1 BYE\r\nContent-Length: 0\r\n\r\n`;
          alice.agent.receive(bytes(bye), peerOf(bob), network.now);
        });
      };
      const call = dial(network, alice, bob);
      network.run(2_000);
      expect(alice.types(call)).toEqual(lost === 'once' ? ['ringing', 'answered', 'ended'] : ['ringing']);
      if (lost === 'once') expect(alice.ends(call)).toMatchObject([{ end: { why: 'bye' } }]);
      expect(network.wire.filter((each) => each.line.startsWith('ACK'))).toHaveLength(lost === 'once' ? 1 : 0);
    }
  });

  test('that is given up while it is answered gives the BYE its credentials when it is asked for them', () => {
    const { network, alice, lines, call, invite, hear } = forked({ credentials: { username: 'u', password: 'p' } });
    hear(respond(invite, 180, 'one'));
    call.hangUp(network.now);
    network.run(network.now - START);
    hear(respond(invite, 200, 'one', 'v=0 one'));
    expect(lines(alice)).toEqual(['INVITE', 'CANCEL', 'ACK', 'BYE']);
    const bye = network.wire.at(-1)?.data ?? '';
    hear(respond(bye, 407, 'one', '', 'Proxy-Authenticate: Digest realm="r", nonce="n", qop="auth"\r\n'));
    expect(lines(alice)).toEqual(['INVITE', 'CANCEL', 'ACK', 'BYE', 'BYE']);
    expect(network.wire.at(-1)?.data).toContain('Proxy-Authorization: Digest username="u"');
  });

  test('takes reliable provisional responses in order, each acknowledged once', () => {
    const { alice, network, call, invite, hear } = forked();
    const reliable = (rseq: number) => `Require: 100rel\r\nRSeq: ${rseq}\r\n`;
    hear(respond(invite, 180, 'one', '', reliable(5)));
    hear(respond(invite, 180, 'one', '', reliable(5)));
    hear(respond(invite, 183, 'one', 'v=0', reliable(7)));
    hear(respond(invite, 183, 'one', 'v=0', reliable(6)));
    expect(alice.types(call)).toEqual(['ringing', 'progress']);
    const pracks = network.wire.filter((each) => each.line.startsWith('PRACK'));
    expect(pracks.map((each) => /RAck: (.*)\r/.exec(each.data)?.[1])).toEqual(['5 1 INVITE', '6 1 INVITE']);
  });

  test('in-dialog requests follow the route set and the Contact of the 200', () => {
    const { network, invite, hear, call } = forked();
    const routes = 'Record-Route: <sip:p1.example;lr>, <sip:p2.example:5070;lr>\r\n';
    hear(respond(invite, 200, 'one', 'v=0', routes));
    call.hangUp(network.now);
    network.run(network.now - START);
    const bye = network.wire.find((each) => each.line.startsWith('BYE'))?.data ?? '';
    expect(bye).toMatch(/^BYE sip:one@192.0.2.2 SIP\/2.0/);
    expect(bye.match(/Route: .*/g)?.map((each) => each.trim())).toEqual([
      'Route: <sip:p2.example:5070;lr>',
      'Route: <sip:p1.example;lr>',
    ]);
  });
});

describe('a session in progress', () => {
  test('is held and resumed by re-INVITE and UPDATE, each acknowledged once', () => {
    for (const method of ['INVITE', 'UPDATE']) {
      const all = established();
      const { network, alice, bob, callee, call } = all;
      bob.react = (each, event) => {
        if (event.type === 'offer') each.answerOffer(bytes('v=0 held'), network.now);
      };
      const invite = network.wire[0]?.data ?? '';
      const ok = network.wire.find((each) => each.line.startsWith('SIP/2.0 200'))?.data ?? '';
      const to = /\r\n(To: [^\r]*)/.exec(ok)?.[1] ?? '';
      const re = invite
        .replace(/^INVITE/, method)
        .replace(/branch=[^;]*/, 'branch=z9hG4bKre')
        .replace(/\r\nTo: [^\r]*/, `\r\n${to}`)
        .replace('CSeq: 1 INVITE', `CSeq: 2 ${method}`);
      bob.agent.receive(bytes(re), peerOf(alice), network.now);
      network.run(network.now - START + 10);
      expect(bob.types(callee())).toEqual(['accepted', 'confirmed', 'offer']);
      const again = network.wire
        .filter((each) => each.from === bob.host && each.data.includes(`CSeq: 2 ${method}`))
        .map((each) => each.line);
      expect(again).toEqual(method === 'INVITE' ? ['SIP/2.0 100 Trying', 'SIP/2.0 200 OK'] : ['SIP/2.0 200 OK']);
      call.hangUp(network.now);
      network.run();
      expect(bob.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
    }
  });

  test('is refreshed by UPDATE at half the interval, for ever', () => {
    const { network, alice, bob, call, callee } = established();
    network.run(7_200_000);
    expect(
      network.wire.filter((each) => each.line.startsWith('UPDATE')).map((each) => Math.round((each.at - START) / 1000)),
    ).toEqual([900, 1800, 2700, 3600, 4500, 5400, 6300]);
    expect([...alice.ends(call), ...bob.ends(callee())]).toEqual([]);
  });

  test('is refreshed by re-INVITE once an UPDATE was refused, although Allow names it', () => {
    const all = established();
    const { network, alice, bob, call, callee } = all;
    const receive = bob.agent.receive.bind(bob.agent);
    bob.agent.receive = (data, source, now) => {
      const message = text(data);
      if (!message.startsWith('UPDATE')) receive(data, source, now);
      else alice.agent.receive(bytes(message.replace(/^.*/, 'SIP/2.0 405 Method Not Allowed')), peerOf(bob), now);
    };
    bob.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
    };
    network.run(3_700_000);
    const sent = (method: string) =>
      network.wire.filter((each) => each.line.startsWith(method)).slice(method === 'INVITE' ? 1 : 0);
    expect([sent('UPDATE').length, sent('INVITE').length]).toEqual([1, 4]);
    expect([...alice.ends(call), ...bob.ends(callee())]).toEqual([]);
  });

  test('is refreshed by re-INVITE where UPDATE is not allowed, with the same description', () => {
    const all = pair();
    const { network, alice, bob } = all;
    const receive = alice.agent.receive.bind(alice.agent);
    alice.agent.receive = (data, source, now) => receive(bytes(text(data).replace(', UPDATE', '')), source, now);
    bob.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
      if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
    };
    const call = dial(network, alice, bob);
    network.run(2_000_000);
    const again = network.wire.filter((each) => each.line.startsWith('INVITE')).slice(1);
    expect(again).toHaveLength(2);
    for (const each of again) expect(each.data).toContain('v=0 offer');
    expect(alice.ends(call)).toEqual([]);
    expect(network.wire.filter((each) => each.line.startsWith('ACK'))).toHaveLength(3);
  });

  test('that nobody refreshes is hung up before it expires', () => {
    const { network, alice, bob, call, callee } = established();
    network.eat = () => true;
    network.run();
    expect(alice.ends(call)).toEqual([{ type: 'ended', end: { why: 'gone' } }]);
    expect(bob.ends(callee())).toEqual([{ type: 'ended', end: { why: 'session_expired' } }]);
    expect(bob.agent.load()).toEqual({ dialogs: 0, transactions: 0 });
  });

  test('shorter than 90 s is refused with 422 and Min-SE, and asked for again when we are told so', () => {
    const all = pair();
    const [answer] = say(all, request('INVITE', { fields: 'Supported: timer\r\nSession-Expires: 60\r\n' }));
    expect(answer).toMatch(/^SIP\/2.0 422[\s\S]*Min-SE: 90/);

    const { network, alice, bob } = pair();
    bob.react = (each, event) => {
      if (event.type === 'invite') each.refuse(422, [['min-se', '3600']], network.now);
    };
    dial(network, alice, bob);
    network.run(50);
    const second = network.wire.filter((each) => each.line.startsWith('INVITE'))[1]?.data ?? '';
    expect(second).toMatch(/Session-Expires: 3600\r\n/);
    expect(second).toMatch(/Min-SE: 3600\r\n/);
    expect(second).toMatch(/CSeq: 2 INVITE/);
  });
});

describe('requests we do not take', () => {
  const cases: [title: string, message: string, expected: string, mentions?: string][] = [
    ['an unknown method is 501', request('DANCE'), '501'],
    ['a method that is not for us is 405 with Allow', request('SUBSCRIBE'), '405', 'Allow: INVITE'],
    [
      'a required extension we do not know is 420',
      request('INVITE', { fields: 'Require: teleport, 100rel\r\n' }),
      '420',
      'Unsupported: teleport',
    ],
    ['a foreign URI scheme is 416', request('INVITE', { uri: 'mailto:a@b' }), '416'],
    ['a malformed SIP URI is 400', request('INVITE', { uri: 'sip:' }), '400'],
    [
      'a body that is no session description is 415',
      request('INVITE', { fields: 'Content-Type: text/plain\r\n', body: 'hi' }),
      '415',
      'Accept: application/sdp',
    ],
    ['no hops left is 483', request('INVITE', { fields: 'Max-Forwards: 0\r\n' }), '483'],
    ['a BYE outside any dialog is 481', request('BYE', { to: ';tag=nobody' }), '481'],
    ['a BYE without a tag is 481', request('BYE'), '481'],
    ['an INVITE in an unknown dialog is 481', request('INVITE', { to: ';tag=nobody' }), '481'],
    [
      'a route longer than the limit is 400',
      request('INVITE', { fields: `Record-Route: ${Array(40).fill('<sip:p;lr>').join(',')}\r\n` }),
      '400',
    ],
    ['OPTIONS is answered with what we can do', request('OPTIONS'), '200', 'Supported: 100rel, timer'],
  ];
  for (const [title, message, expected, mentions] of cases) {
    test(title, () => {
      const all = pair();
      const [answer = ''] = say(all, message).filter((each) => !each.startsWith('SIP/2.0 100'));
      expect(answer.slice(8, 11)).toBe(expected);
      if (mentions !== undefined) expect(answer).toContain(mentions);
      expect(answer).toContain('received=192.0.2.9;rport=5060');
    });
  }

  test('while draining, INVITE and OPTIONS are 503 with Retry-After and calls that are up go on', () => {
    const all = established();
    all.bob.agent.drain();
    expect(status(say(all, request('INVITE')))).toEqual(['503']);
    expect(say(all, request('OPTIONS', { branch: 'z9hG4bKo' }))[0]).toContain('Retry-After: ');
    all.call.hangUp(all.network.now);
    all.network.run();
    expect(all.bob.ends(all.callee())).toHaveLength(1);
  });

  test('past the limits, of calls and of transactions, a request is 503', () => {
    const calls = pair({ bob: { maxCalls: 1 } });
    expect(status(say(calls, request('INVITE')))).toEqual(['100']);
    const refused = say(calls, request('INVITE', { branch: 'z9hG4bK2', callId: 'd' }));
    expect(status(refused)).toEqual(['503']);
    expect(refused[0]).not.toContain('Retry-After');
    const transactions = pair({ bob: { maxTransactions: 1 } });
    say(transactions, request('INVITE'));
    expect(status(say(transactions, request('OPTIONS', { branch: 'z9hG4bK2' })))).toEqual(['503']);
  });
});

describe('credentials', () => {
  const asking = (status: 401 | 407, realm: string, more = '') =>
    [
      status,
      [
        [
          status === 401 ? 'www-authenticate' : 'proxy-authenticate',
          `Digest realm="${realm}", nonce="of ${realm}", qop="auth"${more}`,
        ],
      ],
    ] as const;

  test('are given to each proxy on the way and to the callee, each by its realm (RFC 3261 §22.3)', () => {
    const { network, alice, bob } = pair();
    const questions = [asking(407, 'edge'), asking(407, 'core'), asking(401, 'callee'), [422, [['min-se', '1800']]] as const];
    bob.react = (each, event) => {
      if (event.type !== 'invite') return;
      const question = questions.shift();
      if (question === undefined) each.accept(bytes('v=0 answer'), network.now);
      else each.refuse(question[0], question[1], network.now);
    };
    const call = dial(network, alice, bob, { credentials: { username: 'u', password: 'p' } });
    network.run(1_000);
    expect(alice.types(call)).toEqual(['answered']);
    const invites = network.wire.filter((each) => each.line.startsWith('INVITE')).map(({ data }) => data);
    const given = invites.map((data) =>
      [...data.matchAll(/(\S*uthorization): .*realm="(\w+)".*nc=0000000(\d)/g)].map((each) => each.slice(1)),
    );
    expect(given.map((each) => each.map(([, realm, count]) => `${realm} ${count}`))).toEqual([
      [],
      ['edge 1'],
      ['edge 2', 'core 1'],
      ['edge 3', 'core 2', 'callee 1'],
      ['edge 4', 'core 3', 'callee 2'],
    ]);
    expect(given[4]?.map(([name]) => name)).toEqual(['Proxy-Authorization', 'Proxy-Authorization', 'Authorization']);
  });

  test('are not given to ever new realms', () => {
    const { network, alice, bob } = pair();
    let asked = 0;
    bob.react = (each, event) => {
      if (event.type === 'invite') each.refuse(...asking(407, `realm${++asked}`), network.now);
    };
    const call = dial(network, alice, bob, { credentials: { username: 'u', password: 'p' } });
    network.run();
    expect(asked).toBe(5);
    expect(alice.ends(call)).toMatchObject([{ end: { why: 'refused', status: 407 } }]);
  });

  test('a stale nonce is answered once more, a second refusal is final', () => {
    for (const [second, invites] of [
      [', stale=true', 3],
      ['', 2],
    ] as const) {
      const { network, alice, bob } = pair();
      let asked = 0;
      bob.react = (each, event) => {
        if (event.type !== 'invite') return;
        asked++;
        each.refuse(
          401,
          [['www-authenticate', `Digest realm="r", nonce="n${asked}", qop="auth"${asked === 1 ? '' : second}`]],
          network.now,
        );
      };
      const call = dial(network, alice, bob, { credentials: { username: 'u', password: 'p' } });
      network.run();
      expect(network.wire.filter((each) => each.line.startsWith('INVITE'))).toHaveLength(invites);
      expect(alice.ends(call)).toMatchObject([{ end: { why: 'refused', status: 401 } }]);
      const first = network.wire.filter((each) => each.line.startsWith('INVITE'))[1]?.data ?? '';
      expect(first).toMatch(/Authorization: Digest username="u", realm="r", nonce="n1"/);
      expect(first).not.toContain('"p"');
    }
  });
});

test('an address of a private network in Contact does not lead packets away from where the call came from', () => {
  const all = pair();
  say(all, request('INVITE').replace('Contact: <sip:x@192.0.2.9>', 'Contact: <sip:x@10.1.2.3>'));
  const [call] = all.bob.invited;
  call?.accept(bytes('v=0'), all.network.now);
  say(all, request('ACK', { to: `;tag=${/To:[^\r]*tag=([^\r]*)/.exec(all.network.wire.at(-1)?.data ?? '')?.[1]}` }));
  call?.hangUp(all.network.now);
  all.network.run(all.network.now - START + 1);
  const bye = all.bob.outputs.findLast((output) => output.type === 'send');
  expect(bye?.type === 'send' && bye.peer.host).toBe('192.0.2.9');
  expect(NONE).toHaveLength(0);
});

test('An INFO that is understood is answered 200, and any other with what is understood', () => {
  const all = pair();
  all.bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), all.network.now);
  };
  const [, ok = ''] = say(all, request('INVITE'));
  const to = /;tag=[^\r]*/.exec(/\r\nTo: [^\r]*/.exec(ok)?.[0] ?? '')?.[0] ?? '';
  let cseq = 1;
  const inform = (type: string, body: string, more = '') => {
    const fields = `${type === '' ? '' : `Content-Type: ${type}\r\n`}${more}`;
    return say(all, request('INFO', { to, cseq: ++cseq, branch: `z9hG4bKi${cseq}`, fields, body }))[0] ?? '';
  };
  for (const [type, body, more] of [
    ['', ''],
    ['application/dtmf-relay', ''],
    ['application/dtmf-relay; charset=utf-8', 'Signal=5\r\n'],
    ['Application/DTMF', '5', 'Info-Package: keys\r\n'],
    ['application/media_control+xml', '<media_control/>'],
    ['application/x-note', 'hello', 'Content-Disposition: render;handling=optional\r\n'],
  ] as const)
    expect(inform(type, body, more)).toStartWith('SIP/2.0 200');
  expect(all.bob.types(all.callee()).filter((type) => type === 'info')).toHaveLength(6);
  for (const type of ['', 'application/x-note']) {
    const refused = inform(type, 'hello');
    expect(refused).toStartWith('SIP/2.0 415');
    expect(refused).toContain('Accept: application/dtmf-relay, application/dtmf\r\n');
  }
  for (const body of ['', 'hello']) {
    const refused = inform(body === '' ? '' : 'application/x-note', body, 'Info-Package: note\r\n');
    expect(refused).toStartWith('SIP/2.0 469 Bad Info Package');
    expect(refused).toContain('\r\nRecv-Info: \r\n');
  }
  expect(all.bob.types(all.callee()).filter((type) => type === 'info')).toHaveLength(6);
  expect(inform('', '')).toStartWith('SIP/2.0 200');
});

describe('an INVITE', () => {
  test('without a From tag opens a call whose requests are found without one (RFC 3261 §12.1.1)', () => {
    const all = pair();
    all.bob.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), all.network.now);
    };
    const bare = request('INVITE').replace(';tag=f', '');
    const [, ok = ''] = say(all, bare);
    expect(ok).toStartWith('SIP/2.0 200');
    const to = /;tag=[^\r]*/.exec(/\r\nTo: [^\r]*/.exec(ok)?.[0] ?? '')?.[0] ?? '';
    expect(status(say(all, request('BYE', { to, cseq: 2, branch: 'z9hG4bKbye' }).replace(';tag=f', '')))).toEqual(['200']);
    expect(all.bob.types(all.callee())).toEqual(['accepted', 'ended']);
  });

  test('that is not answered within its Expires is answered 487 (RFC 3261 §13.3.1)', () => {
    const all = pair();
    say(all, request('INVITE', { fields: 'Expires: 7\r\n' }));
    all.network.run(6_999);
    expect(all.bob.types(all.callee())).toEqual([]);
    all.network.run(7_100);
    expect(all.bob.ends(all.callee())).toEqual([{ type: 'ended', end: { why: 'expired' } }]);
    expect(all.network.wire.map((each) => each.line)).toContain('SIP/2.0 487 Request Terminated');
  });

  test('that is answered within its Expires is not ended by it', () => {
    const all = pair();
    say(all, request('INVITE', { fields: 'Expires: 7\r\n' }));
    all.callee().accept(bytes('v=0 answer'), all.network.now);
    all.network.run(20_000);
    expect(all.bob.types(all.callee())).toEqual(['accepted']);
  });

  test('has its Timestamp copied into every response', () => {
    const all = pair();
    const [trying = ''] = say(all, request('INVITE', { fields: 'Timestamp: 54.21\r\n' }));
    expect(trying).toContain('\r\nTimestamp: 54.21\r\n');
  });
});

describe('a provisional response', () => {
  test('180 with a session description both rings and begins early media', () => {
    const { network, alice, bob } = pair();
    bob.react = (each, event) => {
      if (event.type === 'invite') each.provisional(180, bytes('v=0 early'), network.now);
    };
    const call = dial(network, alice, bob);
    network.run(50);
    expect(alice.types(call)).toEqual(['ringing', 'progress']);
  });

  test('183 without one rings, and any other says that the call is on its way', () => {
    for (const [status, told] of [
      ['183', 'ringing'],
      ['182', 'underway'],
      ['199', 'underway'],
    ] as const) {
      const { network, alice, bob } = pair();
      const receive = alice.agent.receive.bind(alice.agent);
      alice.agent.receive = (data, source, now) =>
        receive(bytes(text(data).replace(/^SIP\/2.0 183/, `SIP/2.0 ${status}`)), source, now);
      bob.react = (each, event) => {
        if (event.type === 'invite') each.provisional(183, new Uint8Array(0), network.now);
      };
      const call = dial(network, alice, bob);
      network.run(50);
      expect(alice.types(call)).toEqual([told]);
    }
  });
});

describe('a probe of an answered call', () => {
  const probed = (answer: string | undefined) => {
    const all = established();
    const { network, bob, callee } = all;
    network.eat = (from, message) => {
      if (from !== bob || !message.includes(' OPTIONS\r\n')) return false;
      if (answer !== undefined)
        all.alice.agent.receive(bytes(message.replace('SIP/2.0 200 OK', `SIP/2.0 ${answer}`)), peerOf(bob), network.now);
      return true;
    };
    all.call.probe(network.now);
    network.run(network.now - START + 33_000);
    return { ...all, end: all.alice.ends(all.call), sent: all.lines(all.alice), callee: callee() };
  };

  test('that is answered with anything but 481 and 408 shows that the far end is alive', () => {
    for (const answer of ['200 OK', '405 Method Not Allowed', '501 Not Implemented', '500 Server Internal Error']) {
      const { alice, call, end } = probed(answer);
      expect([alice.types(call).at(-1), end]).toEqual(['alive', []]);
    }
  });

  test('that is answered with 481 or 408 ends the call as gone, and a BYE is sent', () => {
    for (const answer of ['481 Call/Transaction Does Not Exist', '408 Request Timeout']) {
      const { end, sent } = probed(answer);
      expect(end).toEqual([{ type: 'ended', end: { why: 'gone' } }]);
      expect(sent).toContain('BYE');
    }
  });

  test('is one at a time', () => {
    const { network, alice, bob, call } = established();
    const asked = () => network.wire.filter((each) => each.from === alice.host && each.line.startsWith('OPTIONS')).length;
    for (const count of [1, 2]) {
      for (let time = 0; time < 3; time++) call.probe(network.now);
      network.run(network.now - START + 100);
      expect(asked()).toBe(count);
    }
    call.hangUp(network.now);
    call.probe(network.now);
    network.run(network.now - START + 100);
    expect([asked(), bob.agent.load().dialogs]).toEqual([2, 0]);
  });

  test('that is never answered ends the call as unresponsive after Timer F, and a BYE is sent', () => {
    const { end, sent } = probed(undefined);
    expect(end).toEqual([{ type: 'ended', end: { why: 'unresponsive' } }]);
    expect(sent).toContain('BYE');
  });

  test('that is never answered counts for nothing where the far end has spoken or has moved since', () => {
    const profile = { staysOnFlow: true };
    for (const happens of ['request', 'answer', 'move'] as const) {
      const all = established();
      const { network, alice, bob, call, callee } = all;
      network.eat = (_, message) => message.startsWith('OPTIONS');
      const dialog = call.farEnd.dialog;
      if (dialog === undefined) throw new Error('no dialog');
      if (happens === 'move') dialog.peer = { ...peerOf(bob), port: 5070, profile };
      alice.react = (each, event) => {
        if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
      };
      bob.react = alice.react;
      call.probe(network.now);
      network.after(10_000, () => {
        if (happens === 'request') callee().offer(() => bytes('v=0 offer'), network.now);
        else if (happens === 'answer') call.offer(() => bytes('v=0 offer'), network.now);
        else alice.agent.moved({ transport: 'udp', host: bob.host, port: 5070 }, { ...peerOf(bob), profile });
      });
      network.run(40_000);
      expect([happens, alice.ends(call)]).toEqual([happens, []]);
      network.eat = () => false;
      call.probe(network.now);
      network.run(network.now - START + 100);
      expect([happens, alice.types(call).at(-1)]).toEqual([happens, 'alive']);
    }
  });
});
