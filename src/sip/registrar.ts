/**
 * What a REGISTER does to the contacts of a user (RFC 3261 §10.3), once its sender is known. A device that names itself
 * (`+sip.instance`) has one binding for each `reg-id`, whatever its Contact URI is (RFC 5626 §6), so that a phone that
 * restarts with another port takes its old binding's place. Pure: the bindings so far go in, those to store and the
 * answer come out.
 */
import {
  DEVICE_CONTACTS_MAX,
  DEVICE_INSTANCE_MAX_CHARS,
  DEVICE_URI_MAX_CHARS,
  SIP_REGISTER_MAX_SEC,
  SIP_REGISTER_MIN_SEC,
  SIP_REGISTER_STREAM_MAX_SEC,
} from '../limits.ts';
import { isReliable, type Peer } from './flow.ts';
import { parseCSeq, parseDeltaSeconds, type SipRequest } from './message/message.ts';
import { type Parameters, parseNameAddress, requestUri } from './message/uri.ts';
import type { TransportName } from './message/via.ts';

/** What a device calls itself. */
interface DeviceName {
  /** The device's `+sip.instance` without its quotes (RFC 5626 §4.1), and `""` where it named none. */
  readonly instance: string;
  /** The number that the device gave to this way to it, `reg-id` (RFC 5626 §4.2), and 0 where it gave none. */
  readonly regId: number;
}

/** One contact of a user: the URI that it gave, and where its packets come from, which is where calls are sent. */
export interface Binding extends DeviceName {
  /** The host is in lower case, and URI headers are left out. */
  readonly uri: string;
  readonly callId: string;
  readonly cseq: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly transport: TransportName;
  readonly host: string;
  readonly port: number;
  readonly userAgent: string;
}

/** A binding, and which process has the connection that it was made over: this one, another one, or none that lives. */
export interface HeldBinding extends Binding {
  readonly holder: 'here' | 'elsewhere' | 'nobody';
}

export type RegisterOutcome =
  /** 200 with the contacts that are bound now; `stored` and `removed` are what changes. */
  | {
      readonly status: 200;
      readonly bound: readonly Binding[];
      readonly stored: readonly Binding[];
      readonly removed: readonly string[];
    }
  /** 400 malformed, 403 too many contacts, 423 too brief, 500 out of order. */
  | { readonly status: 400 | 403 | 423 | 500 };

/** The longest User-Agent that is kept. */
const USER_AGENT_MAX_CHARS = 128;

/** One Contact of a REGISTER, and for how many seconds it is to be bound. 0 removes it. */
interface Asked extends DeviceName {
  readonly uri: string;
  readonly seconds: number;
}

/**
 * Decides about a REGISTER from `source`. `bindings` are those of the user; what has expired among them is ignored.
 * Bindings that `isLost` knows to be out of reach give way where the user would have too many.
 */
export function register<Bound extends Binding>(
  request: SipRequest,
  bindings: readonly Bound[],
  source: Peer,
  now: number,
  isLost: (binding: Bound) => boolean = () => false,
): RegisterOutcome {
  const { headers } = request;
  const callId = headers.get('call-id') ?? '';
  const cseq = parseCSeq(headers.get('cseq'))?.number;
  const contacts = headers.list('contact');
  if (cseq === undefined) return { status: 400 };
  const live = bindings.filter(({ expiresAt }) => expiresAt > now);
  // §10.3 step 7: a request that was overtaken by a later one of its Call-ID changes nothing.
  const isOvertaken = (binding: Binding) => binding.callId === callId && binding.cseq >= cseq;
  if (contacts.includes('*')) {
    if (contacts.length !== 1 || parseDeltaSeconds(headers.get('expires')) !== 0) return { status: 400 };
    if (live.some(isOvertaken)) return { status: 500 };
    return { status: 200, bound: [], stored: [], removed: live.map(({ uri }) => uri) };
  }
  // A request may replace all contacts that a user has by as many others.
  if (contacts.length > 2 * DEVICE_CONTACTS_MAX) return { status: 403 };
  const asked: Asked[] = [];
  for (const value of contacts) {
    const contact = readContact(value, headers.get('expires'));
    if (contact === undefined) return { status: 400 };
    if (live.some((binding) => isOf(contact, binding) && isOvertaken(binding))) return { status: 500 };
    if (contact.seconds > 0 && contact.seconds < SIP_REGISTER_MIN_SEC) return { status: 423 };
    asked.push(contact);
  }
  const { transport, host, port } = source;
  const userAgent = (headers.get('user-agent') ?? '').replace(/[\x00-\x1f\x7f]/g, ' ').slice(0, USER_AGENT_MAX_CHARS);
  const stored = lastOfEach(asked).map(({ seconds, ...contact }) => {
    const most = isReliable(transport) ? SIP_REGISTER_STREAM_MAX_SEC : SIP_REGISTER_MAX_SEC;
    const expiresAt = Math.floor(now) + Math.min(seconds, most) * 1000;
    return { ...contact, callId, cseq, expiresAt, transport, host, port, userAgent };
  });
  const isStored = (uri: string) => stored.some((each) => each.uri === uri);
  const replaced = live.filter((binding) => asked.some((contact) => isOf(contact, binding))).map(({ uri }) => uri);
  const removed = new Set([...asked.map(({ uri }) => uri), ...replaced].filter((uri) => !isStored(uri)));
  const kept = live.filter(({ uri }) => !isStored(uri) && !removed.has(uri));
  for (const { uri } of firstToGo(kept.filter(isLost), kept.length + stored.length - DEVICE_CONTACTS_MAX)) removed.add(uri);
  const bound = [...kept.filter(({ uri }) => !removed.has(uri)), ...stored];
  return bound.length > DEVICE_CONTACTS_MAX ? { status: 403 } : { status: 200, bound, stored, removed: [...removed] };
}

/** Reads a Contact of a REGISTER whose Expires is `expires`. Undefined when it is malformed. */
function readContact(value: string, expires: string | undefined): Asked | undefined {
  const contact = parseNameAddress(value);
  const uri = contact === undefined ? undefined : requestUri(contact.uri);
  if (contact === undefined || uri === undefined || uri.length > DEVICE_URI_MAX_CHARS) return undefined;
  const seconds = parseDeltaSeconds(contact.parameters.get('expires')) ?? parseDeltaSeconds(expires) ?? SIP_REGISTER_MAX_SEC;
  return { uri, seconds, ...nameOf(contact.parameters) };
}

/** What a device calls itself in the parameters of its Contact. A name that is none, or too long, counts as absent. */
function nameOf(parameters: Parameters): DeviceName {
  const instance = parameters.get('+sip.instance') ?? '';
  if (!/^[!#-[\]-~]+$/.test(instance) || instance.length > DEVICE_INSTANCE_MAX_CHARS) return { instance: '', regId: 0 };
  const regId = /^[0-9]{1,10}$/.test(parameters.get('reg-id') ?? '') ? Number(parameters.get('reg-id')) : 0;
  return { instance, regId: regId < 2 ** 31 ? regId : 0 };
}

/** Whether a Contact stands for a binding: it has its URI, or is of the same device. */
const isOf = (contact: Asked, binding: Binding): boolean => contact.uri === binding.uri || isSameDevice(contact, binding);

const isSameDevice = (one: DeviceName, other: DeviceName): boolean =>
  one.instance !== '' && one.instance === other.instance && one.regId === other.regId;

/**
 * The contacts to bind. The last one counts where a URI or a device is given more than once. A phone that has moved may
 * remove its old address in the request that binds the new one, before it or after it, so a removal takes only its own
 * URI back here.
 */
function lastOfEach(asked: readonly Asked[]): readonly Asked[] {
  const last = new Map<string, Asked>();
  for (const contact of asked) {
    last.delete(contact.uri);
    if (contact.seconds === 0) continue;
    for (const [uri, before] of last) if (isSameDevice(before, contact)) last.delete(uri);
    last.set(contact.uri, contact);
  }
  return [...last.values()];
}

/** So many of the bindings, those first that expire first. */
const firstToGo = (bindings: readonly Binding[], count: number): readonly Binding[] =>
  bindings.toSorted((one, other) => one.expiresAt - other.expiresAt).slice(0, Math.max(0, count));

/** The Contact header field of a binding in a 200 (§10.3 step 8). */
export function contactField({ uri, expiresAt, instance, regId }: Binding, now: number): readonly [string, string] {
  const name = instance === '' ? '' : `;+sip.instance="${instance}"${regId === 0 ? '' : `;reg-id=${regId}`}`;
  return ['contact', `<${uri}>;expires=${Math.max(0, Math.ceil((expiresAt - now) / 1000))}${name}`];
}
