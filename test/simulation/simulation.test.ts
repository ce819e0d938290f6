/** A fixed budget of simulations for every run of the suite; `npm run simulate` has as many as are wanted. */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Plan, planOf } from './plan.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';
import { shrink } from './shrink.ts';
import { type Outcome, simulate } from './world.ts';

const SEEDS = 60;

describe('a simulated platform', () => {
  test(`keeps every promise through the faults of ${SEEDS} seeds, alone and as three nodes`, () => {
    let events = 0;
    for (let seed = 1; seed <= SEEDS; seed++) {
      const outcome = simulate(planOf(seed));
      expect({ seed, breaches: outcome.breaches }).toEqual({ seed, breaches: [] });
      events += outcome.events;
    }
    // What finds nothing because nothing happens is no proof.
    expect(events).toBeGreaterThan(SEEDS * 5);
    // It computes for some seconds, and shares the processors with as many other tests as there are.
  }, 180_000);

  test('does the same again with the same seed, to the last step, and something else with another', () => {
    const [first, again, other] = [9, 9, 8].map((seed) => simulate(planOf(seed), true));
    expect(first?.story).toEqual(again?.story ?? []);
    expect([first?.hash, first?.steps]).toEqual([again?.hash, again?.steps]);
    expect(other?.hash).not.toBe(first?.hash);
  });

  test('each bug to be planted has its place in the code', () => {
    const places = PLANTED_BUGS.map(({ name, file, from }) => ({
      name,
      places: readFileSync(join(import.meta.dir, '../..', file), 'utf8').split(from).length - 1,
    }));
    expect(places.filter((each) => each.places !== 1)).toEqual([]);
  });

  test('that fails is shrunk to the actions that it takes', () => {
    const whole = Array.from({ length: 40 }, (_, seed) => planOf(seed, 1)).find(({ actions }) => actions.length > 20);
    if (whole === undefined) throw new Error('no long plan');
    const [, , third, , , sixth] = whole.actions;
    const run = (plan: Plan): Outcome => ({
      ...{ seed: plan.seed, hash: '', simulatedMs: 0, steps: 0, events: 0, reached: [], story: [] },
      breaches: plan.actions.some((each) => each === third) && plan.actions.some((each) => each === sixth) ? ['session 1'] : [],
    });
    expect(shrink(whole, run).plan.actions).toEqual([third, sixth].filter((each) => each !== undefined));
  });
});
