/** A limit of time for what is waited for. */
import { type Clock, systemClock } from '../clock.ts';

const system = systemClock();

/**
 * The result of `work`, or that of `late` where it takes longer than `ms` milliseconds; `late` may throw. The work
 * itself goes on: `late` ends it, if it can be ended.
 */
export async function withTimeLimit<T>(work: Promise<T>, ms: number, late: () => T, clock: Clock = system): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const cancel = clock.at(clock.now() + ms, () => {
    try {
      resolve(late());
    } catch (error) {
      reject(error);
    }
  });
  try {
    return await Promise.race([work, promise]);
  } finally {
    cancel();
  }
}
