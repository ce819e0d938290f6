import { expect, test } from 'bun:test';
import type { Bucket } from '../../src/call/rate/buckets.ts';
import { bucketOf, TokenBuckets } from '../../src/call/rate/token-buckets.ts';
import { RATE_BUCKETS_MAX } from '../../src/limits.ts';

const bucket = (capacity: number, refill: number): Bucket => ({ scope: 'call', capacity, refill });
const one = (capacity: number, refill: number, name = 'a') => [{ name, bucket: bucket(capacity, refill) }];

test('A bucket starts full, is empty after its burst, and tells in whole seconds when there is a token again', () => {
  const buckets = new TokenBuckets();
  const take = (now: number, refill = 0.5) => {
    const taken = buckets.take(one(2, refill), now);
    return typeof taken === 'number' ? taken : 'taken';
  };
  expect([take(0), take(0), take(0), take(500), take(1_999), take(2_000), take(2_000)]).toEqual([
    ...['taken', 'taken', 2, 2, 1, 'taken', 2],
  ]);
  // However long it rests, it is never more than full.
  expect([take(1e9), take(1e9), take(1e9)]).toEqual(['taken', 'taken', 2]);
});

test('A bucket whose clock goes back neither fills nor empties by that', () => {
  const buckets = new TokenBuckets();
  buckets.take(one(1, 1), 10_000);
  expect(buckets.take(one(1, 1), 5_000)).toBe(1);
});

test('A request takes a token of each of its buckets or of none, and waits for the slowest', () => {
  const buckets = new TokenBuckets();
  const both = [...one(1, 1, 'fast'), ...one(2, 0.1, 'slow')];
  expect(typeof buckets.take(both, 0)).toBe('function');
  // The fast one is empty; the slow one keeps its second token.
  expect(buckets.take(both, 0)).toBe(1);
  expect(typeof buckets.take(one(2, 0.1, 'slow'), 0)).toBe('function');
  expect(buckets.take(both, 0)).toBe(10);
});

test('What is not admitted gives its tokens back, and never more than a bucket holds', () => {
  const buckets = new TokenBuckets();
  const wanted = one(1, 0.001);
  const refund = buckets.take(wanted, 0);
  expect(typeof buckets.take(wanted, 0)).toBe('number');
  if (typeof refund === 'function') refund();
  expect(typeof buckets.take(wanted, 0)).toBe('function');
  buckets.give(wanted);
  buckets.give(wanted);
  expect(typeof buckets.take(wanted, 0)).toBe('function');
  expect(typeof buckets.take(wanted, 0)).toBe('number');
  const two = one(2, 0.001, 'two');
  for (let taken = 0; taken < 2; taken++) buckets.take(two, 0);
  buckets.give(two);
  expect([typeof buckets.take(two, 0), typeof buckets.take(two, 0)]).toEqual(['function', 'number']);
  // Nobody has taken of this one.
  buckets.give(one(1, 1, 'unknown'));
  expect(buckets.size).toBe(2);
});

test('Buckets are kept within bounds, and the one that was used longest ago is given up first', () => {
  const buckets = new TokenBuckets();
  const name = (at: number) => `b${at}`;
  for (let at = 0; at < RATE_BUCKETS_MAX; at++) buckets.take(one(1, 0.001, name(at)), 0);
  // The first is used once more, so that the second goes.
  expect(typeof buckets.take(one(1, 0.001, name(0)), 0)).toBe('number');
  buckets.take(one(1, 0.001, 'new'), 0);
  expect(buckets.size).toBe(RATE_BUCKETS_MAX);
  expect(typeof buckets.take(one(1, 0.001, name(0)), 0)).toBe('number');
  expect(typeof buckets.take(one(1, 0.001, name(1)), 0)).toBe('function');
});

test('Buckets that are full again are forgotten as others are made, and no others', () => {
  const buckets = new TokenBuckets();
  const use = (from: string, now: number) => {
    for (let at = 0; at < 1_000; at++) buckets.take(one(2, 0.2, `${from}${at}`), now);
  };
  use('old', 0);
  use('new', 9_999);
  expect(buckets.size).toBe(2_000);
  buckets.take(one(2, 0.2, 'old7'), 9_999);
  use('newest', 10_000);
  expect(buckets.size).toBe(2_001);
  // One that was used meanwhile has what is left of it.
  expect(typeof buckets.take(one(2, 0.2, 'old7'), 10_000)).toBe('function');
});

test('Each call, Room and application has its own bucket of a name', () => {
  expect(bucketOf('seek', 'call-1')).toEqual({ name: 'seek call-1', bucket: { scope: 'call', capacity: 20, refill: 20 } });
});
