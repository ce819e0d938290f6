/**
 * Splits a text into short messages: one where it fits into 140 octets, else segments that leave room for a
 * concatenation header (3GPP TS 23.040 §9.2.3.24.1: six octets, which is seven septets or three code units).
 */
import { type Encoding, encodingOf, octetsOf, unitsOf } from './alphabet.ts';

export interface Segmented {
  readonly encoding: Encoding;
  /** Octets of each segment's text, without header, as SMPP carries them. */
  readonly segments: readonly Uint8Array[];
}

const ROOM: Readonly<Record<Encoding, { readonly whole: number; readonly part: number }>> = {
  gsm7: { whole: 160, part: 153 },
  ucs2: { whole: 70, part: 67 },
};

/** Splits `text`; never inside an escape or a surrogate pair. An empty text is one empty segment. */
export function segment(text: string): Segmented {
  const encoding = encodingOf(text);
  const letters = unitsOf(text, encoding);
  const total = letters.reduce((sum, units) => sum + units.length, 0);
  const room = total <= ROOM[encoding].whole ? ROOM[encoding].whole : ROOM[encoding].part;
  const parts: number[][] = [[]];
  for (const units of letters) {
    const last = parts.at(-1);
    if (last === undefined || last.length + units.length > room) parts.push([...units]);
    else last.push(...units);
  }
  return { encoding, segments: parts.map((units) => octetsOf(units, encoding)) };
}

/**
 * The concatenation header: total segments, this one's number from 1, and a reference the segments of one message share
 * (8 bits).
 */
export const concatenationHeader = (reference: number, total: number, number: number): Uint8Array =>
  Uint8Array.of(0x05, 0x00, 0x03, reference & 0xff, total, number);
