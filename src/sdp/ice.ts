/**
 * Names and passwords of ICE (RFC 8445 §5.3, RFC 8839 §5.4), fingerprints of certificates (RFC 8122), and our
 * candidates (RFC 8839 §5.1) as SDP writes them.
 */

import { detached } from '../bounds/detached.ts';

export interface IceCredentials {
  readonly ufrag: string;
  readonly password: string;
}

export type FingerprintHash = 'sha-256' | 'sha-384' | 'sha-512';

export interface Fingerprint {
  readonly hash: FingerprintHash;
  readonly bytes: Uint8Array;
}

const FINGERPRINT_BYTES: Readonly<Record<FingerprintHash, number>> = { 'sha-256': 32, 'sha-384': 48, 'sha-512': 64 };
const UFRAG = /^[A-Za-z0-9+/]{4,256}$/;
const PASSWORD = /^[A-Za-z0-9+/]{22,256}$/;

/** The credentials of a far end; undefined when either is not what RFC 8839 permits. */
export function iceCredentials(ufrag: unknown, password: unknown): IceCredentials | undefined {
  const [name, secret] = [String(ufrag ?? ''), String(password ?? '')];
  return UFRAG.test(name) && PASSWORD.test(secret) ? { ufrag: detached(name), password: detached(secret) } : undefined;
}

/** Credentials of ours, out of 6 and 18 random bytes: 8 and 24 characters. */
export function ownCredentials(random: (bytes: number) => Uint8Array): IceCredentials {
  const text = (bytes: number) => btoa(String.fromCharCode(...random(bytes)));
  return { ufrag: text(6), password: text(18) };
}

/** Reads `a=fingerprint`. Undefined for a hash that is too weak or unknown, and for a value of another length. */
export function fingerprintOf(hash: unknown, value: unknown): Fingerprint | undefined {
  const name = (['sha-256', 'sha-384', 'sha-512'] as const).find((each) => each === String(hash ?? '').toLowerCase());
  const text = String(value ?? '');
  if (name === undefined || !/^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2})*$/.test(text)) return undefined;
  const bytes = Uint8Array.from(text.split(':'), (byte) => Number.parseInt(byte, 16));
  return bytes.length === FINGERPRINT_BYTES[name] ? { hash: name, bytes } : undefined;
}

/** A transport address where we are reached. */
export interface HostCandidate {
  readonly host: string;
  readonly port: number;
}

/** Our candidates, the first one preferred (RFC 8445 §5.1.2.1: type host, component 1). */
export const candidateLines = (candidates: readonly HostCandidate[]): string =>
  candidates
    .map(({ host, port }, at) => {
      const priority = 126 * 2 ** 24 + (65_535 - at) * 2 ** 8 + 255;
      return `a=candidate:${at + 1} 1 udp ${priority} ${host} ${port} typ host\r\n`;
    })
    .join('');
