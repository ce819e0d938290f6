/** Who calls over trunks: accounts of one carrier that share its addresses, and carriers that prove who they are. */
import { afterEach, describe, expect, test } from 'bun:test';
import { Refusals } from '../../src/carrier/refusals.ts';
import { Accounts } from '../../src/carrier/trunk/accounts.ts';
import { Loopback } from '../../src/carrier/trunk/loopback.ts';
import type { Trunk } from '../../src/carrier/trunk/trunk.ts';
import { TrunkAddresses } from '../../src/carrier/trunk/trunk-addresses.ts';
import { TrunkCallers } from '../../src/carrier/trunk/trunk-callers.ts';
import { SIP_GUESSES_A_MINUTE } from '../../src/limits.ts';
import { Headers, NO_BODY, type SipRequest } from '../../src/sip/message/message.ts';
import { answerTo } from './device-peer.ts';
import { TestCarrier, trunkTo } from './harness.ts';
import { field, RawPeer, sdp } from './raw-peer.ts';

const carriers: TestCarrier[] = [];
const peers: RawPeer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close();
  for (const carrier of carriers.splice(0)) await carrier.close();
});

/** A platform with these trunks, whose calls are answered, and a peer of their addresses. */
async function platformWith(...trunks: Trunk[]) {
  const carrier = await TestCarrier.open(trunks);
  carriers.push(carrier);
  carrier.onIncoming = ({ call }) => call.leg.answer();
  const peer = await RawPeer.udp(carrier.port('udp'));
  peers.push(peer);
  return { carrier, peer };
}

const account = (name: string, more: Partial<Trunk> = {}) => trunkTo('sip:127.0.0.1:9', { name, ...more });

/** Who calls over these trunks, without a platform, and what was refused. */
function callersOf(trunks: readonly Trunk[], now = () => 0) {
  const refusals = new Refusals();
  const callers = new TrunkCallers({
    ...{ addresses: new TrunkAddresses(trunks), loopback: new Loopback('secret'), refusals, now },
    ...{ code: (text: string) => Bun.hash(text).toString(36), trunks: () => trunks },
  });
  return { callers, refusals };
}

function inviteTo(user: string, authorization?: string): SipRequest {
  const headers = new Headers().add('from', '<sip:+15550199@x>;tag=f').add('to', `<sip:${user}@127.0.0.1>`);
  if (authorization !== undefined) headers.add('authorization', authorization);
  return { kind: 'request', method: 'INVITE', uri: `sip:${user}@127.0.0.1`, headers, body: NO_BODY };
}

describe('trunks with the same addresses', () => {
  const first = account('first', { username: 'alpha', password: 'p' });
  const second = account('second', {
    ...{ username: '15550002', password: 'q', maxChannels: 1 },
    settings: { advertise: '127.0.0.9', contact_user: 'line%202' },
  });

  test('take the calls to their own users, and the first takes all others', () => {
    const accounts = new Accounts([first, second, account('third', { settings: { from_user: 'desk' } })]);
    const by = (uri: string) => accounts.meant(uri)?.name;
    const users = ['alpha', '15550002', '+15550002', 'line%202', 'desk', '+15550003'];
    expect(users.map((user) => by(`sip:${user}@127.0.0.1:5060`))).toEqual([
      ...['first', 'second', 'second', 'second', 'third', 'first'],
    ]);
    // A number may have parameters, within the user part of a SIP URI as after that of a tel URI (RFC 3261 §19.1.6).
    const ported = ['sip:+15550002;npdi;rn=+15559@127.0.0.1;user=phone', 'tel:+15550002;npdi', 'sip:15550002:pass@127.0.0.1'];
    expect(ported.map(by)).toEqual(['second', 'second', 'second']);
    expect([by('sip:127.0.0.1'), by('nonsense'), new Accounts([]).meant('sip:alpha@x')]).toEqual(['first', 'first', undefined]);
  });

  test('are looked through once, and not for each call, however many they are', () => {
    let looks = 0;
    const counted = (trunk: Trunk): Trunk => ({
      ...trunk,
      get username() {
        looks++;
        return trunk.username;
      },
    });
    const trunks = Array.from({ length: 1_000 }, (_, at) => counted(account(`account-${at}`, { username: `1555${at}` })));
    const { callers } = callersOf(trunks);
    for (let call = 0; call < 10; call++) expect(callers.of(inviteTo('+1555999'), '127.0.0.1')?.name).toBe('account-999');
    expect(looks).toBeLessThanOrEqual(2 * trunks.length);
  });

  test('count them to the right one, by its settings, and prove themselves with its password within the call', async () => {
    const { carrier, peer } = await platformWith(first, second);
    peer.send(peer.request('INVITE', { id: 'a', body: sdp() }));
    const ok = await peer.until(/^SIP\/2.0 200/);
    peer.send(peer.request('ACK', { id: 'a', to: field(ok, 'To') }));
    expect(carrier.incoming.map(({ call }) => call.trunk)).toEqual(['second']);
    expect(field(ok, 'Contact')).toStartWith('<sip:line%202@127.0.0.9:');
    expect(ok).toContain('c=IN IP4 127.0.0.9');
    expect(['first', 'second'].map((name) => carrier.carrier.trunkStatus(name)?.channelsInUse)).toEqual([0, 1]);
    // The second call has no channel, where that of the other trunk has.
    peer.send(peer.request('INVITE', { id: 'b', body: sdp() }));
    await peer.until(/^SIP\/2.0 503[\s\S]*Call-ID: b/);
    carrier.incoming[0]?.call.leg.hangup();
    const bye = await peer.until(/^BYE /);
    peer.respond(bye, '401 Unauthorized', {
      fields: 'WWW-Authenticate: Digest realm="r", nonce="n", algorithm=MD5, qop="auth"\r\n',
    });
    const proved = await peer.until(/^BYE [\s\S]*Authorization/);
    expect(field(proved, 'Authorization')).toStartWith('Digest username="15550002"');
    peer.respond(proved, '200 OK');
  });
});

describe('a trunk with inbound_auth', () => {
  const trunk = account('whats', { username: '15550002', password: 'right', settings: { inbound_auth: true } });
  const URI = 'sip:+15550002@127.0.0.1';
  const invite = (peer: RawPeer, id: string, cseq = 1, fields = '') =>
    peer.send(peer.request('INVITE', { id, cseq, fields, body: sdp() }));

  test('takes a call once its sender has proved the user name and the password, and not before', async () => {
    const { carrier, peer } = await platformWith(trunk);
    invite(peer, 'a');
    const challenge = await peer.until(/^SIP\/2.0 401/);
    expect(challenge).toContain('realm="sidetone"');
    // Kamailio's uac module reads the first challenge only: "unsupported algorithm "SHA-256"".
    expect([...challenge.matchAll(/algorithm=([^,]*)/g)].map(([, name]) => name)).toEqual(['MD5', 'SHA-256']);
    expect([carrier.incoming.length, carrier.carrier.refusals().length]).toEqual([0, 0]);
    invite(peer, 'a', 2, answerTo(challenge, 'INVITE', URI, '15550002', 'right'));
    await peer.until(/^SIP\/2.0 200/);
    expect(carrier.incoming.map(({ call }) => call.trunk)).toEqual(['whats']);
    // An answer is good once: one that is overheard opens nothing.
    invite(peer, 'b', 2, answerTo(challenge, 'INVITE', URI, '15550002', 'right'));
    expect(await peer.until(/^SIP\/2.0 401[\s\S]*Call-ID: b/)).toContain('stale=true');
    // Whether it is there it may ask without.
    peer.send(peer.request('OPTIONS', { id: 'o' }));
    await peer.until(/^SIP\/2.0 200[\s\S]*CSeq: 1 OPTIONS/);
  });

  test('refuses what is wrong, tells the operator why, and bounds the guesses', async () => {
    const { carrier, peer } = await platformWith(trunk);
    invite(peer, 'a');
    let challenge = await peer.until(/^SIP\/2.0 401/);
    for (let guess = 0; guess < SIP_GUESSES_A_MINUTE; guess++) {
      invite(peer, `w${guess}`, 1, answerTo(challenge, 'INVITE', URI, '15550002', `guess ${guess}`));
      challenge = await peer.until(new RegExp(`^SIP/2.0 401[\\s\\S]*Call-ID: w${guess}\\r`));
    }
    invite(peer, 'over', 1, answerTo(challenge, 'INVITE', URI, '15550002', 'right'));
    await peer.until(/^SIP\/2.0 403[\s\S]*Call-ID: over/);
    expect(carrier.incoming).toEqual([]);
    const told = carrier.carrier.refusals().map(({ status, reason, count }) => [status, count, reason.slice(0, 40)]);
    expect(told).toEqual([
      [403, 1, 'Too many wrong passwords of the trunk ca'],
      [401, SIP_GUESSES_A_MINUTE, 'The carrier does not answer the challeng'],
    ]);
  });

  test('is told as refused where nobody answers its challenges, and not for the first INVITE of each call', () => {
    let now = 0;
    const { callers, refusals } = callersOf([trunk], () => now);
    const call = (authorization?: string) => {
      const screened = callers.screen(inviteTo('+15550002', authorization), {
        ...{ transport: 'udp', host: '127.0.0.1', port: 5060, flow: 1 },
      });
      now += 1_000;
      if (typeof screened === 'string' || 'busySec' in screened) return '';
      return screened.challenge.map(([name, value]) => `${name}: ${value}`).join('\r\n');
    };
    for (let right = 0; right < 50; right++) {
      const answer = answerTo(call(), 'INVITE', URI, '15550002', 'right');
      expect(call(answer.replace(/^Authorization: |\r\n$/g, ''))).toBe('');
    }
    expect(refusals.list()).toEqual([]);
    for (let silent = 0; silent < 50; silent++) call();
    expect(refusals.list()).toEqual([expect.objectContaining({ status: 401, method: 'INVITE', count: 50 - 32 })]);
  });

  test('takes no call while there is no password, as when the stored one does not open, and says why', async () => {
    const { carrier, peer } = await platformWith({ ...trunk, password: undefined });
    invite(peer, 'a');
    await peer.until(/^SIP\/2.0 403[\s\S]*Call-ID: a/);
    expect(carrier.incoming).toEqual([]);
    expect(carrier.carrier.refusals()).toEqual([
      expect.objectContaining({ status: 403, reason: expect.stringContaining('no password that opens') }),
    ]);
    // Nor does it lock out the calls that the carrier makes once there is one.
    carrier.trunks = [trunk];
    carrier.carrier.trunksChanged('whats');
    invite(peer, 'b');
    invite(peer, 'b', 2, answerTo(await peer.until(/^SIP\/2.0 401[\s\S]*Call-ID: b/), 'INVITE', URI, '15550002', 'right'));
    await peer.until(/^SIP\/2.0 200[\s\S]*Call-ID: b/);
  });

  test('is asked by each trunk for its own, where several share the addresses', async () => {
    const other = account('other', { username: '15550009', password: 'other', settings: { inbound_auth: true } });
    const { carrier, peer } = await platformWith(other, trunk);
    invite(peer, 'a');
    const challenge = await peer.until(/^SIP\/2.0 401/);
    invite(peer, 'a', 2, answerTo(challenge, 'INVITE', URI, '15550009', 'other'));
    await peer.until(/^SIP\/2.0 401[\s\S]*CSeq: 2 INVITE/);
    invite(peer, 'a', 3, answerTo(challenge, 'INVITE', URI, '15550002', 'right'));
    await peer.until(/^SIP\/2.0 200/);
    expect(carrier.incoming.map(({ call }) => call.trunk)).toEqual(['whats']);
  });
});
