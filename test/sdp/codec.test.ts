/** The numbers of codecs over all the descriptions of a session (RFC 3264 §8.3.2), and how they are written. */
import { expect, test } from 'bun:test';
import {
  type AudioCodec,
  agreedFormats,
  eventsOf,
  type Formats,
  formatLines,
  offeredFormats,
  othersOf,
  ownNumbers,
  payloadTypes,
} from '../../src/sdp/codec.ts';

const NONE: Formats = { codecs: [], events: [] };
const numbers = ({ codecs, events }: Formats) => [
  codecs.map(({ codec, payloadType }) => `${codec} ${payloadType}`),
  events.map(({ clockHz, payloadType }) => `${clockHz} ${payloadType}`),
];
const formats = (
  codecs: readonly (readonly [AudioCodec, number])[],
  events: readonly (readonly [number, number])[] = [],
): Formats => ({
  codecs: codecs.map(([codec, payloadType]) => ({ codec, payloadType })),
  events: events.map(([clockHz, payloadType]) => ({ clockHz, payloadType })),
});

test('Our first offer has our own numbers, with a telephone-event for each clock', () => {
  expect(numbers(offeredFormats(['opus', 'G722', 'PCMU', 'PCMA'], NONE))).toEqual([
    ['opus 111', 'G722 9', 'PCMU 0', 'PCMA 8'],
    ['48000 102', '8000 101'],
  ]);
  expect(numbers(offeredFormats(['PCMA'], NONE))).toEqual([['PCMA 8'], ['8000 101']]);
});

test('A later offer keeps what was agreed on where our own number is taken, and else takes a free one, each once', () => {
  const codecs = ['opus', 'PCMU'] as const;
  // Our number for Opus was agreed on for its telephone-event, and our number of that for Opus.
  expect(numbers(offeredFormats(codecs, formats([['opus', 102]], [[48_000, 111]])))).toEqual([
    ['opus 102', 'PCMU 0'],
    ['48000 111', '8000 101'],
  ]);
  // Both of our numbers for telephone-event are taken, and 96 and 97 as well.
  const taken = formats(
    [
      ['opus', 101],
      ['PCMU', 96],
      ['PCMA', 97],
    ],
    [[16_000, 102]],
  );
  expect(numbers(offeredFormats(codecs, taken))).toEqual([
    ['opus 111', 'PCMU 0'],
    ['48000 98', '8000 99'],
  ]);
});

test('Where every number is taken our own is used all the same', () => {
  const all = formats(Array.from({ length: 32 }, (_, at) => ['PCMA', 96 + at] as const));
  expect(numbers(offeredFormats(['opus'], all))).toEqual([['opus 111'], ['48000 102']]);
});

test('What was agreed on before is remembered, unless its number or its codec is agreed on anew', () => {
  const before = formats(
    [
      ['opus', 102],
      ['PCMA', 100],
      ['G722', 99],
    ],
    [
      [48_000, 103],
      [8_000, 104],
    ],
  );
  expect(numbers(agreedFormats(formats([['PCMU', 0]]), before))).toEqual([
    ['PCMU 0', 'opus 102', 'PCMA 100', 'G722 99'],
    ['48000 103', '8000 104'],
  ]);
  // Opus has another number now, and the numbers of PCMA and of a telephone-event mean something else.
  const now = formats([['opus', 100]], [[8_000, 103]]);
  expect(numbers(agreedFormats(now, before))).toEqual([['opus 100', 'G722 99'], ['8000 103']]);
  expect(numbers(agreedFormats(formats([['PCMU', 104]], [[48_000, 102]]), before))).toEqual([
    ['PCMU 104', 'PCMA 100', 'G722 99'],
    ['48000 102'],
  ]);
});

test('The telephone-event of a codec is that of its clock, else that of 8 kHz, else none', () => {
  const event = (payloadType: number, clockRate: number) => ({ payloadType, name: 'TELEPHONE-EVENT', clockRate, channels: 1 });
  const both = [event(101, 8_000), event(102, 48_000)];
  expect(eventsOf(both, 'opus')).toEqual({ payloadType: 102, clockHz: 48_000 });
  expect(eventsOf(both, 'G722')).toEqual({ payloadType: 101, clockHz: 8_000 });
  expect(eventsOf(both.slice(0, 1), 'opus')).toEqual({ payloadType: 101, clockHz: 8_000 });
  expect(eventsOf(both.slice(1), 'PCMU')).toBeUndefined();
});

test('The far end may send what it answered under the number of our offer, with the clock of the codec in use', () => {
  const format = (payloadType: number, name: string, clockRate = 8_000, channels = 1) => ({
    payloadType,
    name,
    clockRate,
    channels,
  });
  const offered = formats([
    ['PCMU', 0],
    ['PCMA', 8],
    ['opus', 111],
  ]).codecs;
  const answered = [format(0, 'PCMU'), format(8, 'PCMA'), format(97, 'PCMA'), format(111, 'OPUS', 48_000, 2), format(8, 'PCMU')];
  expect(othersOf(answered, offered, 'PCMU')).toEqual([{ codec: 'PCMA', payloadType: 8 }]);
  expect(othersOf(answered, offered, 'opus')).toEqual([]);
});

test('Our numbers are told where the answer has others, and does not use ours for something else', () => {
  const offered = formats(
    [
      ['opus', 111],
      ['PCMU', 0],
    ],
    [
      [48_000, 102],
      [8_000, 101],
    ],
  );
  const own = (payloadType: number, event?: number, codec: AudioCodec = 'opus') =>
    ownNumbers(offered, { codec, payloadType }, event === undefined ? undefined : { payloadType: event, clockHz: 48_000 });
  expect([own(96, 97), own(111, 102), own(96), own(102, 111)]).toEqual([
    ...[{ ownPayloadType: 111, ownEventPayloadType: 102 }, {}, { ownPayloadType: 111 }, {}],
  ]);
  expect(own(96, 97, 'G722')).toEqual({ ownEventPayloadType: 102 });
});

test('A format is written with its clock, and Opus with its channels and that it takes FEC', () => {
  const { codecs, events } = formats(
    [
      ['opus', 111],
      ['G722', 9],
    ],
    [[48_000, 102]],
  );
  expect(payloadTypes(codecs, events)).toBe('111 9 102');
  expect(formatLines(codecs, events)).toBe(
    'a=rtpmap:111 opus/48000/2\r\na=fmtp:111 minptime=10;useinbandfec=1\r\na=rtpmap:9 G722/8000\r\n' +
      'a=rtpmap:102 telephone-event/48000\r\na=fmtp:102 0-15\r\n',
  );
});
