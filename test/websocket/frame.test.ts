import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { closePayload, FrameError, type FramePart, FrameReader, writeFrame } from '../../src/websocket/frame.ts';

/** A server's frame: not masked. */
function frame(opcode: number, payload: Uint8Array, fin = true): Uint8Array {
  const { length } = payload;
  const head =
    length <= 125 ? [length] : length <= 0xffff ? [126, length >> 8, length & 0xff] : [127, 0, 0, 0, 0, ...u32(length)];
  const whole = new Uint8Array(1 + head.length + length);
  whole.set([(fin ? 0x80 : 0) | opcode, ...head]);
  whole.set(payload, 1 + head.length);
  return whole;
}
const u32 = (value: number) => [value >>> 24, (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff];
const bytes = (text: string) => new TextEncoder().encode(text);
const join = (parts: Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]));

/** What comes out, with the pieces of each binary message put together. */
function messages(parts: FramePart[]): unknown[] {
  const whole: unknown[] = [];
  let open: number[] = [];
  for (const part of parts) {
    if (part.type !== 'binary') whole.push(part);
    else {
      open.push(...part.bytes);
      if (part.last) whole.push({ binary: open });
      if (part.last) open = [];
    }
  }
  return whole;
}

const code = (given: Uint8Array): number => {
  try {
    new FrameReader().push(given);
    return 0;
  } catch (error) {
    if (error instanceof FrameError) return error.code;
    throw error;
  }
};

describe('frames', () => {
  test('of every length come whole, however they are cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 300 }), { minLength: 1, maxLength: 5 }),
        fc.infiniteStream(fc.integer({ min: 1, max: 40 })),
        (payloads, cuts) => {
          const wire = join(payloads.map((payload) => frame(2, payload)));
          const reader = new FrameReader();
          const parts: FramePart[] = [];
          for (let at = 0; at < wire.length; ) {
            const size = cuts.next().value ?? 1;
            parts.push(...reader.push(wire.subarray(at, at + size)));
            at += size;
          }
          expect(messages(parts)).toEqual(payloads.map((payload) => ({ binary: [...payload] })));
        },
      ),
    );
  });

  test('in fragments are one message, with a ping in between', () => {
    const wire = join([frame(2, Uint8Array.of(1, 2), false), frame(9, bytes('p')), frame(0, Uint8Array.of(3))]);
    expect(messages(new FrameReader().push(wire))).toEqual([{ type: 'ping', bytes: bytes('p') }, { binary: [1, 2, 3] }]);
    const text = join([frame(1, bytes('gr'), false), frame(0, bytes('üß'))]);
    expect(new FrameReader().push(text)).toEqual([{ type: 'text', text: 'grüß' }]);
  });

  test('of 100 MiB are handed on as they come, and nothing is kept', () => {
    const reader = new FrameReader();
    reader.push(Uint8Array.of(0x82, 127, 0, 0, 0, 0, ...u32(100 * 1024 * 1024)));
    const chunk = new Uint8Array(1 << 20);
    let got = 0;
    for (let at = 0; at < 100; at++) {
      for (const part of reader.push(chunk)) if (part.type === 'binary') got += part.bytes.length;
    }
    expect(got).toBe(100 * 1024 * 1024);
  });

  test('that break the protocol are refused with the code of RFC 6455', () => {
    expect(code(Uint8Array.of(0x82, 0x81, 0, 0, 0, 0, 0))).toBe(1002); // masked
    expect(code(Uint8Array.of(0xc2, 0))).toBe(1002); // reserved bit
    expect(code(frame(3, new Uint8Array(0)))).toBe(1002); // opcode
    expect(code(frame(0, new Uint8Array(1)))).toBe(1002); // continuation of nothing
    expect(code(join([frame(2, new Uint8Array(1), false), frame(2, new Uint8Array(1))]))).toBe(1002);
    expect(code(frame(9, new Uint8Array(126)))).toBe(1002); // long ping
    expect(code(frame(9, new Uint8Array(1), false))).toBe(1002); // fragmented ping
    expect(code(frame(1, Uint8Array.of(0xff)))).toBe(1007);
    expect(code(frame(1, new Uint8Array(70_000).fill(32)))).toBe(0);
    expect(code(frame(1, new Uint8Array(1024 * 1024 + 1)))).toBe(1009);
    expect(code(Uint8Array.of(0x82, 127, 0xff, 0, 0, 0, 0, 0, 0, 0))).toBe(1009);
    expect(code(frame(8, Uint8Array.of(3)))).toBe(1002);
    expect(code(frame(8, closePayload(1005)))).toBe(1002);
    expect(new FrameReader().push(frame(8, closePayload(1001)))).toEqual([{ type: 'close', code: 1001 }]);
    expect(new FrameReader().push(frame(8, new Uint8Array(0)))).toEqual([{ type: 'close', code: 1005 }]);
  });

  test('of any bytes never do worse than FrameError', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 400 }), (given) => expect([0, 1002, 1007, 1009]).toContain(code(given))));
  });

  test('that we write are masked and come back as they were', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 0, maxLength: 70_000 }),
        fc.uint8Array({ minLength: 4, maxLength: 4 }),
        (payload, mask) => {
          const written = writeFrame('binary', payload, mask);
          expect((written[1] ?? 0) & 0x80).toBe(0x80);
          const head = payload.length <= 125 ? 2 : payload.length <= 0xffff ? 4 : 10;
          const body = written.slice(head + 4).map((byte, at) => byte ^ (mask[at & 3] ?? 0));
          expect(Buffer.compare(body, payload)).toBe(0);
        },
      ),
      { numRuns: 30 },
    );
  });
});
