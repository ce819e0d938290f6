/**
 * The `sandbox` charge gateway decides by the card (contract §6): one is declined, one is never heard of again, every
 * other succeeds.
 */
import { type Clock, sleep } from '../clock.ts';
import type { ChargeGateway, ChargeOrder, ChargeOutcome } from '../machine/payment/charge.ts';

const DECLINED = Buffer.from('4000000000000002');
const TIMES_OUT = Buffer.from('4000000000000119');
/** Milliseconds that a timeout takes in the sandbox. The time a real provider has is much longer. */
const TIMEOUT_MS = 1_000;

export function sandboxCharge(clock: Clock): ChargeGateway {
  return {
    identifier: 'sandbox',
    serves: () => true,
    async charge({ card, installments }: ChargeOrder): Promise<ChargeOutcome> {
      if (DECLINED.equals(card)) return { status: 'declined', reason: 'card_declined' };
      if (TIMES_OUT.equals(card)) {
        await sleep(clock, TIMEOUT_MS);
        return { status: 'indeterminate', reason: 'provider_timeout' };
      }
      return {
        status: 'succeeded',
        transactionCreatedAt: clock.now(),
        receiptCreated: false,
        installments,
        transactionType: installments > 1 ? 'installments' : 'regular',
        classification: 'unknown',
        issuer: 'sandbox',
        acquirer: 'sandbox',
      };
    },
  };
}
