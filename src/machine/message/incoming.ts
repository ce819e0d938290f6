/**
 * Short messages that come from telephones: a `deliver_sm` that is no receipt (SMPP 3.4 §4.6), its alphabet, and the
 * segments of a long one, by their header (3GPP TS 23.040 §9.2.3.24) or by TLVs (`sar_msg_ref_num` and the two others,
 * §5.3.2.22 to 24).
 */
import { isE164 } from '../../phone-number.ts';
import { type IncomingAlphabet, incomingText } from './alphabet.ts';

/** A short message that came, or one segment of it. */
export interface IncomingPart {
  /** E.164 where it is one; else as the carrier gives it, as a short code or a name. */
  readonly from: string;
  /** E.164 where the carrier gives it so; else what it gives, after a `+`, which is nobody's number. */
  readonly to: string;
  readonly alphabet: IncomingAlphabet;
  /** The text without header, a septet of GSM in an octet. */
  readonly octets: Uint8Array;
  /** What the segments of one message share; 0 of a message of one segment. */
  readonly reference: number;
  /** The segments of the message, 1 to 255. */
  readonly total: number;
  /** Which of them it is, from 1. */
  readonly number: number;
}

/** The fields of a `deliver_sm` that concern a text. */
export interface IncomingFields {
  readonly source: string;
  /** Type of number (§5.2.5). */
  readonly sourceType: number;
  readonly destination: string;
  readonly esmClass: number;
  readonly dataCoding: number;
  /** The whole text, with its header where `esmClass` says that it has one. */
  readonly octets: Uint8Array;
  /** The TLVs of a segment: reference, total and number. */
  readonly segment: readonly [reference: number, total: number, number: number] | undefined;
}

/** The bits of `esm_class` that say that a message is no text of a telephone (§5.2.12). */
const MESSAGE_TYPE = 0x3c;
const HAS_HEADER = 0x40;
const INTERNATIONAL = 1;
const UNKNOWN = 0;
/** A number of unknown type that has so many digits is taken for an international one. */
const INTERNATIONAL_MIN_DIGITS = 8;
/** §5.2.8: 20 characters and an end. */
const SOURCE_MAX_CHARS = 20;

/** The text, or the segment of one. Undefined: it is no text of a telephone. */
export function incomingOf(fields: IncomingFields): IncomingPart | undefined {
  const alphabet = alphabetOf(fields.dataCoding);
  if ((fields.esmClass & MESSAGE_TYPE) !== 0 || alphabet === undefined) return undefined;
  const hasHeader = (fields.esmClass & HAS_HEADER) !== 0 && fields.octets.length > 0;
  const headerEnd = hasHeader ? (fields.octets[0] ?? 0) + 1 : 0;
  const octets = fields.octets.subarray(headerEnd);
  const isSign = fields.dataCoding >= WAITS && fields.dataCoding < CLASSES;
  if (isSign && octets.length === 0) return undefined;
  const named = hasHeader ? concatenation(fields.octets.subarray(1, headerEnd)) : fields.segment;
  const [reference, total, number] = named ?? [0, 1, 1];
  const isSegment = total > 1 && number >= 1 && number <= total;
  return {
    from: sourceOf(fields),
    to: `+${fields.destination.replace(/^\+/, '')}`,
    alphabet,
    octets,
    ...(isSegment ? { reference, total, number } : { reference: 0, total: 1, number: 1 }),
  };
}

/** The groups of data_coding of a sign that a message waits, each up to the next: without a text, and with one. */
const WAITS = 0xc0;
const WAITS_WITH_GSM = 0xd0;
const WAITS_WITH_UCS2 = 0xe0;
const CLASSES = 0xf0;

/** §5.2.19. Undefined: octets that are no text. */
function alphabetOf(dataCoding: number): IncomingAlphabet | undefined {
  // 3GPP TS 23.038 §4: a message class, with octets or with GSM.
  if (dataCoding >= CLASSES) return (dataCoding & 0x04) === 0 ? 'gsm7' : undefined;
  // The same: the sign that a message waits, as in a voicemail box. Its low bits name no alphabet, and the others do.
  if (dataCoding >= WAITS_WITH_UCS2) return 'ucs2';
  if (dataCoding >= WAITS_WITH_GSM) return 'gsm7';
  if (dataCoding >= WAITS) return undefined;
  switch (dataCoding & 0x0f) {
    case 0:
      return 'gsm7';
    case 1:
    case 3:
      return 'latin1';
    case 6:
      return 'cyrillic';
    case 7:
      return 'hebrew';
    case 8:
      return 'ucs2';
    default:
      return undefined;
  }
}

/** An E.164 number where the type says so, or where it can be told; else what the carrier gave. */
function sourceOf({ source, sourceType }: IncomingFields): string {
  const number = `+${source.replace(/^\+/, '')}`;
  const isLong = sourceType === UNKNOWN && source.length >= INTERNATIONAL_MIN_DIGITS;
  const isInternational = sourceType === INTERNATIONAL || source.startsWith('+') || isLong;
  return isInternational && isE164(number) ? number : source.slice(0, SOURCE_MAX_CHARS);
}

const REFERENCE_OF_8_BITS = 0x00;
const REFERENCE_OF_16_BITS = 0x08;

/** Reference, total and number in the elements of a header. Undefined where none of them concerns segments. */
function concatenation(header: Uint8Array): IncomingFields['segment'] {
  for (let at = 0; at + 1 < header.length; at += 2 + (header[at + 1] ?? 0)) {
    const [element = -1, length = 0, ...rest] = header.subarray(at);
    const [first = 0, second = 0, third = 0, fourth = 0] = rest;
    if (element === REFERENCE_OF_8_BITS && length === 3) return [first, second, third];
    if (element === REFERENCE_OF_16_BITS && length === 4) return [(first << 8) | second, third, fourth];
  }
  return undefined;
}

/** A segment that is stored. */
export type StoredPart = Pick<IncomingPart, 'alphabet' | 'octets' | 'number'>;

/**
 * The text of segments in any order, where each number counts once. Segments of one alphabet are read together, as a
 * character may lie in two of them.
 */
export function assembled(parts: readonly StoredPart[]): { readonly text: string; readonly segments: number } {
  const inOrder = [...new Map(parts.map((part) => [part.number, part])).values()].sort((a, b) => a.number - b.number);
  const runs: { readonly alphabet: IncomingAlphabet; readonly octets: Uint8Array[]; last: number }[] = [];
  for (const { alphabet, octets, number } of inOrder) {
    const run = runs.at(-1);
    if (run?.alphabet === alphabet && run.last === number - 1) {
      run.octets.push(octets);
      run.last = number;
    } else runs.push({ alphabet, octets: [octets], last: number });
  }
  const text = runs.map(({ alphabet, octets }) => incomingText(Uint8Array.from(octets.flatMap((each) => [...each])), alphabet));
  return { text: text.join(''), segments: inOrder.length };
}
