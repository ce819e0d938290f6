/**
 * The parsers that read what strangers send. A target is given bytes, and tells what it made of them: a short text that
 * is the same for the same bytes. A stream is given them whole and in pieces, which must make no difference.
 */
import { EmissionChecker } from '../../src/event/conformance/emission-checker.ts';
import { hexHash } from '../../src/hash.ts';
import { noneMatch, rangeOf } from '../../src/http/range.ts';
import { idCandidates, receiptOf } from '../../src/machine/message/receipt.ts';
import { AdtsFramer } from '../../src/media/format/adts.ts';
import { FlacFramer } from '../../src/media/format/flac-framer.ts';
import { IcyStripper } from '../../src/media/format/icy.ts';
import { MpegFramer } from '../../src/media/format/mpeg-framer.ts';
import { TransportDemux } from '../../src/media/format/mpeg-ts.ts';
import { OggReader } from '../../src/media/format/ogg.ts';
import { parsePlaylist } from '../../src/media/format/playlist-text.ts';
import { sniff } from '../../src/media/format/sniff.ts';
import { WavContainer } from '../../src/media/format/wav-container.ts';
import { BodyReader, framingOf, headEnd, MalformedResponse, parseHead } from '../../src/outbound/http-response.ts';
import { outcomeOf } from '../../src/provider/nedarim-answer.ts';
import { HEADER_BYTES, isAnswered, readPdu, refusalOfFrame } from '../../src/provider/smpp-pdu.ts';
import { faultOf } from '../../src/recording-storage/s3/object-error.ts';
import { browserAgreement, readBrowserOffer, readIceFragment } from '../../src/sdp/browser-offer.ts';
import { Negotiation } from '../../src/sdp/negotiation.ts';
import { cryptoLines } from '../../src/sdp/sdes.ts';
import { challengesOf, parseAuthParameters } from '../../src/sip/message/digest.ts';
import { DigestServer, digestSecrets } from '../../src/sip/message/digest-server.ts';
import { StreamFraming } from '../../src/sip/message/framing.ts';
import { withSessionDescription } from '../../src/sip/message/multipart.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import { replacesOf } from '../../src/sip/message/replaces.ts';
import { parseNameAddress, parseUri } from '../../src/sip/message/uri.ts';
import { parseVia } from '../../src/sip/message/via.ts';
import { messageFacts, plainText, redactor } from '../../src/sip/redaction.ts';
import { register } from '../../src/sip/registrar.ts';
import { ControlledAudio } from '../../src/websocket/control.ts';
import type { DialectOptions } from '../../src/websocket/dialect.ts';
import { TwilioMedia } from '../../src/websocket/twilio.ts';

export interface Target {
  readonly name: string;
  /** Words of the format, for the mutants. */
  readonly words: readonly string[];
  /** What the parser makes of the bytes. */
  readonly read: (bytes: Uint8Array) => string;
  /** The same of bytes that come in pieces, where they are a stream. */
  readonly readPieces?: (pieces: readonly Uint8Array[]) => string;
  /** The parser's own errors. Any other is a fault. */
  readonly owns?: (error: unknown) => boolean;
}

const latin1 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
const PEER = { transport: 'udp', host: '192.0.2.1', port: 5060, flow: 1 } as const;

const SIP_WORDS = [
  'SIP/2.0',
  'INVITE',
  'Via: ',
  'CSeq: 1 INVITE\r\n',
  'Content-Length: ',
  '\r\n\r\n',
  '\r\n ',
  '<sip:',
  ';tag=',
  '?Replaces=',
  '%3Bto-tag%3D',
  'z9hG4bK',
  '"',
  '\\"',
  '%00',
  'sips:',
  '[::1]',
  ';;',
];

function readSip(bytes: Uint8Array): string {
  const text = plainText(latin1(bytes));
  const facts = messageFacts(text);
  for (const level of ['headers', 'full'] as const) redactor(level, ['x-pin'], 4_096)(text, facts?.cseq ?? '');
  const parsed = parseMessage(bytes);
  if (!parsed.ok) return `${parsed.why} ${parsed.refuse?.status}`;
  const { message } = parsed;
  const { headers } = message;
  const addresses = ['from', 'to', 'contact', 'refer-to', 'p-asserted-identity'].flatMap((name) => headers.fields(name));
  const replaced = addresses.map((value) => {
    const { uri } = parseNameAddress(value) ?? { uri: value };
    parseUri(uri);
    return replacesOf(uri)?.callId ?? '';
  });
  const vias = headers.fields('via').map((value) => parseVia(value)?.host);
  const body = withSessionDescription(message).body.length;
  const registered = 'method' in message ? Object.keys(register(message, [], PEER, 0)).join() : challengesOf(message).length;
  return `${'method' in message ? message.method : message.status} ${vias.length} ${body} ${registered} ${replaced.join('')}`;
}

/** Reads a stream by what a parser gives for each piece and at the end. */
const joined = (parts: readonly Uint8Array[]): string => hexHash('MD5', latin1(new Uint8Array(Buffer.concat(parts))));

const sipStream = (pieces: readonly Uint8Array[]): string => {
  const framing = new StreamFraming();
  const found: string[] = [];
  for (const piece of pieces) {
    framing.push(piece);
    for (let frame = framing.next(); frame !== undefined; frame = framing.next())
      if (frame.type !== 'ping') found.push(frame.type === 'message' ? joined([frame.bytes]) : 'broken');
  }
  return found.join();
};

const CODECS = ['PCMU', 'PCMA', 'G722', 'opus'] as const;
const negotiation = () =>
  new Negotiation({
    host: '198.51.100.1',
    port: 20_000,
    codecs: CODECS,
    sessionId: 7,
    srtp: { mode: 'optional', suites: ['AES_CM_128_HMAC_SHA1_80', 'AEAD_AES_128_GCM'], random: (count) => new Uint8Array(count) },
    isOpportunistic: true,
  });

function readSdp(bytes: Uint8Array): string {
  const answerer = negotiation();
  const first = answerer.answer(bytes);
  const again = answerer.answer(bytes);
  const offerer = negotiation();
  offerer.offer();
  const answered = offerer.acceptAnswer(bytes);
  const outcome = (result: object) => ('refused' in result ? `refused ${String(result.refused)}` : 'agreed');
  return [outcome(first), outcome(again), outcome(answered), cryptoLines(latin1(bytes)).length].join();
}

function readBrowser(bytes: Uint8Array): string {
  const offer = readBrowserOffer(bytes, CODECS);
  const fragment = readIceFragment(bytes)?.ice?.ufrag ?? '';
  return 'refused' in offer ? `refused ${offer.refused} ${fragment}` : `${browserAgreement(offer).codec} ${fragment}`;
}

const SECRETS = digestSecrets(hexHash, 'alice', 'sidetone', 'open sesame');

function readDigest(bytes: Uint8Array): string {
  const value = latin1(bytes).replace(/[\r\n]/g, ' ');
  const text = `REGISTER sip:x SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:a@x>\r\nCall-ID: c\r\nCSeq: 1 REGISTER\r\nAuthorization: ${value}\r\nWWW-Authenticate: ${value}\r\n\r\n`;
  const parsed = parseMessage(new Uint8Array(Buffer.from(text, 'latin1')));
  const server = new DigestServer(
    'sidetone',
    hexHash,
    (of) => hexHash('MD5', of).slice(0, 16),
    () => 'token',
  );
  const verdict =
    parsed.ok && 'method' in parsed.message ? server.check(parsed.message, 'alice', SECRETS, '192.0.2.1', 0) : 'unread';
  if (verdict === 'right') throw new Error('a stranger was let in');
  return `${verdict} ${parseAuthParameters(value)?.size}`;
}

const httpAnswer = (pieces: readonly Uint8Array[]): string => {
  let held: Uint8Array = new Uint8Array(0);
  let reader: BodyReader | undefined;
  const body: Uint8Array[] = [];
  let head = '';
  for (const piece of pieces) {
    if (reader !== undefined) {
      body.push(...reader.take(piece));
      continue;
    }
    held = new Uint8Array(Buffer.concat([held, piece]));
    const end = headEnd(held);
    if (end === undefined) continue;
    const parsed = parseHead(held.subarray(0, end));
    head = `${parsed.status} ${framingOf(parsed).by}`;
    reader = new BodyReader(framingOf(parsed));
    body.push(...reader.take(held.subarray(end)));
  }
  return `${head} ${joined(body)} ${reader?.ended} ${reader?.wholeAtClose}`;
};

/** A framer of sound: what it cuts out, whatever the pieces. */
const framer =
  (
    make: () => {
      push(more: Uint8Array): readonly (Uint8Array | { readonly bytes: Uint8Array })[];
      end?(): readonly (Uint8Array | { readonly bytes: Uint8Array })[];
    },
  ) =>
  (pieces: readonly Uint8Array[]): string => {
    const one = make();
    const frames = [...pieces.flatMap((piece) => one.push(piece.slice())), ...(one.end?.() ?? [])];
    return `${frames.length} ${joined(frames.map((frame) => ('bytes' in frame ? frame.bytes : frame)))}`;
  };

const wav = (pieces: readonly Uint8Array[]): string => {
  const container = new WavContainer();
  const sound = pieces.map((piece) => container.push(piece.slice()).slice());
  return `${container.state} ${JSON.stringify(container.format)} ${joined(sound)}`;
};

const transport = (pieces: readonly Uint8Array[]): string => {
  const demux = new TransportDemux();
  const sound = pieces.map((piece) => demux.push(piece.slice()).slice());
  return `${demux.kind} ${demux.unsupported} ${joined(sound)}`;
};

const icy = (pieces: readonly Uint8Array[]): string => {
  const stripper = new IcyStripper(100);
  return joined(pieces.map((piece) => stripper.strip(piece.slice()).slice()));
};

/** What a dialect does with a text message: each order and each answer. */
function dialect(make: (options: DialectOptions) => { text(text: string): boolean }): (bytes: Uint8Array) => string {
  return (bytes) => {
    const done: string[] = [];
    const format = { encoding: 'mulaw', rateHz: 8_000 } as const;
    const one = make({
      sessionUuid: 's',
      appUuid: 'a',
      fromSession: format,
      toSession: format,
      parameters: {},
      phoneSessionUuid: undefined,
      order: async ({ type }) => void done.push(type),
      send: (text) => void done.push(text),
      sendBinary: () => {},
      write: (audio) => done.push(`${audio.length} bytes`) > 0,
      clear: () => void done.push('clear'),
      pause: (on) => void done.push(`pause ${on}`),
      mark: () => done.push('mark') > 0,
    });
    return `${one.text(utf8(bytes))} ${done.join()}`;
  };
}

function readReceipt(text: string): string {
  const receipt = receiptOf({ text, receiptedMessageId: undefined, messageState: undefined, esmClass: 0, sourceAddress: '1' });
  return `${receipt?.state} ${idCandidates(receipt?.smscId ?? text).length}`;
}

function readSmpp(bytes: Uint8Array): string {
  const frame = Buffer.from(bytes);
  if (frame.length < HEADER_BYTES) return 'more';
  const pdu = readPdu(frame);
  if (pdu === undefined) return `refused ${refusalOfFrame(frame, 0x65)?.length}`;
  if (!pdu.isResponse() && isAnswered(pdu)) pdu.response().toBuffer();
  return `${pdu.command} ${readReceipt(String(pdu.short_message))}`;
}

function readPlaylist(bytes: Uint8Array): string {
  const found = parsePlaylist(utf8(bytes), 'http://radio.example/list');
  return JSON.stringify(found, (_, value) => (typeof value === 'bigint' ? `${value}` : value)).slice(0, 2_000);
}

const whole = (read: (pieces: readonly Uint8Array[]) => string) => ({
  read: (bytes: Uint8Array) => read([bytes]),
  readPieces: read,
});
const text = (read: (text: string) => string) => ({ read: (bytes: Uint8Array) => read(utf8(bytes)) });
const SDP_WORDS = [
  'm=audio ',
  'a=rtpmap:',
  'a=crypto:1 ',
  'a=fingerprint:',
  'a=mid:',
  'a=group:BUNDLE ',
  'c=IN IP6 ::',
  'RTP/SAVPF',
  '\r\n',
  'a=candidate:',
  'a=ice-ufrag:',
  '/8000',
  'm=audio 0 ',
];
const JSON_WORDS = [
  '{',
  '}',
  '[',
  ']',
  ':',
  ',',
  '"',
  'null',
  '{"type":"mark","name":"',
  '{"event":"media","media":{"payload":"',
  '\\u0000',
  '__proto__',
  'constructor',
];

export const TARGETS: readonly Target[] = [
  { name: 'sip', words: SIP_WORDS, read: readSip },
  { name: 'sip-stream', words: SIP_WORDS, ...whole(sipStream) },
  {
    name: 'multipart',
    words: ['--b', '--b--', '\r\n', 'Content-Type: multipart/mixed;boundary=', 'application/sdp'],
    read: readSip,
  },
  { name: 'sdp', words: SDP_WORDS, read: readSdp },
  { name: 'browser-offer', words: SDP_WORDS, read: readBrowser },
  {
    name: 'digest',
    words: ['nonce="', 'realm="sidetone"', 'response=', 'qop=auth', 'algorithm=', '","', '\\"', ',,', 'Digest '],
    read: readDigest,
  },
  {
    name: 'http-answer',
    words: [
      'HTTP/1.1 200 OK\r\n',
      'Transfer-Encoding: chunked\r\n',
      'Content-Length: ',
      '\r\n\r\n',
      '0\r\n\r\n',
      'ffffffff\r\n',
      'ICY 200 OK',
    ],
    ...whole(httpAnswer),
    owns: (error) => error instanceof MalformedResponse,
  },
  { name: 'mpeg', words: ['ID3', 'TAG', 'Xing', '\xff\xfb', '\xff\xe0'], ...whole(framer(() => new MpegFramer())) },
  { name: 'flac', words: ['fLaC', '\xff\xf8'], ...whole(framer(() => new FlacFramer())) },
  { name: 'ogg', words: ['OggS', 'OpusHead', '\x01vorbis'], ...whole((pieces) => ogg(pieces)) },
  { name: 'wav', words: ['RIFF', 'RF64', 'WAVE', 'fmt ', 'data', 'ds64', '\xff\xff\xff\xff'], ...whole(wav) },
  { name: 'adts', words: ['\xff\xf1', 'ID3'], ...whole(framer(() => new AdtsFramer())) },
  { name: 'mpegts', words: ['\x47\x40\x00\x10', '\x00\x00\x01\xc0'], ...whole(transport) },
  { name: 'icy', words: ['StreamTitle=', '\x00'], ...whole(icy) },
  {
    name: 'sniff',
    words: ['RIFF', 'OggS', 'fLaC', 'ID3', 'TAG', '#EXTM3U', 'APETAGEX'],
    read: (bytes) => [true, false].map((each) => sniff(bytes, each).found).join(),
  },
  {
    name: 'playlist',
    words: [
      '#EXTM3U',
      '#EXTINF:',
      '#EXT-X-MEDIA-SEQUENCE:',
      '[playlist]',
      'File1=',
      '\n',
      'http://',
      '..//',
      '#EXT-X-KEY:',
      '#EXT-X-BYTERANGE:',
      '#EXT-X-GAP',
    ],
    read: readPlaylist,
  },
  { name: 'websocket-control', words: JSON_WORDS, read: dialect((options) => new ControlledAudio(options)) },
  { name: 'websocket-twilio', words: JSON_WORDS, read: dialect((options) => new TwilioMedia(options)) },
  {
    name: 'smpp',
    words: ['\x00\x00\x00\x10', '\x00\x00\x00\x05', '\x04\x24', 'id:', 'stat:DELIVRD'],
    read: readSmpp,
  },
  { name: 'receipt', words: ['id:', ' stat:DELIVRD', ' err:', 'sub:'], ...text(readReceipt) },
  {
    name: 'charge-answer',
    words: JSON_WORDS,
    ...text((answer) => JSON.stringify(outcomeOf(answer, { last4: '1111', installments: 1 }, 0)).slice(0, 500)),
  },
  {
    name: 'range',
    words: ['bytes=', '-', ',', '"', 'W/'],
    ...text((header) => `${JSON.stringify(rangeOf(header, 1_000))} ${noneMatch(header, 'e')}`),
  },
  {
    name: 'store-answer',
    words: ['<Error>', '<Code>', '</Code>', '<![CDATA[', '&#0;'],
    ...text((body) => faultOf(400, body).name),
  },
  {
    name: 'emission',
    words: [...JSON_WORDS, '"event":"session.ended"', '"session_uuid":"a"'],
    ...text((body) => new EmissionChecker().take('evt_x', body).join()),
  },
];

/** The packets of an Ogg stream: those of the first stream, whatever it is. */
function ogg(pieces: readonly Uint8Array[]): string {
  const reader = new OggReader(() => true);
  const packets = pieces
    .flatMap((piece) => reader.push(piece.slice()))
    .flatMap((page) => page.packets.map((packet) => packet.slice()));
  return `${packets.length} ${joined(packets)}`;
}
