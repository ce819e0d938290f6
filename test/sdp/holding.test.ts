/** Holds in offers and answers (RFC 3264 §8.4), and what a description keeps of the ones before (§8). */
import { expect, test } from 'bun:test';
import { type AudioAgreement, type AudioCodec, followed, Negotiation } from '../../src/sdp/negotiation.ts';

const ours = (more: Partial<ConstructorParameters<typeof Negotiation>[0]> = {}) =>
  new Negotiation({ host: '198.51.100.1', port: 20_000, codecs: ['PCMU', 'PCMA'], sessionId: 7, ...more });
const text = (body: Uint8Array) => new TextDecoder().decode(body);
const description = (media: string, connection = 'c=IN IP4 203.0.113.9') =>
  new TextEncoder().encode(`v=0\r\no=- 1 1 IN IP4 203.0.113.9\r\ns=-\r\n${connection}\r\nt=0 0\r\n${media}\r\n`);
const audio = (direction: string) => description(`m=audio 4000 RTP/AVP 0\r\na=${direction}`);
const directionOf = (body: Uint8Array) => /a=(sendrecv|sendonly|recvonly|inactive)\r\n/.exec(text(body))?.[1];
const versionOf = (body: Uint8Array) => /o=- 7 ([0-9]+)/.exec(text(body))?.[1];
function agreed(result: AudioAgreement | { readonly refused: number; readonly why: string }): AudioAgreement {
  if ('refused' in result) throw new Error(result.why);
  return result;
}
function answered(negotiation: Negotiation, body: Uint8Array) {
  const result = negotiation.answer(body);
  if ('refused' in result) throw new Error(result.why);
  return result;
}

test('While we hold the far end we send to it and take nothing from it, whatever it offers', () => {
  for (const [offered, ours_, open] of [
    ['sendrecv', 'sendonly', 'sendrecv'],
    ['recvonly', 'sendonly', 'sendonly'],
    ['sendonly', 'inactive', 'recvonly'],
    ['inactive', 'inactive', 'inactive'],
  ] as const) {
    const negotiation = ours();
    negotiation.hold(true);
    const held = answered(negotiation, audio(offered));
    expect([offered, directionOf(held.body), held.agreement.receive, held.agreement.isHolding]).toEqual([
      offered,
      ours_,
      false,
      true,
    ]);
    negotiation.hold(false);
    const free = answered(negotiation, audio(offered));
    expect([offered, directionOf(free.body), free.agreement.receive]).toEqual([offered, open, offered === 'sendrecv']);
  }
});

test('Our offer that holds is sendonly, and recvonly as its answer is no hold of the far end', () => {
  const negotiation = ours();
  negotiation.hold(true);
  expect(directionOf(negotiation.offer())).toBe('sendonly');
  expect(agreed(negotiation.acceptAnswer(audio('recvonly')))).toMatchObject({
    held: false,
    send: true,
    receive: false,
    isHolding: true,
  });
  negotiation.offer();
  expect(agreed(negotiation.acceptAnswer(audio('inactive')))).toMatchObject({ held: true, send: false });
  // It holds us as before: all that it can answer to sendonly is recvonly.
  negotiation.offer();
  expect(agreed(negotiation.acceptAnswer(audio('recvonly')))).toMatchObject({ held: true });
  // In an offer of its own, recvonly takes that back.
  expect(answered(negotiation, audio('recvonly')).agreement).toMatchObject({ held: false });
  negotiation.hold(false);
  expect(directionOf(negotiation.offer())).toBe('sendrecv');
  expect(agreed(negotiation.acceptAnswer(audio('recvonly')))).toMatchObject({ held: true, receive: false, isHolding: false });
});

test('An address that is nowhere is a hold, of either IP version (RFC 3264 §8.4)', () => {
  for (const nowhere of ['c=IN IP4 0.0.0.0', 'c=IN IP6 ::']) {
    const { body, agreement } = answered(ours(), description('m=audio 4000 RTP/AVP 0', nowhere));
    expect([nowhere, directionOf(body), agreement.held, agreement.send]).toEqual([nowhere, 'recvonly', true, false]);
    expect(text(body)).toContain('c=IN IP4 198.51.100.1\r\n');
    const only = answered(ours(), description('m=audio 4000 RTP/AVP 0\r\na=recvonly', nowhere));
    expect([directionOf(only.body), only.agreement.send, only.agreement.held]).toEqual(['sendonly', false, true]);
  }
});

test('A far end of the other IP version is described to by our address of its own, from then on', () => {
  const asked: string[] = [];
  const negotiation = ours({
    hostTowards: (remote) => {
      asked.push(remote);
      return '2001:db8::9';
    },
  });
  expect(text(negotiation.offer())).toContain('IN IP4 198.51.100.1\r\n');
  const { body } = answered(negotiation, description('m=audio 4000 RTP/AVP 0', 'c=IN IP6 2001:db8::1'));
  expect(text(body)).toMatch(/^v=0\r\no=- 7 2 IN IP6 2001:db8::9\r\ns=-\r\nc=IN IP6 2001:db8::9\r\n/);
  expect(text(negotiation.offer())).toContain('c=IN IP6 2001:db8::9\r\n');
  expect(asked).toEqual(['2001:db8::1']);
});

test('The version of a description goes on from that of another node, and rises where the session is offered again', () => {
  const negotiation = ours({ before: { version: 5 } });
  expect([versionOf(negotiation.offer()), versionOf(negotiation.offer()), negotiation.described.version]).toEqual(['6', '6', 6]);
  // The other node has described it once meanwhile.
  expect([versionOf(negotiation.offerAgain()), versionOf(negotiation.offer())]).toEqual(['8', '8']);
  expect(negotiation.described).toMatchObject({ sessionId: 7, version: 8 });
});

test('Our next offer has the protocol of the answer, AVPF where that was answered', () => {
  const negotiation = ours();
  negotiation.offer();
  agreed(negotiation.acceptAnswer(description('m=audio 4000 RTP/AVPF 0')));
  expect(text(negotiation.offer())).toContain('m=audio 20000 RTP/AVPF ');
});

test('What is neither AVP nor AVPF is not taken in clear, and what has another port than audio is no audio', () => {
  for (const line of ['m=audio 4000 RTP/SAVPF 0', 'm=audio 4000 udp 0', 'm=audio 4000 RTP/XVP 0', 'm=text 4000 RTP/AVP 0'])
    expect([line, ours().answer(description(line))]).toMatchObject([line, { refused: 488 }]);
});

test('The packet time is what is asked for from 10 to 60 ms in frames of 10', () => {
  const ptime = (ms: number) => answered(ours(), description(`m=audio 4000 RTP/AVP 0\r\na=ptime:${ms}`)).agreement.ptimeMs;
  expect([9, 10, 20, 60, 61, 70].map(ptime)).toEqual([20, 10, 20, 60, 20, 20]);
});

test('The RTCP port is the next one, and no higher than there is', () => {
  const rtcp = (port: number) => answered(ours(), description(`m=audio ${port} RTP/AVP 0`)).agreement.remoteRtcpPort;
  expect([rtcp(4000), rtcp(65_534), rtcp(65_535)]).toEqual([4001, 65_535, 65_535]);
});

test('The far end may change to another codec of the same clock alone, and back', () => {
  const answer = (codecs: readonly AudioCodec[], formats: string) => {
    const negotiation = ours({ codecs });
    negotiation.offer();
    return agreed(negotiation.acceptAnswer(description(`m=audio 4000 RTP/AVP ${formats}\r\na=rtpmap:111 opus/48000/2`)));
  };
  expect(answer(['PCMU', 'opus'], '0 111').others).toBeUndefined();
  const two = answer(['PCMU', 'PCMA'], '0 8');
  const changed = followed(two, 8);
  expect(changed).toEqual({
    ...two,
    codec: 'PCMA',
    payloadType: 8,
    ownPayloadType: undefined,
    others: [{ payloadType: 0, codec: 'PCMU' }],
  });
  expect(changed && followed(changed, 0)).toMatchObject({ codec: 'PCMU', others: [{ payloadType: 8, codec: 'PCMA' }] });
  expect(followed(two, 9)).toBeUndefined();
});

test('A number of our offer that the answer calls otherwise names no other codec, once the far end changes to that', () => {
  const negotiation = ours();
  negotiation.offer();
  const first = agreed(negotiation.acceptAnswer(description('m=audio 4000 RTP/AVP 97 8\r\na=rtpmap:97 PCMU/8000')));
  expect(first).toMatchObject({ codec: 'PCMU', payloadType: 97, ownPayloadType: 0 });
  expect(followed(first, 8)?.ownPayloadType).toBeUndefined();
});

test('A stream that is refused is repeated with no more of its formats than 64 characters', () => {
  const formats = Array.from({ length: 40 }, (_, at) => at).join(' ');
  const { body } = answered(ours(), description(`m=audio 4000 RTP/AVP 0\r\nm=video 5000 RTP/AVP ${formats}`));
  expect(/^m=video.*$/m.exec(text(body))?.[0].trim()).toBe(`m=video 0 RTP/AVP ${formats.slice(0, 64)}`);
});
