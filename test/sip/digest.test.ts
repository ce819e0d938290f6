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
});
