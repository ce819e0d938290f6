/** What comes out of a socket for an HTTP response: what is taken, and what is refused. */
import { expect, test } from 'bun:test';
import { HTTP_CHUNK_LINE_MAX_BYTES, HTTP_RESPONSE_HEAD_MAX_BYTES } from '../../src/limits.ts';
import { BodyReader, framingOf, headEnd, MalformedResponse, mayBeResponse, parseHead } from '../../src/outbound/http-response.ts';

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'latin1'));
const head = (text: string) => parseHead(bytes(`${text}\r\n\r\n`));
const framing = (fields: string, status = 200) => framingOf(head(`HTTP/1.1 ${status} x\r\n${fields}`));

/** The body that chunks carry, up to the end of it. */
function unchunked(...pieces: string[]): string {
  const reader = new BodyReader({ by: 'chunked' });
  const parts = pieces.flatMap((piece) => reader.take(bytes(piece)));
  return `${Buffer.concat(parts).toString('latin1')}${reader.ended ? '.' : ''}`;
}

test('A head ends with an empty line, also of bare line feeds, and within its limit', () => {
  for (const end of ['\r\n\r\n', '\n\n', '\n\r\n']) {
    const text = `HTTP/1.1 200 OK\r\nA: b${end}`;
    expect(headEnd(bytes(`${text}C: d\r\n\r\n`))).toBe(text.length);
    expect(headEnd(bytes(text.slice(0, -1)))).toBeUndefined();
  }
  for (const text of ['A: b\n\rc', 'A: b\nc\nd']) expect(headEnd(bytes(text))).toBeUndefined();
  const long = 'A: b\r\n'.repeat(HTTP_RESPONSE_HEAD_MAX_BYTES / 6 + 1).slice(0, HTTP_RESPONSE_HEAD_MAX_BYTES);
  expect(headEnd(bytes(long.slice(1)))).toBeUndefined();
  expect(() => headEnd(bytes(long))).toThrow(MalformedResponse);
  expect(() => headEnd(bytes(`${long}\r\n\r\n`))).toThrow(MalformedResponse);
});

test('What cannot become a status line is told by its first bytes', () => {
  for (const text of ['', 'H', 'HTTP/1.', 'HTTP/1.1 2', 'I', 'ICY', 'ICY 404'])
    expect([text, mayBeResponse(bytes(text))]).toEqual([text, true]);
  for (const text of ['h', 'HTTP/2 200', 'ICYX', 'SSH-2.0', ' HTTP/1.1'])
    expect([text, mayBeResponse(bytes(text))]).toEqual([text, false]);
});

test('A head is a status line and fields; what is no field is left out, and what may hide one is refused', () => {
  for (const [line, status] of [
    ['HTTP/1.1 200 OK', 200],
    ['HTTP/1.0 404', 404],
    ['ICY 200 OK', 200],
  ] as const)
    expect(head(line).status).toBe(status);
  const { headers } = head('HTTP/1.1 200 OK\r\nA: b\r\nno field\r\nicy name: x\r\nN: a\0b\r\n: c\r\nC :d');
  expect([...headers]).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  for (const bad of ['HTTP/1.1 2000 OK', 'HTTP/2 200 OK', 'OK', 'HTTP/1.1 200 OK\r\nA: b\rC: d', 'HTTP/1.1 200 OK\r\nA: b\r\n c'])
    expect(() => head(bad)).toThrow(MalformedResponse);
});

test('The end of a body is told by the status, the coding or one length, and by nothing that two readers read as two', () => {
  for (const status of [199, 204, 304]) expect(framing('Content-Length: 5', status)).toEqual({ by: 'length', bytes: 0 });
  for (const status of [200, 203, 205, 303]) expect(framing('Content-Length: 5', status)).toEqual({ by: 'length', bytes: 5 });
  expect(framing('Content-Length: 5, 5\r\nContent-Length: 5')).toEqual({ by: 'length', bytes: 5 });
  expect(framing('Content-Length: 5\r\nTransfer-Encoding: Chunked ')).toEqual({ by: 'chunked' });
  expect(framing('A: b')).toEqual({ by: 'close' });
  for (const bad of ['gzip', 'gzip, chunked', 'chunked, chunked'])
    expect(() => framing(`Transfer-Encoding: ${bad}`)).toThrow(MalformedResponse);
  for (const bad of ['', '-1', '+5', '0x5', '5 6', '5, 6', '1e3', '9'.repeat(16)])
    expect(() => framing(`Content-Length: ${bad}`)).toThrow(MalformedResponse);
});

test('A chunked body ends with its last chunk, and what follows is nobody’s', () => {
  expect(unchunked('1f;x=y\r\n', 'x'.repeat(31), '\r\nA \r\n0123456789\r\n')).toBe(`${'x'.repeat(31)}0123456789`);
  expect(unchunked('1\na\n0\n\n')).toBe('a.');
  expect(unchunked('1\r\na\r\n0\r\nTrailer: x\r\n\r\n1\r\nb\r\n')).toBe('a.');
  expect(unchunked('1\r\na\r\n0\r\n\r\n', '1\r\nb\r\n')).toBe('a.');
  for (const bad of ['\r\n', 'g\r\n', '-1\r\n', '123456789\r\n', '1 x\r\n', '1\r\nab\r\n'])
    expect(() => unchunked(bad)).toThrow(MalformedResponse);
  const line = `1;${'x'.repeat(HTTP_CHUNK_LINE_MAX_BYTES - 2)}`;
  expect(unchunked(line, '\n')).toBe('');
  expect(() => unchunked(line, 'x')).toThrow(MalformedResponse);
});
