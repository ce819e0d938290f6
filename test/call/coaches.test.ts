import { expect, test } from 'bun:test';
import { Coaches } from '../../src/call/room/coaches.ts';

test('A member has its coaches until it leaves, and not when it comes back', () => {
  const coaches = new Coaches();
  coaches.enters('a', 'agent');
  coaches.enters('b', 'agent');
  coaches.enters('a', 'agent');
  expect(coaches.of('agent')).toEqual(['a', 'b']);
  coaches.left('b');
  expect(coaches.of('agent')).toEqual(['a']);
  coaches.left('agent');
  expect(coaches.of('agent')).toEqual([]);
  coaches.enters('a', 'other');
  expect([coaches.of('other'), coaches.of('agent')]).toEqual([['a'], []]);
  coaches.enters('a', undefined);
  expect(coaches.of('other')).toEqual([]);
});
