/** The charge gateway that `PAYMENT_PROVIDER` names. */
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { ChargeGateway } from '../machine/payment/charge.ts';
import type { Outbound } from '../outbound/outbound.ts';
import { nedarimPlus } from './nedarim-plus.ts';
import { sandboxCharge } from './sandbox-charge.ts';

/** Makes the gateway of card payments, or undefined when they are off. */
export function createChargeGateway(
  settings: Config['paymentProvider'],
  outbound: Outbound,
  clock: Clock,
): ChargeGateway | undefined {
  switch (settings.kind) {
    case 'off':
      return undefined;
    case 'sandbox':
      return sandboxCharge(clock);
    case 'nedarim_plus':
      return nedarimPlus(settings, outbound, () => clock.now());
  }
}
