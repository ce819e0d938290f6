/** Offers of browsers: those of `offer/` were written by Chromium and Firefox, and after the manner of Safari. */
import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'sdp-transform';
import { SDP_MAX_BYTES, SDP_MEDIA_MAX } from '../../src/limits.ts';
import {
  type BrowserOffer,
  browserAgreement,
  browserAnswer,
  iceFragment,
  readBrowserOffer,
  readIceFragment,
} from '../../src/sdp/browser-offer.ts';
import { fingerprintOf, iceCredentials, ownCredentials } from '../../src/sdp/ice.ts';
import fc from '../support/fast-check.ts';

const FOLDER = join(import.meta.dir, 'offer');
const offers = readdirSync(FOLDER).map(
  (name) => [name, readFileSync(join(FOLDER, name), 'utf8').replace(/\r?\n/g, '\r\n')] as const,
);
const CODECS = ['G722', 'PCMU', 'PCMA'] as const;
const bytes = (text: string) => new TextEncoder().encode(text);
const read = (text: string) => readBrowserOffer(bytes(text), CODECS);
const own = {
  ice: { ufrag: 'ourname1', password: 'ourpassword0123456789012' },
  fingerprint: Array.from({ length: 32 }, () => 'AB').join(':'),
  candidates: [
    { host: '192.0.2.1', port: 3478 },
    { host: '2001:db8::1', port: 3478 },
  ],
  ssrc: 99,
  sessionId: 4711,
  version: 1,
};
const good = (text: string): BrowserOffer => {
  const offer = read(text);
  if ('refused' in offer) throw new Error(offer.why);
  return offer;
};
const plain = offers.find(([name]) => name === 'chromium-audio.sdp')?.[1] ?? '';

describe('the offer of a browser', () => {
  test.each(offers)('%s is answered: one audio stream, all else refused, in the same order', (_name, text) => {
    const offer = good(text);
    expect(offer.codec).toBe('G722');
    const answer = parse(browserAnswer(offer, own));
    expect(answer.icelite).toBe('ice-lite');
    expect(answer.media.map(({ type }) => type)).toEqual(offer.sections.map(({ type }) => type));
    expect(answer.media.map(({ mid }) => String(mid))).toEqual(offer.sections.map(({ mid }) => mid));
    // Firefox refuses a section without an address, although it is refused itself (RFC 8866 §5.7).
    for (const each of answer.media) expect(each.connection).toBeDefined();
    const taken = answer.media.filter(({ port }) => port !== 0);
    expect(taken).toHaveLength(1);
    expect(taken[0]).toMatchObject({ type: 'audio', setup: 'passive', rtcpMux: 'rtcp-mux', iceUfrag: 'ourname1' });
    const [bundle] = answer.groups ?? [];
    expect(String(bundle?.mids)).toBe(offer.sections[offer.audio]?.mid ?? '');
  });

  test('the answer is this text, octet by octet', () => {
    const offer = good(plain);
    const [section] = offer.sections;
    expect(browserAnswer(offer, own).split('\r\n')).toEqual([
      'v=0',
      'o=- 4711 1 IN IP4 192.0.2.1',
      's=-',
      't=0 0',
      'a=ice-lite',
      `a=group:BUNDLE ${section?.mid}`,
      'm=audio 3478 UDP/TLS/RTP/SAVPF 9 126',
      'c=IN IP4 192.0.2.1',
      `a=mid:${section?.mid}`,
      'a=ice-ufrag:ourname1',
      'a=ice-pwd:ourpassword0123456789012',
      `a=fingerprint:sha-256 ${own.fingerprint}`,
      'a=setup:passive',
      'a=rtcp-mux',
      'a=sendrecv',
      'a=msid:sidetone audio',
      'a=rtpmap:9 G722/8000',
      'a=rtpmap:126 telephone-event/8000',
      'a=fmtp:126 0-15',
      'a=ptime:20',
      'a=ssrc:99 cname:sidetone',
      'a=candidate:1 1 udp 2130706431 192.0.2.1 3478 typ host',
      'a=candidate:2 1 udp 2130706175 2001:db8::1 3478 typ host',
      'a=end-of-candidates',
      '',
    ]);
  });

  test('the address of the answer is of the family that it is of, and none where there is none yet', () => {
    const lines = (candidates: typeof own.candidates) =>
      browserAnswer(good(plain), { ...own, candidates })
        .split('\r\n')
        .filter((line) => /^[ocm]=/.test(line));
    expect(lines(own.candidates.slice(1))).toEqual([
      'o=- 4711 1 IN IP6 2001:db8::1',
      'm=audio 3478 UDP/TLS/RTP/SAVPF 9 126',
      'c=IN IP6 2001:db8::1',
    ]);
    expect(lines([])).toEqual(['o=- 4711 1 IN IP4 127.0.0.1', 'm=audio 9 UDP/TLS/RTP/SAVPF 9 126', 'c=IN IP4 0.0.0.0']);
  });

  test('what is agreed on names no address, and nobody is on hold', () => {
    expect(browserAgreement(good(plain))).toEqual({
      remoteHost: '0.0.0.0',
      remotePort: 9,
      remoteRtcpPort: 9,
      codec: 'G722',
      payloadType: 9,
      telephoneEventPayloadType: 126,
      telephoneEventClockHz: 8000,
      ptimeMs: 20,
      send: true,
      receive: true,
      held: false,
      isHolding: false,
      srtp: undefined,
    });
  });

  test('a browser is sent no longer packets than it takes, and asked for those of 20 ms', () => {
    const offer = good(`${plain}a=maxptime:10\r\n`);
    expect(browserAgreement(offer).ptimeMs).toBe(10);
    expect(browserAnswer(offer, own)).toContain('a=ptime:20\r\n');
  });

  test('an offer that is at a limit is read, and one that is past it is refused with the reason', () => {
    const filled = (size: number) => `${plain}${'a=x-fill:'.padEnd(size - plain.length - 2, 'x')}\r\n`;
    const refusal = (text: string) => {
      const offer = read(text);
      return 'refused' in offer ? [offer.refused, offer.why] : 'read';
    };
    const [, section = ''] = /(m=audio[\s\S]*)$/.exec(plain) ?? [];
    const sections = (count: number) => plain + 'm=video 0 RTP/AVP 96\r\n'.repeat(count - 1);
    expect(section).not.toBe('');
    expect(refusal(filled(SDP_MAX_BYTES))).toBe('read');
    const size = `an SDP offer of 1 to ${SDP_MAX_BYTES} bytes`;
    expect(refusal(filled(SDP_MAX_BYTES + 1))).toEqual([400, size]);
    expect(refusal('')).toEqual([400, size]);
    expect(refusal(sections(SDP_MEDIA_MAX))).toBe('read');
    expect(refusal(sections(SDP_MEDIA_MAX + 1))).toEqual([400, `an SDP offer of at most ${SDP_MEDIA_MAX} media sections`]);
    expect(refusal(plain.replace('a=mid:0\r\n', `a=mid:${'m'.repeat(65)}\r\n`))[0]).toBe(400);
    expect(refusal(plain.replace(/^m=audio .*$/m, 'm=audio 9 UDP/TLS/RTP/SAVPF 18'))).toEqual([
      488,
      'one of the codecs G722, PCMU, PCMA',
    ]);
    expect(refusal(`${plain.replace('a=msid-semantic', 'a=ice-lite\r\na=msid-semantic')}`)).toEqual([
      488,
      'an offer of a full ICE agent, because we are ICE-lite',
    ]);
  });

  test('telephone-event is agreed on at the clock of the codec', () => {
    const offer = good(plain);
    expect([offer.payloadType, offer.events]).toEqual([9, { payloadType: 126, clockHz: 8000 }]);
    const text = browserAnswer(offer, own);
    expect(text).toContain('a=rtpmap:126 telephone-event/8000');
    expect(text).toContain('a=candidate:1 1 udp 2130706431 192.0.2.1 3478 typ host\r\n');
    expect(text).toContain('a=candidate:2 1 udp 2130706175 2001:db8::1 3478 typ host\r\n');
  });

  test('Opus is taken where it comes first, with the telephone-event of its clock', () => {
    const offer = readBrowserOffer(bytes(plain), ['opus', ...CODECS]);
    if ('refused' in offer) throw new Error(offer.why);
    expect(offer).toMatchObject({ codec: 'opus', payloadType: 111, events: { payloadType: 110, clockHz: 48_000 } });
    expect(browserAgreement(offer).maxBitrate).toBeUndefined();
    const limited = readBrowserOffer(bytes(plain.replace('a=fmtp:111 ', 'a=fmtp:111 maxaveragebitrate=16000;')), ['opus']);
    expect('refused' in limited ? limited : browserAgreement(limited)).toMatchObject({ codec: 'opus', maxBitrate: 16_000 });
    const text = browserAnswer(offer, own);
    expect(text).toContain(' 111 110\r\n');
    expect(text).toContain('a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\n');
    expect(text).toContain('a=rtpmap:110 telephone-event/48000\r\n');
  });

  test('Firefox offers the telephone-event of 8 kHz alone beside Opus, and it is taken', () => {
    const text = offers.find(([name]) => name === 'firefox-audio.sdp')?.[1] ?? '';
    expect(readBrowserOffer(bytes(text), ['opus', ...CODECS])).toMatchObject({
      codec: 'opus',
      payloadType: 109,
      events: { payloadType: 101, clockHz: 8000 },
    });
  });

  test('directions are answered by their counterparts', () => {
    const answered = (direction: string) => {
      const offer = good(plain.replace('a=sendrecv', `a=${direction}`));
      const { send, receive } = browserAgreement(offer);
      return [String(parse(browserAnswer(offer, own)).media[0]?.direction), send, receive];
    };
    expect(answered('sendrecv')).toEqual(['sendrecv', true, true]);
    expect(answered('sendonly')).toEqual(['recvonly', false, true]);
    expect(answered('recvonly')).toEqual(['sendonly', true, false]);
    expect(answered('inactive')).toEqual(['inactive', false, false]);
  });

  test('of several fingerprints one that we can check is taken, wherever it is; those of a section go before those of all', () => {
    const [known = ''] = /a=fingerprint:.*\r\n/.exec(plain) ?? [];
    const weak = `a=fingerprint:sha-1 ${Array(20).fill('00').join(':')}\r\n`;
    const { fingerprint } = good(plain);
    for (const lines of [weak + known, known + weak, known.replace('sha-256', 'SHA-256') + weak])
      expect(good(plain.replace(known, lines)).fingerprint).toEqual(fingerprint);
    const ofAll = (lines: string) => plain.replace(known, '').replace('t=0 0\r\n', `t=0 0\r\n${lines}`);
    expect(good(ofAll(known + weak)).fingerprint).toEqual(fingerprint);
    expect(read(ofAll(known).replace('a=mid:0\r\n', `a=mid:0\r\n${weak}`))).toMatchObject({ refused: 488 });
  });

  /** The audio behind a section that has the transport of both. */
  const behind = (first: readonly string[], change: (audio: string) => string) => {
    const [session = '', audio = ''] = plain.split('m=audio');
    const names = ['a=mid:v', 'a=ice-ufrag:abcd', `a=ice-pwd:${'p'.repeat(22)}`];
    const print = `a=fingerprint:sha-256 ${Array.from({ length: 32 }, () => 'CD').join(':')}`;
    const section = [...first, ...names, print, 'a=setup:actpass'].map((line) => `${line}\r\n`).join('');
    return `${session.replace('a=group:BUNDLE 0', 'a=group:BUNDLE v 0')}${section}${change(`m=audio${audio}`)}`;
  };
  const VIDEO = ['m=video 9 UDP/TLS/RTP/SAVPF 96 97', 'c=IN IP4 0.0.0.0', 'a=rtcp-mux', 'a=rtpmap:96 H264/90000'];
  const H264 = [...VIDEO, 'a=fmtp:96 packetization-mode=1', 'a=rtpmap:97 rtx/90000', 'a=sendrecv'];
  const DATA = ['m=application 9 UDP/DTLS/SCTP webrtc-datachannel', 'c=IN IP4 0.0.0.0', 'a=sctp-port:5000'];
  const bundleOnly = (audio: string) =>
    audio
      .replace(/^m=audio [0-9]+/, 'm=audio 0')
      .replace(/a=(ice-ufrag|ice-pwd|fingerprint|setup):.*\r\n/g, '')
      .replace('a=mid:0', 'a=bundle-only\r\na=mid:0');

  test('audio that is bundled into a video section has its transport: that is taken too, as inactive', () => {
    for (const change of [bundleOnly, (audio: string) => audio]) {
      const offer = good(behind(H264, change));
      expect([offer.audio, offer.ice.ufrag, offer.fingerprint.bytes[0], offer.codec]).toEqual([1, 'abcd', 0xcd, 'G722']);
      const answer = parse(browserAnswer(offer, own));
      expect(answer.groups).toEqual([{ type: 'BUNDLE', mids: 'v 0' }]);
      const [video, audio] = answer.media;
      expect(video).toMatchObject({ type: 'video', port: 3478, payloads: 96, direction: 'inactive', rtcpMux: 'rtcp-mux' });
      expect(video?.rtp).toEqual([{ payload: 96, codec: 'H264', rate: 90_000 }]);
      expect(video?.fmtp).toEqual([{ payload: 96, config: 'packetization-mode=1' }]);
      expect(video).toMatchObject({ iceUfrag: 'ourname1', setup: 'passive' });
      expect(audio).toMatchObject({ type: 'audio', port: 3478, direction: 'sendrecv', iceUfrag: 'ourname1' });
    }
  });

  test('a data channel is taken where the audio has no way but its own, and refused otherwise', () => {
    const [data] = parse(browserAnswer(good(behind(DATA, bundleOnly)), own)).media;
    expect(data).toMatchObject({ type: 'application', port: 3478, sctpPort: 5000, iceUfrag: 'ourname1' });
    expect(data?.rtcpMux ?? data?.direction).toBeUndefined();
    const offer = good(behind(DATA, (audio) => audio));
    expect(offer.ice.ufrag).not.toBe('abcd');
    const apart = parse(browserAnswer(offer, own));
    expect([apart.media[0]?.port, apart.groups?.[0]?.mids]).toEqual([0, 0]);
  });

  test('audio that is in no group is answered without one (RFC 9143 §7.3)', () => {
    const offer = good(plain.replace(/a=group:BUNDLE.*\r\n/, ''));
    expect(parse(browserAnswer(offer, own)).groups).toBeUndefined();
  });

  test('a group that repeats names thousands of times costs next to nothing more than one that does not', () => {
    const sections = 'm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:a\r\n'.repeat(SDP_MEDIA_MAX);
    const tookMs = (names: number) => {
      const offer = bytes(`v=0\r\na=group:BUNDLE a${' z'.repeat(names)}\r\n${sections}`);
      const took = Array.from({ length: 5 }, () => {
        const began = performance.now();
        expect(readBrowserOffer(offer, CODECS)).toMatchObject({ refused: 488 });
        return performance.now() - began;
      });
      return Math.min(...took); // The others may have waited for the machine.
    };
    // Each name was looked for among all sections, for each of them: 100 ms on a quiet machine.
    expect(tookMs(6_000)).toBeLessThan(10 * tookMs(0) + 25);
  });

  test('audio with port 0 is refused without a=bundle-only, and without a section that carries it', () => {
    const why = (text: string) => {
      const offer = read(text);
      return 'refused' in offer ? offer.why : undefined;
    };
    expect(why(behind(H264, (audio) => bundleOnly(audio).replace('a=bundle-only\r\n', '')))).toContain('an audio stream');
    expect(why(behind(H264, bundleOnly).replace('BUNDLE v 0', 'BUNDLE v'))).toContain('an audio stream');
    expect(why(behind(H264, bundleOnly).replace('m=video 9', 'm=video 0'))).toContain('an audio stream');
  });

  test('what is missing is named, and nothing else of the offer', () => {
    const why = (change: (text: string) => string) => {
      const offer = read(change(plain));
      return 'refused' in offer ? [offer.refused, offer.why] : [];
    };
    expect(why((text) => text.replace(/a=ice-pwd:.*\r\n/, ''))).toEqual([488, 'a=ice-ufrag and a=ice-pwd']);
    expect(why((text) => text.replace(/a=ice-pwd:.*\r\n/, 'a=ice-pwd:short\r\n'))[0]).toBe(488);
    expect(why((text) => text.replace('a=rtcp-mux\r\n', ''))[1]).toContain('rtcp-mux');
    expect(why((text) => text.replace('sha-256', 'md5'))[1]).toContain('fingerprint');
    for (const role of ['passive', 'holdconn', 'other'])
      expect(why((text) => text.replace('actpass', role))[1]).toContain('setup');
    expect(why((text) => text.replace('UDP/TLS/RTP/SAVPF', 'RTP/AVP'))[1]).toContain('SAVPF');
    expect(why((text) => text.replace('t=0 0', 't=0 0\r\na=ice-lite'))[1]).toContain('ICE-lite');
    expect(why((text) => text.replace('m=audio', 'm=video'))).toEqual([488, 'an offer with an audio stream']);
    expect(why(() => 'v=0')[0]).toBe(400);
    expect(why(() => 'hello')[0]).toBe(400);
    expect(why((text) => text.replace('v=0\r\n', ''))[0]).toBe(400);
    // Our answer repeats the name and the formats of a section, which are tokens.
    expect(why((text) => text.replace(/a=mid:.*/, 'a=mid:(0)'))[0]).toBe(400);
    expect(why((text) => text.replace('SAVPF ', 'SAVPF (0) '))[0]).toBe(400);
  });

  test('whatever is turned in a real offer, reading never throws, and an answer repeats nothing that breaks a line', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...offers.map(([, text]) => text), behind(H264, bundleOnly), behind(DATA, bundleOnly)),
        fc.array(fc.tuple(fc.nat(8000), fc.nat(60), fc.string({ unit: 'binary', maxLength: 40 })), { maxLength: 6 }),
        (text, changes) => {
          const changed = changes.reduce(
            (now, [at, cut, put]) => now.slice(0, at % now.length) + put + now.slice((at % now.length) + cut),
            text,
          );
          const offer = read(changed);
          if ('refused' in offer) return;
          const answer = browserAnswer(offer, own);
          const broken = answer.split('\r\n').filter((line) => line !== '' && !/^[a-z]=[\x20-\x7e]*$/.test(line));
          expect(broken).toEqual([]);
          expect(parse(answer).media).toHaveLength(offer.sections.length);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe('a fragment of ICE', () => {
  test('is read: candidates alone, or new names with them; and what we write is read again', () => {
    expect(readIceFragment(bytes('a=candidate:1 1 udp 2 192.0.2.1 5 typ host\r\n'))).toEqual({ ice: undefined });
    const ice = ownCredentials((count) => crypto.getRandomValues(new Uint8Array(count)));
    expect(readIceFragment(bytes(iceFragment(ice, '0', own.candidates)))).toEqual({ ice });
    expect(readIceFragment(bytes('a=ice-ufrag:abcd\r\n'))).toBeUndefined();
    expect(readIceFragment(bytes('GET / HTTP/1.1'))).toBeUndefined();
    expect(readIceFragment(new Uint8Array())).toBeUndefined();
  });

  test('names, passwords and fingerprints are what the RFCs permit', () => {
    expect(iceCredentials('abc', 'abcdefghijklmnopqrstuv')).toBeUndefined();
    expect(iceCredentials('abcd', 'abcdefghijklmnopqrstu')).toBeUndefined();
    expect(iceCredentials('ab\r\n', 'abcdefghijklmnopqrstuv')).toBeUndefined();
    expect(fingerprintOf('sha-1', Array(20).fill('00').join(':'))).toBeUndefined();
    expect(fingerprintOf('SHA-256', Array(31).fill('00').join(':'))).toBeUndefined();
    for (const octet of ['zz', '0', '000', '-1'])
      expect(fingerprintOf('sha-256', Array(32).fill(octet).join(':'))).toBeUndefined();
    expect(fingerprintOf('SHA-512', Array(64).fill('fe').join(':'))?.bytes.length).toBe(64);
  });
});
