/** Digest authentication as a server, against our own client and by hand (RFC 7616, RFC 8760). */
import { describe, expect, test } from 'bun:test';
import { hexHash } from '../../src/hash.ts';
import { SIP_NONCE_LIFE_MS, SIP_NONCES_MAX } from '../../src/limits.ts';
import { authorization, challengesOf } from '../../src/sip/message/digest.ts';
import { DigestServer, digestSecrets } from '../../src/sip/message/digest-server.ts';
import { Headers, NO_BODY, type SipRequest } from '../../src/sip/message/message.ts';
import fc from '../support/fast-check.ts';

let tokens = 0;
const token = () => `token${++tokens}`;
const server = () => new DigestServer('sidetone', hexHash, (text) => hexHash('SHA-256', `key ${text}`).slice(0, 16), token);
const SECRETS = digestSecrets(hexHash, 'alice', 'sidetone', 'open sesame');
const NOW = 1_700_000_000_000;
const HOST = '203.0.113.5';

/** A REGISTER with the answer to the server's challenge. */
function answered(
  from: DigestServer,
  options: { password?: string; md5?: boolean; host?: string; uri?: string } = {},
): SipRequest {
  const headers = new Headers();
  const challenges = from.challenges(options.host ?? HOST, false, NOW);
  for (const [name, value] of options.md5 === true ? challenges.slice(1) : challenges) headers.add(name, value);
  const [challenge] = challengesOf({ kind: 'response', status: 401, reason: '', headers, body: NO_BODY });
  if (challenge === undefined) throw new Error('no challenge');
  const credentials = { username: 'alice', password: options.password ?? 'open sesame' };
  const input = { method: 'REGISTER', uri: options.uri ?? 'sip:x', nonceCount: 1, cnonce: 'abc', body: NO_BODY };
  return request(authorization(hexHash, challenge, credentials, input));
}

const request = (value?: string): SipRequest => {
  const headers = new Headers();
  if (value !== undefined) headers.add('authorization', value);
  return { kind: 'request', method: 'REGISTER', uri: 'sip:x', headers, body: NO_BODY };
};

describe('a digest answer', () => {
  test('is right by SHA-256, which is offered first, and by MD5', () => {
    const [first, second] = server().challenges(HOST, false, NOW);
    expect([first?.[1].includes('algorithm=SHA-256'), second?.[1].includes('algorithm=MD5')]).toEqual([true, true]);
    for (const md5 of [false, true]) {
      const at = server();
      expect(at.check(answered(at, { md5 }), 'alice', SECRETS, HOST, NOW)).toBe('right');
    }
  });

  test('is wrong with another password, user, method or target, and missing where there is none', () => {
    const at = server();
    expect(at.check(answered(at, { password: 'guess' }), 'alice', SECRETS, HOST, NOW)).toBe('wrong');
    expect(at.check(answered(at), 'bob', SECRETS, HOST, NOW)).toBe('wrong');
    expect(at.check({ ...answered(at), method: 'INVITE' }, 'alice', SECRETS, HOST, NOW)).toBe('wrong');
    expect(at.check({ ...answered(at), uri: 'sip:+15550100@x' }, 'alice', SECRETS, HOST, NOW)).toBe('wrong');
    expect(at.check(request(), 'alice', SECRETS, HOST, NOW)).toBe('missing');
  });

  test('is one guess a request: no further answer of it is looked at', () => {
    const at = server();
    const right = answered(at).headers.get('authorization') ?? '';
    const guesses = request(answered(at, { password: 'guess' }).headers.get('authorization'));
    guesses.headers.add('authorization', right);
    expect(at.check(guesses, 'alice', SECRETS, HOST, NOW)).toBe('wrong');
    // What answers another realm, or a challenge of another process, is none.
    const others = request('Digest realm="elsewhere", username="alice", uri="sip:x", nonce="n", response="r"');
    const foreign = new DigestServer('sidetone', hexHash, () => 'another key', token);
    others.headers.add('authorization', answered(foreign).headers.get('authorization') ?? '');
    others.headers.add('authorization', right);
    expect(at.check(others, 'alice', SECRETS, HOST, NOW)).toBe('right');
  });

  test('is good once: a replay is asked anew, a higher count of the same nonce passes', () => {
    const at = server();
    const headers = new Headers();
    for (const [name, value] of at.challenges(HOST, false, NOW)) headers.add(name, value);
    const [challenge] = challengesOf({ kind: 'response', status: 401, reason: '', headers, body: NO_BODY });
    const verdicts = [1, 1, 2, 1].map((nonceCount) => {
      const input = { method: 'REGISTER', uri: 'sip:x', nonceCount, cnonce: 'abc', body: NO_BODY };
      const credentials = { username: 'alice', password: 'open sesame' };
      const answer = challenge === undefined ? '' : authorization(hexHash, challenge, credentials, input);
      return at.check(request(answer), 'alice', SECRETS, HOST, NOW);
    });
    expect(verdicts).toEqual(['right', 'stale', 'right', 'stale']);
    expect(
      new Set(
        at
          .challenges(HOST, false, NOW)
          .concat(at.challenges(HOST, false, NOW))
          .map(([, value]) => value),
      ).size,
    ).toBe(4);
  });

  test('is stale after five minutes, from another address, and to the challenge of another process', () => {
    const at = server();
    expect(at.check(answered(at), 'alice', SECRETS, HOST, NOW + SIP_NONCE_LIFE_MS + 1_000)).toBe('stale');
    expect(at.check(answered(at), 'alice', SECRETS, '203.0.113.6', NOW)).toBe('stale');
    const other = new DigestServer('sidetone', hexHash, () => 'another key', token);
    expect(at.check(answered(other), 'alice', SECRETS, HOST, NOW)).toBe('stale');
  });

  /** An answer written by hand: `fields` beside username, realm, uri and nonce, and the response of `middle`. */
  const written = (nonce: string, middle: string, fields = '', response = (right: string) => right) => {
    const h = (text: string) => hexHash('MD5', text);
    const right = h(`${SECRETS.md5}:${nonce}${middle}:${h('REGISTER:sip:x')}`);
    return request(
      `Digest username="alice", realm="sidetone", uri="sip:x", nonce="${nonce}", response="${response(right)}"${fields}`,
    );
  };
  const nonceOf = (at: DigestServer, now = NOW) =>
    /nonce="([^"]*)"/.exec(at.challenges(HOST, false, now)[0]?.[1] ?? '')?.[1] ?? '';

  test('without qop is that of RFC 2069, and good once under its nonce', () => {
    const at = server();
    const nonce = nonceOf(at);
    const verdict = (made: SipRequest) => at.check(made, 'alice', SECRETS, HOST, NOW);
    expect([verdict(written(nonce, '')), verdict(written(nonce, ''))]).toEqual(['right', 'stale']);
    // Its response covers no count: whoever has read it could add one to it, and a higher one each time.
    for (const nc of ['00000002', 'ffffffff', '']) expect([nc, verdict(written(nonce, '', `, nc=${nc}`))]).toEqual([nc, 'stale']);
    expect(verdict(written(nonceOf(at), '', ', nc=00000007, cnonce="c"'))).toBe('right');
    expect(verdict(written(nonceOf(at), '', ', algorithm=md5', (right) => right.toUpperCase()))).toBe('right');
    expect(verdict(written(nonceOf(at), '', '', (right) => `${right.slice(0, -1)}${right.endsWith('0') ? '1' : '0'}`))).toBe(
      'wrong',
    );
    // What is hashed in another way than we can tell is no answer of ours, and a guess all the same.
    expect(verdict(written(nonceOf(at), '', ', algorithm=SHA-512-256'))).toBe('wrong');
  });

  test('has the quality of protection that was offered, and a count in hexadecimal', () => {
    const at = server();
    const verdict = (nonce: string, nc: string, qop = 'auth') =>
      at.check(written(nonce, `:${nc}:c:auth`, `, qop=${qop}, nc=${nc}, cnonce="c"`), 'alice', SECRETS, HOST, NOW);
    const nonce = nonceOf(at);
    expect(['00000009', '0000000a', '00000010', '0000000F'].map((nc) => verdict(nonce, nc))).toEqual([
      'right',
      'right',
      'right',
      'stale',
    ]);
    expect([verdict(nonceOf(at), '00000001', 'AUTH'), verdict(nonceOf(at), '00000001', 'auth-int')]).toEqual(['right', 'wrong']);
    for (const nc of ['', '00000000', '0000000g', '000000001']) expect([nc, verdict(nonceOf(at), nc)]).toEqual([nc, 'stale']);
  });

  test('is good for five minutes from its challenge', () => {
    for (const [later, verdict] of [
      [SIP_NONCE_LIFE_MS, 'right'],
      [SIP_NONCE_LIFE_MS + 1, 'stale'],
    ] as const) {
      const at = server();
      expect(at.check(answered(at), 'alice', SECRETS, HOST, NOW + later)).toBe(verdict);
    }
  });

  test('is right also where a proxy has changed the host of the Request-URI, and not where the number is another', () => {
    const verdict = (uri: string, came: string) => {
      const at = server();
      const answer = answered(at, { uri }).headers.get('authorization') ?? '';
      return at.check({ ...request(answer), uri: came }, 'alice', SECRETS, HOST, NOW);
    };
    expect(verdict('sip:pbx.example', 'sip:192.0.2.1:5060;transport=tcp')).toBe('right');
    expect(verdict('sip:+15550002@pbx.example', 'sip:+15550002@192.0.2.1')).toBe('right');
    expect(verdict('sip:+15550002@pbx.example', 'sip:+15550003@pbx.example')).toBe('wrong');
    expect(verdict('nonsense', 'sip:192.0.2.1')).toBe('wrong');
  });

  test('may be one of several: those of other users and targets are left aside', () => {
    const at = server();
    const mine = answered(at).headers.get('authorization') ?? '';
    const others = request(mine.replace('"alice"', '"bob"'));
    others.headers.add('authorization', mine.replace('uri="sip:x"', 'uri="sip:y@x"'));
    expect(at.check(others, 'alice', SECRETS, HOST, NOW)).toBe('wrong');
    others.headers.add('authorization', mine);
    expect(at.check(others, 'alice', SECRETS, HOST, NOW)).toBe('right');
    // One of them answers a challenge of ours, the other one of nobody.
    const mixed = request(mine.replace('"alice"', '"bob"'));
    mixed.headers.add('authorization', mine.replace('"alice"', '"bob"').replace(/nonce="[^"]*"/, 'nonce="n"'));
    expect(at.check(mixed, 'alice', SECRETS, HOST, NOW)).toBe('wrong');
  });

  test('is good once also where more come than are remembered: those of before are stale then, answered or not', () => {
    const at = server();
    const first = written(nonceOf(at), '');
    const second = written(nonceOf(at), '');
    const unanswered = written(nonceOf(at), '');
    const later = NOW + 1_000;
    const verdict = (made: SipRequest) => at.check(made, 'alice', SECRETS, HOST, later);
    expect([verdict(first), verdict(second)]).toEqual(['right', 'right']);
    for (let count = 2; count < SIP_NONCES_MAX; count++) verdict(written(nonceOf(at, later), ''));
    expect(verdict(first)).toBe('stale');
    expect(verdict(written(nonceOf(at, later), ''))).toBe('right');
    expect([verdict(second), verdict(first), verdict(unanswered)]).toEqual(['stale', 'stale', 'stale']);
    expect(verdict(written(nonceOf(at, later), ''))).toBe('right');
  });

  test('is asked for as stale where it was right, and by MD5 alone where a phone takes nothing else', () => {
    const asked = (stale: boolean, userAgent?: string) =>
      server()
        .challenges(HOST, stale, NOW, userAgent)
        .map(([, value]) => value);
    expect(asked(true).every((value) => value.endsWith('qop="auth", stale=true'))).toBe(true);
    expect(asked(false).every((value) => value.endsWith('qop="auth"'))).toBe(true);
    for (const old of ['baresip v1.0.0 (x86_64/linux)', 'baresip v0.6.5', 'Phone libre/1.1.0', 'acme libre v0.5'])
      expect([old, asked(false, old).map((value) => /algorithm=([^,]*)/.exec(value)?.[1])]).toEqual([old, ['MD5']]);
    for (const able of ['', 'baresip v2.0.0', 'baresip v10.0', 'Linphone', 'freelibre/1', 'libre/2.1'])
      expect([able, asked(false, able).length]).toEqual([able, 2]);
  });

  test('of any text is judged without an error, and never right', () => {
    const at = server();
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (text) => {
        for (const value of [text, `Digest ${text}`, `Digest realm="sidetone", ${text}`])
          expect(at.check(request(value), 'alice', SECRETS, HOST, NOW)).not.toBe('right');
      }),
    );
  });
});
