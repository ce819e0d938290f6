/** Our requests that keep or change a session, to a far end whose every answer is written here (RFC 4028 §7.4). */
import { expect, test } from 'bun:test';
import { SIP_RETRIES_MAX, SIP_RETRY_AFTER_SEC, SIP_T1_MS } from '../../src/limits.ts';
import { glareWaitMs } from '../../src/sip/call/refresh.ts';
import { seeded } from '../support/random.ts';
import { bytes, CALM, dial, Network, Party, peerOf, START, text } from './pair.ts';

const fieldOf = (message: string, name: string): string => new RegExp(`^${name}: (.*)\r$`, 'im').exec(message)?.[1] ?? '';
const RETRY_MS = SIP_RETRY_AFTER_SEC * 1_000;

/** A call from Alice that Bob has answered and whose every later request is heard by nobody but the test. */
function established({ allows = true } = {}) {
  const random = seeded(9);
  const [alice, bob] = [new Party('192.0.2.1', random), new Party('192.0.2.2', random)];
  const network = new Network([alice, bob], CALM, random);
  const receive = alice.agent.receive.bind(alice.agent);
  if (!allows) alice.agent.receive = (data, source, now) => receive(bytes(text(data).replace(', UPDATE', '')), source, now);
  bob.react = (each, event) => {
    if (event.type === 'invite') each.accept(bytes('v=0 answer'), network.now);
  };
  const call = dial(network, alice, bob);
  network.run(100);
  network.eat = () => true;
  network.wire.length = 0;
  /** The requests since then, each once. */
  const requests = () => {
    const found = network.wire.filter(({ from, line }) => from === alice.host && /^(INVITE|UPDATE)/.test(line));
    return found.filter(({ data }, at) => found.findIndex((each) => each.data === data) === at);
  };
  const run = (ms: number) => network.run(network.now - START + ms);
  /** Answers the last request, or another one. */
  const say = (status: number, fields: readonly string[] = [], request = requests().at(-1)?.data ?? '', body = '') => {
    const lines = ['Via', 'From', 'To', 'Call-ID', 'CSeq'].map((name) => `${name}: ${fieldOf(request, name)}`);
    const message = `SIP/2.0 ${status} Said\r\n${[...lines, ...fields].join('\r\n')}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    alice.agent.receive(bytes(message), peerOf(bob), network.now);
    run(1);
  };
  const told = () =>
    (alice.events.get(call) ?? []).map((event) => ('status' in event ? `${event.type} ${event.status}` : event.type)).slice(2);
  return { alice, network, call, requests, run, say, told };
}
const SDP = 'Content-Type: application/sdp';
const TIMED = ['Session-Expires: 1800;refresher=uac', 'Contact: <sip:b@192.0.2.2>'];
/** The time until the session is refreshed. */
const HALF_MS = 900_000;

test('A refresh that is too brief is sent again with the interval that was asked for, four times at most', () => {
  const { run, say, requests, told } = established();
  run(HALF_MS);
  expect(requests().map(({ line }) => line.split(' ')[0])).toEqual(['UPDATE']);
  for (let tries = 1; tries <= SIP_RETRIES_MAX; tries++) {
    say(422, [`Min-SE: ${2_000 + tries}`]);
    const again = requests().at(-1)?.data ?? '';
    expect([fieldOf(again, 'Session-Expires'), fieldOf(again, 'Min-SE')]).toEqual([
      `${2_000 + tries};refresher=uac`,
      `${2_000 + tries}`,
    ]);
  }
  say(422, ['Min-SE: 9000']);
  expect([requests().length, told()]).toEqual([SIP_RETRIES_MAX + 1, []]);
});

test('A refresh is not lengthened beyond a day, nor to what is no number', () => {
  for (const [least, again] of [
    ['86400', true],
    ['86401', false],
    ['soon', false],
  ] as const) {
    const { run, say, requests } = established();
    run(HALF_MS);
    say(422, [`Min-SE: ${least}`]);
    expect([least, requests().length]).toEqual([least, again ? 2 : 1]);
  }
});

test('A refresh that is refused is tried again after what was asked for, at least a second, and the call goes on', () => {
  for (const [field, waitMs] of [
    ['Retry-After: 7', 7_000],
    ['Retry-After: 0', 1_000],
    ['X-Y: z', RETRY_MS],
  ] as const) {
    const { run, say, requests, told, network } = established();
    run(HALF_MS);
    say(500, [field]);
    const from = network.now - 1;
    run(waitMs + 1_000);
    expect([
      field,
      requests()
        .map(({ at }) => at - from)
        .at(-1),
      told(),
    ]).toEqual([field, waitMs, []]);
  }
});

test('A far end that refuses UPDATE is refreshed by re-INVITE from then on, but not where that was glare', () => {
  for (const [status, method] of [
    [405, 'INVITE'],
    [491, 'UPDATE'],
  ] as const) {
    const { run, say, requests } = established();
    run(HALF_MS);
    say(status);
    run(RETRY_MS + 5_000);
    expect([status, requests().at(-1)?.line.split(' ')[0]]).toEqual([status, method]);
    say(200, TIMED);
    run(HALF_MS);
    expect([status, requests().at(-1)?.line.split(' ')[0], requests().length]).toEqual([status, method, 3]);
  }
});

test('A refresh waits while a change of ours is under way, and starts the time anew', () => {
  const { run, say, requests, call, network } = established();
  run(HALF_MS - 5_000);
  call.offer(() => bytes('v=0 held'), network.now);
  run(10_000);
  expect(requests().map(({ line }) => line.split(' ')[0])).toEqual(['INVITE']);
  say(200, TIMED);
  const settled = network.now;
  run(HALF_MS + 1_000);
  const refresh = requests().at(-1);
  expect([refresh?.line.split(' ')[0], Math.round(((refresh?.at ?? 0) - settled) / 1_000)]).toEqual(['UPDATE', 900]);
});

test('An answer to a refresh that comes while a change of ours waits counts where that change is refused, and else not', () => {
  for (const [status, told] of [
    [488, ['offer_refused 488', 'answer v=0 elsewhere']],
    [200, ['answer v=0 there']],
  ] as const) {
    const { alice, run, say, requests, call, network } = established({ allows: false });
    run(HALF_MS);
    const refresh = requests().at(-1)?.data;
    call.offer(() => bytes('v=0 held'), network.now);
    say(200, [...TIMED, SDP], refresh, 'v=0 elsewhere');
    run(SIP_T1_MS);
    expect(requests().length).toBe(2);
    say(status, [...TIMED, SDP], undefined, status === 200 ? 'v=0 there' : '');
    const events = (alice.events.get(call) ?? []).flatMap((event) => {
      if (event.type === 'answer') return [`answer ${text(event.body)}`];
      return event.type === 'offer_refused' ? [`offer_refused ${event.status}`] : [];
    });
    expect(events).toEqual([...told]);
  }
});

test('A refresh of a session without a description of ours repeats it by re-INVITE where UPDATE is not allowed', () => {
  const { run, requests } = established({ allows: false });
  run(HALF_MS);
  const invite = requests().at(-1)?.data ?? '';
  expect([invite.split(' ')[0], invite.slice(invite.indexOf('\r\n\r\n') + 4)]).toEqual(['INVITE', 'v=0 offer']);
  expect(fieldOf(invite, 'Content-Type')).toBe('application/sdp');
  const update = established();
  update.run(HALF_MS);
  expect(fieldOf(update.requests().at(-1)?.data ?? '', 'Content-Type')).toBe('');
});

test('A change that is refused is told with its status, and the session stays; a 481 ends the call', () => {
  for (const [status, told] of [
    [300, ['offer_refused 300']],
    [488, ['offer_refused 488']],
    [500, ['offer_refused 500']],
    [481, ['ended']],
    [408, ['ended']],
  ] as const) {
    const all = established();
    all.call.offer(() => bytes('v=0 held'), all.network.now);
    all.run(1);
    all.say(100);
    all.say(status, ['Retry-After: 1']);
    all.run(5_000);
    expect([status, all.told(), all.requests().length]).toEqual([status, [...told], 1]);
  }
});

test('A re-INVITE permits no reliable 18x: it would be sent again for want of a PRACK, and then the change refused', () => {
  const { call, network, requests, run } = established();
  call.offer(() => bytes('v=0 held'), network.now);
  run(1);
  expect(requests().map(({ line, data }) => [line.split(' ')[0], fieldOf(data, 'Supported')])).toEqual([['INVITE', 'timer']]);
});

test('A change that waits is sent once, with the session as it is then', () => {
  const { run, say, requests, call, network, told } = established();
  call.offer(() => bytes('v=0 first'), network.now);
  run(1);
  let described = 0;
  const second = () => bytes(`v=0 second ${++described}`);
  call.offer(second, network.now);
  run(2_000);
  expect([requests().length, described]).toEqual([1, 0]);
  say(200, TIMED);
  run(2_000);
  const bodies = requests().map(({ data }) => data.slice(data.indexOf('\r\n\r\n') + 4));
  expect(bodies).toEqual(['v=0 first', 'v=0 second 1']);
  say(200, TIMED);
  run(10_000);
  expect([requests().length, described, told()]).toEqual([2, 1, ['answer', 'answer']]);
});

test('A call that is over sends neither refreshes nor changes', () => {
  const { run, requests, call, network } = established();
  call.offer(() => bytes('v=0 first'), network.now);
  run(1);
  call.offer(() => bytes('v=0 second'), network.now);
  call.hangUp(network.now);
  run(2_000_000);
  expect(requests()).toHaveLength(1);
});

test('A change whose 200 comes again is acknowledged again, and told once', () => {
  const { call, network, run, say, requests, told } = established();
  call.offer(() => bytes('v=0 held'), network.now);
  run(1);
  const [request] = requests();
  for (let times = 0; times < 2; times++) say(200, [...TIMED, SDP], request?.data, 'v=0 theirs');
  expect([told(), network.wire.filter(({ line }) => line.startsWith('ACK')).length]).toEqual([['answer'], 2]);
});

test('A change that nobody answers is refused with 408 where the call goes on all the same, and the next one is sent', () => {
  const { call, network, run, requests, told } = established();
  const held = () => bytes('v=0 held');
  call.offer(held, network.now, []);
  run(33_000);
  expect([told(), requests().length]).toEqual([['offer_refused 408'], 1]);
  call.offer(held, network.now, []);
  run(1);
  expect(requests()).toHaveLength(2);
});

test('Who owns the Call-ID waits for 2.1 to 4 s after glare, and the other for 2 s at most (RFC 3261 §14.1)', () => {
  expect([0, 0.999].map((fraction) => [glareWaitMs(true, fraction), glareWaitMs(false, fraction)])).toEqual([
    [2_100, 0],
    [4_000, 2_000],
  ]);
});
