/**
 * Delivery receipts (SMPP 3.4 §2.11 and appendix B): the text that nearly every SMSC sends, the TLVs
 * `receipted_message_id` and
 * `message_state` that some send beside it, and message ids that come back in another base than they were given in.
 */

export type ReceiptState = 'delivered' | 'expired' | 'deleted' | 'undeliverable' | 'rejected' | 'unknown';

export interface Receipt {
  readonly smscId: string;
  readonly state: ReceiptState;
  /** The network's own error, as three digits or so; `""` without one. */
  readonly error: string;
  /** Digits of who the message went to, for telling two ids apart; `""` where the receipt does not say. */
  readonly recipient: string;
  /** The SMSC says that it is a receipt. Without that it may be a text that somebody wrote. */
  readonly isMarked: boolean;
}

/**
 * The fields of a `deliver_sm` that concern a receipt. `text` is its short message or payload, byte for byte as
 * characters.
 */
export interface ReceiptFields {
  readonly text: string;
  readonly receiptedMessageId: string | undefined;
  readonly messageState: number | undefined;
  readonly esmClass: number;
  readonly sourceAddress: string;
}

/** Table 5-8. ENROUTE (1) and ACCEPTED (6) are no end. */
const BY_NUMBER: Readonly<Record<number, ReceiptState>> = {
  2: 'delivered',
  3: 'expired',
  4: 'deleted',
  5: 'undeliverable',
  7: 'unknown',
  8: 'rejected',
};
/** The bits of `esm_class` that tell what a `deliver_sm` is (§5.2.12). A text from a phone has none of them. */
const MESSAGE_TYPE = 0x3c;
const DELIVERY_RECEIPT = 0x04;
/** Appendix B, and the spellings met in the field. */
const BY_WORD: readonly (readonly [RegExp, ReceiptState])[] = [
  [/^DELIV/i, 'delivered'],
  [/^EXPIR/i, 'expired'],
  [/^DELET/i, 'deleted'],
  [/^(UNDELIV|FAILED)/i, 'undeliverable'],
  [/^REJ/i, 'rejected'],
  [/^UNKNO/i, 'unknown'],
];

/** The receipt; undefined where the message is none, or only says that the message is on its way. */
export function receiptOf(fields: ReceiptFields): Receipt | undefined {
  const word = (name: string): string | undefined => new RegExp(`(?:^|\\s)${name}\\s*:\\s*([^\\s]+)`, 'i').exec(fields.text)?.[1];
  const named = fields.receiptedMessageId ?? '';
  const smscId = named === '' ? word('id') : named;
  if (smscId === undefined) return undefined;
  const state = fields.messageState === undefined ? stateOf(word('stat')) : BY_NUMBER[fields.messageState];
  if (state === undefined) return undefined;
  const error = word('err') ?? '';
  return {
    smscId,
    state,
    error: /^[0-9A-Za-z]{1,8}$/.test(error) && !/^0+$/.test(error) ? error : '',
    recipient: fields.sourceAddress.replaceAll(/[^0-9]/g, ''),
    isMarked: named !== '' || (fields.esmClass & MESSAGE_TYPE) === DELIVERY_RECEIPT,
  };
}

const stateOf = (word: string | undefined): ReceiptState | undefined =>
  word === undefined ? undefined : BY_WORD.find(([pattern]) => pattern.test(word))?.[1];

/** One spelling of an id: case and leading zeros are what SMSCs change between the response and the receipt. */
export const normalId = (smscId: string): string =>
  smscId
    .trim()
    .toLowerCase()
    .replace(/^0+(?=.)/, '');

const DECIMAL_MAX_DIGITS = 20;
const HEX_MAX_DIGITS = 16;

/**
 * The ids that a receipt's id may have been in the response, most likely first: itself, then read as decimal or as
 * hexadecimal.
 */
export function idCandidates(smscId: string): readonly string[] {
  const id = normalId(smscId);
  const candidates = [id];
  if (/^[0-9]+$/.test(id) && id.length <= DECIMAL_MAX_DIGITS) candidates.push(BigInt(id).toString(16));
  if (/^[0-9a-f]+$/.test(id) && id.length <= HEX_MAX_DIGITS) candidates.push(BigInt(`0x${id}`).toString(10));
  return [...new Set(candidates)];
}
