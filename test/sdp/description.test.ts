/** What is read of a session description (RFC 8866, RFC 3551 table 4). */
import { expect, test } from 'bun:test';
import { SDP_MAX_BYTES, SDP_MEDIA_MAX, SDP_PAYLOADS_MAX } from '../../src/limits.ts';
import { parseDescription } from '../../src/sdp/description.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const session = (connection = 'c=IN IP4 203.0.113.9') => `v=0\r\no=- 1 1 IN IP4 203.0.113.9\r\ns=-\r\n${connection}\r\nt=0 0\r\n`;
const media = (lines: string, connection?: string, addresses?: ReadonlyMap<string, string>) =>
  parseDescription(bytes(`${session(connection)}${lines}\r\n`), addresses)?.media[0];

test('The static payload types are known without an rtpmap, others by theirs, and unknown ones have no name', () => {
  const formats = media(
    'm=audio 4000 RTP/AVP 0 3 4 8 9 13 18 5 96 97 98\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:97 telephone-event/8000',
  )?.formats;
  expect(formats?.map(({ payloadType, name, clockRate, channels }) => `${payloadType} ${name}/${clockRate}/${channels}`)).toEqual(
    [
      ...['0 PCMU/8000/1', '3 GSM/8000/1', '4 G723/8000/1', '8 PCMA/8000/1', '9 G722/8000/1', '13 CN/8000/1', '18 G729/8000/1'],
      ...['5 /0/1', '96 OPUS/48000/2', '97 TELEPHONE-EVENT/8000/1', '98 /0/1'],
    ],
  );
});

test('A format is a number up to 127; others are left out, and more than 64 of them', () => {
  expect(media('m=audio 4000 RTP/AVP 127 128 x 1000 0')?.formats.map(({ payloadType }) => payloadType)).toEqual([127, 0]);
  const many = Array.from({ length: SDP_PAYLOADS_MAX + 1 }, () => '0').join(' ');
  expect(media(`m=audio 4000 RTP/AVP ${many}`)?.formats).toHaveLength(SDP_PAYLOADS_MAX);
  expect(media('m=image 4000 udptl t38 0')?.formats).toEqual([]);
});

test('A format says by maxaveragebitrate how much of it is taken, if it is as much as Opus needs (RFC 7587 §6.1)', () => {
  const most = (config: string) =>
    media(`m=audio 4000 RTP/AVP 96 97\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:97 opus/48000/2\r\na=fmtp:${config}`)?.formats.map(
      ({ maxBitrate }) => maxBitrate,
    );
  expect(most('96 maxaveragebitrate=20000')).toEqual([20_000, undefined]);
  expect(most('97 stereo=0; MaxAverageBitrate = 6000 ;cbr=1')).toEqual([undefined, 6000]);
  for (const config of ['maxaveragebitrate=5999', 'maxaveragebitrate=', 'xmaxaveragebitrate=8000', 'maxaveragebitrate=8e3', '8'])
    expect([config, most(`96 ${config}`)]).toEqual([config, [undefined, undefined]]);
});

test('The address is that of the stream, else that of the session; a usable one is unicast or nowhere', () => {
  const host = (connection: string, own = '') => media(`m=audio 4000 RTP/AVP 0${own}`, connection)?.host;
  expect(host('c=IN IP4 203.0.113.9', '\r\nc=IN IP4 203.0.113.10')).toBe('203.0.113.10');
  for (const [connection, expected] of [
    ['IP4 203.0.113.9', '203.0.113.9'],
    ['IP4 0.0.0.0', '0.0.0.0'],
    ['IP4 223.255.255.255', '223.255.255.255'],
    ['IP4 224.0.0.1/127', ''],
    ['IP4 224.0.0.1', ''],
    ['IP4 255.255.255.255', ''],
    ['IP4 203.0.113.256', ''],
    ['IP4 203.0.113', ''],
    ['IP6 2001:db8::1', '2001:db8::1'],
    ['IP6 ::', '::'],
    ['IP6 ff02::1/3', ''],
    ['IP6 FF02::1', ''],
    ['IP6 203.0.113.9', ''],
  ] as const)
    expect([connection, host(`c=IN ${connection}`)]).toEqual([connection, expected]);
});

test('A name is kept to be resolved, and is no address until it is', () => {
  const named = (addresses?: ReadonlyMap<string, string>) => {
    const found = media('m=audio 4000 RTP/AVP 0', 'c=IN IP4 Media-1.example.', addresses);
    return [found?.hostName, found?.host];
  };
  expect(named()).toEqual(['Media-1.example.', '']);
  expect(media('m=audio 4000 RTP/AVP 0\r\nc=IN IP4 own.example')?.hostName).toBe('own.example');
  expect(media('m=audio 4000 RTP/AVP 0\r\nc=IN IP4 203.0.113.1', 'c=IN IP4 media.example')?.hostName).toBe('');
  expect(named(new Map([['Media-1.example.', '2001:db8::7']]))).toEqual(['Media-1.example.', '2001:db8::7']);
  expect(named(new Map([['other', '203.0.113.1']]))).toEqual(['Media-1.example.', '']);
});

test('A description that was read is not read again, unless names have addresses by now', () => {
  const body = bytes(`${session('c=IN IP4 media.example')}m=audio 4000 RTP/AVP 0\r\n`);
  expect(parseDescription(body)).toBe(parseDescription(body));
  const resolved = parseDescription(body, new Map([['media.example', '203.0.113.1']]));
  expect(resolved?.media[0]?.host).toBe('203.0.113.1');
  expect(parseDescription(body)?.media[0]?.host).toBe('');
});

test('Ports, packet times and RTCP ports are numbers that can be, or count as absent', () => {
  const port = (text: string) => media(`m=audio ${text} RTP/AVP 0`)?.port;
  expect([port('0'), port('65535'), port('65536'), port('4000/2')]).toEqual([0, 65_535, undefined, 4000]);
  const rtcp = (text: string) => media(`m=audio 4000 RTP/AVP 0\r\na=rtcp:${text}`)?.rtcpPort;
  expect([rtcp('1'), rtcp('65535 IN IP4 203.0.113.9'), rtcp('0'), rtcp('65536')]).toEqual([1, 65_535, undefined, undefined]);
  const time = (lines: string) => media(`m=audio 4000 RTP/AVP 0\r\n${lines}`)?.ptimeMs;
  expect([time('a=ptime:30.0'), time('a=ptime:0\r\na=maxptime:-1'), time('a=ptime:x'), time('a=maxptime:10.0')]).toEqual([
    30, 20, 20, 10,
  ]);
});

test('A direction is that of the stream, else that of the session, else both ways', () => {
  const direction = (own: string, of: string) => media(`${of}m=audio 4000 RTP/AVP 0${own}`)?.direction;
  expect([direction('', ''), direction('', 'a=recvonly\r\n'), direction('\r\na=inactive', 'a=recvonly\r\n')]).toEqual([
    ...(['sendrecv', 'recvonly', 'inactive'] as const),
  ]);
});

test('A description is at most 16 KiB and 64 streams, begins with its version and has a stream', () => {
  const padded = (length: number) => {
    const head = `${session()}m=audio 4000 RTP/AVP 0\r\na=x:`;
    return bytes(`${head}${'y'.repeat(length - head.length - 2)}\r\n`);
  };
  expect(padded(SDP_MAX_BYTES)).toHaveLength(SDP_MAX_BYTES);
  expect([parseDescription(padded(SDP_MAX_BYTES))?.media.length, parseDescription(padded(SDP_MAX_BYTES + 1))]).toEqual([
    1,
    undefined,
  ]);
  const streams = (count: number) =>
    parseDescription(bytes(session() + 'm=audio 4000 RTP/AVP 0\r\n'.repeat(count)))?.media.length;
  expect([streams(SDP_MEDIA_MAX), streams(SDP_MEDIA_MAX + 1), streams(0)]).toEqual([SDP_MEDIA_MAX, undefined, undefined]);
  for (const text of [
    '',
    'm=audio 4000 RTP/AVP 0\r\n',
    `o=- 1 1 IN IP4 h\r\n${session()}m=audio 4000 RTP/AVP 0\r\n`,
    `${session()}m=audio\r\n`,
  ])
    expect([text, parseDescription(bytes(text))]).toEqual([text, undefined]);
});
