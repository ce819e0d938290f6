/**
 * Payment references and charges as rows. A charge's admission and the use of its references are one transaction,
 * before anything leaves.
 */
import type { PlatformEvent } from '../../event/event.ts';
import type { Database, Queryable, Row } from '../driver/database.ts';
import { emit, keepAnswer } from '../journal/emit.ts';
import type { StoredAnswer } from '../journal/journal.ts';
import type { KeptAnswers } from '../journal/kept-answers.ts';
import type { CollectionRow } from '../journal/payment-rows.ts';
import { createVault, type Vault } from '../vault/vault.ts';

export interface ChargeRow {
  readonly chargeUuid: string;
  readonly operationUuid: string;
  readonly appUuid: string;
  readonly sessionUuid: string;
  readonly amount: number;
  readonly currency: string;
  readonly provider: string;
  readonly terminalNumber: string;
  readonly clientState: string;
  readonly traceparent: string;
  /** ms since the epoch. */
  readonly createdAt: number;
}

/** Both secrets of a charge, opened; their user wipes them. */
export interface Consumed {
  readonly card: Uint8Array;
  readonly cvv: Uint8Array;
  readonly brand: string;
  readonly last4: string;
}

/** Why the references of a charge cannot be taken. */
type Unusable = 'unknown' | 'used' | 'expired';

export interface PaymentStore {
  readonly vault: Vault;
  /** Other processes may charge from the same database. */
  readonly shared: boolean;
  /** The brand of a card reference that can still be used. */
  cardBrand(appUuid: string, sessionUuid: string, reference: string, now: number): Promise<string | undefined>;
  /**
   * Destroys both references and writes the charge as `attempting`, with its answer. Where it cannot, it tells why:
   * they are not references of this Session (`'unknown'`), an earlier charge took one of them (`'used'`), or one of
   * them is no longer kept (`'expired'`).
   */
  admit(
    charge: ChargeRow,
    references: { readonly card: string; readonly cvv: string },
    answer: StoredAnswer | undefined,
  ): Promise<Consumed | Unusable>;
  /** Tells whether a charge is stored whose admission was not answered. Waits for one that is still under way. */
  wasAdmitted(charge: ChargeRow, references: { readonly card: string; readonly cvv: string }): Promise<boolean>;
  /** Ends a charge, once: false where it has ended before. */
  complete(chargeUuid: string, status: string, event: PlatformEvent, now: number): Promise<boolean>;
  /**
   * Charges begun before `until` without an outcome. Where several processes share the database, only this one's and
   * those of processes that are dead or unknown: who lives knows what came of its charges, and tells it.
   */
  attempting(until: number): Promise<readonly ChargeRow[]>;
  /** Collections that processes which are dead or unknown left without an end. */
  unfinished(): Promise<readonly CollectionRow[]>;
  /** Ends one of those. False: it has ended before. */
  endUnfinished(collection: CollectionRow, event: PlatformEvent): Promise<boolean>;
  /** Destroys what has expired; tells when the next one does. */
  destroyExpired(now: number): Promise<number | undefined>;
}

const BRAND = `SELECT brand FROM payment_references
  WHERE reference = $1 AND app_uuid = $2 AND session_uuid = $3::uuid AND sealed IS NOT NULL AND expires_at > $4::bigint AND reference LIKE 'card\\_%'`;
const TAKE = `SELECT reference, sealed, brand, last4, expires_at FROM payment_references
  WHERE reference IN ($1, $2) AND app_uuid = $3 AND session_uuid = $4::uuid ORDER BY reference FOR UPDATE`;
/** A reference that a charge took has its expiry as a negative number. */
const DESTROY = `UPDATE payment_references SET sealed = NULL, expires_at = -expires_at WHERE reference IN ($1, $2)`;
const BEGIN = `INSERT INTO charges (charge_uuid, operation_uuid, app_uuid, session_uuid, status, amount, currency, provider, terminal_number,
  client_state, traceparent, created_at, node_id)
  VALUES ($1::uuid, $2, $3, $4::uuid, 'attempting', $5::int, $6, $7, $8, $9, $10, $11::bigint, $12)`;
const BEGUN = 'SELECT 1 FROM charges WHERE charge_uuid = $1::uuid';
const COMPLETE = `UPDATE charges SET status = $2, completed_at = $3::bigint WHERE charge_uuid = $1::uuid AND status = 'attempting' RETURNING 1`;
const ATTEMPTING = `SELECT charge_uuid::text AS charge_uuid, operation_uuid, app_uuid, session_uuid::text AS session_uuid, amount, currency, provider,
  terminal_number, client_state, traceparent, created_at FROM charges AS c WHERE status = 'attempting' AND created_at <= $1::bigint
  AND ($2::text IS NULL OR node_id = $2::text OR NOT EXISTS (SELECT FROM nodes AS n WHERE n.node_id = c.node_id AND n.dead_at IS NULL))
  ORDER BY created_at LIMIT 10000`;
const UNFINISHED = `SELECT operation_uuid, session_uuid::text AS session_uuid, app_uuid, kind, client_state, traceparent, node_id FROM payment_collections AS c
  WHERE NOT EXISTS (SELECT FROM nodes AS n WHERE n.node_id = c.node_id AND n.dead_at IS NULL) LIMIT 100000`;
const END_UNFINISHED = `DELETE FROM payment_collections WHERE session_uuid = $1::uuid AND operation_uuid = $2 RETURNING 1`;
/** Both leave out the references that charges took, of which there may be very many: none of them is sealed. */
const EXPIRE = 'UPDATE payment_references SET sealed = NULL WHERE expires_at BETWEEN 0 AND $1::bigint AND sealed IS NOT NULL';
const NEXT_EXPIRY =
  'SELECT min(expires_at) AS expires_at FROM payment_references WHERE expires_at > $1::bigint AND sealed IS NOT NULL';

interface PaymentStoreOptions {
  readonly database: Database;
  readonly masterKey: Uint8Array;
  readonly kept: KeptAnswers;
  /** This process. */
  readonly nodeId: string;
  readonly shared: boolean;
  /** Called after each commit that wrote events. */
  readonly onEvents: () => void;
}

/** Takes the two references of a charge, destroys them, and begins the charge, within a transaction. */
async function consume(
  within: Queryable,
  vault: Vault,
  { kept, nodeId }: Pick<PaymentStoreOptions, 'kept' | 'nodeId'>,
  charge: ChargeRow,
  { card, cvv }: { readonly card: string; readonly cvv: string },
  answer: StoredAnswer | undefined,
): Promise<Consumed | Unusable> {
  const { appUuid, sessionUuid } = charge;
  const rows = await within.query(TAKE, [card, cvv, appUuid, sessionUuid]);
  const found = (reference: string) => rows.find((row) => row.reference === reference);
  const cardRow = found(card);
  const cvvRow = found(cvv);
  if (cardRow === undefined || cvvRow === undefined) return 'unknown';
  const sealed = [sealedOf(cardRow, charge.createdAt), sealedOf(cvvRow, charge.createdAt)] as const;
  if (sealed[0] === undefined || sealed[1] === undefined)
    return [cardRow, cvvRow].some((row) => isUsed(row, charge.createdAt)) ? 'used' : 'expired';
  await within.query(DESTROY, [card, cvv]);
  await within.query(BEGIN, [
    charge.chargeUuid,
    charge.operationUuid,
    appUuid,
    sessionUuid,
    charge.amount,
    charge.currency,
    charge.provider,
    charge.terminalNumber,
    charge.clientState,
    charge.traceparent,
    Math.floor(charge.createdAt),
    nodeId,
  ]);
  await keepAnswer(within, kept, answer);
  return {
    card: vault.open(sealed[0], { appUuid, sessionUuid, reference: card }),
    cvv: vault.open(sealed[1], { appUuid, sessionUuid, reference: cvv }),
    brand: String(cardRow.brand),
    last4: String(cardRow.last4),
  };
}

export function paymentStore(options: PaymentStoreOptions): PaymentStore {
  const { database, nodeId, shared, onEvents } = options;
  const vault = createVault(options.masterKey);
  return {
    vault,
    shared,

    async cardBrand(appUuid, sessionUuid, reference, now) {
      const [row] = await database.query(BRAND, [reference, appUuid, sessionUuid, Math.floor(now)]);
      return row === undefined ? undefined : String(row.brand);
    },

    admit: (charge, { card, cvv }, answer) =>
      database.transaction((within) => consume(within, vault, options, charge, { card, cvv }, answer)),

    wasAdmitted: ({ chargeUuid, appUuid, sessionUuid }, { card, cvv }) =>
      database.transaction(async (within) => {
        // An admission that is under way has locked the references.
        await within.query(TAKE, [card, cvv, appUuid, sessionUuid]);
        return (await within.query(BEGUN, [chargeUuid])).length > 0;
      }),

    async complete(chargeUuid, status, event, now) {
      const done = await database.transaction(async (within) => {
        const rows = await within.query(COMPLETE, [chargeUuid, status, Math.floor(now)]);
        if (rows.length > 0) await emit(within, [event]);
        return rows.length > 0;
      });
      if (done) onEvents();
      return done;
    },

    attempting: async (until) => (await database.query(ATTEMPTING, [Math.floor(until), shared ? nodeId : null])).map(chargeOf),

    unfinished: async () =>
      (await database.query(UNFINISHED)).map((row) => ({
        operationUuid: String(row.operation_uuid),
        sessionUuid: String(row.session_uuid),
        appUuid: String(row.app_uuid),
        kind: row.kind === 'cvv' ? 'cvv' : 'card',
        clientState: String(row.client_state),
        traceparent: String(row.traceparent),
        nodeId: String(row.node_id),
      })),

    async endUnfinished({ sessionUuid, operationUuid }, event) {
      const done = await database.transaction(async (within) => {
        const rows = await within.query(END_UNFINISHED, [sessionUuid, operationUuid]);
        if (rows.length > 0) await emit(within, [event]);
        return rows.length > 0;
      });
      if (done) onEvents();
      return done;
    },

    async destroyExpired(now) {
      const until = Math.floor(now);
      await database.query(EXPIRE, [until]);
      const [row] = await database.query(NEXT_EXPIRY, [until]);
      return row === undefined || row.expires_at === null ? undefined : Number(row.expires_at);
    },
  };
}

/** A node of an older release leaves the expiry of one that it takes. */
const isUsed = (row: Row, now: number): boolean =>
  Number(row.expires_at) <= 0 || (row.sealed === null && Number(row.expires_at) > now);

const sealedOf = (row: Row, now: number): Uint8Array | undefined =>
  row.sealed instanceof Uint8Array && Number(row.expires_at) > now ? row.sealed : undefined;

const chargeOf = (row: Row): ChargeRow => ({
  chargeUuid: String(row.charge_uuid),
  operationUuid: String(row.operation_uuid),
  appUuid: String(row.app_uuid),
  sessionUuid: String(row.session_uuid),
  amount: Number(row.amount),
  currency: String(row.currency),
  provider: String(row.provider),
  terminalNumber: String(row.terminal_number),
  clientState: String(row.client_state),
  traceparent: String(row.traceparent),
  createdAt: Number(row.created_at),
});
