/** The records of secure collections: how a Session's actor puts digits into the vault and refers to them. */

import type { PaymentChange } from '../../database/journal/payment-rows.ts';
import type { Vault } from '../../database/vault/vault.ts';
import type { PaymentRecord } from '../../machine/payment/collection.ts';
import type { SessionState } from '../../machine/session/session.ts';

export interface PaymentRecords {
  /** This process, which collects. */
  readonly nodeId: string;
  readonly vault: Vault;
  readonly referenceTtlMs: number;
  /** The brand of a card reference of the Session that can still be used. */
  cardBrand(appUuid: string, sessionUuid: string, reference: string): Promise<string | undefined>;
}

/** The records of a step as rows; the digits of what was collected are sealed here. */
export function paymentChanges(
  options: PaymentRecords,
  state: SessionState,
  records: readonly PaymentRecord[],
  traceparent: string,
  now: number,
): readonly PaymentChange[] {
  const { sessionUuid, appUuid, clientState } = state;
  return records.flatMap((each): readonly PaymentChange[] => {
    if (each.record === 'forgotten') return [{ forgotten: sessionUuid }];
    const { operationUuid } = each;
    if (each.record === 'begun')
      return [
        { begun: { operationUuid, sessionUuid, appUuid, kind: each.kind, clientState, traceparent, nodeId: options.nodeId } },
      ];
    const ended: PaymentChange = { ended: { sessionUuid, operationUuid } };
    if (each.staged === undefined) return [ended];
    const { reference, digits, brand, last4 } = each.staged;
    const owner = { appUuid, sessionUuid, reference };
    return [
      ended,
      { staged: { ...owner, sealed: options.vault.seal(digits, owner), brand, last4, expiresAt: now + options.referenceTtlMs } },
    ];
  });
}
