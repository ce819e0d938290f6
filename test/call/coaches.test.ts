import { expect, test } from 'bun:test';
import { Coaches } from '../../src/call/room/coaches.ts';

test('A member has its coaches until it leaves, and not when it comes back', () => {
  const coaches = new Coaches();
  coaches.add('a', 'agent');
  coaches.add('b', 'agent');
  coaches.add('a', 'agent');
  expect(coaches.of('agent')).toEqual(['a', 'b']);
  coaches.left('b');
  expect(coaches.of('agent')).toEqual(['a']);
  coaches.left('agent');
  expect(coaches.of('agent')).toEqual([]);
  coaches.add('a', 'other');
  expect([coaches.of('other'), coaches.of('agent')]).toEqual([['a'], []]);
});
