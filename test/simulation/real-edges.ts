/**
 * Takes the machine's own clock, timers and randomness away while a simulation runs. Identifiers come from the seed; a
 * timer that was not asked of the simulated clock is a bug of the product, and throws.
 */
import type { Random } from './random.ts';

const forbidden = (name: string) => () => {
  throw new Error(`the simulated product used the machine's own ${name}`);
};

/** Runs `work` with identifiers from `random`, and gives the machine's edges back afterwards. */
export function withoutRealEdges<T>(random: Random, now: () => number, work: () => T): T {
  const kept = {
    setTimeout: globalThis.setTimeout,
    setInterval: globalThis.setInterval,
    setImmediate: globalThis.setImmediate,
    random: Math.random,
    now: Date.now,
  };
  const ownUuid = Object.getOwnPropertyDescriptor(crypto, 'randomUUID');
  Object.defineProperty(crypto, 'randomUUID', { configurable: true, writable: true, value: () => random.uuid() });
  Object.assign(globalThis, {
    setTimeout: forbidden('setTimeout'),
    setInterval: forbidden('setInterval'),
    setImmediate: forbidden('setImmediate'),
  });
  Math.random = () => random.fraction();
  Date.now = now;
  try {
    return work();
  } finally {
    const { random: fraction, now: clock, ...timers } = kept;
    Object.assign(globalThis, timers);
    Math.random = fraction;
    Date.now = clock;
    if (ownUuid === undefined) Reflect.deleteProperty(crypto, 'randomUUID');
    else Object.defineProperty(crypto, 'randomUUID', ownUuid);
  }
}
