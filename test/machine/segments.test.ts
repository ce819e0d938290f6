import { describe, expect, test } from 'bun:test';
import { encodingOf } from '../../src/machine/message/alphabet.ts';
import { concatenationHeader, segment } from '../../src/machine/message/segments.ts';
import fc from '../support/fast-check.ts';

/**
 * Back from octets, by the same tables written down again: extension characters and those whose code is not their ASCII
 * code.
 */
const BASIC =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà';
const EXTENDED: Record<number, string> = {
  10: '\f',
  20: '^',
  40: '{',
  41: '}',
  47: '\\',
  60: '[',
  61: '~',
  62: ']',
  64: '|',
  101: '€',
};
function decode(octets: Uint8Array, encoding: 'gsm7' | 'ucs2'): string {
  if (encoding === 'ucs2') return new TextDecoder('utf-16be').decode(octets);
  let text = '';
  for (let at = 0; at < octets.length; at++) {
    const code = octets[at] ?? 0;
    text += code === 0x1b ? EXTENDED[octets[++at] ?? 0] : BASIC[code];
  }
  return text;
}

const lengths = (text: string) => segment(text).segments.map((part) => part.length);

describe('segments of a short message', () => {
  test('160 GSM characters are one segment, 161 are 153 and 8', () => {
    expect(segment('a'.repeat(160)).encoding).toBe('gsm7');
    expect(lengths('a'.repeat(160))).toEqual([160]);
    expect(lengths('a'.repeat(161))).toEqual([153, 8]);
    expect(lengths('a'.repeat(400))).toEqual([153, 153, 94]);
    expect(lengths('a'.repeat(1600))).toHaveLength(11);
  });

  test('a character of the extension table costs two septets and is never split from its escape', () => {
    expect(lengths('€'.repeat(80))).toEqual([160]);
    expect(lengths('€'.repeat(81))).toEqual([152, 10]);
    expect(lengths(`${'a'.repeat(152)}€${'a'.repeat(10)}`)).toEqual([152, 12]);
  });

  test('70 characters of Hebrew are one segment, 71 are 67 and 4', () => {
    expect(segment('ש'.repeat(70)).encoding).toBe('ucs2');
    expect(lengths('ש'.repeat(70))).toEqual([140]);
    expect(lengths('ש'.repeat(71))).toEqual([134, 8]);
  });

  test('one character outside the GSM alphabet makes all of it UCS-2', () => {
    expect(encodingOf('Grüße an {alle} für 5 €, \\o/ ~ ^ [x] |')).toBe('gsm7');
    for (const text of ['`', 'ç', 'Ł', '😀', '\u001b', 'a\u0000']) expect(encodingOf(text)).toBe('ucs2');
  });

  test('an emoji is never split into halves', () => {
    expect(lengths(`${'ש'.repeat(66)}😀${'ש'.repeat(10)}`)).toEqual([132, 24]);
  });

  test('the header names the message, how many segments and which', () => {
    expect([...concatenationHeader(0x1ab, 3, 2)]).toEqual([5, 0, 3, 0xab, 3, 2]);
  });

  test('whatever the text, its segments fit, and read one after another they are the text', () => {
    const gsm = fc.string({ unit: fc.constantFrom(...BASIC.replace('\u001b', ''), '€', '{', '^', '~'), maxLength: 700 });
    const any = fc.string({ unit: 'grapheme', maxLength: 300 }).filter((text) => text.isWellFormed());
    fc.assert(
      fc.property(fc.oneof(gsm, any), (text) => {
        const { encoding, segments } = segment(text);
        const most = encoding === 'gsm7' ? [160, 153] : [140, 134];
        const fits = segments.every((part) => part.length <= (segments.length === 1 ? (most[0] ?? 0) : (most[1] ?? 0)));
        return fits && segments.map((part) => decode(part, encoding)).join('') === text;
      }),
      { numRuns: 300 },
    );
  });
});
