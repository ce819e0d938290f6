/**
 * Bodies of several parts (RFC 5621): the session description is used, optional parts are ignored, required unknown
 * ones refused.
 */
import { describe, expect, test } from 'bun:test';
import { withSessionDescription } from '../../src/sip/message/multipart.ts';
import { parseMessage } from '../../src/sip/message/parser.ts';
import fc from '../support/fast-check.ts';
import { bytes, text } from './pair.ts';

const SDP = 'v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\n';
const sdpPart = `Content-Type: application/sdp\r\n\r\n${SDP}`;
const isup = (disposition: string) => `Content-Type: application/isup;version=itu-t92+\r\n${disposition}\r\n\x01\x00\xff`;

const request = (type: string, body: string) =>
  bytes(
    `INVITE sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK1\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:b@c>\r\nCall-ID: 1\r\nCSeq: 1 INVITE\r\n` +
      `Content-Type: ${type}\r\nContent-Length: ${bytes(body).length}\r\n\r\n${body}`,
  );
const read = (type: string, body: string) => {
  const parsed = parseMessage(request(type, body));
  if (!parsed.ok) throw new Error(parsed.why);
  const { headers, body: found } = withSessionDescription(parsed.message);
  return [headers.get('content-type'), text(found)];
};
const multipart = (boundary: string, ...parts: string[]) =>
  `${parts.map((part) => `--${boundary}\r\n${part}\r\n`).join('')}--${boundary}--\r\n`;
const MIXED = 'multipart/mixed;boundary=b1';

describe('a body of several parts', () => {
  test('gives its session description, wherever it stands and whatever optional parts are beside it', () => {
    for (const parts of [
      [sdpPart],
      [sdpPart, isup('Content-Disposition: signal;handling=optional\r\n')],
      [isup('Content-Disposition: signal;handling=optional\r\n'), sdpPart],
      [isup(''), sdpPart, 'Content-Type: application/pidf+xml\r\n\r\n<x/>'],
      [
        `Content-Type: multipart/alternative;boundary=in\r\n\r\n${multipart('in', 'Content-Type: text/plain\r\n\r\nhi', sdpPart)}`,
      ],
      ['\r\nplain text without a type', sdpPart],
    ])
      expect(read(MIXED, multipart('b1', ...parts))).toEqual(['application/sdp', SDP]);
    expect(read('multipart/mixed; boundary="a b+c"', `preamble\r\n${multipart('a b+c', sdpPart)}epilogue`)).toEqual([
      'application/sdp',
      SDP,
    ]);
  });

  test('with an unknown part that must be handled stays as it is, so that it is answered 415', () => {
    const body = multipart('b1', sdpPart, isup('Content-Disposition: signal;handling=required\r\n'));
    expect(read(MIXED, body)[0]).toBe(MIXED);
  });

  test('may have parts whose header fields are folded, as those of a message may be (RFC 5322 §2.2.3)', () => {
    const inner = multipart('in', 'Content-Type: text/plain\r\n\r\nhi', sdpPart);
    const nested = `Content-Type: multipart/alternative;\r\n\tboundary=in\r\n\r\n${inner}`;
    expect(read(MIXED, multipart('b1', nested))).toEqual(['application/sdp', SDP]);
    const early = `Content-Type: application/sdp\r\nContent-Disposition:\r\n early-session\r\n\r\n${SDP}x`;
    expect(read(MIXED, multipart('b1', early, sdpPart))).toEqual(['application/sdp', SDP]);
    const unknown = isup('Content-Disposition: signal;\r\n handling=required\r\n');
    expect(read(MIXED, multipart('b1', unknown, sdpPart))[0]).toBe(MIXED);
  });

  test('without a session description is an empty one; an early-session is none', () => {
    expect(read(MIXED, multipart('b1', isup('')))).toEqual([undefined, '']);
    const early = `Content-Type: application/sdp\r\nContent-Disposition: early-session\r\n\r\n${SDP}`;
    expect(read(MIXED, multipart('b1', early))).toEqual([undefined, '']);
  });

  test('that is malformed stays as it is', () => {
    for (const [type, body] of [
      ['multipart/mixed', multipart('b1', sdpPart)],
      [MIXED, `--b1\r\n${sdpPart}`],
      [MIXED, 'no boundary at all'],
      [MIXED, multipart('b1', ...Array.from({ length: 40 }, () => isup('')))],
    ] as const)
      expect(read(type, body)[0]).toBe(type);
  });

  test('never throws, whatever is cut out of it or put into it', () => {
    const whole = text(request(MIXED, multipart('b1', isup(''), sdpPart)));
    fc.assert(
      fc.property(fc.nat(whole.length), fc.nat(40), fc.string({ maxLength: 10 }), (at, take, put) => {
        const parsed = parseMessage(bytes(whole.slice(0, at) + put + whole.slice(at + take)));
        if (parsed.ok) withSessionDescription(parsed.message);
      }),
      { numRuns: 1_000 },
    );
  });
});
