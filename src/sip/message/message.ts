/**
 * A SIP message (RFC 3261 §7): a start line, header fields in order, a body. Header values stay text until someone asks
 * for more. The grammar of a field is in its own file.
 */

/** The compact forms of RFC 3261 §7.3.3 and of the extensions that we speak. */
const COMPACT: Readonly<Record<string, string>> = {
  a: 'accept-contact',
  b: 'referred-by',
  c: 'content-type',
  e: 'content-encoding',
  f: 'from',
  i: 'call-id',
  k: 'supported',
  l: 'content-length',
  m: 'contact',
  o: 'event',
  r: 'refer-to',
  s: 'subject',
  t: 'to',
  u: 'allow-events',
  v: 'via',
  x: 'session-expires',
};

const SPELLED = [
  'Accept',
  'Accept-Encoding',
  'Allow',
  'Authorization',
  'Call-ID',
  'Contact',
  'Content-Encoding',
  'Content-Length',
  'Content-Type',
  'CSeq',
  'Event',
  'Expires',
  'From',
  'Max-Forwards',
  'Min-Expires',
  'Min-SE',

  'Diversion',
  'History-Info',
  'P-Asserted-Identity',
  'P-Called-Party-ID',
  'P-Preferred-Identity',
  'Privacy',
  'Refer-To',
  'Referred-By',
  'Remote-Party-ID',
  'Replaces',
  'Path',
  'Proxy-Authenticate',
  'Proxy-Authorization',
  'Proxy-Require',
  'RAck',
  'Reason',
  'Record-Route',
  'Recv-Info',
  'Require',
  'Retry-After',
  'Route',
  'RSeq',
  'Server',
  'Session-Expires',
  'Subscription-State',
  'Supported',
  'Timestamp',
  'To',
  'Unsupported',
  'User-Agent',
  'Via',
  'Warning',
  'WWW-Authenticate',
];

/** The name used in code for a spelling on the wire. Names from the wire are never added, so its size is fixed. */
const CANONICAL = new Map<string, string>();
const DISPLAYED = new Map<string, string>();
for (const name of SPELLED) {
  const lower = name.toLowerCase();
  DISPLAYED.set(lower, name);
  CANONICAL.set(name, lower);
  CANONICAL.set(lower, lower);
}
for (const [short, name] of Object.entries(COMPACT)) {
  CANONICAL.set(short, name);
  CANONICAL.set(short.toUpperCase(), name);
}

/** The lower-case full name of a header field, compact forms resolved. */
export const canonicalName = (name: string): string => CANONICAL.get(name) ?? name.toLowerCase();

/** The spelling that is written on the wire. */
export const displayedName = (canonical: string): string => DISPLAYED.get(canonical) ?? canonical;

/** Header fields in the order of the message. Names are canonical (lower case, never compact). */
export class Headers {
  readonly names: string[] = [];
  readonly values: string[] = [];
  /** The spelling of extension fields as they came, by canonical name. Most messages have none. */
  #spellings: Map<string, string> | undefined;

  /** Keeps the spelling of an extension field. */
  spell(canonical: string, spelling: string): void {
    this.#spellings ??= new Map();
    this.#spellings.set(canonical, spelling);
  }

  /** The name of a field as it came. */
  spelling(canonical: string): string {
    return this.#spellings?.get(canonical) ?? canonical;
  }

  /** Appends a field. `name` must be canonical. */
  add(name: string, value: string): this {
    this.names.push(name);
    this.values.push(value);
    return this;
  }

  /** Replaces every field of that name by one, in the place of the first. */
  set(name: string, value: string): this {
    const at = this.names.indexOf(name);
    if (at < 0) return this.add(name, value);
    this.values[at] = value;
    for (let i = this.names.length - 1; i > at; i--) {
      if (this.names[i] === name) {
        this.names.splice(i, 1);
        this.values.splice(i, 1);
      }
    }
    return this;
  }

  /** The value of the first field of that name. */
  get(name: string): string | undefined {
    const at = this.names.indexOf(name);
    return at < 0 ? undefined : this.values[at];
  }

  has(name: string): boolean {
    return this.names.includes(name);
  }

  count(name: string): number {
    let found = 0;
    for (const each of this.names) if (each === name) found++;
    return found;
  }

  /** The values of all fields of that name, one entry a field. */
  fields(name: string): string[] {
    const found: string[] = [];
    for (let i = 0; i < this.names.length; i++) {
      const value = this.values[i];
      if (this.names[i] === name && value !== undefined) found.push(value);
    }
    return found;
  }

  /** All elements of a comma-separated header, over all its fields (RFC 3261 §7.3.1). */
  list(name: string): string[] {
    const found: string[] = [];
    for (const value of this.fields(name)) {
      if (value.includes(',')) found.push(...splitList(value));
      else if (value !== '') found.push(value);
    }
    return found;
  }
}

/** Splits at commas outside quoted strings and angle brackets. Empty elements are dropped. */
export function splitList(value: string): string[] {
  const parts: string[] = [];
  let quoted = false;
  let angle = false;
  let from = 0;
  for (let i = 0; i < value.length; i++) {
    const c = value.charCodeAt(i);
    if (quoted) {
      if (c === 0x5c) i++;
      else if (c === 0x22) quoted = false;
    } else if (c === 0x22) quoted = true;
    else if (c === 0x3c) angle = true;
    else if (c === 0x3e) angle = false;
    else if (c === 0x2c && !angle) {
      const part = value.slice(from, i).trim();
      if (part !== '') parts.push(part);
      from = i + 1;
    }
  }
  const last = value.slice(from).trim();
  if (last !== '') parts.push(last);
  return parts;
}

export interface SipRequest {
  readonly kind: 'request';
  readonly method: string;
  readonly uri: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export interface SipResponse {
  readonly kind: 'response';
  readonly status: number;
  readonly reason: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export type SipMessage = SipRequest | SipResponse;

export const NO_BODY: Uint8Array = new Uint8Array(0);

/** The number and method of CSeq (RFC 3261 §20.16). Undefined when malformed. */
export function parseCSeq(value: string | undefined): { readonly number: number; readonly method: string } | undefined {
  if (value === undefined) return undefined;
  const space = value.search(/[ \t]/);
  if (space < 1) return undefined;
  const number = parseDecimal(value.slice(0, space), 0x7fff_ffff);
  const method = value.slice(space).trim();
  return number === undefined || !isToken(method) ? undefined : { number, method };
}

/** An unsigned decimal of at most `max`; undefined for anything else. */
export function parseDecimal(text: string, max: number): number | undefined {
  if (text.length === 0 || text.length > 10) return undefined;
  let number = 0;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return undefined;
    number = number * 10 + digit;
  }
  return number <= max ? number : undefined;
}

const TOKEN = /^[A-Za-z0-9\-.!%*_+`'~]+$/;

/** RFC 3261 §25.1 `token`. */
export const isToken = (text: string): boolean => TOKEN.test(text);

/** The seconds of Retry-After, Expires, Min-SE and their kin; parameters and comments ignored. */
export function parseDeltaSeconds(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  let end = 0;
  while (end < value.length && value.charCodeAt(end) >= 0x30 && value.charCodeAt(end) <= 0x39) end++;
  return parseDecimal(value.slice(0, end), 0xffff_ffff);
}
