/** A charge (contract §6): what is asked of a provider, what may come of it, and the one event that tells. */
import { timestamp } from '../../clock.ts';
import type { Event } from '../../event/event.ts';

export interface ChargeTerms {
  readonly expMonth: number;
  readonly expYear: number;
  /** The amount in the currency's smallest unit. */
  readonly amount: number;
  readonly currency: string;
  readonly terminalNumber: string;
  readonly installments: number;
}

export interface ChargeOrder extends ChargeTerms {
  /** The name of this one charge. An `Operation-Id` may name several, because the application chooses it. */
  readonly chargeUuid: string;
  readonly operationUuid: string;
  readonly sessionUuid: string;
  /** ASCII digits, wiped by the caller when the attempt is over. */
  readonly card: Uint8Array;
  readonly cvv: Uint8Array;
  readonly last4: string;
}

/** `reason` is one lower_snake word of ours; a provider's own text is never passed on. */
export type ChargeOutcome =
  | {
      readonly status: 'succeeded';
      /** ms since the epoch. */
      readonly transactionCreatedAt: number;
      readonly receiptCreated: boolean;
      readonly installments: number;
      readonly transactionType: string;
      readonly classification: string;
      readonly issuer: string;
      readonly acquirer: string;
    }
  | { readonly status: 'declined'; readonly reason: string }
  /** `retryable`: nothing has left the platform. */
  | { readonly status: 'failed'; readonly reason: string; readonly retryable: boolean }
  /** It left, and whether the card was charged is not known. */
  | { readonly status: 'indeterminate'; readonly reason: string };

export interface ChargeGateway {
  /** The value that `provider` of the request must have. */
  readonly identifier: string;
  /** Tells whether the gateway has credentials for the terminal. */
  serves(terminalNumber: string): boolean;
  /** One attempt, answered within `CHARGE_PROVIDER_TIMEOUT_MS`; never tried again. Never rejects. */
  charge(order: ChargeOrder): Promise<ChargeOutcome>;
}

export interface ChargeFacts {
  readonly sessionUuid: string;
  readonly operationUuid: string;
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly terminalNumber: string;
}

/** The terminal event of a charge. `card`: what is safe to show of it. */
export function chargeCompleted(
  facts: ChargeFacts,
  outcome: ChargeOutcome,
  card: { readonly brand: string; readonly last4: string },
): Event {
  const event = {
    event: 'payment.charge.completed',
    session_uuid: facts.sessionUuid,
    operation_uuid: facts.operationUuid,
    status: outcome.status,
    retryable: outcome.status === 'failed' && outcome.retryable,
    amount: facts.amount,
    currency: facts.currency,
    provider: facts.provider,
    terminal_number: facts.terminalNumber,
  } as const;
  if (outcome.status !== 'succeeded') return { ...event, failure_reason: outcome.reason };
  const { classification, issuer, acquirer } = outcome;
  return {
    ...event,
    transaction_created_at: timestamp(outcome.transactionCreatedAt),
    receipt_created: outcome.receiptCreated,
    installments: outcome.installments,
    transaction_type: outcome.transactionType,
    payment_method_details: { card: { ...card, classification, issuer, acquirer } },
  };
}
