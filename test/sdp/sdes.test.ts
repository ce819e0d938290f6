import { describe, expect, test } from 'bun:test';
import { type AudioAgreement, Negotiation } from '../../src/sdp/negotiation.ts';
import { cryptoLines, KeyExchange, SRTP_SUITES, type SrtpTerms } from '../../src/sdp/sdes.ts';
import fc from '../support/fast-check.ts';

/** Terms whose random bytes are a count, so that a test sees which key is used. */
function terms(mode: SrtpTerms['mode'], suites = SRTP_SUITES): SrtpTerms & { made: number } {
  const made = {
    mode,
    suites,
    made: 0,
    random(bytes: number) {
      made.made++;
      return new Uint8Array(bytes).fill(made.made);
    },
  };
  return made;
}
const key = (bytes: number, fill: number) => btoa(String.fromCharCode(...new Uint8Array(bytes).fill(fill)));
const line = (tag: number, suite = 'AES_CM_128_HMAC_SHA1_80', fill = 0x40, bytes = 30, more = '') =>
  `a=crypto:${tag} ${suite} inline:${key(bytes, fill)}${more}`;
const description = (...media: string[]) =>
  new TextEncoder().encode(
    ['v=0', 'o=- 1 1 IN IP4 203.0.113.9', 's=-', 'c=IN IP4 203.0.113.9', 't=0 0', ...media, ''].join('\r\n'),
  );
const text = (body: Uint8Array) => new TextDecoder().decode(body);
const crypto = (sdp: string) => sdp.match(/^a=crypto:.*$/gm)?.map((each) => each.trim()) ?? [];
const protocol = (sdp: string) => /^m=audio [0-9]+ (\S+)/m.exec(sdp)?.[1];

const negotiation = (srtp?: SrtpTerms, isOpportunistic = false) =>
  new Negotiation({
    host: '198.51.100.1',
    port: 20_000,
    codecs: ['PCMU'],
    sessionId: 7,
    ...(isOpportunistic ? { isOpportunistic } : {}),
    ...(srtp === undefined ? {} : { srtp }),
  });
const answered = (us: Negotiation, ...media: string[]): { sdp: string; agreement: AudioAgreement } => {
  const answer = us.answer(description(...media));
  if ('refused' in answer) throw new Error(answer.why);
  return { sdp: text(answer.body), agreement: answer.agreement };
};

describe('a line with a key', () => {
  const usable = (...lines: string[]) => cryptoLines(lines.join('\r\n')).map(({ tag, suite }) => `${tag} ${suite}`);

  test('is read in every suite, with or without a lifetime', () => {
    expect(
      usable(
        'm=audio 1 RTP/SAVP 0',
        line(1),
        line(2, 'AES_CM_128_HMAC_SHA1_32', 1, 30, '|2^31'),
        line(3, 'AEAD_AES_128_GCM', 1, 28, '|1048576'),
        line(4, 'AEAD_AES_256_GCM', 1, 44),
      ),
    ).toEqual(['1 AES_CM_128_HMAC_SHA1_80', '2 AES_CM_128_HMAC_SHA1_32', '3 AEAD_AES_128_GCM', '4 AEAD_AES_256_GCM']);
    expect(cryptoLines(line(1))[0]?.key).toEqual(new Uint8Array(30).fill(0x40));
  });

  test('is left out with an MKI, several keys, a wrong length, an impossible lifetime, or a parameter that weakens it', () => {
    const bad = [
      line(1, undefined, 1, 30, '|2^20|1:4'),
      line(1, undefined, 1, 30, '|1:4'),
      `${line(1)};inline:${key(30, 2)}|2^20|2:4`,
      line(1, undefined, 1, 29),
      line(1, 'AEAD_AES_256_GCM', 1, 30),
      line(1, undefined, 1, 30, '|2^49'),
      line(1, undefined, 1, 30, '|0'),
      `${line(1)} UNENCRYPTED_SRTP`,
      `${line(1)} WSH=64 UNAUTHENTICATED_SRTP`,
      `${line(1)} KDR=1`,
      line(1, 'F8_128_HMAC_SHA1_80'),
      'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:',
      'a=crypto:1 AES_CM_128_HMAC_SHA1_80 uri:https://example/key',
      'a=crypto:x AES_CM_128_HMAC_SHA1_80 inline:AAAA',
    ];
    for (const each of bad) expect({ each, usable: usable(each) }).toEqual({ each, usable: [] });
    expect(usable(`${line(1)} WSH=128 -EXTRA=1`)).toEqual(['1 AES_CM_128_HMAC_SHA1_80']);
  });

  test('may have the shortest and the longest lifetime, and is one of the first sixteen', () => {
    const lifetimes = (...all: string[]) => usable(...all.map((each, at) => line(at + 1, undefined, 1, 30, `|${each}`))).length;
    expect([lifetimes('1', '2^0', '2^48', '281474976710656'), lifetimes('0', '2^49', '281474976710657')]).toEqual([4, 0]);
    const many = Array.from({ length: 20 }, (_, at) => line(at + 1));
    expect(usable(...many)).toHaveLength(16);
    expect(usable('a=crypto:', 'a=crypto:1', 'a=crypto:1 AES_CM_128_HMAC_SHA1_80', line(7))).toHaveLength(1);
  });

  test('that changes its key by one byte makes us change ours; the same key leaves ours', () => {
    const exchange = new KeyExchange(terms('required'));
    const of = (...bytes: number[]) => {
      const key = new Uint8Array(30);
      key.set(bytes);
      return exchange.answer([{ tag: 1, suite: 'AES_CM_128_HMAC_SHA1_80', key }])?.keys.sendKey[0];
    };
    expect([of(1, 2), of(1, 2), of(1, 3), of(1, 3)]).toEqual([1, 1, 2, 2]);
  });

  test('never throws, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, two) => {
        for (const each of cryptoLines(`a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${one}\r\na=crypto:${two}`))
          expect(each.key.length).toBeGreaterThan(27);
      }),
    );
  });
});

describe('our offer of an encrypted stream', () => {
  test('is RTP/SAVP with every suite, each with a key of its own, and keeps its keys and version', () => {
    const us = negotiation(terms('required'));
    const first = text(us.offer());
    expect(protocol(first)).toBe('RTP/SAVP');
    expect(crypto(first).map((each) => each.split(' ').slice(0, 2).join(' '))).toEqual([
      'a=crypto:1 AES_CM_128_HMAC_SHA1_80',
      'a=crypto:2 AES_CM_128_HMAC_SHA1_32',
      'a=crypto:3 AEAD_AES_128_GCM',
      'a=crypto:4 AEAD_AES_256_GCM',
    ]);
    expect(new Set(crypto(first).map((each) => each.split(' ')[2])).size).toBe(4);
    expect(text(us.offer())).toBe(first);
  });

  test('lists only what the media plane can do', () => {
    expect(crypto(text(negotiation(terms('required', ['AES_CM_128_HMAC_SHA1_32'])).offer()))).toHaveLength(1);
  });

  test('is settled by the line of the answer: our key of that suite, and theirs', () => {
    const us = negotiation(terms('required'));
    // So is each later one, as for a hold.
    for (let offers = 0; offers < 2; offers++) {
      us.offer();
      expect(us.acceptAnswer(description('m=audio 4000 RTP/SAVP 0', line(3, 'AEAD_AES_128_GCM', 9, 28)))).toMatchObject({
        srtp: { suite: 'AEAD_AES_128_GCM', sendKey: new Uint8Array(28).fill(3), receiveKey: new Uint8Array(28).fill(9) },
      });
    }
  });

  test('is not settled by an answer in clear, without a key, or with a line that was not offered', () => {
    for (const media of [
      ['m=audio 4000 RTP/AVP 0'],
      ['m=audio 4000 RTP/SAVP 0'],
      ['m=audio 4000 RTP/SAVP 0', line(2)],
      ['m=audio 4000 RTP/SAVP 0', line(9)],
      ['m=audio 4000 RTP/SAVP 0', line(1, undefined, 1, 30, '|2^20|1:4')],
    ]) {
      const us = negotiation(terms('required'));
      us.offer();
      expect(us.acceptAnswer(description(...media))).toMatchObject({ refused: 488 });
    }
  });

  test('where the far end may also answer in clear is RTP/AVP with keys (RFC 8643)', () => {
    for (const [media, suite] of [
      [['m=audio 4000 RTP/AVP 0', line(1)], 'AES_CM_128_HMAC_SHA1_80'],
      [['m=audio 4000 RTP/AVP 0'], undefined],
    ] as const) {
      const us = negotiation(terms('optional'), true);
      const offer = text(us.offer());
      expect([protocol(offer), crypto(offer).length]).toEqual(['RTP/AVP', 4]);
      const agreed = us.acceptAnswer(description(...media));
      expect('refused' in agreed ? agreed : agreed.srtp?.suite).toBe(suite);
      expect(crypto(text(us.offer())).length).toBe(suite === undefined ? 0 : 4);
      // A key that nobody has offered is none.
      const again = us.acceptAnswer(description('m=audio 4000 RTP/AVP 0', line(1)));
      expect('refused' in again ? again : again.srtp?.suite).toBe(suite);
    }
  });
});

describe('our answer', () => {
  test('takes the first line that we can do, under its tag, with a fresh key', () => {
    const us = negotiation(terms('optional'));
    const { sdp, agreement } = answered(us, 'm=audio 4000 RTP/SAVP 0', line(1, 'F8_128_HMAC_SHA1_80'), line(7), line(8));
    expect(protocol(sdp)).toBe('RTP/SAVP');
    expect(crypto(sdp)).toEqual([`a=crypto:7 AES_CM_128_HMAC_SHA1_80 inline:${key(30, 1)}`]);
    expect(agreement.srtp).toEqual({
      suite: 'AES_CM_128_HMAC_SHA1_80',
      sendKey: new Uint8Array(30).fill(1),
      receiveKey: new Uint8Array(30).fill(0x40),
    });
  });

  test('to RTP/AVP or RTP/SAVP is what the trunk permits', () => {
    const clear = ['m=audio 4000 RTP/AVP 0'];
    const secret = ['m=audio 4000 RTP/SAVP 0', line(1)];
    const either = ['m=audio 4000 RTP/AVP 0', line(1)];
    const bare = ['m=audio 4000 RTP/SAVP 0'];
    const of = (srtp: SrtpTerms | undefined, media: readonly string[]) => {
      const answer = negotiation(srtp).answer(description(...media));
      return 'refused' in answer ? answer.refused : answer.agreement.srtp === undefined ? 'clear' : 'encrypted';
    };
    expect([clear, secret, either, bare].map((media) => of(undefined, media))).toEqual(['clear', 488, 'clear', 488]);
    expect([clear, secret, either, bare].map((media) => of(terms('optional'), media))).toEqual([
      'clear',
      'encrypted',
      'encrypted',
      488,
    ]);
    expect([clear, secret, either, bare].map((media) => of(terms('required'), media))).toEqual([
      488,
      'encrypted',
      'encrypted',
      488,
    ]);
    expect(of(terms('required', []), secret)).toBe(488);
  });

  test('takes RTP/SAVPF as RTP/SAVP, and keys over DTLS as nothing, whatever lines stand beside them', () => {
    const { sdp, agreement } = answered(negotiation(terms('required')), 'm=audio 4000 RTP/SAVPF 0', line(1));
    expect([protocol(sdp), agreement.srtp?.suite]).toEqual(['RTP/SAVPF', 'AES_CM_128_HMAC_SHA1_80']);
    const dtls = description('m=audio 4000 UDP/TLS/RTP/SAVPF 0', line(1));
    expect(negotiation(terms('optional')).answer(dtls)).toMatchObject({ refused: 488 });
  });

  test('takes the stream that it can of several', () => {
    const { agreement } = answered(negotiation(terms('required')), 'm=audio 4000 RTP/AVP 0', 'm=audio 4400 RTP/SAVP 0', line(1));
    expect(agreement).toMatchObject({ remotePort: 4400, srtp: { suite: 'AES_CM_128_HMAC_SHA1_80' } });
  });

  test('to the same key again keeps our key; to a new one it has a new one, so that both begin anew', () => {
    const us = negotiation(terms('required'));
    const media = ['m=audio 4000 RTP/SAVP 0', line(1)];
    const first = answered(us, ...media).agreement.srtp;
    const second = answered(us, ...media).agreement.srtp;
    const third = answered(us, 'm=audio 4000 RTP/SAVP 0', line(1, undefined, 0x41)).agreement.srtp;
    expect(second).toEqual(first ?? fail());
    expect(third?.receiveKey).toEqual(new Uint8Array(30).fill(0x41));
    expect(third?.sendKey).not.toEqual(first?.sendKey ?? fail());
  });

  test('has a new key of ours after a time in clear, whose packets may not be numbered under the key before', () => {
    const us = negotiation(terms('optional'));
    const first = answered(us, 'm=audio 4000 RTP/SAVP 0', line(1)).agreement.srtp;
    expect(answered(us, 'm=audio 4400 RTP/AVP 0').agreement.srtp).toBeUndefined();
    const again = answered(us, 'm=audio 4000 RTP/SAVP 0', line(1)).agreement.srtp;
    expect(again?.receiveKey).toEqual(first?.receiveKey ?? fail());
    expect(again?.sendKey).not.toEqual(first?.sendKey ?? fail());
  });

  test('gives each leg a key of its own', () => {
    const one = new KeyExchange({
      ...terms('required'),
      random: (bytes) => globalThis.crypto.getRandomValues(new Uint8Array(bytes)),
    });
    const two = new KeyExchange({
      ...terms('required'),
      random: (bytes) => globalThis.crypto.getRandomValues(new Uint8Array(bytes)),
    });
    expect(one.offer()).not.toBe(two.offer());
  });
});

function fail(): never {
  throw new Error('not encrypted');
}
