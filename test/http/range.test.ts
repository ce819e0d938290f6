import { describe, expect, test } from 'bun:test';
import { ifMatch, noneMatch, rangeHolds, rangeOf } from '../../src/http/range.ts';
import fc from '../support/fast-check.ts';

describe('ranges', () => {
  test('lie within what there is, and say what was asked', () => {
    fc.assert(
      fc.property(fc.nat(1000), fc.nat(1200), fc.nat(1200), (bytes, first, more) => {
        const range = rangeOf(`bytes=${first}-${first + more}`, bytes);
        if (first >= bytes) expect(range).toBe('unsatisfiable');
        else expect(range).toEqual({ start: first, end: Math.min(bytes, first + more + 1) });
        expect(rangeOf(`bytes=${first}-`, bytes)).toEqual(first >= bytes ? 'unsatisfiable' : { start: first, end: bytes });
        const suffix = Math.min(more, bytes);
        expect(rangeOf(`bytes=-${more}`, bytes)).toEqual(suffix === 0 ? 'unsatisfiable' : { start: bytes - suffix, end: bytes });
      }),
    );
  });

  test('are never out of bounds, whatever the header says', () => {
    const piece = fc.constantFrom(
      'bytes',
      '=',
      '-',
      ',',
      ' ',
      '0',
      '9',
      '99',
      '18446744073709551616',
      'x',
      '0x1',
      '1e3',
      '+1',
      '.',
    );
    const header = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 8 }).map((parts) => `bytes=${parts.join('')}`),
    );
    fc.assert(
      fc.property(header, fc.nat(1000), (text, bytes) => {
        const range = rangeOf(text, bytes);
        if (range === undefined || range === 'unsatisfiable') return;
        expect(range.start).toBeGreaterThanOrEqual(0);
        expect(range.end).toBeGreaterThan(range.start);
        expect(range.end).toBeLessThanOrEqual(bytes);
      }),
      { numRuns: 2_000 },
    );
  });

  test('are of bytes, one, and forwards, or all is sent', () => {
    for (const header of [null, 'items=0-1', 'bytes', 'bytes=', 'bytes=,', 'bytes=5-4', 'bytes=5-1', 'bytes=0-1,3-4', 'bytes=-'])
      expect([header, rangeOf(header, 10)]).toEqual([header, undefined]);
    for (const header of ['bytes=2-3', 'Bytes=2-3', 'bytes= 2-3 ', 'bytes=,2-3,'])
      expect([header, rangeOf(header, 10)]).toEqual([header, { start: 2, end: 4 }]);
  });

  test('begin before the end, where nothing is left', () => {
    for (const header of ['bytes=10-', 'bytes=10-12', 'bytes=-0'])
      expect([header, rangeOf(header, 10)]).toEqual([header, 'unsatisfiable']);
    expect(rangeOf('bytes=9-', 10)).toEqual({ start: 9, end: 10 });
  });

  test('are asked under If-Match of the same strong tag, of any, or without it', () => {
    for (const header of [null, '*', ' * ', '"a"', '"b", "a"']) expect([header, ifMatch(header, 'a')]).toEqual([header, true]);
    for (const header of ['"b"', 'W/"a"', 'a', '', '"b", W/"a"']) expect([header, ifMatch(header, 'a')]).toEqual([header, false]);
  });

  test('hold under If-Range for the same strong tag, and without it', () => {
    expect([null, '"a"', ' "a" '].map((header) => rangeHolds(header, 'a'))).toEqual([true, true, true]);
    expect(['"b"', 'W/"a"', 'a', '', '*'].map((header) => rangeHolds(header, 'a'))).toEqual([false, false, false, false, false]);
  });

  test('are of no use to who has the tag, weak or strong', () => {
    for (const header of ['*', '"a"', 'W/"a"', '"b","a"', '"b", W/"a" ,"c"']) expect(noneMatch(header, 'a')).toBe(true);
    for (const header of [null, '', 'a', '"b"', '"A"', '"*"', '"b\\"a"']) expect(noneMatch(header, 'a')).toBe(false);
  });
});
