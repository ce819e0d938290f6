/** Texts from telephones: their numbers, alphabets and segments, as an SMSC delivers them. */
import { describe, expect, test } from 'bun:test';
import { incomingText } from '../../src/machine/message/alphabet.ts';
import { assembled, type IncomingFields, incomingOf } from '../../src/machine/message/incoming.ts';
import { concatenationHeader, segment } from '../../src/machine/message/segments.ts';
import fc from '../support/fast-check.ts';

const octets = (text: string) => Buffer.from(text, 'latin1');
const fields = (more: Partial<IncomingFields> = {}): IncomingFields => ({
  source: '972501112222',
  sourceType: 1,
  destination: '15550001',
  esmClass: 0,
  dataCoding: 0,
  octets: octets('Hello'),
  segment: undefined,
  ...more,
});
const textOf = (more: Partial<IncomingFields>) => {
  const part = incomingOf(fields(more));
  return part && assembled([part]).text;
};

describe('A text from a telephone', () => {
  test('is for a number, and from one', () => {
    expect(incomingOf(fields())).toEqual({
      from: '+972501112222',
      to: '+15550001',
      alphabet: 'gsm7',
      octets: octets('Hello'),
      reference: 0,
      total: 1,
      number: 1,
    });
    expect(incomingOf(fields({ destination: '+15550001' }))?.to).toBe('+15550001');
    // Nobody can have such a number, which is told to the SMSC.
    for (const destination of ['', '0501112222', 'BANK']) expect(incomingOf(fields({ destination }))?.to).toBe(`+${destination}`);
  });

  test.each([
    ['15550100', 1, '+15550100'],
    ['+15550100', 0, '+15550100'],
    ['15550100', 0, '+15550100'],
    ['1555010', 0, '1555010'],
    ['0501112222', 0, '0501112222'],
    ['0501112222', 1, '0501112222'],
    ['0501112222', 2, '0501112222'],
    ['12345', 3, '12345'],
    ['Bank 24', 5, 'Bank 24'],
    ['', 0, ''],
    ['x'.repeat(60), 5, 'x'.repeat(20)],
  ])('of %s, of type %d, is from %s', (source, sourceType, from) => {
    expect(incomingOf(fields({ source, sourceType }))?.from).toBe(from);
  });

  test.each([
    [0, [0x00, 0x02, 0x1b, 0x65, 0x1b, 0x41, 0x1b], '@$€ A '],
    [0x10, [0x48, 0x69], 'Hi'],
    [0xd0, [0x48, 0x69], 'Hi'],
    [0xd8, [0x00], '@'],
    [0xe0, [0x05, 0xe9], 'ש'],
    [0xe9, [0x05, 0xe9], 'ש'],
    [0xf0, [0x48, 0x69], 'Hi'],
    [0xf1, [0x00], '@'],
    [0xf3, [0x00], '@'],
    [0, [0x48, 0x80], 'H\ufffd'],
    [1, [0x40, 0x5f], '@_'],
    [3, [0xe9, 0x80], 'é\u0080'],
    [6, [0xbf], 'П'],
    [7, [0xf9, 0xec, 0xe5, 0xed], 'שלום'],
    [8, [0x05, 0xe9, 0xd8, 0x3d, 0xde, 0x00], 'ש😀'],
    [0x18, [0x05, 0xe9], 'ש'],
    [8, [0xd8, 0x3d], '\ufffd'],
    [3, [0x41, 0x00, 0x42], 'A\ufffdB'],
  ])('in data_coding %d is read by its alphabet', (dataCoding, given, text) => {
    expect(textOf({ dataCoding, octets: Uint8Array.from(given) })).toBe(text);
  });

  test.each([2, 4, 5, 9, 13, 0xc0, 0xc8, 0xcf, 0xf5, 0xf6, 0xf7])('in data_coding %d is none', (dataCoding) => {
    expect(incomingOf(fields({ dataCoding }))).toBeUndefined();
  });

  test.each([0xd8, 0xe8])('in data_coding %d is none where it is the sign alone', (dataCoding) => {
    expect(incomingOf(fields({ dataCoding, octets: new Uint8Array() }))).toBeUndefined();
    const header = { esmClass: 0x40, octets: octets('\x04\x01\x02\x80\x01') };
    expect(incomingOf(fields({ dataCoding, ...header }))).toBeUndefined();
  });

  test.each([0x04, 0x08, 0x10, 0x18, 0x20, 0x44])('of esm_class %d is none', (esmClass) => {
    expect(incomingOf(fields({ esmClass }))).toBeUndefined();
  });

  test('may be a segment, by its header or by TLVs', () => {
    const parted = (header: readonly number[], more: Partial<IncomingFields> = {}) => {
      const part = incomingOf(fields({ esmClass: 0x40, octets: Buffer.concat([Uint8Array.from(header), octets('x')]), ...more }));
      return (
        part && [part.reference, part.total, part.number, octets('').toString() + Buffer.from(part.octets).toString('latin1')]
      );
    };
    expect(parted([5, 0, 3, 7, 2, 1])).toEqual([7, 2, 1, 'x']);
    expect(parted([6, 8, 4, 1, 2, 3, 3])).toEqual([258, 3, 3, 'x']);
    // Ports before the segment.
    expect(parted([11, 5, 4, 1, 2, 3, 4, 0, 3, 9, 2, 2])).toEqual([9, 2, 2, 'x']);
    for (const other of [
      [6, 5, 4, 1, 2, 3, 4],
      [5, 0x70, 3, 7, 2, 1],
      [4, 0, 2, 7, 2],
      [5, 8, 3, 7, 2, 1],
    ])
      expect(parted(other)).toEqual([0, 1, 1, 'x']);
    // A number beyond the total, none at all, and a message of one segment.
    for (const [total, number] of [
      [2, 3],
      [2, 0],
      [0, 1],
      [1, 1],
    ] as const)
      expect(parted([5, 0, 3, 7, total, number])).toEqual([0, 1, 1, 'x']);
    expect(incomingOf(fields({ segment: [300, 2, 2] }))).toMatchObject({ reference: 300, total: 2, number: 2 });
    // A header that says more than there is.
    expect(parted([200, 0, 3])).toEqual([0, 1, 1, '']);
  });
});

describe('Segments', () => {
  test('of any text, in any order and some of them twice, are the text', () => {
    const text = fc.string({
      unit: fc.oneof(fc.constantFrom(...'ab€^ ~é', 'ש', '😀'), fc.string({ minLength: 1, maxLength: 1 })),
      maxLength: 700,
    });
    fc.assert(
      fc.property(text, fc.nat(255), fc.infiniteStream(fc.nat(1000)), (written, reference, order) => {
        const { encoding, segments } = segment(written);
        const dataCoding = encoding === 'ucs2' ? 8 : 0;
        const parts = segments.map((each, at) => {
          const whole = Buffer.concat([concatenationHeader(reference, segments.length, at + 1), each]);
          return incomingOf(fields({ dataCoding, esmClass: 0x40, octets: whole }));
        });
        const came = [...parts, parts[0]]
          .flatMap((part) => (part === undefined ? [] : [{ part, at: order.next().value }]))
          .sort((a, b) => a.at - b.at)
          .map(({ part }) => part);
        const wellFormed = written.toWellFormed().replaceAll('\0', '\ufffd');
        expect(assembled(came)).toEqual({ text: wellFormed, segments: segments.length });
      }),
    );
  });

  test('that lack one leave it out, and join nothing over the gap', () => {
    const half = (number: number, unit: number) => ({
      alphabet: 'ucs2' as const,
      octets: Uint8Array.of(unit >> 8, unit & 0xff),
      number,
    });
    expect(assembled([half(1, 0xd83d), half(2, 0xde00)])).toEqual({ text: '😀', segments: 2 });
    expect(assembled([half(1, 0xd83d), half(3, 0xde00)])).toEqual({ text: '\ufffd\ufffd', segments: 2 });
    expect(assembled([])).toEqual({ text: '', segments: 0 });
  });

  test('of several alphabets are read each by its own', () => {
    const hello = { alphabet: 'gsm7' as const, octets: octets('Hi '), number: 1 };
    expect(assembled([{ alphabet: 'ucs2', octets: Uint8Array.of(5, 0xe9), number: 2 }, hello]).text).toBe('Hi ש');
  });

  test('of any octets are text that PostgreSQL takes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.nat(255), fc.nat(255), (given, dataCoding, esmClass) => {
        const part = incomingOf(fields({ octets: given, dataCoding, esmClass }));
        const text = part === undefined ? '' : incomingText(part.octets, part.alphabet);
        expect([text.isWellFormed(), text.includes('\0')]).toEqual([true, false]);
      }),
    );
  });
});
