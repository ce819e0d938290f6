/**
 * The rows that a step of a Session writes about its secure collection, in the statement that writes the step
 * (`group-commit.ts`).
 */
import type { Owner } from '../vault/vault.ts';
import { type Guarding, type Guards, guardsOf } from './guards.ts';

interface ReferenceRow extends Owner {
  readonly sealed: Uint8Array;
  readonly brand: string;
  readonly last4: string;
  /** ms since the epoch. */
  readonly expiresAt: number;
}

export interface CollectionRow {
  readonly operationUuid: string;
  readonly sessionUuid: string;
  readonly appUuid: string;
  readonly kind: 'card' | 'cvv';
  readonly clientState: string;
  readonly traceparent: string;
  /** The process that collects. */
  readonly nodeId: string;
}

export type PaymentChange =
  | { readonly begun: CollectionRow }
  | { readonly ended: { readonly sessionUuid: string; readonly operationUuid: string } }
  | { readonly staged: ReferenceRow }
  /** Destroys every reference of the Session. */
  | { readonly forgotten: string };

/**
 * Expressions for the flush's WITH; its parameters begin at `$first`. A Session's own changes never meet in one flush.
 */
export const paymentExpressions = (first: number, guards: Guarding): string => `
pay_begun AS (
  INSERT INTO payment_collections (operation_uuid, session_uuid, app_uuid, kind, client_state, traceparent, node_id)
  SELECT operation_uuid, session_uuid, app_uuid, kind, client_state, traceparent, node_id FROM json_to_recordset($${first}::text::json)
    AS b (guard uuid, room_guard uuid, operation_uuid text, session_uuid uuid, app_uuid text, kind text,
      client_state text, traceparent text, node_id text)
  WHERE EXISTS (SELECT FROM mine)${guards('b')}
  ON CONFLICT DO NOTHING
), pay_ended AS (
  DELETE FROM payment_collections AS c USING json_to_recordset($${first + 1}::text::json)
    AS e (guard uuid, room_guard uuid, session_uuid uuid, operation_uuid text)
  WHERE c.session_uuid = e.session_uuid AND c.operation_uuid = e.operation_uuid AND EXISTS (SELECT FROM mine)${guards('e')}
), pay_staged AS (
  INSERT INTO payment_references (reference, app_uuid, session_uuid, sealed, brand, last4, expires_at)
  SELECT reference, app_uuid, session_uuid, decode(sealed, 'base64'), brand, last4, expires_at FROM json_to_recordset($${first + 2}::text::json)
    AS r (guard uuid, room_guard uuid, reference text, app_uuid text, session_uuid uuid, sealed text, brand text, last4 text,
      expires_at bigint)
  WHERE EXISTS (SELECT FROM mine)${guards('r')}
  ON CONFLICT DO NOTHING
), pay_forgotten AS (
  DELETE FROM payment_references AS f USING json_to_recordset($${first + 3}::text::json)
    AS s (guard uuid, room_guard uuid, session_uuid uuid)
  WHERE f.session_uuid = s.session_uuid AND EXISTS (SELECT FROM mine)${guards('s')}
)`;

export function paymentParameters(changes: readonly (PaymentChange & Guards)[]): string[] {
  const begun = changes.flatMap((each) =>
    'begun' in each
      ? {
          ...guardsOf(each),
          operation_uuid: each.begun.operationUuid,
          session_uuid: each.begun.sessionUuid,
          app_uuid: each.begun.appUuid,
          kind: each.begun.kind,
          client_state: each.begun.clientState,
          traceparent: each.begun.traceparent,
          node_id: each.begun.nodeId,
        }
      : [],
  );
  const ended = changes.flatMap((each) =>
    'ended' in each ? { ...guardsOf(each), session_uuid: each.ended.sessionUuid, operation_uuid: each.ended.operationUuid } : [],
  );
  const staged = changes.flatMap((each) =>
    'staged' in each
      ? {
          ...guardsOf(each),
          reference: each.staged.reference,
          app_uuid: each.staged.appUuid,
          session_uuid: each.staged.sessionUuid,
          sealed: Buffer.from(each.staged.sealed).toString('base64'),
          brand: each.staged.brand,
          last4: each.staged.last4,
          expires_at: Math.floor(each.staged.expiresAt),
        }
      : [],
  );
  const forgotten = changes.flatMap((each) => ('forgotten' in each ? { ...guardsOf(each), session_uuid: each.forgotten } : []));
  return [begun, ended, staged, forgotten].map((rows) => JSON.stringify(rows));
}
