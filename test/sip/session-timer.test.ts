/** Session timers (RFC 4028): what is agreed on, who refreshes, and when a call is over. */
import { describe, expect, test } from 'bun:test';
import { answerTimer, expiresAfterMs, isTooSmall, refreshAfterMs, settledTimer } from '../../src/sip/call/session-timer.ts';
import type { Peer } from '../../src/sip/flow.ts';
import { Headers } from '../../src/sip/message/message.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, START } from './pair.ts';

const peer = (sessionTimer?: boolean): Peer => ({
  ...{ transport: 'udp', host: '192.0.2.9', port: 5060, flow: 1 },
  profile: sessionTimer === undefined ? {} : { sessionTimer },
});
/** Header fields, written `name: value`, several parted by `|`. */
const fields = (text: string): Headers => {
  const headers = new Headers();
  for (const field of text === '' ? [] : text.split('|')) headers.add(field.replace(/:.*/, ''), field.replace(/^[^:]*: /, ''));
  return headers;
};

describe('the answer to an INVITE', () => {
  test.each([
    // The caller knows timers and names no refresher: it refreshes.
    ['supported: timer|session-expires: 1800', '1800;refresher=uac', true],
    ['require: timer|session-expires: 1800', '1800;refresher=uac', true],
    ['supported: 100rel, Timer|session-expires: 1800; Refresher = UAC', '1800;refresher=uac', true],
    ['supported: timer|session-expires: 1800;refresher=UAS', '1800;refresher=uas', false],
    ['supported: timer|session-expires: 1800;refresher=nobody', '1800;refresher=uac', true],
    // Its proxy asks in its name, and it does not know timers: we refresh (§9).
    ['session-expires: 600', '600;refresher=uas', false],
    ['session-expires: 600;refresher=uac', '600;refresher=uas', false],
    // It knows them, and asks for none: it is given ours.
    ['supported: timer', '1800;refresher=uac', true],
    ['supported: timer|session-expires: soon', '1800;refresher=uac', true],
    // Never shorter than its Min-SE, nor than ours.
    ['supported: timer|session-expires: 600|min-se: 900', '900;refresher=uac', true],
    ['supported: timer|session-expires: 90', '90;refresher=uac', true],
    ['session-expires: 30', '90;refresher=uas', false],
    ['supported: timer|min-se: 3600', '3600;refresher=uac', true],
  ])('to %s is %s', (asked, value, require) => {
    const answer = answerTimer(fields(asked), peer());
    const intervalSec = Number.parseInt(value, 10);
    expect(answer).toEqual({ timer: { intervalSec, ours: value.endsWith('uas') }, value, require });
    expect(answerTimer(fields(asked), peer(true))).toEqual(answer);
    expect(answerTimer(fields(asked), peer(false))).toBeUndefined();
  });

  test('has no timer where the caller neither knows nor asks for one', () => {
    for (const asked of ['', 'supported: 100rel', 'session-expires: soon'])
      expect(answerTimer(fields(asked), peer())).toBeUndefined();
  });

  test('is 422 below 90 s where the caller can try again, and where we take part in timers', () => {
    const refused = (text: string, who = peer()) => isTooSmall(fields(text), who);
    expect(refused('supported: timer|session-expires: 89')).toBe(true);
    expect(refused('supported: timer|session-expires: 90')).toBe(false);
    expect(refused('session-expires: 89')).toBe(false);
    expect(refused('supported: timer')).toBe(false);
    expect(refused('supported: timer|session-expires: 89', peer(true))).toBe(true);
    expect(refused('supported: timer|session-expires: 89', peer(false))).toBe(false);
  });
});

test('A 2xx sets the interval, of 90 s at least, and names the refresher, who is the caller unless it says otherwise', () => {
  const settled = (text: string) => settledTimer(fields(text));
  expect(settled('session-expires: 1200;refresher=uas')).toEqual({ intervalSec: 1200, ours: false });
  expect(settled('session-expires: 1200;refresher=uac')).toEqual({ intervalSec: 1200, ours: true });
  expect(settled('session-expires: 1200')).toEqual({ intervalSec: 1200, ours: true });
  expect(settled('session-expires: 20;refresher=uac')).toEqual({ intervalSec: 90, ours: true });
  expect(settled('session-expires: 91')).toEqual({ intervalSec: 91, ours: true });
  expect([settled(''), settled('session-expires: soon')]).toEqual([undefined, undefined]);
});

test('A session is refreshed at half its interval, and over a third of it before the end, but not more than 32 s', () => {
  const timer = (intervalSec: number) => ({ intervalSec, ours: true });
  expect([90, 100, 1800].map((seconds) => refreshAfterMs(timer(seconds)))).toEqual([45_000, 50_000, 900_000]);
  expect([90, 95, 96, 99, 1800].map((seconds) => expiresAfterMs(timer(seconds)))).toEqual([
    60_000, 64_000, 64_000, 67_000, 1_768_000,
  ]);
});

/** A call from Alice to Bob, who answer every offer. */
function established() {
  const random = seeded(5);
  const [alice, bob] = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)];
  const network = new Network([alice, bob], CALM, random);
  for (const party of [alice, bob])
    party.react = (each, event) => {
      if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
      if (event.type === 'offer') each.answerOffer(bytes('v=0 again'), network.now);
    };
  const call = dial(network, alice, bob);
  network.run(100);
  const [callee] = bob.invited;
  if (callee === undefined) throw new Error('no call came');
  const sent = (party: Party, method: RegExp) =>
    network.wire.filter(({ from, line }) => from === party.host && method.test(line));
  return { alice, bob, network, call, callee, sent };
}

test('A call whose refresher falls silent is over 32 s before its session expires, and BYE is sent', () => {
  const { alice, bob, network, callee, sent } = established();
  network.eat = (from) => from === alice;
  network.run(1_700_000);
  expect(bob.ends(callee)).toEqual([]);
  network.run(1_900_000);
  expect(bob.ends(callee)).toEqual([{ type: 'ended', end: { why: 'session_expired' } }]);
  expect(sent(bob, /^BYE/)[0]?.at).toBe(START + 1 + 1_768_000);
});

test('A change of the session leaves the refreshing to the one that does it, whoever changes (RFC 4028 §7.4)', () => {
  const { alice, bob, network, call, callee, sent } = established();
  callee.offer(() => bytes('v=0 held'), network.now);
  network.run(200);
  expect(sent(bob, /^INVITE/)[0]?.data).toContain('Session-Expires: 1800;refresher=uas\r\n');
  call.offer(() => bytes('v=0 held'), network.now);
  network.run(300);
  expect(sent(alice, /^INVITE/)[1]?.data).toContain('Session-Expires: 1800;refresher=uac\r\n');
  network.wire.length = 0;
  network.run(3_000_000);
  expect(sent(bob, /^(INVITE|UPDATE)/)).toEqual([]);
  expect(sent(alice, /^(INVITE|UPDATE)/).map(({ line }) => line.split(' ')[0])).toEqual(['UPDATE', 'UPDATE', 'UPDATE']);
  expect([alice.ends(call), bob.ends(callee)]).toEqual([[], []]);
});
