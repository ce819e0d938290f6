/** A relay on a store that gives up soon and tries again at once. */
import type { Clock } from '../../src/clock.ts';
import type { Store } from '../../src/database/store.ts';
import { silentLog } from '../../src/log.ts';
import { createRelay, type RelayOptions } from '../../src/webhook/relay.ts';
import { plainOutbound } from './plain-outbound.ts';

export const hastyRelay = ({ outbox, apps, credentials }: Store, clock: Clock, more: Partial<RelayOptions> = {}) =>
  createRelay({
    outbox,
    apps,
    credentials,
    outbound: plainOutbound,
    clock,
    log: silentLog,
    timeoutSec: 1,
    retryScale: 0.01,
    ...more,
  });
