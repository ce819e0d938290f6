import { expect, test } from 'bun:test';
import { type ChargeOutcome, chargeCompleted } from '../../src/machine/payment/charge.ts';

const FACTS = {
  ...{ sessionUuid: 's', operationUuid: 'o', amount: 12_300, currency: 'ils', provider: 'fake', terminalNumber: '1234567' },
};
const ALWAYS = {
  ...{ event: 'payment.charge.completed', session_uuid: 's', operation_uuid: 'o', amount: 12_300, currency: 'ils' },
  ...{ provider: 'fake', terminal_number: '1234567' },
};

test('A charge that did not succeed tells why and nothing of the card; only one of which nothing left may be tried again', () => {
  const outcomes: readonly (readonly [ChargeOutcome, boolean])[] = [
    [{ status: 'declined', reason: 'card_declined' }, false],
    [{ status: 'failed', reason: 'provider_unreachable', retryable: true }, true],
    [{ status: 'failed', reason: 'terminal_unknown', retryable: false }, false],
    [{ status: 'indeterminate', reason: 'provider_timeout' }, false],
  ];
  for (const [outcome, retryable] of outcomes) {
    const { status } = outcome;
    const failure_reason = 'reason' in outcome ? outcome.reason : '';
    expect(chargeCompleted(FACTS, outcome, { brand: 'visa', last4: '1111' })).toEqual({
      ...ALWAYS,
      ...{ event: 'payment.charge.completed', status, retryable, failure_reason },
    });
  }
});

test('A charge that succeeded tells of the transaction and what may be shown of the card', () => {
  const outcome: ChargeOutcome = {
    ...{ status: 'succeeded', transactionCreatedAt: Date.parse('2026-11-20T11:45:10Z'), receiptCreated: true },
    ...{ installments: 3, transactionType: 'installments', classification: 'debit', issuer: 'cal', acquirer: 'max' },
  };
  expect(chargeCompleted(FACTS, outcome, { brand: 'visa', last4: '1111' })).toEqual({
    ...ALWAYS,
    ...{ event: 'payment.charge.completed', status: 'succeeded', retryable: false },
    ...{ transaction_created_at: '2026-11-20T11:45:10.000Z', receipt_created: true },
    ...{ installments: 3, transaction_type: 'installments' },
    payment_method_details: { card: { brand: 'visa', last4: '1111', classification: 'debit', issuer: 'cal', acquirer: 'max' } },
  });
});
