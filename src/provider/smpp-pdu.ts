/**
 * Reads a PDU from its frame. The codec gives up a PDU of which one optional field (TLV, SMPP 3.4 §5.3) is not as it
 * should be, such as a `callback_num` that a phone sent without a number. Such a PDU is read again without the optional
 * fields that nobody here looks at, because its receipt still counts.
 */
import smpp from 'smpp';

// Short messages come as characters of the same value as their bytes, both those of the SMSC's alphabet and those in
// IA5 (data_coding 0 and 1): the GSM alphabet would turn the `_` of a receipt's id into `§`, and `@` into `¡`.
smpp.encodings.ASCII = smpp.encodings.LATIN1;

// The id ends where its field does: some SMSCs leave out the NUL that should be its last octet.
const receiptedId = smpp.tlvs.receipted_message_id;
receiptedId.type = {
  ...receiptedId.type,
  read: (buffer, offset, length = 0) => buffer.toString('ascii', offset, offset + length).split('\0', 1)[0],
};

export type Pdu = InstanceType<typeof smpp.PDU>;

export const HEADER_BYTES = 16;
const TLV_HEADER_BYTES = 4;
const RESPONSE = 0x8000_0000;
/** Requests that have no response (SMPP 3.4 §4.1.7, §4.12). */
const UNANSWERED: ReadonlySet<string> = new Set(['outbind', 'alert_notification']);
/**
 * Tags of the optional fields that are looked at: receipted_message_id, message_payload, message_state, and the three
 * of a segment.
 */
const LOOKED_AT: ReadonlySet<number> = new Set([0x001e, 0x0424, 0x0427, 0x020c, 0x020e, 0x020f]);

/** The PDU of a whole frame. Undefined: even its mandatory fields make no sense. */
export function readPdu(frame: Buffer): Pdu | undefined {
  return decoded(() => frame) ?? decoded(() => withoutOthers(frame));
}

/** Whether a request has a response at all. */
export const isAnswered = ({ command }: Pdu): boolean => !UNANSWERED.has(command);

/** The response to a request that cannot be read: its header with that status, and no body. Undefined: it is none. */
export function refusalOfFrame(frame: Buffer, status: number): Buffer | undefined {
  const commandId = frame.readUInt32BE(4);
  if (commandId >= RESPONSE) return undefined;
  const response = Buffer.from(frame.subarray(0, HEADER_BYTES));
  response.writeUInt32BE(HEADER_BYTES, 0);
  response.writeUInt32BE(commandId + RESPONSE, 4);
  response.writeUInt32BE(status, 8);
  return response;
}

function decoded(frameOf: () => Buffer): Pdu | undefined {
  try {
    return smpp.PDU.fromBuffer(frameOf()) || undefined;
  } catch {
    return undefined;
  }
}

/**
 * The frame with its mandatory fields, and those optional ones that are looked at and have a value. Throws as the codec
 * does.
 */
function withoutOthers(frame: Buffer): Buffer {
  const kept = [frame.subarray(0, endOfMandatory(frame))];
  for (let at = kept[0]?.length ?? 0; at + TLV_HEADER_BYTES <= frame.length; ) {
    const bytes = frame.readUInt16BE(at + 2);
    const end = at + TLV_HEADER_BYTES + bytes;
    if (LOOKED_AT.has(frame.readUInt16BE(at)) && bytes > 0 && end <= frame.length) kept.push(frame.subarray(at, end));
    at = end;
  }
  const whole = Buffer.concat(kept);
  whole.writeUInt32BE(whole.length, 0);
  return whole;
}

function endOfMandatory(frame: Buffer): number {
  const fields = Object.values(smpp.commandsById[frame.readUInt32BE(4)]?.params ?? {});
  let at = HEADER_BYTES;
  for (const { type } of fields) {
    if (at >= frame.length) break;
    at += type.size(type.read(frame, at));
  }
  return Math.min(at, frame.length);
}
