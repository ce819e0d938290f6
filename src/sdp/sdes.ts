/**
 * Keys of encrypted audio in a session description (SDES, RFC 4568; the suites of RFC 7714 beside its own):
 *
 *     a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:<key and salt in base64>[|lifetime][|MKI:length] [session parameters]
 *
 * Each side names the key that it sends with. A line with an MKI, several keys, or a session parameter that changes the
 * protection is not taken; another line may be. A lifetime is read and binds the far end, which changes its key in
 * time.
 */
import { SDP_CRYPTO_MAX } from '../limits.ts';

export type SrtpSuite = 'AES_CM_128_HMAC_SHA1_80' | 'AES_CM_128_HMAC_SHA1_32' | 'AEAD_AES_128_GCM' | 'AEAD_AES_256_GCM';

/** Bytes of the master key and its salt (RFC 4568 §6.2, RFC 7714 §14.2). */
const KEY_BYTES: Readonly<Record<SrtpSuite, number>> = {
  AES_CM_128_HMAC_SHA1_80: 30,
  AES_CM_128_HMAC_SHA1_32: 30,
  AEAD_AES_128_GCM: 28,
  AEAD_AES_256_GCM: 44,
};

/** The suites in the order of our offers. */
export const SRTP_SUITES: readonly SrtpSuite[] = [
  'AES_CM_128_HMAC_SHA1_80',
  'AES_CM_128_HMAC_SHA1_32',
  'AEAD_AES_128_GCM',
  'AEAD_AES_256_GCM',
];

/** The keys of one stream: master key and salt of each direction. They are never written to a log. */
export interface SrtpKeys {
  readonly suite: SrtpSuite;
  readonly sendKey: Uint8Array;
  readonly receiveKey: Uint8Array;
}

/** A key that we send with. */
export interface OwnKey {
  readonly suite: SrtpSuite;
  readonly key: Uint8Array;
}

/** One usable line. */
export interface CryptoLine {
  readonly tag: number;
  readonly suite: SrtpSuite;
  readonly key: Uint8Array;
}

const LINE = /^a=crypto:([0-9]{1,9}) +([A-Za-z0-9_]{1,64}) +(\S+)((?: +\S+)*) *$/;
const KEY = /^inline:([A-Za-z0-9+/]{1,128}={0,2})(?:\|(?:2\^([0-9]{1,2})|([0-9]{1,15})))?$/i;
/** Packets that a key may protect at most (RFC 3711 §9.2). */
const LIFETIME_MAX = 2 ** 48;

/** The crypto lines of an m-section that we can use, in order. Others are left out. */
export function cryptoLines(section: string): CryptoLine[] {
  return section
    .split(/\r\n|\r|\n/)
    .filter((line) => line.startsWith('a=crypto:'))
    .slice(0, SDP_CRYPTO_MAX)
    .flatMap(readLine);
}

function readLine(line: string): CryptoLine[] {
  const [, tag, name, parameters = '', session = ''] = LINE.exec(line) ?? [];
  const suite = SRTP_SUITES.find((each) => each === name);
  const [, text, power, packets] = KEY.exec(parameters) ?? [];
  if (tag === undefined || suite === undefined || text === undefined) return [];
  const lifetime = power !== undefined ? 2 ** Number(power) : Number(packets ?? LIFETIME_MAX);
  if (lifetime < 1 || lifetime > LIFETIME_MAX || !session.split(/ +/).every(isHarmless)) return [];
  const key = decode(text);
  return key.length === KEY_BYTES[suite] ? [{ tag: Number(tag), suite, key }] : [];
}

/**
 * Whether a session parameter may be passed over: the size of the replay window is a hint, and one that begins with `-`
 * is optional (RFC 4568 §6.3.6, §6.3.7).
 */
const isHarmless = (parameter: string): boolean =>
  parameter === '' || parameter.startsWith('-') || /^WSH=[0-9]+$/i.test(parameter);

function decode(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** What a trunk and this build allow. */
export interface SrtpTerms {
  /** `optional` also takes streams in clear. */
  readonly mode: 'optional' | 'required';
  /** The suites that the media plane can do, in the order of our offers. Empty when it can do none, or may not. */
  readonly suites: readonly SrtpSuite[];
  /** Random bytes that nobody can guess. */
  random(bytes: number): Uint8Array;
}

/** The keys of one stream over all its offers and answers. */
export class KeyExchange {
  readonly #terms: SrtpTerms;
  /** The suite in use. Our offers name it first, so that a stream that goes on keeps it. */
  #suite: SrtpSuite | undefined;
  /** The keys that we send with. Each is made when it is first written. */
  readonly #own = new Map<SrtpSuite, Uint8Array>();
  /** The key that the far end sends with, as it was told last. */
  #theirs: Uint8Array | undefined;

  /** `before`: the key that another node has sent with in this session. */
  constructor(terms: SrtpTerms, before?: OwnKey) {
    this.#terms = terms;
    if (before === undefined) return;
    this.#own.set(before.suite, before.key);
    this.#suite = before.suite;
  }

  /** The key that we send with. Undefined before any was agreed on. */
  get inUse(): OwnKey | undefined {
    const suite = this.#suite;
    return suite === undefined || this.#theirs === undefined ? undefined : { suite, key: this.#key(suite) };
  }

  /** The lines of our offer. The keys are those of the offer before, so that a stream that goes on keeps its own. */
  offer(): string {
    const lines = this.#terms.suites.map((suite, at) => ({ suite, line: lineOf(at + 1, suite, this.#key(suite)) }));
    const [first, rest] = [
      lines.filter(({ suite }) => suite === this.#suite),
      lines.filter(({ suite }) => suite !== this.#suite),
    ];
    return [...first, ...rest].map(({ line }) => line).join('');
  }

  /**
   * Answers an offer with its first line that we can do. Undefined when there is none. When the far end has changed its
   * key, ours is changed too: both begin with a roll-over counter of zero then, whoever is at the far end now.
   */
  answer(offered: readonly CryptoLine[]): { readonly line: string; readonly keys: SrtpKeys } | undefined {
    const chosen = offered.find(({ suite }) => this.#terms.suites.includes(suite));
    if (chosen === undefined) return undefined;
    if (this.#theirs !== undefined && !isSame(this.#theirs, chosen.key)) this.renew();
    const keys = this.#agreed(chosen);
    return { line: lineOf(chosen.tag, chosen.suite, keys.sendKey), keys };
  }

  /** Reads the answer to our offer. Undefined when it takes none of our lines (RFC 4568 §5.1.3). */
  accept([answered]: readonly CryptoLine[]): SrtpKeys | undefined {
    if (answered === undefined || this.#terms.suites[answered.tag - 1] !== answered.suite) return undefined;
    return this.#own.has(answered.suite) ? this.#agreed(answered) : undefined;
  }

  /**
   * Gives our keys up. A stream that is in clear for a time goes on numbering its packets: under a key of before, a
   * number could come a second time then, or too far behind the last one for the far end to know it.
   */
  renew(): void {
    this.#own.clear();
  }

  #agreed({ suite, key }: CryptoLine): SrtpKeys {
    this.#theirs = key;
    this.#suite = suite;
    return { suite, sendKey: this.#key(suite), receiveKey: key };
  }

  #key(suite: SrtpSuite): Uint8Array {
    const known = this.#own.get(suite);
    if (known !== undefined) return known;
    const made = this.#terms.random(KEY_BYTES[suite]);
    this.#own.set(suite, made);
    return made;
  }
}

const lineOf = (tag: number, suite: SrtpSuite, key: Uint8Array): string =>
  `a=crypto:${tag} ${suite} inline:${btoa(String.fromCharCode(...key))}\r\n`;

const isSame = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && a.every((byte, at) => byte === b[at]);
