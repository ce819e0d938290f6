/**
 * A WebSocket server that breaks RFC 6455, or takes it to its limits, case by case, each with the end that the Session
 * is told.
 */
import { afterAll, expect, test } from 'bun:test';
import { byHand, closeAll, open } from './harness.ts';

afterAll(closeAll);

const TEXT = 0x1;
const BINARY = 0x2;
const CLOSE = 0x8;
const PING = 0x9;
const PONG = 0xa;
const FIN = 0x80;

/** One frame: the first byte as given, the length as it is written in `lengthBits`. */
function frame(first: number, payload: Uint8Array | string = '', lengthBits: 7 | 16 | 64 = 7, masked = false): Buffer {
  const body = Buffer.from(payload);
  const mask = masked ? 0x80 : 0;
  const length =
    lengthBits === 7
      ? Buffer.of(mask | body.length)
      : lengthBits === 16
        ? Buffer.of(mask | 126, body.length >> 8, body.length & 0xff)
        : Buffer.concat([Buffer.of(mask | 127, 0, 0, 0, 0), Buffer.of(0, 0, body.length >> 8, body.length & 0xff)]);
  return Buffer.concat([Buffer.of(first), length, masked ? Buffer.of(0, 0, 0, 0) : Buffer.alloc(0), body]);
}
const close = (code: number, reason: Uint8Array | string = '') =>
  frame(FIN | CLOSE, Buffer.concat([Buffer.of(code >> 8, code & 0xff), Buffer.from(reason)]));
const hundred = Buffer.alloc(126, 0x61);

type Case = readonly [name: string, bytes: Buffer, end: string];
const broken = (name: string, bytes: Buffer): Case => [name, bytes, 'protocol_error 1002'];

const CASES: readonly Case[] = [
  ...[3, 4, 5, 6, 7, 0xb, 0xc, 0xd, 0xe, 0xf].map((opcode) => broken(`reserved opcode ${opcode}`, frame(FIN | opcode))),
  ...[TEXT, BINARY, PING, CLOSE].flatMap((opcode) =>
    [0x40, 0x20, 0x10].map((bit) => broken(`reserved bit ${bit} with opcode ${opcode}`, frame(FIN | bit | opcode))),
  ),
  ...[TEXT, BINARY, PING, PONG, CLOSE].map((opcode) => broken(`masked opcode ${opcode}`, frame(FIN | opcode, '', 7, true))),
  ...[PING, PONG, CLOSE].map((opcode) => broken(`fragmented control ${opcode}`, frame(opcode))),
  ...[PING, PONG, CLOSE].flatMap((opcode) => [
    broken(`control ${opcode} of 126 bytes`, frame(FIN | opcode, hundred, 16)),
    broken(`control ${opcode} with a length of 64 bits`, frame(FIN | opcode, hundred, 64)),
  ]),
  broken('a continuation of nothing', frame(FIN, 'x')),
  broken('a first fragment that continues nothing', frame(0, 'x')),
  ...[TEXT, BINARY].flatMap((first) =>
    [TEXT, BINARY].map((second) =>
      broken(`a message ${second} inside a message ${first}`, Buffer.concat([frame(first, 'a'), frame(FIN | second, 'b')])),
    ),
  ),
  broken('a close of one byte', frame(FIN | CLOSE, Buffer.of(3))),
  ...[0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535].map((code) => broken(`close ${code}`, close(code))),
  ...[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 4999].map(
    (code): Case => [`close ${code} is a word`, close(code, 'bye'), `remote_closed ${code}`],
  ),
  ['a close without a code', frame(FIN | CLOSE), 'remote_closed 1005'],
  ['a close and more behind it', Buffer.concat([close(1000), frame(FIN | TEXT, 'late')]), 'remote_closed 1000'],
  ['a close whose reason is no UTF-8', close(1000, Buffer.of(0xff)), 'protocol_error 1007'],
  ...[
    [0xff],
    [0xc0, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xe2, 0x82],
    [0xf4, 0x90, 0x80, 0x80],
    [0x80],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
    [0xc3],
  ].map((bytes): Case => [`text ${bytes.join(' ')}`, frame(FIN | TEXT, Buffer.from(bytes)), 'protocol_error 1007']),
  [
    'text that is cut inside a character, then something else',
    Buffer.concat([frame(TEXT, Buffer.of(0xe2, 0x82)), frame(FIN, 'x')]),
    'protocol_error 1007',
  ],
  ['a length of 2^63', Buffer.concat([Buffer.of(FIN | BINARY, 127, 0x80, 0, 0, 0, 0, 0, 0, 0)]), 'protocol_error 1009'],
  ['a length of 2^53', Buffer.concat([Buffer.of(FIN | BINARY, 127, 0, 0x20, 0, 0, 0, 0, 0, 0)]), 'protocol_error 1009'],
  ['a length of 4 GiB', Buffer.concat([Buffer.of(FIN | BINARY, 127, 0, 0, 0, 1, 0, 0, 0, 0)]), 'protocol_error 1009'],
  ['a length of 8 MiB and one', Buffer.concat([Buffer.of(FIN | BINARY, 127, 0, 0, 0, 0, 0, 0x80, 0, 1)]), 'protocol_error 1009'],
  [
    'fragments that are 8 MiB and more together',
    Buffer.concat([
      frame(BINARY),
      ...new Array<Buffer>(129).fill(Buffer.concat([Buffer.of(0, 126, 0xff, 0xff), Buffer.alloc(65_535)])),
    ]),
    'protocol_error 1009',
  ],
  [
    'fragments without an end',
    Buffer.concat([frame(TEXT, 'a'), ...new Array<Buffer>(20_000).fill(frame(0, 'a'))]),
    'protocol_error 1008',
  ],
  [
    'a text message of more than 1 MiB',
    Buffer.concat([Buffer.of(FIN | TEXT, 127, 0, 0, 0, 0, 0, 0x10, 0, 1), Buffer.alloc(1024 * 1024 + 1, 0x61)]),
    'protocol_error 1009',
  ],
  ...Array.from({ length: 10 }, (_, cut): Case => {
    const whole = frame(FIN | BINARY, hundred, 64);
    return [`a frame that is cut after byte ${cut + 1}`, whole.subarray(0, cut + 1), 'network_error 1006'];
  }),
  ['what is no frame at all', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 'protocol_error 1002'],
];

test(`each of ${CASES.length} hostile servers ends its own connection, with a reason, and nothing else`, async () => {
  expect(CASES.length).toBeGreaterThanOrEqual(96);
  for (let at = 0; at < CASES.length; at += 16) {
    const ends = await Promise.all(
      CASES.slice(at, at + 16).map(async ([name, bytes, end]) => {
        const isCut = end.startsWith('network_error');
        const { said, until } = open(await byHand((socket) => (isCut ? socket.end(bytes) : socket.write(bytes))));
        await until('closed');
        return [name, said.at(-1), said.filter((each) => each.startsWith('closed')).length];
      }),
    );
    expect(ends).toEqual(CASES.slice(at, at + 16).map(([name, , end]) => [name, `closed ${end}`, 1]));
  }
}, 60_000);
