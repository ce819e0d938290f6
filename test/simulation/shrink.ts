/** Makes a failing plan short: leaves actions out for as long as it still fails in the same way (delta debugging). */
import type { Action, Plan } from './plan.ts';
import { type Outcome, simulate } from './world.ts';

const RUNS_MAX = 400;

/** What a breach is about, without its identifiers and numbers. */
const kindOf = (breach: string): string => breach.split('\n')[0]?.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+/g, '#') ?? '';

/** The shortest plan that was found, and what becomes of it. `run` carries a plan out. */
export function shrink(
  plan: Plan,
  run: (plan: Plan, keepsStory?: boolean) => Outcome = simulate,
): { readonly plan: Plan; readonly outcome: Outcome } {
  const kind = kindOf(run(plan).breaches[0] ?? '');
  let runs = 0;
  const fails = (actions: readonly Action[]): boolean => {
    runs += 1;
    return run({ ...plan, actions }).breaches.some((breach) => kindOf(breach) === kind);
  };
  let actions = plan.actions;
  for (let size = Math.ceil(actions.length / 2); size >= 1 && runs < RUNS_MAX; ) {
    let isShorter = false;
    for (let at = 0; at < actions.length && runs < RUNS_MAX; ) {
      const without = [...actions.slice(0, at), ...actions.slice(at + size)];
      if (fails(without)) {
        actions = without;
        isShorter = true;
      } else at += size;
    }
    if (size === 1 && !isShorter) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  const shortest = { ...plan, actions };
  return { plan: shortest, outcome: run(shortest, true) };
}
