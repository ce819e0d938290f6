/** A process whose wall clock is another than the machine's, by libfaketime. Its monotonic clock is the machine's. */
import { existsSync } from 'node:fs';

const PATHS = ['/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1', '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1'];

/** The library. Undefined: it is not installed. */
export const LIBFAKETIME = PATHS.find((path) => existsSync(path));

/** The environment of such a process, whose clock is ahead by so much, as `+4m`. Undefined: it is not installed. */
export function fakeTime(by: string): Record<string, string> | undefined {
  return LIBFAKETIME === undefined ? undefined : { LD_PRELOAD: LIBFAKETIME, FAKETIME: by, FAKETIME_DONT_FAKE_MONOTONIC: '1' };
}
