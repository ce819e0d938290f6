/** Transfers (RFC 3515) between two user agents, and with a far end whose every word is written here. */
import { describe, expect, test } from 'bun:test';
import { SIP_REFER_TARGET_MAX_CHARS } from '../../src/limits.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf, START } from './pair.ts';

const TARGET = '<sip:+15550111@pbx.example>';

/** A call from Alice that Bob has answered. */
function established(credentials?: { username: string; password: string }) {
  const random = seeded(7);
  const alice = new Party('192.0.2.1', random);
  const bob = new Party('192.0.2.2', random);
  const network = new Network([alice, bob], CALM, random);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  const call = dial(network, alice, bob, credentials === undefined ? {} : { credentials });
  network.run(100);
  const [callee] = bob.invited;
  if (callee === undefined) throw new Error('no call came');
  const sent = (from: Party, start: string) =>
    network.wire.filter(({ from: host, line }) => host === from.host && line.startsWith(start));
  const run = (ms = 100) => network.run(network.now - START + ms);
  const outcomes = () => (alice.events.get(call) ?? []).flatMap((event) => (event.type === 'refer' ? [event.outcome] : []));
  return { alice, bob, network, call, callee, sent, run, outcomes };
}
type Established = ReturnType<typeof established>;

const fieldOf = (message: string, name: string): string => new RegExp(`^${name}: (.*)\r$`, 'im').exec(message)?.[1] ?? '';
const bodyOf = (message: string): string => message.slice(message.indexOf('\r\n\r\n') + 4);

/** A REFER of Alice to a far end that answers nothing by itself: `answer` and `notify` are its words. */
function referred(all: Established = established()) {
  const { alice, bob, network, call, sent, run, outcomes } = all;
  network.eat = (from) => from === alice;
  const refer = () => sent(alice, 'REFER').at(-1)?.data ?? '';
  const tell = (message: string) => {
    const before = sent(alice, 'SIP/2.0').length;
    alice.agent.receive(bytes(message), { ...peerOf(bob), flow: 1 }, network.now);
    run();
    return sent(alice, 'SIP/2.0')
      .slice(before)
      .map(({ line }) => line.slice(8, 11));
  };
  const answer = (status: number, fields = '') =>
    tell(
      `SIP/2.0 ${status} Said\r\n${['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${fieldOf(refer(), name)}\r\n`).join('')}${fields}Content-Length: 0\r\n\r\n`,
    );
  let number = 100;
  /** `event` is the Event, `state` the Subscription-State, `line` the fragment's first line. */
  const notify = (line: string, { event = 'refer', state = 'active', type = 'message/sipfrag;version=2.0' } = {}) => {
    const body = line === '' ? '' : `${line}\r\n`;
    const cseq = ++number;
    return tell(
      `NOTIFY sip:a@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.2:5060;branch=z9hG4bKn${cseq}\r\nMax-Forwards: 70\r\n` +
        `From: ${fieldOf(refer(), 'To')}\r\nTo: ${fieldOf(refer(), 'From')}\r\nCall-ID: ${fieldOf(refer(), 'Call-ID')}\r\n` +
        `CSeq: ${cseq} NOTIFY\r\nEvent: ${event}\r\nSubscription-State: ${state}\r\n` +
        `${body === '' ? '' : `Content-Type: ${type}\r\n`}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
  };
  const again = () => {
    call.refer(() => TARGET, network.now);
    run(0);
    return fieldOf(refer(), 'CSeq').replace(/ .*/, '');
  };
  const id = again();
  return { ...all, answer, notify, refer, again, id, outcomes };
}

describe('a REFER of ours', () => {
  test('names its target and who asks, and is done when a NOTIFY tells of a 200', () => {
    const { refer, answer, notify, outcomes } = referred();
    expect([fieldOf(refer(), 'Refer-To'), fieldOf(refer(), 'Referred-By')]).toEqual([TARGET, '<sip:+15550199@192.0.2.1>']);
    expect(fieldOf(refer(), 'Contact')).toContain('192.0.2.1');
    answer(100);
    expect(outcomes()).toEqual([]);
    answer(202);
    expect(outcomes()).toEqual([{ phase: 'accepted' }]);
    for (const line of ['SIP/2.0 100 Trying', 'SIP/2.0 180 Ringing', 'SIP/2.0 199 Early']) expect(notify(line)).toEqual(['200']);
    expect(outcomes()).toEqual([{ phase: 'accepted' }]);
    expect(notify('SIP/2.0 200 OK', { state: 'terminated;reason=noresource' })).toEqual(['200']);
    expect(outcomes()).toEqual([{ phase: 'accepted' }, { phase: 'completed' }]);
    expect(notify('SIP/2.0 200 OK')).toEqual(['481']);
    expect(outcomes()).toHaveLength(2);
  });

  test('is accepted by a NOTIFY that overtakes its 202, and told so once', () => {
    const { answer, notify, outcomes } = referred();
    notify('SIP/2.0 100 Trying');
    expect(outcomes()).toEqual([{ phase: 'accepted' }]);
    answer(202);
    expect(outcomes()).toEqual([{ phase: 'accepted' }]);
  });

  test('that a NOTIFY has told as done is not refused afterwards', () => {
    const { answer, notify, outcomes } = referred();
    notify('SIP/2.0 200 OK', { state: 'terminated' });
    answer(408);
    expect(outcomes()).toEqual([{ phase: 'accepted' }, { phase: 'completed' }]);
  });

  test.each([
    [300, 'refused'],
    [403, 'refused'],
    [603, 'refused'],
  ] as const)('that is answered %d is %s', (status, phase) => {
    const { answer, outcomes } = referred();
    answer(status);
    expect(outcomes()).toEqual([{ phase, status }]);
  });

  test('that nobody answers is refused without a status after 32 s', () => {
    const { run, outcomes } = referred();
    run(31_000);
    expect(outcomes()).toEqual([]);
    run(2_000);
    expect(outcomes()).toEqual([{ phase: 'refused', status: 0 }]);
  });

  test.each([
    ['SIP/2.0 300 Multiple Choices', 'active', 300],
    ['SIP/2.0 486 Busy Here', 'active', 486],
    ['SIP/2.0 603 Decline', 'terminated;reason=noresource', 603],
    ['SIP/2.0 180 Ringing', 'Terminated ;reason=timeout', 180],
    ['', 'terminated;reason=giveup', 0],
  ])('has failed where a NOTIFY tells "%s", %s', (line, state, status) => {
    const { answer, notify, outcomes } = referred();
    answer(202);
    notify(line, { state });
    expect(outcomes()).toEqual([{ phase: 'accepted' }, { phase: 'failed', status }]);
  });

  test('reads the outcome from a SIP fragment alone, whatever the case of its version (RFC 3261 §7.1)', () => {
    const { answer, notify, outcomes } = referred();
    answer(202);
    expect(notify('SIP/2.0 200 OK', { type: 'text/plain' })).toEqual(['200']);
    expect(notify('HTTP/1.1 200 OK')).toEqual(['200']);
    expect(outcomes()).toEqual([{ phase: 'accepted' }]);
    notify('sip/2.0 200 OK', { type: 'Message/SipFrag', state: 'terminated' });
    expect(outcomes().at(-1)).toEqual({ phase: 'completed' });
  });

  test('is told apart from the one before by the id in Event (RFC 3515 §2.4.6)', () => {
    const all = referred();
    all.answer(202);
    const second = all.again();
    all.answer(202);
    expect(all.notify('SIP/2.0 200 OK', { event: `refer;id=${all.id}` })).toEqual(['481']);
    expect(all.outcomes()).toEqual([{ phase: 'accepted' }, { phase: 'accepted' }]);
    expect(all.notify('SIP/2.0 200 OK', { event: `Refer ; ID=${second}` })).toEqual(['200']);
    expect(all.outcomes().at(-1)).toEqual({ phase: 'completed' });
  });

  test('of the one before tells nothing any more, not even its answer', () => {
    const all = referred();
    const first = all.refer();
    all.again();
    const fields = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${fieldOf(first, name)}\r\n`).join('');
    all.alice.agent.receive(
      bytes(`SIP/2.0 202 Accepted\r\n${fields}Content-Length: 0\r\n\r\n`),
      { ...peerOf(all.bob), flow: 1 },
      all.network.now,
    );
    all.run();
    expect(all.outcomes()).toEqual([]);
  });

  test('has no part in a NOTIFY of another event, which is 489, nor in one that nobody asked for, which is 481', () => {
    const { answer, notify, outcomes } = referred();
    expect(notify('SIP/2.0 200 OK', { event: 'Talk' })).toEqual(['489']);
    answer(202);
    expect(notify('SIP/2.0 200 OK', { event: 'message-summary' })).toEqual(['489']);
    expect(outcomes()).toEqual([{ phase: 'accepted' }]);
  });

  test('is sent again with credentials where it is challenged', () => {
    const { answer, notify, refer, outcomes, id } = referred(established({ username: 'u', password: 'p' }));
    answer(401, 'WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5\r\n');
    expect(outcomes()).toEqual([]);
    expect(fieldOf(refer(), 'Authorization')).toContain('username="u"');
    answer(202);
    // The subscription is named by the number of the REFER that was accepted.
    expect(notify('SIP/2.0 200 OK', { event: `refer;id=${id}` })).toEqual(['481']);
    expect(notify('SIP/2.0 200 OK', { event: `refer;id=${Number(id) + 1}` })).toEqual(['200']);
    expect(outcomes()).toEqual([{ phase: 'accepted' }, { phase: 'completed' }]);
  });

  test('tells a device that we called our address as it reaches us, and others the domain of From (RFC 3261 §19.1.1)', () => {
    const domain = (staysOnFlow: boolean) => {
      const random = seeded(7);
      const [alice, bob] = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)];
      const network = new Network([alice, bob], CALM, random);
      bob.react = (each, event) => {
        if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
      };
      const peer = { ...peerOf(bob, 'tcp'), profile: { staysOnFlow } };
      const ends = { uri: 'sip:b@192.0.2.2', from: '<sip:a@voice.example>', to: '<sip:b@192.0.2.2>' };
      const call = alice.agent.invite({ peer, ...ends, body: bytes('v=0'), fields: [], credentials: undefined }, network.now);
      network.run(100);
      let told = '';
      const referTo = (own: string) => {
        told = own;
        return TARGET;
      };
      call?.refer(referTo, network.now);
      const mine = told;
      // The device that was called knows us by the address that it was called from.
      bob.invited[0]?.refer(referTo, network.now);
      return [mine, told];
    };
    expect([domain(true), domain(false)]).toEqual([
      ['192.0.2.1;transport=tcp', '192.0.2.2'],
      ['voice.example', '192.0.2.2'],
    ]);
  });

  test('that was never sent has no NOTIFY: 481, and 489 for another event', () => {
    const { alice, bob, network, sent, run } = established();
    const ok = sent(bob, 'SIP/2.0 200')[0]?.data ?? '';
    const notify = (cseq: number, event: string) => {
      const before = sent(alice, 'SIP/2.0').length;
      const lines = [
        `Via: SIP/2.0/UDP 192.0.2.2:5060;branch=z9hG4bKx${cseq}`,
        `From: ${fieldOf(ok, 'To')}`,
        `To: ${fieldOf(ok, 'From')}`,
      ];
      lines.push(`Call-ID: ${fieldOf(ok, 'Call-ID')}`, `CSeq: ${cseq} NOTIFY`, ...(event === '' ? [] : [`Event: ${event}`]));
      alice.agent.receive(bytes(`NOTIFY sip:a@192.0.2.1 SIP/2.0\r\n${lines.join('\r\n')}\r\n\r\n`), peerOf(bob), network.now);
      run();
      return sent(alice, 'SIP/2.0')[before]?.line.slice(8, 11);
    };
    expect([notify(1, 'refer'), notify(2, ''), notify(3, 'talk')]).toEqual(['481', '481', '489']);
  });

  test('goes nowhere where the call is over', () => {
    const { call, network, run, sent, alice } = established();
    call.hangUp(network.now);
    run();
    call.refer(() => TARGET, network.now);
    run();
    expect(sent(alice, 'REFER')).toEqual([]);
  });
});

describe('a REFER of the far end', () => {
  /** Bob asks for the target. */
  function asked(target = TARGET) {
    const all = established();
    all.callee.refer(() => target, all.network.now);
    all.run();
    const notified = () =>
      all
        .sent(all.alice, 'NOTIFY')
        .map(({ data }) => [fieldOf(data, 'Event'), fieldOf(data, 'Subscription-State'), bodyOf(data).trim()]);
    const requested = () =>
      (all.alice.events.get(all.call) ?? []).flatMap((event) => (event.type === 'refer_requested' ? [event.target] : []));
    const answers = () =>
      all
        .sent(all.alice, 'SIP/2.0')
        .filter(({ data }) => / REFER\r$/im.test(data))
        .map(({ line }) => line.slice(8, 11));
    return { ...all, notified, requested, answers };
  }

  test('is accepted and told; it is closed with 200 when the call ends', () => {
    const all = asked();
    const { alice, callee, sent, notified, requested, answers } = all;
    expect([answers(), requested()]).toEqual([['202'], ['sip:+15550111@pbx.example']]);
    expect(sent(alice, 'SIP/2.0 202')[0]?.data).toMatch(/^Contact: .*192\.0\.2\.1/im);
    const event = `refer;id=${fieldOf(sent(all.bob, 'REFER')[0]?.data ?? '', 'CSeq').replace(/ .*/, '')}`;
    const trying = [event, 'active;expires=60', 'SIP/2.0 100 Trying'];
    expect(notified()).toEqual([trying]);
    expect(fieldOf(sent(alice, 'NOTIFY')[0]?.data ?? '', 'Content-Type')).toBe('message/sipfrag;version=2.0');
    all.call.hangUp(all.network.now);
    all.run(120_000);
    expect(notified()).toEqual([trying, [event, 'terminated;reason=noresource', 'SIP/2.0 200 OK']]);
    expect(all.bob.ends(callee)).toHaveLength(1);
  });

  test('that names a call to be replaced is told with that', () => {
    const { alice, call } = asked('<sip:bob@pbx.example?Replaces=x%3Bto-tag%3D1%3Bfrom-tag%3D2>');
    expect(alice.events.get(call)).toContainEqual({
      type: 'refer_requested',
      target: 'sip:bob@pbx.example?Replaces=x%3Bto-tag%3D1%3Bfrom-tag%3D2',
      replaces: { callId: 'x', toTag: '1', fromTag: '2', earlyOnly: false },
    });
  });

  test('is closed with 503 after 60 s, once, and another one may follow', () => {
    const all = asked();
    all.callee.refer(() => TARGET, all.network.now);
    all.run();
    expect(all.answers()).toEqual(['202', '491']);
    all.run(59_000);
    expect(all.notified()).toHaveLength(1);
    all.run(1_000);
    expect(all.notified().at(-1)?.slice(1)).toEqual(['terminated;reason=noresource', 'SIP/2.0 503 Service Unavailable']);
    all.callee.refer(() => TARGET, all.network.now);
    all.run();
    expect([all.answers(), all.requested()]).toEqual([
      ['202', '491', '202'],
      ['sip:+15550111@pbx.example', 'sip:+15550111@pbx.example'],
    ]);
    all.call.hangUp(all.network.now);
    all.run(120_000);
    expect(all.notified().map(([, , line]) => line)).toEqual([
      'SIP/2.0 100 Trying',
      'SIP/2.0 503 Service Unavailable',
      'SIP/2.0 100 Trying',
      'SIP/2.0 200 OK',
    ]);
  });

  test('that was closed with 503 is not closed again by the end of the call', () => {
    const all = asked();
    all.run(61_000);
    all.call.hangUp(all.network.now);
    all.run(1_000);
    expect(all.notified()).toHaveLength(2);
  });

  test('keeps the call at its node while it is open, and is not closed by a node that has the call no more', () => {
    const all = asked();
    expect([all.call.snapshot(true), all.call.snapshot(false)]).toEqual([undefined, expect.anything()]);
    all.run(60_000);
    expect(all.call.snapshot(true)).toBeDefined();
    all.callee.refer(() => TARGET, all.network.now);
    all.run();
    expect(all.notified()).toHaveLength(3);
    all.call.abandon();
    all.run(120_000);
    expect(all.notified()).toHaveLength(3);
  });

  test('names one target of at most 1,024 characters, or is 400', () => {
    const longest = `sip:${'x'.repeat(SIP_REFER_TARGET_MAX_CHARS - 'sip:@pbx'.length)}@pbx`;
    const good = asked(`<${longest}>`);
    expect([good.answers(), good.requested()]).toEqual([['202'], [longest]]);
    for (const bad of [`<${longest}x>`, `${TARGET}, ${TARGET}`, '']) {
      const { answers, requested, notified } = asked(bad);
      expect([bad, answers(), requested(), notified()]).toEqual([bad, ['400'], [], []]);
    }
  });
});
