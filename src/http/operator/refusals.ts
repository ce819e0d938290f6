/** The SIP requests that were refused lately, and what to do about each. */
import type { CarrierReadings, Refusal } from '../../call/ports/trunks.ts';
import { timestamp } from '../../clock.ts';
import type { Route } from '../request-context.ts';
import { ok } from '../request-context.ts';
import { route } from '../route.ts';

export const refusalRoutes = (carrier: CarrierReadings): readonly Route[] => [
  route(
    {
      auth: 'operator',
      tag: 'Operator: trunks',
      method: 'GET',
      path: '/operator/v1/refusals',
      summary: 'Read the SIP requests that were refused lately, the latest first',
      success: [200, '`{"refusals": […]}`, 200 at most; repeats from one source are counted in one'],
    },
    () => () => ok({ refusals: carrier.refusals().map(refusalBody) }),
  ),
];

const refusalBody = ({ at, firstAt, ...refusal }: Refusal): Readonly<Record<string, unknown>> => ({
  at: timestamp(at),
  first_at: timestamp(firstAt),
  ...refusal,
});
