import { describe, expect, test } from 'bun:test';
import fc from '../support/fast-check.ts';
import { noneMatch, rangeHolds, rangeOf } from '../../src/http/range.ts';

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

  test('hold under If-Range for the same strong tag, and without it', () => {
    expect([null, '"a"', ' "a" '].map((header) => rangeHolds(header, 'a'))).toEqual([true, true, true]);
    expect(['"b"', 'W/"a"', 'a', '', '*'].map((header) => rangeHolds(header, 'a'))).toEqual([false, false, false, false, false]);
  });

  test('are of no use to who has the tag, weak or strong', () => {
    for (const header of ['*', '"a"', 'W/"a"', '"b","a"', '"b", W/"a" ,"c"']) expect(noneMatch(header, 'a')).toBe(true);
    for (const header of [null, '', 'a', '"b"', '"A"', '"*"', '"b\\"a"']) expect(noneMatch(header, 'a')).toBe(false);
  });
});
