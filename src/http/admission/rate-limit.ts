/** 429: each route takes a token of each of its buckets (contract §10). */

import type { Peers } from '../../call/ports/peers.ts';
import { type BucketName, type BucketScope, buckets } from '../../call/rate/buckets.ts';
import { bucketOf, type TokenBuckets } from '../../call/rate/token-buckets.ts';
import { type Problem, problems } from '../../problem.ts';
import type { RequestContext } from '../request-context.ts';

/** The call, Room or application that the buckets of a request belong to. */
function whose({ params, appUuid }: RequestContext, scope: BucketScope): string {
  return (scope === 'call' ? params.uuid : scope === 'room' ? params.room_id : appUuid) ?? '';
}

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
    const first = names?.[0];
    if (names === undefined || first === undefined) return undefined;
    // The buckets of one route are all of one scope.
    const { scope } = buckets[first];
    const owner = whose(context, scope);
    if (shared !== undefined && scope !== 'call' && context.appUuid !== '')
      return takeShared(shared, context, names, scope === 'room' ? owner : undefined);
    const wanted = names.map((name) => bucketOf(name, owner));
    return settled(context, tokens.take(wanted, now()));
  };
}

async function takeShared(
  shared: Pick<Peers, 'take'>,
  context: RequestContext,
  names: readonly BucketName[],
  roomId: string | undefined,
): Promise<Problem | undefined> {
  return settled(context, await shared.take(context.appUuid, names, roomId));
}

/** Notes how the tokens are given back, or tells after how many seconds there are some. */
function settled(context: RequestContext, taken: (() => void) | number): Problem | undefined {
  if (typeof taken === 'number') return problems.rateLimited(taken);
  context.refund = taken;
  return undefined;
}
