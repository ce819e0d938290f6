/** When an application may look its names up. */
import { expect, test } from 'bun:test';
import { LookUpRests } from '../../src/outbound/dns/look-up-rests.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** What tells of look-ups, each of which finds so many addresses, when they began, in milliseconds. */
function rests() {
  const clock = new VirtualClock();
  const zero = clock.now();
  const each = new LookUpRests(clock);
  const began: string[] = [];
  const look = (owner: string, name: string, addresses: number) =>
    each.run(
      owner,
      async () => {
        began.push(`${name} ${clock.now() - zero}`);
        return addresses;
      },
      (found) => found,
    );
  return { clock, look, began };
}

test('An application whose names have few addresses never rests', async () => {
  const { look, began } = rests();
  for (const name of ['a', 'b', 'c']) await look('app_1', name, 64);
  await Promise.all(['d', 'e'].map((name) => look('app_1', name, 1)));
  expect(began).toEqual(['a 0', 'b 0', 'c 0', 'd 0', 'e 0']);
});

test('One whose name has thousands rests for a tenth of a millisecond for each, and what waits goes one by one', async () => {
  const { clock, look, began } = rests();
  await look('app_1', 'a', 4_064);
  const waiting = [look('app_1', 'b', 4_064), look('app_1', 'c', 1), look('app_1', 'd', 8_064)];
  await look('app_2', 'other', 1);
  for (const each of waiting) {
    clock.advance(400);
    await each;
  }
  expect(began).toEqual(['a 0', 'other 0', 'b 400', 'c 800', 'd 1200']);
  // What the last one found beyond what was reserved for it is rested for as well.
  const last = look('app_1', 'e', 1);
  clock.advance(799);
  expect(began.slice(5)).toEqual([]);
  clock.advance(1);
  await last;
  expect(began.slice(5)).toEqual(['e 2000']);
  clock.advance(800);
  await Promise.all([look('app_1', 'f', 1), look('app_1', 'g', 1)]);
  expect(began.slice(6)).toEqual(['f 2800', 'g 2800']);
});

test('A name with few addresses more does not bring the next ones nearer together', async () => {
  const { clock, look, began } = rests();
  await Promise.all([look('app_1', 'a', 4_064), look('app_1', 'b', 74)]);
  const waiting = [look('app_1', 'c', 1), look('app_1', 'd', 1)];
  for (const each of waiting) {
    clock.advance(401);
    await each;
  }
  expect(began).toEqual(['a 0', 'b 0', 'c 401', 'd 801']);
});

test('A look-up that would wait for more than ten seconds fails at once, and those under way still have their turns', async () => {
  const { clock, look, began } = rests();
  await Promise.all(Array.from({ length: 25 }, (_, at) => look('app_1', `burst ${at}`, 4_064)));
  expect(began.length).toBe(25);
  const last = look('app_1', 'last', 1);
  await expect(look('app_1', 'one too many', 1)).rejects.toThrow('too many names with thousands of addresses');
  clock.advance(10_000);
  await last;
  expect(began[25]).toBe('last 10000');
});
