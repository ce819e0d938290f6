/**
 * Answers without holes. postgres.js (3.4.9) does not forget how many rows it had of a statement that failed after its
 * first ones: by its time limit, by an error in a later row, by the end of its connection. The next answer over that
 * connection begins with so many holes, and who looks at its first row finds none (porsager/postgres, issue 1119).
 */
import type postgres from 'postgres';

/** The client, whose answers have no holes from now on. A transaction has none: its BEGIN ends the count. */
export function withoutHoles(client: postgres.Sql): postgres.Sql {
  const { unsafe } = client;
  return Object.assign(client, { unsafe: (...statement: Parameters<typeof unsafe>) => closing(unsafe(...statement)) });
}

/** The driver answers a statement by its `resolve`. */
function closing<Q extends object>(pending: Q): Q {
  const resolve: unknown = Reflect.get(pending, 'resolve');
  if (typeof resolve !== 'function') throw new Error('a statement of postgres.js has no resolve any more');
  Reflect.set(pending, 'resolve', (answer: unknown) => resolve(closed(answer)));
  return pending;
}

function closed(answer: unknown): unknown {
  if (!Array.isArray(answer) || answer.length === 0 || 0 in answer) return answer;
  let holes = 1;
  while (holes < answer.length && !(holes in answer)) holes += 1;
  answer.splice(0, holes);
  return answer;
}
