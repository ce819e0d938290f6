/**
 * The SIP of a call as a capture file (pcap 2.4, raw IP), so that Wireshark and sngrep can show it. It is written from
 * the redacted text, and every message is a UDP datagram in it, whatever carried it.
 */
import { isIP, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { SipEntry, TimedEntry } from './entry.ts';

const LINKTYPE_RAW = 101;
const UDP = 17;
/** Our own side of the capture, since an entry names the far end only. */
const OURS = { 4: '192.0.2.1', 6: '2001:db8::1' } as const;
const OUR_PORT = 5060;
/** Stands for a far end that was called by its name, which was resolved only as the message was sent. */
const UNKNOWN = '192.0.2.2';

/** The SIP messages among the entries of a timeline. */
export const sipMessages = (entries: readonly TimedEntry[]): readonly (SipEntry & { readonly at: number })[] =>
  entries.filter((entry) => entry.kind === 'sip');

/** Writes a capture of these messages. A message without text is its first line. */
export function pcap(messages: readonly (SipEntry & { readonly at: number })[]): Uint8Array<ArrayBuffer> {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b2c3d4, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(65_535, 16);
  header.writeUInt32LE(LINKTYPE_RAW, 20);
  return new Uint8Array(Buffer.concat([header, ...messages.flatMap(packet)]));
}

function packet(message: SipEntry & { readonly at: number }): readonly Buffer[] {
  const [, named = '', port = '5060'] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(message.peer) ?? [];
  const host = isIP(named) === 0 ? UNKNOWN : named;
  const family = isIPv6(host) ? 6 : 4;
  const far = { host, port: Number(port) };
  const ours = { host: OURS[family], port: OUR_PORT };
  const [from, to] = message.direction === 'in' ? [far, ours] : [ours, far];
  const payload = Buffer.from(message.text === '' ? `${message.first_line}\r\n\r\n` : message.text, 'latin1');
  const udp = Buffer.alloc(8);
  udp.writeUInt16BE(from.port, 0);
  udp.writeUInt16BE(to.port, 2);
  udp.writeUInt16BE(8 + payload.length, 4);
  const addresses = Buffer.concat([from.host, to.host].map((each) => Buffer.from(ipaddr.parse(each).toByteArray())));
  const ip = family === 4 ? ipv4(addresses, udp.length + payload.length) : ipv6(addresses, udp.length + payload.length);
  udp.writeUInt16BE(udpChecksum(addresses, udp, payload), 6);
  const record = Buffer.alloc(16);
  record.writeUInt32LE(Math.floor(message.at / 1000), 0);
  record.writeUInt32LE((message.at % 1000) * 1000, 4);
  const length = ip.length + udp.length + payload.length;
  record.writeUInt32LE(length, 8);
  record.writeUInt32LE(length, 12);
  return [record, ip, udp, payload];
}

/** RFC 791. */
function ipv4(addresses: Buffer, payloadBytes: number): Buffer {
  const header = Buffer.concat([Buffer.alloc(12), addresses]);
  header.writeUInt8(0x45, 0);
  header.writeUInt16BE(header.length + payloadBytes, 2);
  header.writeUInt8(64, 8);
  header.writeUInt8(UDP, 9);
  header.writeUInt16BE(checksum([header]), 10);
  return header;
}

/** RFC 8200. */
function ipv6(addresses: Buffer, payloadBytes: number): Buffer {
  const header = Buffer.concat([Buffer.alloc(8), addresses]);
  header.writeUInt8(0x60, 0);
  header.writeUInt16BE(payloadBytes, 4);
  header.writeUInt8(UDP, 6);
  header.writeUInt8(64, 7);
  return header;
}

/** RFC 768, over the pseudo header. 0 means that there is none, so a sum of 0 is written as its complement. */
function udpChecksum(addresses: Buffer, udp: Buffer, payload: Buffer): number {
  const pseudo = Buffer.alloc(4);
  pseudo.writeUInt8(UDP, 1);
  pseudo.writeUInt16BE(udp.length + payload.length, 2);
  return checksum([addresses, pseudo, udp, payload]) || 0xffff;
}

/** The Internet checksum (RFC 1071). Every part but the last has an even length. */
function checksum(parts: readonly Buffer[]): number {
  let sum = 0;
  for (const part of parts) for (let at = 0; at < part.length; at += 2) sum += ((part[at] ?? 0) << 8) | (part[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000);
  return ~sum & 0xffff;
}
