/** Two rounds of the crash test (`npm run crash` runs 200). */
import { expect, test } from 'bun:test';
import { crash } from './crash.ts';

test('Killed under load, the platform has told the outcome of all that it admitted, once and in order', async () => {
  const { rounds, breaches, events } = await crash(2, 4, () => {});
  expect(breaches).toEqual([]);
  expect(rounds).toBe(2);
  expect(events).toBeGreaterThan(20);
}, 120_000);
