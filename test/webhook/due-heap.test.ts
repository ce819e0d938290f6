import { expect, test } from 'bun:test';
import { DueHeap } from '../../src/webhook/due-heap.ts';
import fc from '../support/fast-check.ts';

test('What is due comes out by its time, however it went in, and nothing before it is due', () => {
  const time = fc.nat(20);
  const input = fc.oneof(
    fc.record({ push: time }),
    time.map((now) => ({ now })),
  );
  fc.assert(
    fc.property(fc.array(input, { maxLength: 60 }), (inputs) => {
      const heap = new DueHeap<number>();
      let held: number[] = [];
      for (const each of inputs) {
        if ('push' in each) {
          heap.push(each.push, each.push);
          held = [...held, each.push].sort((one, other) => one - other);
        } else {
          const first = held[0];
          const due = first !== undefined && first <= each.now ? held.shift() : undefined;
          expect(heap.takeDue(each.now)).toEqual(due);
        }
        expect(heap.earliest).toEqual(held[0]);
      }
      for (const at of held) expect(heap.takeDue(99)).toBe(at);
      expect([heap.takeDue(99), heap.earliest]).toEqual([undefined, undefined]);
    }),
    { numRuns: 500 },
  );
});
