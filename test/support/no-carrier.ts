/** The readings of a platform without a carrier: nothing was refused, and no trunk is in use. */
import type { CarrierReadings } from '../../src/call/ports/trunks.ts';
import { isCountryCode } from '../../src/carrier/trunk/number-plan.ts';

export const noCarrier: CarrierReadings = {
  hasSrtp: true,
  hasOpus: true,
  isCountryCode,
  refusals: () => [],
  probeTrunk: () => {},
  trunkStatus: () => ({
    registered: false,
    registeredUntil: undefined,
    registerStatus: undefined,
    lastProbe: undefined,
    channelsInUse: 0,
    calls24h: 0,
    failures24h: 0,
  }),
};
