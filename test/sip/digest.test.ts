import { describe, expect, test } from 'bun:test';
import { hexHash } from '../../src/hash.ts';
import { authorization, type Challenge, challengesOf, digestResponse } from '../../src/sip/message/digest.ts';
import { Headers, NO_BODY, type SipResponse } from '../../src/sip/message/message.ts';

const asked = (status: number, ...values: string[]): SipResponse => {
  const headers = new Headers();
  for (const value of values) headers.add(status === 401 ? 'www-authenticate' : 'proxy-authenticate', value);
  return { kind: 'response', status, reason: '', headers, body: NO_BODY };
};
const only = (response: SipResponse): Challenge => {
  const [challenge] = challengesOf(response);
  if (challenge === undefined) throw new Error('no challenge');
  return challenge;
};

describe('digest', () => {
  test('gives the response of RFC 2617 §3.5', () => {
    const challenge = only(
      asked(
        401,
        'Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="5ccc069c403ebaf9f0171e9517f40e41"',
      ),
    );
    const input = { method: 'GET', uri: '/dir/index.html', nonceCount: 1, cnonce: '0a4f113b', body: NO_BODY };
    expect(digestResponse(hexHash, challenge, { username: 'Mufasa', password: 'Circle Of Life' }, input)).toBe(
      '6629fae49393a05397450978507c4ef1',
    );
  });

  test('gives the responses of RFC 7616 §3.9.1, for MD5 and SHA-256', () => {
    const nonce = '7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v';
    const input = {
      method: 'GET',
      uri: '/dir/index.html',
      nonceCount: 1,
      cnonce: 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ',
      body: NO_BODY,
    };
    const who = { username: 'Mufasa', password: 'Circle of Life' };
    for (const [algorithm, response] of [
      ['MD5', '8ca523f5e9506fed4657c9700eebdbec'],
      ['SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'],
    ] as const) {
      const challenge = only(
        asked(
          401,
          `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, nonce="${nonce}", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`,
        ),
      );
      expect(digestResponse(hexHash, challenge, who, input)).toBe(response);
    }
  });

  test('without qop gives the short form of RFC 2069', () => {
    const challenge = only(asked(407, 'Digest realm="r", nonce="n"'));
    const input = { method: 'INVITE', uri: 'sip:a', nonceCount: 1, cnonce: 'c', body: NO_BODY };
    const expected = hexHash('MD5', `${hexHash('MD5', 'u:r:p')}:n:${hexHash('MD5', 'INVITE:sip:a')}`);
    const value = authorization(hexHash, challenge, { username: 'u', password: 'p' }, input);
    expect(value).toContain(`response="${expected}"`);
    expect(value).not.toContain('qop');
  });

  test('proves the body, whatever its bytes, to a server that takes nothing less (auth-int)', () => {
    const body = Uint8Array.from([0x76, 0x3d, 0x30, 0xff, 0x0d, 0x0a]);
    const input = { method: 'INVITE', uri: 'sip:a', nonceCount: 1, cnonce: 'c', body };
    const challenge = only(asked(407, 'Digest realm="r", nonce="n", qop="auth-int", algorithm=SHA-256'));
    const h = (of: string | Uint8Array) => hexHash('SHA-256', of);
    const expected = h(`${h('u:r:p')}:n:00000001:c:auth-int:${h(`INVITE:sip:a:${h(body)}`)}`);
    const value = authorization(hexHash, challenge, { username: 'u', password: 'p' }, input);
    expect(value).toContain(`response="${expected}"`);
    expect(value).toContain('qop=auth-int, nc=00000001');
    const choice = only(asked(407, 'Digest realm="r", nonce="n", qop="auth-int,auth"'));
    expect(authorization(hexHash, choice, { username: 'u', password: 'p' }, input)).toContain('qop=auth, ');
  });

  test('answers the strongest of several challenges, and none that it cannot', () => {
    const both = asked(
      401,
      'Digest realm="r", nonce="1", algorithm=MD5',
      'Digest realm="r", nonce="2", algorithm=SHA-256',
      'Digest realm="r", nonce="3", algorithm=AKAv1-MD5',
    );
    expect(challengesOf(both)).toMatchObject([{ nonce: '2', hash: 'SHA-256' }]);
    expect(
      challengesOf(asked(401, 'Basic realm="r"', 'Digest realm="r", nonce="1", qop="auth-conf"', 'Digest realm="open', 'Digest')),
    ).toEqual([]);
  });

  test('of a session hashes its first part with both nonces, also where no quality of protection is offered', () => {
    const input = { method: 'INVITE', uri: 'sip:a', nonceCount: 255, cnonce: 'c', body: NO_BODY };
    for (const [algorithm, hash] of [
      ['MD5-sess', 'MD5'],
      ['SHA-256-sess', 'SHA-256'],
      ['sha-512-256-SESS', 'SHA-512-256'],
    ] as const) {
      const h = (text: string) => hexHash(hash, text);
      const a1 = h(`${h('u:r:p')}:n:c`);
      const a2 = h('INVITE:sip:a');
      const answer = (more: string) =>
        authorization(
          hexHash,
          only(asked(401, `Digest realm="r", nonce="n", algorithm=${algorithm}${more}`)),
          { username: 'u', password: 'p' },
          input,
        );
      const withQop = answer(', qop="auth"');
      expect(withQop).toContain(`response="${h(`${a1}:n:000000ff:c:auth:${a2}`)}"`);
      expect(withQop).toContain(`algorithm=${algorithm}, cnonce="c", qop=auth, nc=000000ff`);
      const without = answer('');
      expect(without).toContain(`response="${h(`${a1}:n:${a2}`)}"`);
      expect(without).toEndWith(`algorithm=${algorithm}, cnonce="c"`);
    }
  });

  test('repeats what was asked, and names no algorithm and no opaque where the challenge named none', () => {
    const input = { method: 'INVITE', uri: 'sip:a', nonceCount: 1, cnonce: 'c', body: NO_BODY };
    const who = { username: 'the "boss"', password: 'p' };
    const plain = authorization(hexHash, only(asked(401, 'Digest realm="r", nonce="n"')), who, input);
    expect(plain).toMatch(/^Digest username="the \\"boss\\"", realm="r", nonce="n", uri="sip:a", response="[0-9a-f]{32}"$/);
    const full = authorization(
      hexHash,
      only(asked(401, 'Digest realm="a \\"b\\"", nonce="n", opaque="", algorithm=MD5')),
      who,
      input,
    );
    expect(full).toContain('realm="a \\"b\\""');
    expect(full).toEndWith('algorithm=MD5, opaque=""');
  });

  test('reads a challenge however it is spaced and spelled, and takes the first of what is given twice', () => {
    const challenge = only(
      asked(401, 'DIGEST\t Realm = "a, b=c" ,, NONCE="n" , nonce="m",algorithm = md5 , Qop=" Auth-Int , AUTH ", STALE=TRUE'),
    );
    expect(challenge).toMatchObject({ realm: 'a, b=c', nonce: 'n', hash: 'MD5', session: false, qop: 'auth', stale: true });
    expect(only(asked(407, 'Digest realm="r",nonce="n",stale=false'))).toMatchObject({
      header: 'proxy-authorization',
      stale: false,
    });
    for (const bad of [
      'Digest',
      'Bearer realm="r", nonce="n"',
      'Digestrealm="r", nonce="n"',
      'Digest nonce="n"',
      'Digest realm="r"',
      'Digest realm="r", nonce="open',
      'Digest realm="r", nonce',
      'Digest ="r", realm="r", nonce="n"',
      'Digest realm="r", nonce="n", algorithm=SHA-1',
      'Digest realm="r", nonce="n" , a b="c"',
    ])
      expect([bad, challengesOf(asked(401, bad))]).toEqual([bad, []]);
  });

  test('answers each realm once, with SHA-512-256 before SHA-256 before MD5, and the first of equals', () => {
    const of = (realm: string, nonce: string, algorithm: string) =>
      `Digest realm="${realm}", nonce="${nonce}", algorithm=${algorithm}`;
    const all = asked(
      407,
      of('a', '1', 'SHA-256'),
      of('b', '2', 'MD5'),
      of('a', '3', 'SHA-512-256'),
      of('a', '4', 'MD5'),
      of('b', '5', 'MD5'),
    );
    expect(challengesOf(all).map(({ realm, nonce }) => [realm, nonce])).toEqual([
      ['a', '3'],
      ['b', '2'],
    ]);
  });
});
