/** Which numbers may be reached by the beginnings that are allowed and blocked. */
import { describe, expect, test } from 'bun:test';
import { type Destinations, EVERYWHERE, isDestinationPrefix, mayReach } from '../src/destinations.ts';
import fc from './support/fast-check.ts';

const lists = (allowed: string, blocked = ''): Destinations => ({
  allowed: allowed.split(' ').filter(Boolean),
  blocked: blocked.split(' ').filter(Boolean),
});

describe('What may be reached', () => {
  test.each([
    ['everything without a list', lists(''), '+19005550100', true],
    ['a number that begins so', lists('+972 +1'), '+15550100', true],
    ['no other number', lists('+972 +1'), '+4420', false],
    ['no number that is blocked', lists('', '+1900'), '+19005550100', false],
    ['all that is not blocked', lists('', '+1900'), '+18005550100', true],
    ['no blocked part of what is allowed', lists('+1', '+1900'), '+19005550100', false],
    ['an allowed part of what is blocked', lists('+1 +1900555', '+1900'), '+19005550100', true],
    ['no number that both lists have', lists('+1900', '+1900'), '+19005550100', false],
    ['a part of what is blocked, alone in its list', lists('+1900555', '+1900'), '+18005550100', false],
    ['a number that is written with separators', lists('+1'), '+1 (555) 01-00;phone-context=x', true],
    ['a name, which is no number', lists('+1'), 'alice', true],
    ['a name of other letters', lists('+1'), 'אליס', true],
    ['no user at all, which is no number', lists('+1'), '', true],
    ['no number with more behind it', lists('+1'), '+19005550100,1', false],
    ['no number that ends in a letter', lists('', '+1900'), '+19005550100x', false],
    ['no number that is left when letters are', lists('', '+1900'), '19005550100abc', false],
    ['no digits that a carrier may take for any number', lists('+1'), '0019005550100', false],
    ['no digits, where something is blocked', lists('', '+1900'), '9005550100', false],
    ['no service code', lists('+1'), '*69', false],
    ['digits of any kind without a list', lists(''), '*69', true],
  ])('%s', (_, rule, dialled, permitted) => {
    expect(mayReach(rule)(dialled)).toBe(permitted);
  });

  test('takes all of several rules to permit it', () => {
    const reach = mayReach(lists('+1 +972'), lists('', '+1900'));
    expect(['+15550100', '+9721', '+19005550100', '+4420'].map(reach)).toEqual([true, true, false, false]);
  });

  const number = fc.stringMatching(/^\+[1-9][0-9]{1,14}$/);
  const prefixes = fc.array(fc.stringMatching(/^\+[1-9][0-9]{0,4}$/), { maxLength: 6 });
  const rule = fc.record({ allowed: prefixes, blocked: prefixes });

  test('is never more with another rule, nor with another blocked beginning', () => {
    fc.assert(
      fc.property(number, rule, rule, prefixes, (to, one, other, more) => {
        const { allowed, blocked } = one;
        if (mayReach(one, other)(to)) expect(mayReach(one)(to) && mayReach(other)(to)).toBe(true);
        if (mayReach({ allowed, blocked: [...blocked, ...more] })(to)) expect(mayReach(one)(to)).toBe(true);
        expect(mayReach(EVERYWHERE, one)(to)).toBe(mayReach(one)(to));
      }),
    );
  });

  test('does not depend on the order of the beginnings', () => {
    fc.assert(
      fc.property(number, rule, (to, { allowed, blocked }) => {
        const reversed = { allowed: allowed.toReversed(), blocked: blocked.toReversed() };
        expect(mayReach(reversed)(to)).toBe(mayReach({ allowed, blocked })(to));
      }),
    );
  });
});

test('A beginning is + and 1 to 15 digits, the first of which is not 0', () => {
  const right = ['+1', '+972', '+123456789012345'];
  const wrong = ['', '+', '1', '+0', '+972 ', '+1x', '+1234567890123456', '++1', '+1\n'];
  expect([right.every(isDestinationPrefix), wrong.some(isDestinationPrefix)]).toEqual([true, false]);
});
