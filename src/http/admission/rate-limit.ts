/** 429: each route takes a token of each of its buckets (contract §10). */

import type { Peers } from '../../call/ports/peers.ts';
import { buckets } from '../../call/rate/buckets.ts';
import { bucketOf, type TokenBuckets } from '../../call/rate/token-buckets.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

/** The call, Room or application that the buckets of a request belong to. */
const whose = (context: RequestContext) => ({
  call: context.params.uuid,
  room: context.params.room_id,
  application: context.appUuid,
});

/**
 * `shared` are the buckets of Rooms and applications, where the nodes of a cluster have them in common. Those of a call
 * are at its own node, where its requests are served.
 */
export function rateLimit(
  tokens: TokenBuckets,
  now: () => number,
  shared?: Pick<Peers, 'take'>,
): (context: RequestContext) => Problem | undefined | Promise<Problem | undefined> {
  return (context) => {
    const { buckets: names } = context.route;
    if (names === undefined) return undefined;
    const settle = (taken: (() => void) | number): Problem | undefined => {
      if (typeof taken === 'number') return problems.rateLimited(taken);
      context.refund = taken;
      return undefined;
    };
    const { appUuid } = context;
    // The buckets of one route are all of one scope.
    const roomId = names.some((name) => buckets[name].scope === 'room') ? context.params.room_id : undefined;
    const isCommon = roomId !== undefined || names.some((name) => buckets[name].scope === 'application');
    if (shared !== undefined && isCommon && appUuid !== '') return shared.take(appUuid, names, roomId).then(settle);
    return settle(
      tokens.take(
        names.map((name) => bucketOf(name, whose(context)[buckets[name].scope] ?? '')),
        now(),
      ),
    );
  };
}
