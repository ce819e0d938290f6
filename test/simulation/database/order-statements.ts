/** Payments and short messages: what is ordered of others, and must not be ordered twice. */
import { collectionKey } from './journal-statements.ts';
import type { Execution, Statement } from './statement.ts';
import { listAt, NONE, numberAt, numberOrNullAt, ONE, read, step, textAt, write } from './statement.ts';
import type { ChargeRecord, MessageRecord, PartRecord, ReferenceRecord, Tables } from './tables.ts';

const referenceLocks = (execution: Execution) => [1, 2].map((at) => `reference ${textAt(execution, at)}`);

function destroy(
  { references }: Tables,
  isMeant: (row: ReferenceRecord) => boolean,
  change: (row: ReferenceRecord) => Partial<ReferenceRecord> = () => ({}),
): void {
  for (const row of references.values())
    if (isMeant(row)) references.set(row.reference, { ...row, sealed: null, ...change(row) });
}

function beginCharge(execution: Execution): ChargeRecord {
  const [charge_uuid, operation_uuid, app_uuid, session_uuid, amount, currency, provider, terminal_number, client_state] =
    execution.parameters;
  return {
    charge_uuid: String(charge_uuid),
    operation_uuid,
    app_uuid,
    session_uuid,
    status: 'attempting',
    amount,
    currency,
    provider,
    terminal_number,
    client_state,
    traceparent: textAt(execution, 10),
    created_at: numberAt(execution, 11),
  };
}

const paymentStatements: readonly Statement[] = [
  read(/^SELECT brand FROM payment_references/, (execution) => {
    const row = execution.tables.references.get(textAt(execution, 1));
    const isUsable =
      row !== undefined &&
      row.app_uuid === textAt(execution, 2) &&
      row.session_uuid === textAt(execution, 3) &&
      row.sealed !== null &&
      row.expires_at > numberAt(execution, 4) &&
      row.reference.startsWith('card_');
    return isUsable ? [{ brand: row.brand }] : NONE;
  }),
  step(
    /^SELECT reference, sealed, brand/,
    (execution) => ({
      rows: [1, 2].flatMap((at) => {
        const row = execution.tables.references.get(textAt(execution, at));
        return row?.app_uuid === textAt(execution, 3) && row.session_uuid === textAt(execution, 4) ? [{ ...row }] : [];
      }),
    }),
    referenceLocks,
  ),
  step(/^UPDATE payment_references SET sealed = NULL, expires_at = -expires_at WHERE reference IN/, (execution) => ({
    rows: NONE,
    apply: () => {
      const taken = [textAt(execution, 1), textAt(execution, 2)];
      destroy(
        execution.tables,
        ({ reference }) => taken.includes(reference),
        ({ expires_at: at }) => ({ expires_at: -at }),
      );
    },
  })),
  step(/^SELECT 1 FROM charges WHERE/, (execution) => ({
    rows: execution.tables.charges.has(textAt(execution, 1)) ? ONE : NONE,
  })),
  step(/^INSERT INTO charges/, (execution) => {
    const charge = beginCharge(execution);
    return { rows: NONE, apply: () => void execution.tables.charges.set(charge.charge_uuid, charge) };
  }),
  step(
    /^UPDATE charges SET status = \$2/,
    (execution) => {
      const { charges } = execution.tables;
      const row = charges.get(textAt(execution, 1));
      if (row?.status !== 'attempting') return { rows: NONE };
      const done = { ...row, status: textAt(execution, 2), completed_at: numberAt(execution, 3) };
      return { rows: ONE, apply: () => void charges.set(row.charge_uuid, done) };
    },
    (execution) => [`charge ${textAt(execution, 1)}`],
  ),
  read(/^SELECT charge_uuid::text/, (execution) =>
    [...execution.tables.charges.values()]
      .filter((row) => row.status === 'attempting' && row.created_at <= numberAt(execution, 1))
      .sort((a, b) => a.created_at - b.created_at),
  ),
  read(/^SELECT operation_uuid, session_uuid::text .* FROM payment_collections/s, ({ tables }) =>
    [...tables.collections.values()].filter((row) => !tables.isAlive(row.node_id)),
  ),
  step(
    /^DELETE FROM payment_collections/,
    (execution) => {
      const { collections } = execution.tables;
      const key = collectionKey({ session_uuid: textAt(execution, 1), operation_uuid: textAt(execution, 2) });
      return collections.has(key) ? { rows: ONE, apply: () => void collections.delete(key) } : { rows: NONE };
    },
    (execution) => [`collection ${collectionKey({ session_uuid: textAt(execution, 1), operation_uuid: textAt(execution, 2) })}`],
  ),
  write(/^UPDATE payment_references SET sealed = NULL WHERE expires_at/, (execution) => () => {
    destroy(execution.tables, ({ expires_at: at, sealed }) => sealed !== null && at <= numberAt(execution, 1));
    return NONE;
  }),
  read(/^SELECT min\(expires_at\)/, ({ tables }) => {
    const ends = [...tables.references.values()].filter(({ sealed }) => sealed !== null).map((row) => row.expires_at);
    return [{ expires_at: ends.length === 0 ? null : Math.min(...ends) }];
  }),
];

const messageKey = (execution: Execution) => [`message ${textAt(execution, 1)}`];

function newMessage(execution: Execution): MessageRecord {
  const [message_uuid, app_uuid, operation_uuid, from_number, to_number, body, encoding, segments, status] = execution.parameters;
  return {
    message_uuid: String(message_uuid),
    app_uuid: String(app_uuid),
    operation_uuid,
    from_number,
    to_number: String(to_number),
    body,
    encoding,
    segments,
    status: String(status),
    error_code: '',
    error_message: '',
    created_at: numberAt(execution, 10),
    updated_at: numberAt(execution, 10),
    sent_at: null,
    delivered_at: null,
    parts: textAt(execution, 11),
    stage: textAt(execution, 12),
    due_at: numberAt(execution, 13),
    attempts: 0,
    traceparent: textAt(execution, 14),
  };
}

/** The parts that have one of those ids, with what is known of their messages. */
function partsOf({ parts, messages }: Tables, isMeant: (part: PartRecord, message: MessageRecord) => boolean) {
  return [...parts.values()].flatMap((part) => {
    const message = messages.get(part.message_uuid);
    if (message === undefined || !isMeant(part, message)) return [];
    return [{ ...part, to_number: message.to_number, status: message.status, created_at: message.created_at }];
  });
}

/** The first messages that wait, are due and are meant, by application and age; they are locked. */
function claimed(execution: Execution, isMeant: (row: MessageRecord) => boolean, limit: number) {
  const rows = [...execution.tables.messages.values()]
    .filter((row) => row.stage === 'waiting' && row.due_at <= numberAt(execution, 2) && isMeant(row))
    .filter((row) => !execution.isLocked(`message ${row.message_uuid}`))
    .sort((a, b) => (a.app_uuid < b.app_uuid ? -1 : a.app_uuid > b.app_uuid ? 1 : a.due_at - b.due_at))
    .slice(0, limit);
  return { rows, locked: rows.map((row) => `message ${row.message_uuid}`) };
}

const messageStatements: readonly Statement[] = [
  step(/^INSERT INTO messages/, (execution) => {
    const row = newMessage(execution);
    return { rows: ONE, apply: () => void execution.tables.messages.set(row.message_uuid, row) };
  }),
  read(/^SELECT message_uuid::text .* FROM messages WHERE message_uuid = \$1::uuid$/s, (execution) => {
    const row = execution.tables.messages.get(textAt(execution, 1));
    return row === undefined ? NONE : [row];
  }),
  step(
    /^SELECT message_uuid::text .* FROM messages WHERE message_uuid = \$1::uuid FOR UPDATE$/s,
    (execution) => {
      const row = execution.tables.messages.get(textAt(execution, 1));
      return { rows: row === undefined ? NONE : [row] };
    },
    messageKey,
  ),
  step(/^SELECT message_uuid::text .* app_uuid > \$1::text .* FOR UPDATE SKIP LOCKED$/s, (execution) =>
    claimed(execution, (row) => row.app_uuid > textAt(execution, 1), 1),
  ),
  step(/^SELECT message_uuid::text .* app_uuid = \$1::text .* FOR UPDATE SKIP LOCKED$/s, (execution) =>
    claimed(execution, (row) => row.app_uuid === textAt(execution, 1), numberAt(execution, 3)),
  ),
  step(/^UPDATE messages SET status = \$2/, (execution) => ({
    rows: NONE,
    apply: () => {
      const { messages } = execution.tables;
      const row = messages.get(textAt(execution, 1));
      if (row === undefined) return;
      const [, status, error_code, error_message, updated_at, sent_at, delivered_at, parts, stage, due_at, attempts] =
        execution.parameters;
      const said = { error_code, error_message, updated_at, sent_at, delivered_at, parts, attempts };
      messages.set(row.message_uuid, {
        ...row,
        ...said,
        status: String(status),
        stage: String(stage),
        due_at: Number(due_at),
      });
    },
  })),
  step(/^INSERT INTO message_parts/, (execution) => {
    const message_uuid = textAt(execution, 1);
    const named = listAt<{ readonly part: number; readonly smsc_id: string }>(execution, 2);
    return {
      rows: NONE,
      apply: () => {
        for (const { part, smsc_id } of named)
          execution.tables.parts.set(`${message_uuid} ${part}`, { message_uuid, part, smsc_id });
      },
    };
  }),
  read(/^SELECT p\.message_uuid.* WHERE p\.smsc_id = ANY/s, (execution) => {
    const wanted = listAt<string>(execution, 1);
    return partsOf(execution.tables, ({ smsc_id: id }) => wanted.includes(id)).sort((a, b) => b.created_at - a.created_at);
  }),
  read(/^SELECT p\.message_uuid.* starts_with/s, (execution) =>
    partsOf(
      execution.tables,
      ({ smsc_id: id }, { status }) => id.startsWith(textAt(execution, 1)) && (status === 'sent' || status === 'sending'),
    ).sort((a, b) => a.created_at - b.created_at),
  ),
  read(/^SELECT message_uuid::text AS message_uuid FROM messages WHERE stage = 'waiting' AND created_at/, (execution) =>
    [...execution.tables.messages.values()]
      .filter((row) => row.stage === 'waiting' && row.created_at <= numberAt(execution, 1))
      .sort((one, other) => one.created_at - other.created_at)
      .slice(0, 1000)
      .map(({ message_uuid }) => ({ message_uuid })),
  ),
  read(/^SELECT message_uuid::text AS message_uuid FROM messages WHERE stage = 'submitting'/, (execution) =>
    [...execution.tables.messages.values()].filter(
      (row) => row.stage === 'submitting' && row.due_at <= (numberOrNullAt(execution, 1) ?? 0),
    ),
  ),
  read(/^SELECT min\(due_at\)/, ({ tables }) => {
    const waiting = [...tables.messages.values()].filter((row) => row.stage === 'waiting').map((row) => row.due_at);
    return [{ due_at: waiting.length === 0 ? null : Math.min(...waiting) }];
  }),
];

export const orderStatements: readonly Statement[] = [...paymentStatements, ...messageStatements];
