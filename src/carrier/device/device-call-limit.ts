/** Limits the calls that devices begin, so that the password of one phone is not enough to take what all share. */
import type { Device } from '../../call/ports/devices.ts';
import { TokenBuckets } from '../../call/rate/token-buckets.ts';
import { DEVICE_CALLS, DEVICE_CALLS_OF_APP } from '../../limits.ts';

export class DeviceCallLimit {
  readonly #tokens = new TokenBuckets();

  /** Counts a call at that time, in milliseconds. Returns 0, or after how many whole seconds it may come again. */
  take({ username, appUuid }: Device, now: number): number {
    const taken = this.#tokens.take(
      [
        { name: `device ${username}`, bucket: { scope: 'call', ...DEVICE_CALLS } },
        { name: `app ${appUuid}`, bucket: { scope: 'application', ...DEVICE_CALLS_OF_APP } },
      ],
      now,
    );
    return typeof taken === 'number' ? taken : 0;
  }
}
