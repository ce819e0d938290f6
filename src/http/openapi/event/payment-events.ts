/** The schemas of the events of payments and of short messages. */
import type { CollectionFailure } from '../../../event/event.ts';
import { MESSAGE_STATUSES } from '../../../machine/message/message.ts';
import { CARD_BRANDS } from '../../../machine/payment/card.ts';
import { flag, oneOfWords, openObject, openWord, type Schema, text, uuid } from '../schema.ts';
import { count, instant, operationUuid, told, toldOfSession } from './event-schema.ts';

const failure = oneOfWords<CollectionFailure>({
  luhn_check_failed: true,
  no_input: true,
  incomplete_input: true,
  invalid_length: true,
  unsupported_brand: true,
  cancelled: true,
  session_ended: true,
  playback_source_error: true,
  internal_error: true,
});
const CHARGE_FAILURES = [
  'card_declined',
  'provider_timeout',
  'provider_unreachable',
  'provider_response_invalid',
  'interrupted',
  'internal_error',
];
const shown = { brand: { enum: CARD_BRANDS }, last4: { type: 'string', pattern: '^[0-9]{4}$' } } as const;
const reference = (prefix: string): Schema => ({ type: 'string', pattern: `^${prefix}_[0-9a-f-]{36}$` });

/** A collection has one of two outcomes: a reference, or the reason why there is none. */
const toldOfCollection = (
  name: 'payment.card.collected' | 'payment.cvv.collected',
  description: string,
  fields: Schema,
): Schema => ({
  description,
  anyOf: [
    toldOfSession(name, 'It was collected.', { operation_uuid: operationUuid, status: { const: 'collected' }, ...fields }),
    toldOfSession(name, 'It was not collected.', {
      operation_uuid: operationUuid,
      status: { const: 'failed' },
      reason: failure,
    }),
  ],
});

const charged = {
  operation_uuid: operationUuid,
  retryable: { ...flag, description: '`true` only where nothing has left the platform.' },
  amount: { ...count, description: 'In the smallest unit of the currency.' },
  currency: text,
  provider: text,
  terminal_number: text,
} as const;

/** A charge that succeeded tells of the transaction, any other why it did not. */
const CHARGE: Schema = {
  description: 'The outcome of a charge. It comes once for each that was admitted: deduplicate by `operation_uuid`.',
  anyOf: [
    toldOfSession('payment.charge.completed', 'The card was charged.', {
      ...charged,
      status: { const: 'succeeded' },
      transaction_created_at: instant,
      receipt_created: flag,
      installments: { type: 'integer', minimum: 1 },
      transaction_type: openWord(['regular', 'installments'], 'How it was charged.'),
      payment_method_details: openObject({
        card: openObject({ ...shown, classification: text, issuer: text, acquirer: text }),
      }),
    }),
    toldOfSession('payment.charge.completed', 'The card was not charged, or it is not known whether it was.', {
      ...charged,
      status: {
        ...oneOfWords<'declined' | 'failed' | 'indeterminate'>({ declined: true, failed: true, indeterminate: true }),
        description: '`indeterminate`: it is not known whether the card was charged.',
      },
      failure_reason: openWord(CHARGE_FAILURES, 'A word for programs; the set grows with the providers.'),
    }),
  ],
};

export const PAYMENT_EVENTS = {
  PaymentCardCollectedEvent: toldOfCollection('payment.card.collected', 'A collection of a card is over.', {
    card_uuid: reference('card'),
    payment_method_details: openObject({ card: openObject(shown) }),
  }),
  PaymentCvvCollectedEvent: toldOfCollection('payment.cvv.collected', 'A collection of a CVV is over.', {
    cvv_uuid: reference('cvv'),
  }),
  PaymentChargeCompletedEvent: CHARGE,
} as const;

export const MESSAGE_EVENTS = {
  MessageStatusChangedEvent: told('message.status_changed', 'A short message went on. No event tells of `queued`.', {
    message_uuid: uuid,
    operation_uuid: operationUuid,
    status: { enum: MESSAGE_STATUSES.filter((status) => status !== 'queued') },
    from: text,
    to: text,
    segments: { type: 'integer', minimum: 1 },
    error_code: { type: 'string', description: '`""` for none.' },
    error_message: { type: 'string', description: 'English, to be shown; `""` for none.' },
  }),
  MessageReceivedEvent: told('message.received', 'A short message came to a number of the application.', {
    message_uuid: uuid,
    from: { type: 'string', description: 'E.164 where it is a number; else as the carrier gives it: a short code, a name.' },
    to: text,
    text,
    segments: { type: 'integer', minimum: 1, maximum: 255 },
    missing_segments: { ...count, description: 'Segments that did not come within ten minutes, and are left out.' },
  }),
} as const;
