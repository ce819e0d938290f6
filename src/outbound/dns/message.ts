/**
 * A question for the addresses of a name, and its answer (RFC 1035 §4). Pure.
 *
 *   header (12 bytes) ‖ question: name, type, class ‖ answers: name, type, class, TTL, length, data
 *
 * Left out: what else an answer may have. The aliases in it are not followed one by one: whoever answers has done that,
 * so that all addresses in an answer are those of the name.
 */
import { NAME_ADDRESSES_MAX } from '../../limits.ts';

const TYPES = { 4: 1, 6: 28 } as const;
const ADDRESS_BYTES = { 4: 4, 6: 16 } as const;
const HEADER_BYTES = 12;
const CLASS_IN = 1;
/** An OPT record (RFC 6891 §6.1.2) that takes answers of 1,232 bytes, which no path cuts into fragments. */
const EDNS = Buffer.from([0, 0, 41, 1_232 >> 8, 1_232 & 0xff, 0, 0, 0, 0, 0, 0]);

/** A version of IP. */
export type Family = 4 | 6;

export interface Answer {
  readonly id: number;
  /** 0: the name is there. 3: it is not. Everything else is a failure of the server. */
  readonly code: number;
  /** It did not go into the datagram, and is to be asked for over TCP. */
  readonly isCut: boolean;
  /** NAME_ADDRESSES_MAX at most: a name may have thousands, and one is enough. */
  readonly addresses: readonly string[];
}

/** Whether a name can be asked for: labels of 63 characters at most, and 253 of them all. */
export const isName = (name: string): boolean =>
  name.length <= 253 && /^[\x21-\x2d\x2f-\x7e]{1,63}(\.[\x21-\x2d\x2f-\x7e]{1,63})*$/.test(name);

/** The question for a name that can be asked for. */
export function question(id: number, name: string, family: Family): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(0x0100, 2); // Recursion is desired.
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(1, 10);
  const labels = name.split('.').flatMap((label) => [Buffer.of(label.length), Buffer.from(label, 'latin1')]);
  return Buffer.concat([header, ...labels, Buffer.of(0, 0, TYPES[family], 0, CLASS_IN), EDNS]);
}

/** Reads an answer to a question. The result is undefined where it is none to this one, or broken. */
export function answerTo(asked: Buffer, bytes: Buffer, family: Family): Answer | undefined {
  const end = asked.length - EDNS.length;
  // RFC 5452 §9.1: the question comes back as it was asked. Some servers change the case of its letters.
  if (bytes.length < end || ((bytes[2] ?? 0) & 0x80) === 0 || bytes.readUInt16BE(4) !== 1) return undefined;
  if (lower(bytes.subarray(HEADER_BYTES, end)) !== lower(asked.subarray(HEADER_BYTES, end))) return undefined;
  const addresses = addressesIn(bytes, end, family);
  if (addresses === undefined) return undefined;
  const isCut = ((bytes[2] ?? 0) & 0x02) !== 0;
  return { id: bytes.readUInt16BE(0), code: (bytes[3] ?? 0) & 0x0f, isCut, addresses };
}

const lower = (bytes: Buffer): string => bytes.toString('latin1').toLowerCase();

/** The addresses among the answers, which begin at `start`. Undefined where the message ends within one of them. */
function addressesIn(bytes: Buffer, start: number, family: Family): readonly string[] | undefined {
  const addresses: string[] = [];
  let at = start;
  for (let left = bytes.readUInt16BE(6); left > 0 && addresses.length < NAME_ADDRESSES_MAX; left--) {
    const fixed = afterName(bytes, at);
    if (fixed + 10 > bytes.length) return undefined;
    const data = fixed + 10;
    at = data + bytes.readUInt16BE(fixed + 8);
    if (at > bytes.length) return undefined;
    const isAsked = bytes.readUInt16BE(fixed) === TYPES[family] && bytes.readUInt16BE(fixed + 2) === CLASS_IN;
    if (isAsked && at - data === ADDRESS_BYTES[family]) addresses.push(addressOf(bytes.subarray(data, at)));
  }
  return addresses;
}

/** The end of the name at `start`: after a zero, or after a pointer to the rest of it (RFC 1035 §4.1.4). */
function afterName(bytes: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const length = bytes[at] ?? 0;
    if (length === 0) return at + 1;
    if (length >= 0xc0) return at + 2;
    at += 1 + length;
  }
}

function addressOf(data: Buffer): string {
  if (data.length === ADDRESS_BYTES[4]) return data.join('.');
  const groups = Array.from({ length: 8 }, (_, group) => data.readUInt16BE(group * 2).toString(16)).join(':');
  // A URL spells an IPv6 address as everybody does (RFC 5952).
  return new URL(`http://[${groups}]`).hostname.slice(1, -1);
}
