/**
 * Our own re-INVITEs and those of the far end, where the far end moves, changes its mind, or is loose with branches.
 */
import { describe, expect, test } from 'bun:test';
import type { Call } from '../../src/sip/call/call.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf, START, text } from './pair.ts';

function established(alter: (message: string) => string = (message) => message) {
  const random = seeded(11);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random);
  const network = new Network([alice, bob], CALM, random);
  const receive = alice.agent.receive.bind(alice.agent);
  alice.agent.receive = (data, source, now) => receive(bytes(alter(text(data))), source, now);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  const call = dial(network, alice, bob);
  network.run(100);
  const [callee] = bob.invited;
  if (callee === undefined) throw new Error('no call came');
  return { alice, bob, network, call, callee, on: () => network.run(network.now - START + 100) };
}

/** The bodies of what a call was told. */
const bodies = (party: Party, call: Call, type: 'answer' | 'offer') =>
  (party.events.get(call) ?? []).flatMap((event) => (event.type === type ? [text(event.body)] : []));

/** Has the far end refuse another session. */
function refusing(far: Party, network: Network, call: Call): void {
  far.react = (each, event) => {
    if (event.type === 'offer') each.refuseOffer(488, network.now);
  };
  call.offer(() => bytes('v=0 refused'), network.now);
  network.run(network.now - START + 100);
}

describe('a refreshing re-INVITE', () => {
  test('tells the answer of the far end, which may be another than before (RFC 3264 §8)', () => {
    const { alice, bob, network, call } = established((message) => message.replace(', UPDATE', ''));
    bob.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes('v=0 elsewhere'), network.now);
    };
    network.run(1_000_000);
    expect(bodies(alice, call, 'answer')).toEqual(['v=0 elsewhere']);
    refusing(bob, network, call);
    expect(bodies(alice, call, 'answer')).toEqual(['v=0 elsewhere']);
  });

  test('repeats the description that was agreed on last, whoever changed the session', () => {
    // Bob leaves the refreshing to Alice, also where he changes the session.
    const { alice, bob, network, call, callee, on } = established((message) => {
      const said = message.replace(', UPDATE', '');
      return said.startsWith('INVITE') ? said.replace(/(Session-Expires: \d+)[^\r]*/, '$1;refresher=uas') : said;
    });
    for (const party of [alice, bob])
      party.react = (each, event) => {
        if (event.type === 'offer') each.answerOffer(bytes(`v=0 of ${party.host}`), network.now);
      };
    const refresh = () => {
      network.wire.length = 0;
      network.run(network.now - START + 1_000_000);
      return network.wire.filter((each) => each.from === alice.host && each.line.startsWith('INVITE')).at(-1)?.data ?? '';
    };
    callee.offer(() => bytes('v=0 far'), network.now);
    on();
    expect(refresh()).toEndWith('v=0 of 192.0.2.1');
    call.offer(() => bytes('v=0 held'), network.now);
    on();
    expect(refresh()).toEndWith('v=0 held');
  });

  test.each([true, false])('of a call that came in is an UPDATE where its INVITE allows that: %p', (allows) => {
    const random = seeded(11);
    const [alice, bob] = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)];
    const network = new Network([alice, bob], CALM, random);
    const receive = bob.agent.receive.bind(bob.agent);
    const altered = (message: string) =>
      (allows ? message : message.replace(', UPDATE', '')).replace(/(Session-Expires: \d+)[^\r]*/, '$1;refresher=uas');
    bob.agent.receive = (data, source, now) => receive(bytes(altered(text(data))), source, now);
    for (const party of [alice, bob])
      party.react = (each, event) => {
        if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
        if (event.type === 'offer') each.answerOffer(bytes('v=0 again'), network.now);
      };
    dial(network, alice, bob);
    network.run(1_000_000);
    const sent = network.wire.filter((each) => each.from === bob.host && /^(INVITE|UPDATE)/.test(each.line));
    expect(sent.map(({ line, data }) => [line.split(' ')[0], data.endsWith('v=0 answer')])).toEqual([
      allows ? ['UPDATE', false] : ['INVITE', true],
    ]);
  });

  test('that falls due while a change of the far end waits for its answer follows, where that is refused', () => {
    const { alice, network, call, callee } = established();
    network.run(895_000);
    callee.offer(() => bytes('v=0 theirs'), network.now);
    network.run(905_000);
    const refreshes = () => network.wire.filter((each) => each.from === alice.host && each.line.startsWith('UPDATE')).length;
    expect([bodies(alice, call, 'offer'), refreshes()]).toEqual([['v=0 theirs'], 0]);
    call.refuseOffer(488, network.now);
    network.run(920_000);
    expect(refreshes()).toBe(1);
  });

  test('leaves the answer to an offer that waits for it', () => {
    const { alice, bob, network, call } = established((message) => message.replace(', UPDATE', ''));
    let wants = true;
    bob.react = (each, event) => {
      if (event.type !== 'offer') return;
      // We want another session while our refresh is under way.
      if (wants) call.offer(() => bytes('v=0 held'), network.now);
      wants = false;
      each.answerOffer(bytes(`v=0 to ${text(event.body).slice('v=0 '.length)}`), network.now);
    };
    network.run(1_000_000);
    expect(bodies(alice, call, 'answer')).toEqual(['v=0 to held']);
    // What that offer has changed is not changed back by the refusal of another.
    refusing(bob, network, call);
    expect(bodies(alice, call, 'answer')).toEqual(['v=0 to held']);
  });
});

describe('our re-INVITE', () => {
  test('is acknowledged where the Contact of its 200 says that the far end is now (RFC 3261 §12.2.1.2)', () => {
    const { bob, network, call, on } = established((message) =>
      message.startsWith('SIP/2.0 200') && message.includes('CSeq: 2 INVITE')
        ? message.replace(/\r\nContact: [^\r]*/, '\r\nContact: <sip:moved@192.0.2.2:5090>')
        : message,
    );
    bob.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
    };
    call.offer(() => bytes('v=0 held'), network.now);
    on();
    expect(network.wire.findLast((each) => each.line.startsWith('ACK'))?.line).toBe('ACK sip:moved@192.0.2.2:5090 SIP/2.0');
  });

  test('describes the session as it is when it is sent again after glare', () => {
    const { alice, bob, network, call } = established();
    let version = 1;
    const describeNow = () => bytes(`v=0 version ${version}`);
    bob.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
    };
    alice.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes(`v=0 version ${++version}`), network.now);
    };
    // Both offer at the same time, and both are refused.
    const [callee] = bob.invited;
    call.offer(describeNow, network.now);
    callee?.offer(() => bytes('v=0 theirs'), network.now);
    network.run(10_000);
    expect(network.wire.filter((each) => each.line.startsWith('SIP/2.0 491'))).toHaveLength(2);
    expect(bodies(alice, call, 'offer')).toEqual(['v=0 theirs']);
    expect(bodies(bob, callee ?? call, 'offer')).toEqual(['v=0 version 2']);
  });
});

/** What our re-INVITE came to, where the far end answers it with a status, or with nothing, and who heard a BYE. */
function answeredBy(status: '481' | '408' | undefined, endedBy?: readonly (481 | 408)[]) {
  const { alice, bob, network, call } = established((message) =>
    status !== undefined && message.startsWith('SIP/2.0 500')
      ? message.replace('500 Server Internal Error', `${status} No`)
      : message,
  );
  if (status === undefined) bob.agent.receive = () => {};
  else
    bob.react = (each, event) => {
      if (event.type === 'offer') each.refuseOffer(500, network.now);
    };
  call.offer(() => bytes('v=0 here'), network.now, endedBy);
  network.run(network.now - START + 60_000);
  const told = (alice.events.get(call) ?? []).flatMap((event) =>
    event.type === 'offer_refused' || event.type === 'ended' ? [event] : [],
  );
  return { told, hasBye: network.wire.some(({ line }) => line.startsWith('BYE')) };
}

describe('a re-INVITE that the far end answers with 481 or 408, or not at all', () => {
  test('ends the call by BYE (RFC 3261 §12.2.1.2)', () => {
    for (const status of ['481', '408', undefined] as const)
      expect(answeredBy(status)).toEqual({ told: [{ type: 'ended', end: { why: 'gone' } }], hasBye: true });
  });

  test('is a refusal where the call goes on at another node, and no BYE is sent', () => {
    for (const status of ['481', '408', undefined] as const)
      expect(answeredBy(status, [])).toEqual({
        told: [{ type: 'offer_refused', status: Number(status ?? 408) }],
        hasBye: false,
      });
  });

  test('is a refusal where only a far end that knows no such call ends it', () => {
    expect(answeredBy(undefined, [481])).toEqual({ told: [{ type: 'offer_refused', status: 408 }], hasBye: false });
    expect(answeredBy('481', [481]).hasBye).toBe(true);
  });
});

test('The ACK of a 2xx to a re-INVITE counts on the branch of the re-INVITE too.', () => {
  const { alice, bob, network, callee } = established();
  bob.react = (each, event) => {
    if (event.type === 'offer') each.answerOffer(bytes('v=0 answer'), network.now);
  };
  const invite = network.wire[0]?.data ?? '';
  const ok = network.wire.find((each) => each.line.startsWith('SIP/2.0 200'))?.data ?? '';
  const again = (method: string) =>
    invite
      .replace(/^INVITE/, method)
      .replace(/branch=[^;\r]*/, 'branch=z9hG4bKsame')
      .replace(/\r\nTo: [^\r]*/, `\r\n${/\r\n(To: [^\r]*)/.exec(ok)?.[1]}`)
      .replace('CSeq: 1 INVITE', `CSeq: 2 ${method}`);
  bob.agent.receive(bytes(again('INVITE')), peerOf(alice), network.now);
  network.run(network.now - START + 10);
  bob.agent.receive(bytes(again('ACK')), peerOf(alice), network.now);
  const before = network.wire.length;
  network.run(network.now - START + 60_000);
  expect(network.wire.slice(before).map((each) => each.line)).toEqual([]);
  expect(bob.ends(callee)).toEqual([]);
});

describe('a device that a re-INVITE does not reach', () => {
  const OLD = { transport: 'udp', host: '192.0.2.99', port: 5070, flow: 1, profile: { staysOnFlow: true } } as const;

  function away() {
    const all = established();
    const { alice, bob, network, call } = all;
    const { dialog } = call.farEnd;
    if (dialog === undefined) throw new Error('no dialog');
    dialog.peer = OLD;
    bob.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes('v=0 there'), network.now);
    };
    const move = () => alice.agent.moved(OLD, { ...peerOf(bob), profile: OLD.profile });
    /** Has the transport tell that what was sent last could not be. */
    const refuse = () => {
      const sent = alice.agent.take();
      alice.outputs.push(...sent);
      for (const output of sent) if (output.type === 'send') alice.agent.sendFailed(output.ticket, network.now);
    };
    return { ...all, move, refuse };
  }

  test('is asked again where it has registered since, and its call goes on', () => {
    const { alice, network, call, move } = away();
    call.offer(() => bytes('v=0 changed'), network.now);
    network.after(10_000, move);
    network.run(network.now - START + 10_100);
    expect(bodies(alice, call, 'answer')).toEqual(['v=0 there']);
    network.run(network.now - START + 40_000);
    expect([alice.ends(call), bodies(alice, call, 'answer')]).toEqual([[], ['v=0 there']]);
  });

  test('is heard where its own re-INVITE comes from, and asked there after it', () => {
    const { alice, bob, network, call, callee } = away();
    call.offer(() => bytes('v=0 changed'), network.now);
    alice.react = (each, event) => {
      if (event.type === 'offer') each.answerOffer(bytes('v=0 here'), network.now);
    };
    network.after(2_000, () => callee.offer(() => bytes('v=0 moved'), network.now));
    network.run(network.now - START + 4_000);
    expect([bodies(bob, callee, 'answer'), bodies(alice, call, 'answer')]).toEqual([['v=0 here'], ['v=0 there']]);
    expect(network.wire.filter(({ line }) => line.startsWith('SIP/2.0 491'))).toEqual([]);
  });

  test('because its connection is gone keeps its call until it is back, and is asked as soon as it is', () => {
    const { alice, network, call, move, refuse } = away();
    call.offer(() => bytes('v=0 changed'), network.now);
    refuse();
    call.probe(network.now);
    refuse();
    network.run(network.now - START + 1_000);
    expect(alice.ends(call)).toEqual([]);
    move();
    network.run(network.now - START + 100);
    expect([alice.ends(call), bodies(alice, call, 'answer')]).toEqual([[], ['v=0 there']]);
  });
});
