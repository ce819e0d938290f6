/** The tables of card payments: collections under way, references to cards, charges. */
import { sql } from 'drizzle-orm';
import { index, integer, pgTable, primaryKey, text, uuid } from 'drizzle-orm/pg-core';
import { bytea, ms } from './column-types.ts';

/** Collections that have not ended: what a crash leaves here ends as failed at the next start. */
export const paymentCollections = pgTable(
  'payment_collections',
  {
    operationUuid: text('operation_uuid').notNull(),
    sessionUuid: uuid('session_uuid').notNull(),
    appUuid: text('app_uuid').notNull(),
    kind: text('kind').notNull(),
    clientState: text('client_state').notNull(),
    traceparent: text('traceparent').notNull(),
    /** The process that collects; empty in rows of a release without nodes. */
    nodeId: text('node_id').notNull().default(''),
  },
  (table) => [primaryKey({ columns: [table.sessionUuid, table.operationUuid] })],
);

/**
 * Card and CVV references. `sealed` is AES-256-GCM under a key derived from MASTER_KEY, which is not in the database,
 * bound to application, Session and reference; it is NULL and `expires_at` is negative from the first
 * use on.
 */
export const paymentReferences = pgTable(
  'payment_references',
  {
    reference: text('reference').primaryKey(),
    appUuid: text('app_uuid').notNull(),
    sessionUuid: uuid('session_uuid').notNull(),
    sealed: bytea('sealed'),
    brand: text('brand').notNull(),
    last4: text('last4').notNull(),
    expiresAt: ms('expires_at').notNull(),
  },
  (table) => [index('payment_references_session').on(table.sessionUuid), index('payment_references_expiry').on(table.expiresAt)],
);

/**
 * Charges. `attempting` from before the request to the gateway until its outcome is known; then a terminal status,
 * once.
 */
export const charges = pgTable(
  'charges',
  {
    chargeUuid: uuid('charge_uuid').primaryKey(),
    operationUuid: text('operation_uuid').notNull(),
    appUuid: text('app_uuid').notNull(),
    sessionUuid: uuid('session_uuid').notNull(),
    status: text('status').notNull(),
    amount: integer('amount').notNull(),
    currency: text('currency').notNull(),
    provider: text('provider').notNull(),
    terminalNumber: text('terminal_number').notNull(),
    clientState: text('client_state').notNull(),
    traceparent: text('traceparent').notNull(),
    /** The process that attempts it; empty in rows of an earlier release. */
    nodeId: text('node_id').notNull().default(''),
    createdAt: ms('created_at').notNull(),
    completedAt: ms('completed_at'),
  },
  (table) => [
    index('charges_attempting').on(table.createdAt).where(sql`status = 'attempting'`),
    index('charges_age').on(table.createdAt),
  ],
);
