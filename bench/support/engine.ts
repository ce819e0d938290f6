/** The media engine by itself, without the rest of the platform. */
import { silentLog } from '../../src/log.ts';
import { createMediaEngine } from '../../src/media/media-engine.ts';
import { createOutbound } from '../../src/outbound/safe-fetch.ts';

/** An engine of one worker with ports for so many legs. `reachable` are the networks that sources may come from. */
export const engineFor = (legs: number, firstPort: number, reachable: readonly string[] = []) =>
  createMediaEngine({
    rtp: { host: '127.0.0.1', firstPort, lastPort: firstPort + 2 * legs - 1 },
    workers: 1,
    mediaTimeoutSec: 3_600,
    outbound: createOutbound(reachable),
    log: silentLog,
  });
