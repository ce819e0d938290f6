import { describe, expect, test } from 'bun:test';
import { type AudioAgreement, type AudioCodec, followed, Negotiation } from '../../src/sdp/negotiation.ts';
import fc from '../support/fast-check.ts';

const ours = (codecs: readonly AudioCodec[] = ['PCMU', 'PCMA']) =>
  new Negotiation({ host: '198.51.100.1', port: 20_000, codecs, sessionId: 7 });
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (body: Uint8Array) => new TextDecoder().decode(body);

/** A description; `media` are whole m-sections, `session` further session-level lines. */
const description = (media: readonly string[], session: readonly string[] = ['c=IN IP4 203.0.113.9']) =>
  bytes(['v=0', 'o=- 1 1 IN IP4 203.0.113.9', 's=-', ...session, 't=0 0', ...media, ''].join('\r\n'));
const AUDIO = 'm=audio 4000 RTP/AVP 0 8 96\r\na=rtpmap:96 telephone-event/8000\r\na=fmtp:96 0-15';

interface Answered extends Partial<AudioAgreement> {
  readonly refused?: number;
  readonly sdp?: string;
}
const answer = (media: readonly string[], session?: readonly string[], codecs?: Parameters<typeof ours>[0]): Answered => {
  const result = ours(codecs).answer(description(media, session));
  return 'refused' in result ? { refused: result.refused } : { sdp: text(result.body), ...result.agreement };
};
const mLines = (sdp: string | undefined) => sdp?.match(/^m=.*$/gm)?.map((line) => line.trim());

describe('our offer', () => {
  test('names PCMU, PCMA and telephone-event as 101, 20 ms, both ways', () => {
    expect(text(ours().offer())).toBe(
      'v=0\r\no=- 7 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\nm=audio 20000 RTP/AVP 0 8 101\r\n' +
        'a=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\na=sendrecv\r\n',
    );
  });

  test('names Opus where it is among the codecs, with a telephone-event of its clock, and stays small', () => {
    const offer = text(ours(['opus', 'PCMU']).offer());
    expect(offer).toContain('m=audio 20000 RTP/AVP 111 0 102 101\r\na=rtpmap:111 opus/48000/2\r\n');
    expect(offer).toContain('a=rtpmap:102 telephone-event/48000\r\n');
    expect(text(ours(['opus', 'G722', 'PCMU', 'PCMA']).offer()).length).toBeLessThan(600);
  });

  test('agrees on Opus by its clock and channels, and on the telephone-event beside it', () => {
    const media = [
      'm=audio 4000 RTP/AVP 96 0 97 98\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:97 telephone-event/48000\r\na=rtpmap:98 telephone-event/8000',
    ];
    expect(answer(media, undefined, ['opus', 'PCMU'])).toMatchObject({
      codec: 'opus',
      payloadType: 96,
      telephoneEventPayloadType: 97,
    });
    expect(answer(media, undefined, ['PCMU'])).toMatchObject({ codec: 'PCMU', telephoneEventPayloadType: 98 });
    const limited = [`${media[0]}\r\na=fmtp:96 useinbandfec=1;maxaveragebitrate=16000`];
    expect(answer(limited, undefined, ['opus', 'PCMU'])).toMatchObject({ codec: 'opus', maxBitrate: 16_000 });
    expect(answer([media[0]?.replace('48000/2', '16000') ?? ''], undefined, ['opus'])).toEqual({ refused: 488 });
  });

  test('keeps its version while it says the same, and raises it when it does not', () => {
    const negotiation = ours();
    const version = (body: Uint8Array) => /o=- 7 ([0-9]+)/.exec(text(body))?.[1];
    expect([version(negotiation.offer()), version(negotiation.offer())]).toEqual(['1', '1']);
    const held = negotiation.answer(description([`${AUDIO}\r\na=sendonly`]));
    if ('refused' in held) throw new Error(held.why);
    expect(version(held.body)).toBe('2');
    expect(version(negotiation.offer())).toBe('3');
    // Another node has described it once in between, and said the same.
    expect(version(negotiation.offerAgain())).toBe('5');
  });

  test('is settled by the first codec of the answer', () => {
    expect(
      ours().acceptAnswer(description(['m=audio 4000 RTP/AVP 8 97\r\na=rtpmap:97 telephone-event/8000\r\na=ptime:30'])),
    ).toEqual({
      remoteHost: '203.0.113.9',
      remotePort: 4000,
      remoteRtcpPort: 4001,
      codec: 'PCMA',
      payloadType: 8,
      telephoneEventPayloadType: 97,
      ownEventPayloadType: 101,
      ptimeMs: 30,
      send: true,
      receive: true,
      held: false,
      isHolding: false,
      srtp: undefined,
    });
    expect(ours().acceptAnswer(description(['m=audio 0 RTP/AVP 0']))).toMatchObject({ refused: 488 });
  });

  test('is heard by the numbers of the offer too, where the answer has others (RFC 3264 §5.1)', () => {
    const heard = (codecs: AudioCodec[], media: string) => {
      const agreed = ours(codecs).acceptAnswer(description([media]));
      if ('refused' in agreed) throw new Error(agreed.why);
      return [agreed.payloadType, agreed.ownPayloadType, agreed.telephoneEventPayloadType, agreed.ownEventPayloadType];
    };
    const opus = 'a=rtpmap:96 opus/48000/2\r\na=rtpmap:97 telephone-event/48000';
    expect(heard(['opus', 'PCMU'], `m=audio 4000 RTP/AVP 96 97\r\n${opus}`)).toEqual([96, 111, 97, 102]);
    const same = 'a=rtpmap:111 opus/48000/2\r\na=rtpmap:102 telephone-event/48000';
    expect(heard(['opus', 'PCMU'], `m=audio 4000 RTP/AVP 111 102\r\n${same}`)).toEqual([111, undefined, 102, undefined]);
    // Beside Opus some have events of 8 kHz only, which we have offered as 101.
    const slow = 'a=rtpmap:111 opus/48000/2\r\na=rtpmap:96 telephone-event/8000';
    expect(heard(['opus', 'PCMU'], `m=audio 4000 RTP/AVP 111 96\r\n${slow}`)).toEqual([111, undefined, 96, 101]);
    // What the answer says of a number goes before.
    const swapped = 'a=rtpmap:101 opus/48000/2\r\na=rtpmap:111 telephone-event/8000';
    expect(heard(['opus', 'PCMU'], `m=audio 4000 RTP/AVP 101 111\r\n${swapped}`)).toEqual([101, undefined, 111, undefined]);
    expect(heard(['PCMU'], 'm=audio 4000 RTP/AVP 0')).toEqual([0, undefined, undefined, undefined]);
  });

  test('permits the far end every codec of its answer, at any time (RFC 3264 §5.1)', () => {
    const agreed = ours(['PCMU', 'PCMA', 'G722']).acceptAnswer(
      description(['m=audio 4000 RTP/AVP 0 8 9 18 101 97\r\na=rtpmap:101 telephone-event/8000\r\na=rtpmap:97 G722/8000']),
    );
    if ('refused' in agreed) throw new Error(agreed.why);
    const codecs = (each: AudioAgreement | undefined) => each && [each.codec, each.others?.map(({ codec }) => codec)];
    expect(codecs(agreed)).toEqual(['PCMU', ['PCMA', 'G722']]);
    const after = followed(agreed, 8);
    expect(codecs(after)).toEqual(['PCMA', ['PCMU', 'G722']]);
    expect(after && codecs(followed(after, 0))).toEqual(['PCMU', ['PCMA', 'G722']]);
    for (const other of [0, 18, 97, 101]) expect(followed(agreed, other)).toBeUndefined();
    // We answer with one codec alone.
    const answered = ours().answer(description(['m=audio 4000 RTP/AVP 8 0']));
    expect('agreement' in answered && answered.agreement.others).toBeUndefined();
  });

  test('is refused where it has no audio, or is no description', () => {
    expect(ours().acceptAnswer(bytes('hello'))).toMatchObject({ refused: 400 });
  });
});

describe('our later offer', () => {
  const offered = (media: readonly string[]) => {
    const negotiation = ours();
    const answered = negotiation.answer(description(media));
    if ('refused' in answered) throw new Error(answered.why);
    return mLines(text(negotiation.offer()));
  };

  test('keeps every m-line of before in its place, refused streams with port 0 (RFC 3264 §8)', () => {
    expect(offered([AUDIO, 'm=video 5000 RTP/AVP 31'])).toEqual(['m=audio 20000 RTP/AVP 0 8 101', 'm=video 0 RTP/AVP 31']);
    expect(offered(['m=image 7000 udptl t38', 'm=audio 4000 RTP/AVPF 0'])).toEqual([
      'm=image 0 udptl t38',
      'm=audio 20000 RTP/AVPF 0 8 101',
    ]);
  });

  test('gives no number of before another meaning (RFC 3264 §8.3.2)', () => {
    const negotiation = ours(['opus', 'PCMU']);
    const media = 'm=audio 4000 RTP/AVP 102 0 101\r\na=rtpmap:102 opus/48000/2\r\na=rtpmap:101 telephone-event/48000';
    negotiation.answer(description([media]));
    negotiation.hold(true);
    const offer = text(negotiation.offer());
    expect(mLines(offer)).toEqual(['m=audio 20000 RTP/AVP 111 0 101 96']);
    expect(offer).toContain('a=rtpmap:111 opus/48000/2\r\n');
    expect(offer).toContain('a=rtpmap:101 telephone-event/48000\r\n');
    expect(offer).toContain('a=rtpmap:96 telephone-event/8000\r\n');
    // Its answer names the telephone-event by our number of now.
    const answered = negotiation.acceptAnswer(
      description(['m=audio 4000 RTP/AVP 0 99\r\na=rtpmap:99 telephone-event/8000\r\na=recvonly']),
    );
    expect(answered).toMatchObject({ codec: 'PCMU', telephoneEventPayloadType: 99, ownEventPayloadType: 96 });
  });

  test('gives no number of another node another meaning, and keeps its m-lines', () => {
    const before = ours(['opus', 'PCMU']);
    const media = 'm=audio 4000 RTP/AVP 102 0 101\r\na=rtpmap:102 opus/48000/2\r\na=rtpmap:101 telephone-event/48000';
    before.answer(description(['m=video 4002 RTP/AVP 97', media]));
    const goneOn = (from: typeof before.described) =>
      new Negotiation({ host: '198.51.100.2', port: 20_000, codecs: ['opus', 'PCMU'], sessionId: 7, before: from });
    expect(mLines(text(goneOn(JSON.parse(JSON.stringify(before.described))).offer()))).toEqual([
      'm=video 0 RTP/AVP 97',
      'm=audio 20000 RTP/AVP 111 0 101 96',
    ]);
    // A node of an older release has told the version only.
    const { sessionId, version } = before.described;
    expect(mLines(text(goneOn({ sessionId, version }).offer()))).toHaveLength(1);
  });

  test('goes on encrypted or in clear as another node has agreed, where the trunk still permits that', () => {
    const terms = (mode: 'optional' | 'required') => ({
      mode,
      suites: ['AES_CM_128_HMAC_SHA1_80'] as const,
      random: (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes)),
    });
    const options = { host: '198.51.100.2', port: 20_000, codecs: ['PCMU'] as const, sessionId: 7 };
    const key = 'a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
    /** What the node before describes after it has answered an audio stream by that protocol, beside video. */
    const described = (protocol: 'RTP/AVP' | 'RTP/SAVP') => {
      const before = new Negotiation({ ...options, srtp: terms('optional') });
      const lines = protocol === 'RTP/SAVP' ? `\r\n${key}` : '';
      expect(before.answer(description(['m=video 4002 RTP/AVP 97', `m=audio 4000 ${protocol} 0${lines}`]))).toHaveProperty(
        'body',
      );
      return JSON.parse(JSON.stringify(before.described));
    };
    const offered = (before: object, srtp?: ReturnType<typeof terms>) => {
      const offer = text(
        new Negotiation({ ...options, before: Object(before), ...(srtp === undefined ? {} : { srtp }) }).offer(),
      );
      return [/m=audio [0-9]+ (\S+)/.exec(offer)?.[1], offer.includes('a=crypto:'), mLines(offer)?.[0]];
    };
    const refused = 'm=video 0 RTP/AVP 97';
    expect(offered(described('RTP/SAVP'), terms('required'))).toEqual(['RTP/SAVP', true, refused]);
    expect(offered(described('RTP/SAVP'), terms('optional'))).toEqual(['RTP/SAVP', true, refused]);
    expect(offered(described('RTP/SAVP'))).toEqual(['RTP/AVP', false, refused]);
    expect(offered(described('RTP/AVP'), terms('optional'))).toEqual(['RTP/AVP', false, refused]);
    expect(offered(described('RTP/AVP'), terms('required'))).toEqual(['RTP/SAVP', true, refused]);
    // A node of an older release gave on calls in clear only, and told less.
    expect(offered({ version: 3 }, terms('optional'))).toEqual(['RTP/AVP', false, 'm=audio 20000 RTP/AVP 0 101']);
  });

  test('gives a number one meaning for the whole of a session, whatever is agreed on', () => {
    const payloadType = fc.integer({ min: 96, max: 127 });
    const media = fc
      .uniqueArray(payloadType, { minLength: 3, maxLength: 3 })
      .map(([opus, wide, narrow]) => [
        `m=audio 4000 RTP/AVP ${opus} 0 ${wide} ${narrow}`,
        `a=rtpmap:${opus} opus/48000/2`,
        `a=rtpmap:${wide} telephone-event/48000`,
        `a=rtpmap:${narrow} telephone-event/8000`,
      ]);
    const meanings = (sdp: string) => [...sdp.matchAll(/a=rtpmap:([0-9]+) ([^\r]+)/g)].map(([, number, name]) => [number, name]);
    fc.assert(
      fc.property(media, (lines) => {
        const negotiation = ours(['opus', 'PCMU']);
        const answered = negotiation.answer(description([lines.join('\r\n')]));
        if ('refused' in answered) throw new Error(answered.why);
        const agreed = new Map(meanings(text(answered.body)).map(([number, name]) => [number, name]));
        const offered = meanings(text(negotiation.offer()));
        expect(new Set(offered.map(([number]) => number)).size).toBe(offered.length);
        for (const [number, name] of offered) expect(agreed.get(number) ?? name).toBe(name);
      }),
    );
  });

  test('that holds no more is not answered by the answer to the one that held', () => {
    const negotiation = ours();
    const first = negotiation.answer(description([AUDIO]));
    if ('refused' in first) throw new Error(first.why);
    negotiation.hold(true);
    negotiation.offer();
    negotiation.hold(false);
    expect(negotiation.acceptAnswer(description([`${AUDIO}\r\na=recvonly`]))).toMatchObject({ held: false, receive: false });
    negotiation.offer();
    expect(negotiation.acceptAnswer(description([AUDIO]))).toMatchObject({ held: false, receive: true });
    negotiation.offer();
    expect(negotiation.acceptAnswer(description([`${AUDIO}\r\na=recvonly`]))).toMatchObject({ held: true });
  });

  test('has as many m-lines as the last description, whatever was offered before', () => {
    const line = fc.constantFrom('m=video 5000 RTP/AVP 31', 'm=image 7000 udptl t38', 'm=audio 0 RTP/AVP 0', AUDIO);
    fc.assert(
      fc.property(fc.array(line, { maxLength: 8 }), fc.nat(8), (others, at) => {
        const media = others.toSpliced(at, 0, AUDIO);
        const lines = offered(media) ?? [];
        expect(lines).toHaveLength(media.length);
        expect(lines.filter((each) => each.split(' ')[1] !== '0')).toHaveLength(1);
        for (const [i, each] of lines.entries()) expect(each.split(' ')[0]).toBe(media[i]?.split(' ')[0] ?? '');
      }),
    );
  });
});

describe('our answer', () => {
  test('takes a port with a number of ports, and forty m-lines (RFC 8866 §5.14)', () => {
    expect(answer(['m=audio 4000/1 RTP/AVP 0'])).toMatchObject({ remotePort: 4000, codec: 'PCMU' });
    const many = answer([...Array.from({ length: 39 }, () => 'm=video 5000 RTP/AVP 31'), AUDIO]);
    expect(many.remotePort).toBe(4000);
    expect(mLines(many.sdp)).toHaveLength(40);
  });

  test('refuses an address of the other IP version with 488, or takes the stream whose address is of ours', () => {
    expect(answer([AUDIO], ['c=IN IP6 2001:db8::1'])).toEqual({ refused: 488 });
    expect(answer([`${AUDIO}\r\nc=IN IP6 2001:db8::1`, 'm=audio 4400 RTP/AVP 0'])).toMatchObject({ remotePort: 4400 });
    const six = new Negotiation({ host: '2001:db8::9', port: 20_000, codecs: ['PCMU'], sessionId: 7 });
    expect(six.answer(description([AUDIO], ['c=IN IP6 2001:db8::1']))).toMatchObject({
      agreement: { remoteHost: '2001:db8::1' },
    });
    expect(six.answer(description([AUDIO]))).toMatchObject({ refused: 488 });
  });

  test('takes a name for an address once it is resolved, and refuses one without an address with 488', () => {
    const named = description([AUDIO], ['c=IN IP4 media.example']);
    expect(ours().answer(named)).toMatchObject({ refused: 488 });
    expect(ours().answer(named, new Map([['media.example', '203.0.113.5']]))).toMatchObject({
      agreement: { remoteHost: '203.0.113.5' },
    });
  });

  test('takes the first codec offered that we speak, and telephone-event as offered', () => {
    expect(answer(['m=audio 4000 RTP/AVP 18 8 0 96\r\na=rtpmap:96 telephone-event/8000'])).toMatchObject({
      codec: 'PCMA',
      telephoneEventPayloadType: 96,
    });
    expect(mLines(answer([AUDIO]).sdp)).toEqual(['m=audio 20000 RTP/AVP 0 96']);
    expect(answer(['m=audio 4000 RTP/AVP 9 0'], undefined, ['G722', 'PCMU'])).toMatchObject({ codec: 'G722', payloadType: 9 });
    expect(answer(['m=audio 4000 RTP/AVP 100\r\na=rtpmap:100 pcmu/8000'])).toMatchObject({ codec: 'PCMU', payloadType: 100 });
    // No offer of ours has numbers of its own that the far end could send by.
    expect(answer(['m=audio 4000 RTP/AVP 0 96\r\na=rtpmap:96 telephone-event/8000']).ownEventPayloadType).toBeUndefined();
    expect(answer(['m=audio 4000 RTP/AVP 0']).telephoneEventPayloadType).toBeUndefined();
    expect(
      answer(['m=audio 4000 RTP/AVP 0 101\r\na=rtpmap:101 telephone-event/16000']).telephoneEventPayloadType,
    ).toBeUndefined();
  });

  const directions: [
    offered: string[],
    session: string[] | undefined,
    answered: string,
    send: boolean,
    receive: boolean,
    held: boolean,
  ][] = [
    [['a=sendrecv'], undefined, 'sendrecv', true, true, false],
    [[], undefined, 'sendrecv', true, true, false],
    [['a=sendonly'], undefined, 'recvonly', false, false, true],
    [['a=recvonly'], undefined, 'sendonly', true, false, true],
    [['a=inactive'], undefined, 'inactive', false, false, true],
    [[], ['c=IN IP4 203.0.113.9', 'a=sendonly'], 'recvonly', false, false, true],
    [['a=sendrecv'], ['c=IN IP4 203.0.113.9', 'a=inactive'], 'sendrecv', true, true, false],
    [[], ['c=IN IP4 0.0.0.0'], 'recvonly', false, false, true],
    [['c=IN IP4 0.0.0.0', 'a=inactive'], undefined, 'inactive', false, false, true],
  ];
  for (const [offered, session, answered, send, receive, held] of directions) {
    test(`says ${answered} to ${[...(session ?? []), ...offered].join(' ') || 'nothing'}`, () => {
      const result = answer([[AUDIO, ...offered].join('\r\n')], session);
      expect(result).toMatchObject({ send, receive, held });
      expect(result.sdp).toContain(`a=${answered}\r\n`);
    });
  }

  test('answers every m-line in its place, refusing those it cannot do with port 0', () => {
    const result = answer([
      'm=video 5000 RTP/AVP 31',
      'm=audio 6000 RTP/SAVP 0',
      AUDIO,
      'm=image 7000 udptl t38',
      'm=audio 8000 RTP/AVP 0',
    ]);
    expect(mLines(result.sdp)).toEqual([
      'm=video 0 RTP/AVP 31',
      'm=audio 0 RTP/SAVP 0',
      'm=audio 20000 RTP/AVP 0 96',
      'm=image 0 udptl t38',
      'm=audio 0 RTP/AVP 0',
    ]);
    expect(result.remotePort).toBe(4000);
  });

  test('takes the audio beside a stream without any format, which some write where they refuse it', () => {
    expect(mLines(answer(['m=video 0 RTP/AVP', AUDIO, 'm=video 4002 RTP/AVP ']).sdp)).toEqual([
      'm=video 0 RTP/AVP 0',
      'm=audio 20000 RTP/AVP 0 96',
      'm=video 0 RTP/AVP 0',
    ]);
    expect(ours().acceptAnswer(description([AUDIO, 'm=video 0 RTP/AVP']))).toMatchObject({ codec: 'PCMU', remotePort: 4000 });
    expect(answer(['m=audio 4000 RTP/AVP'])).toEqual({ refused: 488 });
  });

  test('takes the address and RTCP port of the media level', () => {
    expect(answer([`${AUDIO}\r\nc=IN IP4 203.0.113.77\r\na=rtcp:4444`])).toMatchObject({
      remoteHost: '203.0.113.77',
      remoteRtcpPort: 4444,
    });
  });

  test('keeps to 20 ms where the far end asks for what nobody sends', () => {
    for (const [asked, used] of [
      ['a=ptime:30', 30],
      ['a=ptime:0', 20],
      ['a=ptime:200', 20],
      ['a=ptime:25', 20],
      ['a=ptime:x', 20],
    ] as const) {
      expect(answer([`${AUDIO}\r\n${asked}`]).ptimeMs).toBe(used);
    }
  });

  test('sends no longer packets than the far end takes', () => {
    for (const [lines, used] of [
      ['a=maxptime:10', 10],
      ['a=ptime:40\r\na=maxptime:20', 20],
      ['a=ptime:40\r\na=maxptime:35', 30],
      ['a=ptime:30\r\na=maxptime:60', 30],
      ['a=maxptime:5', 10],
      ['a=maxptime:x', 20],
    ] as const)
      expect([lines, answer([`${AUDIO}\r\n${lines}`]).ptimeMs]).toEqual([lines, used]);
  });

  const refused: [title: string, body: Uint8Array, status: 400 | 488][] = [
    ['encrypted audio only', description(['m=audio 4000 RTP/SAVP 0']), 488],
    ['a browser’s offer', description(['m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r\na=ice-ufrag:x']), 488],
    ['video only', description(['m=video 4000 RTP/AVP 96']), 488],
    ['no codec in common', description(['m=audio 4000 RTP/AVP 18 3']), 488],
    ['audio that is switched off', description(['m=audio 0 RTP/AVP 0']), 488],
    ['a name instead of an address', description([AUDIO], ['c=IN IP4 host.example']), 488],
    ['a multicast address', description([AUDIO], ['c=IN IP4 224.2.1.1/127']), 488],
    ['no address', description([AUDIO], []), 488],
    ['stereo or another clock under our codec’s name', description(['m=audio 4000 RTP/AVP 96\r\na=rtpmap:96 PCMU/16000']), 488],
    ['no media', description([]), 400],
    ['a port out of range', description(['m=audio 70000 RTP/AVP 0']), 400],
    ['text', bytes('hello'), 400],
    ['nothing', new Uint8Array(0), 400],
    ['more than the limit', bytes(`v=0\r\n${'a=x\r\n'.repeat(10_000)}`), 400],
  ];
  for (const [title, body, status] of refused)
    test(`refuses ${title} with ${status}`, () => expect(ours().answer(body)).toMatchObject({ refused: status }));

  test('never throws, whatever is sent, and what it answers it could be offered', () => {
    const line = fc.oneof(
      fc.string({ maxLength: 30 }),
      fc.constantFrom(
        AUDIO,
        'a=sendonly',
        'c=IN IP4 1.2.3.4',
        'm=audio -1 RTP/AVP 0',
        'm=audio 1e3 RTP/AVP 0',
        'a=rtpmap:0 PCMU/8000/2',
        'a=rtpmap:',
        'm=',
        'a=ptime:',
        'c=',
        'a=rtcp:',
        'm=audio 5 RTP/AVP __proto__',
      ),
    );
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (media) => {
        const result = ours().answer(description(media));
        if (!('refused' in result)) expect('refused' in ours().answer(result.body)).toBe(false);
      }),
      { numRuns: 1_000 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (data) => void ours().acceptAnswer(data)));
  });
});
