/** The query parameters that lists have in common. */
import { expect, test } from 'bun:test';
import { createdBetween, itemLimit, pageAfter, pageCursor, pageOf, strayParameter } from '../../src/http/list-query.ts';
import { isProblem } from '../../src/problem.ts';

const query = (text: string) => new URLSearchParams(text);
/** The message of a problem, or what there is instead. */
const told = <T>(outcome: T) => (isProblem(outcome) ? outcome.message : outcome);

test('A parameter is a known one, and given once unless it may be repeated', () => {
  expect(strayParameter(query('state=a&state=b&limit=1'), ['state', 'limit'], ['state'])).toBeUndefined();
  expect(told(strayParameter(query('state=a&limit=1&limit=2'), ['state', 'limit'], ['state']))).toBe('limit: must be given once');
  expect(told(strayParameter(query('limit=1&x=2'), ['limit']))).toBe('query: has a parameter that is not one of limit');
});

test('A limit is a whole number within its bounds', () => {
  expect(['', 'limit=1', 'limit=50'].map((text) => itemLimit(query(text), 10, 50))).toEqual([10, 1, 50]);
  for (const text of ['limit=0', 'limit=51', 'limit=', 'limit=-1', 'limit=1.5', 'limit=1e1', 'limit=0x1', 'limit=05', 'limit=+5'])
    expect([text, told(itemLimit(query(text), 10, 50))]).toEqual([text, 'limit: must be a whole number from 1 to 50']);
});

test('A time is an RFC 3339 one of a day that there is, in any zone', () => {
  const at = (text: string) => {
    const between = createdBetween(query(`created_after=${text}`));
    return isProblem(between) ? between.message : between.createdAfter;
  };
  const noon = Date.UTC(2028, 1, 29, 12);
  for (const text of [
    '2028-02-29T12:00:00Z',
    '2028-02-29t12:00:00.000z',
    '2028-02-29T13:30:00%2B01:30',
    '2028-02-29T13:30:00+01:30',
    '2028-02-29T12:00:00.0000000001Z',
    `2028-02-29T12:00:00.${'0'.repeat(100)}9Z`,
  ])
    expect([text, at(text)]).toEqual([text, noon]);
  const leap = Date.UTC(2017, 0, 1, 0, 0, 0, 500);
  for (const text of ['2016-12-31T23:59:60.5Z', '2016-12-31t18:59:60.500-05:00']) expect([text, at(text)]).toEqual([text, leap]);
  for (const text of [
    '2027-02-29T12:00:00Z',
    '2028-04-31T12:00:00Z',
    '2028-02-29',
    '2028-02-29T24:00:00Z',
    '2028-02-29T12:00:60Z',
    '2028-02-29T23:59:60-05:00',
    '2028-02-29T12:00:00',
    '',
  ])
    expect([text, at(text)]).toEqual([text, 'created_after: must be an RFC 3339 date-time']);
  expect(createdBetween(query(''))).toEqual({ createdAfter: undefined, createdBefore: undefined });
  expect(told(createdBetween(query('created_before=x')))).toBe('created_before: must be an RFC 3339 date-time');
});

test('A page tells where the next one begins, if there is one, and takes no other place for it', () => {
  const endOf = (id: string) => ({ createdAt: 1_800_000_000_000, id });
  const isId = (text: string) => /^[a-z]$/.test(text);
  const { page, after } = pageOf(['c', 'b', 'a'], 2, endOf);
  expect(page).toEqual(['c', 'b']);
  expect(pageAfter(query(`after=${after}`), isId)).toEqual(endOf('b'));
  expect(pageOf(['c', 'b'], 2, endOf)).toEqual({ page: ['c', 'b'], after: '' });
  for (const text of ['', 'after=']) expect(pageAfter(query(text), isId)).toBeUndefined();
  const wrong = [
    { createdAt: 1, id: 'B' },
    { createdAt: -1, id: 'b' },
    { createdAt: 1.5, id: 'b' },
  ].map(pageCursor);
  for (const text of [...wrong, 'x', `${after}${after}`])
    expect([text, told(pageAfter(query(`after=${text}`), isId))]).toEqual([
      text,
      'after: must be the `after` of an earlier page',
    ]);
});
