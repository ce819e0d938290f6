import { expect, test } from 'bun:test';
import type { ChargeOrder, ChargeOutcome } from '../../src/machine/payment/charge.ts';
import { sandboxCharge } from '../../src/provider/sandbox-charge.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const order = (card: string, installments = 1): ChargeOrder => ({
  ...{ chargeUuid: 'c', operationUuid: 'o', sessionUuid: 's', card: Buffer.from(card), cvv: Buffer.from('123') },
  ...{ last4: card.slice(-4), expMonth: 1, expYear: 2030, amount: 100, currency: 'ils', terminalNumber: '1', installments },
});

test('The sandbox decides by the card: any succeeds, 4000000000000002 is declined, 4000000000000119 is never heard of again', async () => {
  const clock = new VirtualClock();
  const gateway = sandboxCharge(clock);
  expect([gateway.identifier, gateway.serves('1234567')]).toEqual(['sandbox', true]);
  expect(await gateway.charge(order('4000000000000002'))).toEqual({ status: 'declined', reason: 'card_declined' });
  for (const [card, installments, transactionType] of [
    ['4111111111111111', 1, 'regular'],
    ['5555555555554444', 2, 'installments'],
  ] as const)
    expect(await gateway.charge(order(card, installments))).toMatchObject({
      ...{ status: 'succeeded', transactionCreatedAt: clock.now(), receiptCreated: false, installments, transactionType },
    });
  let outcome: ChargeOutcome | undefined;
  void gateway.charge(order('4000000000000119')).then((told) => {
    outcome = told;
  });
  await settle();
  expect(outcome).toBeUndefined();
  await clock.advance(1_000);
  expect(outcome).toEqual({ status: 'indeterminate', reason: 'provider_timeout' });
});
