/** 429: each route takes a token of each of its buckets (contract §10). */
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

export function rateLimit(tokens: TokenBuckets, now: () => number): (context: RequestContext) => Problem | undefined {
  return (context) => {
    const names = context.route.buckets;
    if (names === undefined) return undefined;
    const taken = tokens.take(
      names.map((name) => bucketOf(name, whose(context)[buckets[name].scope] ?? '')),
      now(),
    );
    if (typeof taken === 'number') return problems.rateLimited(taken);
    context.refund = taken;
    return undefined;
  };
}
