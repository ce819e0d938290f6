import { expect, test } from 'bun:test';
import { remembered } from '../../src/bounds/remembered.ts';
import fc from '../support/fast-check.ts';

test('what is remembered is what the function says, whatever was asked before, and no more than that is kept', () => {
  const texts = fc.array(fc.constantFrom('', 'a', 'b', 'c', 'd', '__proto__', 'constructor'), { maxLength: 40 });
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 4 }), (asked, most) => {
      const worked: string[] = [];
      const of = remembered((text) => {
        worked.push(text);
        return text.length > 1 ? undefined : text.toUpperCase();
      }, most);
      for (const text of asked) expect(of(text)).toBe(text.length > 1 ? undefined : text.toUpperCase());
      // The same text twice in a row is worked on once.
      const before = worked.length;
      const last = asked.at(-1);
      if (last !== undefined) of(last);
      expect(worked.length).toBe(before);
      // Few texts are each worked on once, undefined among their answers.
      if (new Set(asked).size <= most) expect(worked.length).toBe(new Set(asked).size);
    }),
  );
});

test('no more is kept than that: the next text begins anew, and a long one is never kept', () => {
  let worked = 0;
  const of = remembered(() => ++worked, 2);
  expect(['a', 'b', 'a', 'c', 'a'].map(of)).toEqual([1, 2, 1, 3, 4]);
  const long = 'x'.repeat(1_000);
  expect([of(long), of(long), of('a')]).toEqual([5, 6, 4]);
});
