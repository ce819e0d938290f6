/** What a `deliver_sm` says: the receipt of a message of ours, or the text that somebody wrote. */
import { type IncomingFields, type IncomingPart, incomingOf } from '../machine/message/incoming.ts';
import { type Receipt, receiptOf } from '../machine/message/receipt.ts';
import type { Pdu } from './smpp-pdu.ts';

/** SMPP 3.4 §5.2.19. */
export const DATA_CODING = { gsm7: 0, ucs2: 8 } as const;
/** §5.2.12: the short message begins with a user data header. */
export const ESM_UDHI = 0x40;
/** 3GPP TS 23.040 §9.2.3.24: a national language, for which the codec gives letters instead of octets. */
const NATIONAL_SHIFTS: ReadonlySet<number | undefined> = new Set([0x24, 0x25]);

/** The receipt in a PDU. Undefined: it is none, or tells of no end. */
export function receiptIn(pdu: Pdu): Receipt | undefined {
  const text = lettersOf(pdu.short_message) || lettersOf(pdu.message_payload);
  const fields = {
    receiptedMessageId: textOf(pdu.receipted_message_id),
    messageState: typeof pdu.message_state === 'number' ? pdu.message_state : undefined,
    esmClass: whole(pdu.esm_class),
    sourceAddress: textOf(pdu.source_addr),
  };
  const receipt = receiptOf({ ...fields, text: textOf(text) });
  if (receipt !== undefined || pdu.data_coding !== DATA_CODING.ucs2) return receipt;
  // Some SMSCs give the receipt of a message in UCS-2 the data_coding of that message, and write it in ASCII.
  return receiptOf({ ...fields, text: textOf(Buffer.from(text, 'utf16le').swap16().toString('latin1')) });
}

/** The text in a PDU that is no receipt of an end. Undefined: it has none, or it tells of a message of ours. */
export function incomingIn(pdu: Pdu): IncomingPart | undefined {
  const field = isEmpty(pdu.short_message) ? pdu.message_payload : pdu.short_message;
  if (tellsOfOurs(lettersOf(field)) || pdu.receipted_message_id !== undefined) return undefined;
  const header = headerOf(field);
  const isNational = header.some((element) => NATIONAL_SHIFTS.has(element[0]));
  const dataCoding = isNational ? DATA_CODING.ucs2 : whole(pdu.data_coding);
  const octets = octetsOf(field, dataCoding);
  const hasHeader = header.length > 0;
  return incomingOf({
    source: textOf(pdu.source_addr),
    sourceType: whole(pdu.source_addr_ton),
    destination: textOf(pdu.destination_addr),
    esmClass: whole(pdu.esm_class),
    dataCoding,
    octets: hasHeader ? withHeader(header, octets) : octets,
    segment: segmentOf(pdu),
  });
}

/** A receipt of a state that is no end (§5.2.28), such as ENROUTE, which some SMSCs send without saying what it is. */
const tellsOfOurs = (text: string): boolean => /(?:^|\s)id\s*:\s*\S/i.test(text) && /\sstat\s*:\s*\S/i.test(text);

function segmentOf(pdu: Pdu): IncomingFields['segment'] {
  const { sar_msg_ref_num: reference, sar_total_segments: total, sar_segment_seqnum: number } = pdu;
  if (typeof reference !== 'number' || typeof total !== 'number' || typeof number !== 'number') return undefined;
  return [reference, total, number];
}

/** The elements of a header, where the codec took it apart. */
function headerOf(field: unknown): readonly Uint8Array[] {
  const udh = typeof field === 'object' && field !== null && 'udh' in field ? field.udh : undefined;
  return Array.isArray(udh) ? udh.filter((element) => element instanceof Uint8Array) : [];
}

function withHeader(header: readonly Uint8Array[], octets: Uint8Array): Uint8Array {
  const whole = Buffer.concat(header);
  return Buffer.concat([Buffer.of(whole.length), whole, octets]);
}

/** The octets of a text as they came, or as UCS-2 where letters of more than an octet are all that is left of them. */
function octetsOf(field: unknown, dataCoding: number): Uint8Array {
  const letters = lettersOf(field);
  return (dataCoding & 0x0f) === DATA_CODING.ucs2 ? Buffer.from(letters, 'utf16le').swap16() : Buffer.from(letters, 'latin1');
}

const isEmpty = (field: unknown): boolean => lettersOf(field) === '' && headerOf(field).length === 0;

/** A short message as the codec gives it: letters in an object, or octets, each of which is a letter then. */
function lettersOf(field: unknown): string {
  const message = typeof field === 'object' && field !== null && 'message' in field ? field.message : field;
  if (typeof message === 'string') return message;
  return message instanceof Uint8Array ? Buffer.from(message).toString('latin1') : '';
}

/** A field as text, with U+FFFD for NUL, which no text of the database may have. */
export const textOf = (field: unknown): string => (typeof field === 'string' ? field.replaceAll('\0', '\ufffd') : '');
const whole = (field: unknown): number => (typeof field === 'number' ? field : 0);
