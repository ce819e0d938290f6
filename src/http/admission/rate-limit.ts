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

/** `shared` are the buckets of applications, where the nodes of a cluster have them in common. */
export function rateLimit(
  tokens: TokenBuckets,
  now: () => number,
  shared?: Pick<Peers, 'take'>,
): (context: RequestContext) => Problem | undefined | Promise<Problem | undefined> {
  return (context) => {
    const all = context.route.buckets;
    if (all === undefined) return undefined;
    const common = shared === undefined ? [] : all.filter((name) => buckets[name].scope === 'application');
    if (shared !== undefined && common.length > 0 && context.appUuid !== '')
      return shared.take(context.appUuid, common).then((taken) => {
        if (typeof taken === 'number') return problems.rateLimited(taken);
        context.refund = taken;
        return undefined;
      });
    const names = all;
    const taken = tokens.take(
      names.map((name) => bucketOf(name, whose(context)[buckets[name].scope] ?? '')),
      now(),
    );
    if (typeof taken === 'number') return problems.rateLimited(taken);
    context.refund = taken;
    return undefined;
  };
}
