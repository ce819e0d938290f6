/**
 * What a REGISTER does to the contacts of a user (RFC 3261 §10.3), once its sender is known. Pure: the bindings so far
 * go in, those to store and the answer come out. Whose a binding is:
 *
 *   both name themselves    the device with that `+sip.instance` and `reg-id`, whatever its Contact is (RFC 5626 §6),
 *                           so that a phone that restarts with another port takes its old binding's place
 *   else                    the device with that Contact, in the same boot (Call-ID, §10.2) or at the same address,
 *                           where the same Path leads to it (RFC 3327)
 *
 * Phones in two homes may have one private address and so one Contact, `sip:alice@192.168.1.10:5060`. They are told
 * apart by the address that their packets come from, and each has a binding. A phone whose public address changes while
 * it is up keeps its Call-ID and so its binding; one that starts anew elsewhere leaves its old one until that expires.
 * All phones behind one proxy come from its address, and are told apart by the Path that it has written for each.
 */
import { detached } from '../bounds/detached.ts';
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
import { isSamePlace, pathOf } from './message/path.ts';
import { type Parameters, parseNameAddress, parseUri, plainHost, requestUri } from './message/uri.ts';
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
  /** Tells the bindings of a user apart: the URI, with a mark behind it where another device has the same one. */
  readonly key: string;
  /** The host is in lower case, and URI headers are left out. */
  readonly uri: string;
  readonly callId: string;
  readonly cseq: number;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly transport: TransportName;
  readonly host: string;
  readonly port: number;
  /** The Route of what is sent to the contact: the Path of its REGISTER (RFC 3327), and `""` where it had none. */
  readonly path: string;
  readonly userAgent: string;
}

/** A binding, and which process has the connection that it was made over: this one, another one, or none that lives. */
export interface HeldBinding extends Binding {
  readonly holder: 'here' | 'elsewhere' | 'nobody';
}

export type RegisterOutcome =
  /** 200 with the contacts that are bound now; `stored` and `removed`, which are keys, are what changes. */
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
 * Bindings that `isLost` knows to be out of reach give way where the user would have too many, and so do those with the
 * same URI: it may be one phone that starts anew again and again, each time behind another address.
 */
export function register<Bound extends Binding>(
  request: SipRequest,
  bindings: readonly Bound[],
  source: Peer,
  now: number,
  isLost: (binding: Bound) => boolean = () => false,
): RegisterOutcome {
  const { headers } = request;
  const callId = detached(headers.get('call-id') ?? '');
  const cseq = parseCSeq(headers.get('cseq'))?.number;
  const contacts = headers.list('contact');
  const path = pathOf(headers);
  if (cseq === undefined || path === undefined) return { status: 400 };
  const live = bindings.filter(({ expiresAt }) => expiresAt > now);
  // §10.3 step 7: a request that was overtaken by a later one of its Call-ID changes nothing.
  const isOvertaken = (binding: Binding) => binding.callId === callId && binding.cseq >= cseq;
  if (contacts.includes('*')) {
    if (contacts.length !== 1 || parseDeltaSeconds(headers.get('expires')) !== 0) return { status: 400 };
    if (live.some(isOvertaken)) return { status: 500 };
    return { status: 200, bound: [], stored: [], removed: live.map(({ key }) => key) };
  }
  // A request may replace all contacts that a user has by as many others.
  if (contacts.length > 2 * DEVICE_CONTACTS_MAX) return { status: 403 };
  const asked: Asked[] = [];
  const sent = (contact: Asked): Sent => ({ ...contact, callId, source, path });
  for (const value of contacts) {
    const contact = readContact(value, headers.get('expires'));
    if (contact === undefined) return { status: 400 };
    if (live.some((binding) => isOf(sent(contact), binding) && isOvertaken(binding))) return { status: 500 };
    if (contact.seconds > 0 && contact.seconds < SIP_REGISTER_MIN_SEC) return { status: 423 };
    asked.push(contact);
  }
  const { transport, host, port } = source;
  const userAgent = detached((headers.get('user-agent') ?? '').replace(/[\x00-\x1f\x7f]/g, ' ').slice(0, USER_AGENT_MAX_CHARS));
  const replaced = live.filter((binding) => asked.some((contact) => isOf(sent(contact), binding)));
  const kept = live.filter((binding) => !replaced.includes(binding));
  const stored: Binding[] = lastOfEach(asked).map(({ seconds, ...contact }) => {
    const most = isReliable(transport) ? SIP_REGISTER_STREAM_MAX_SEC : SIP_REGISTER_MAX_SEC;
    const expiresAt = Math.floor(now) + Math.min(seconds, most) * 1000;
    const key = keyOf(contact.uri, replaced, kept);
    return { key, ...contact, callId, cseq, expiresAt, transport, host, port, path, userAgent };
  });
  const removed = new Set(replaced.map(({ key }) => key).filter((key) => !stored.some((each) => each.key === key)));
  const mayGo = kept.filter((binding) => isLost(binding) || stored.some(({ uri }) => uri === binding.uri));
  for (const { key } of firstToGo(mayGo, kept.length + stored.length - DEVICE_CONTACTS_MAX)) removed.add(key);
  const bound = [...kept.filter(({ key }) => !removed.has(key)), ...stored];
  return bound.length > DEVICE_CONTACTS_MAX ? { status: 403 } : { status: 200, bound, stored, removed: [...removed] };
}

/** Reads a Contact of a REGISTER whose Expires is `expires`. Undefined when it is malformed. */
function readContact(value: string, expires: string | undefined): Asked | undefined {
  const contact = parseNameAddress(value);
  const uri = contact === undefined ? undefined : requestUri(contact.uri);
  if (contact === undefined || uri === undefined || uri.length > DEVICE_URI_MAX_CHARS) return undefined;
  const seconds = parseDeltaSeconds(contact.parameters.get('expires')) ?? parseDeltaSeconds(expires) ?? SIP_REGISTER_MAX_SEC;
  return { uri: detached(uriOfKey(uri)), seconds, ...nameOf(contact.parameters) };
}

/** What a device calls itself in the parameters of its Contact. A name that is none, or too long, counts as absent. */
function nameOf(parameters: Parameters): DeviceName {
  const instance = detached(parameters.get('+sip.instance') ?? '');
  if (!/^[!#-[\]-~]+$/.test(instance) || instance.length > DEVICE_INSTANCE_MAX_CHARS) return { instance: '', regId: 0 };
  const regId = /^[0-9]{1,10}$/.test(parameters.get('reg-id') ?? '') ? Number(parameters.get('reg-id')) : 0;
  return { instance, regId: regId < 2 ** 31 ? regId : 0 };
}

/** A Contact, and which request brought it. */
interface Sent extends Asked {
  readonly callId: string;
  readonly source: Peer;
  readonly path: string;
}

/** Whether a Contact stands for a binding, because the same device has made that. */
function isOf({ source, callId, path, ...contact }: Sent, binding: Binding): boolean {
  if (isSameDevice(contact, binding)) return true;
  if (contact.uri !== binding.uri) return false;
  const isThere = source.host === binding.host && isSamePlace(path, binding.path);
  if (contact.instance === '' || binding.instance === '') return callId === binding.callId || isThere;
  // Two devices, or two ways to one, unless they are called at one place: then the device names itself anew.
  if (path !== '' || binding.path !== '') return isThere && path === binding.path;
  const isBehindNat = plainHost(parseUri(contact.uri)?.host ?? '') !== source.host;
  return isThere && (!isBehindNat || (source.port === binding.port && source.transport === binding.transport));
}

/**
 * What stands behind the URI in the key of a further binding with it. It is a URI parameter, so that a node of a
 * release that takes keys for URIs reaches the device by it: parameters that a device does not know are ignored (RFC
 * 3261 §19.1.1).
 */
const MARK = /;sidetone-contact=[0-9]{1,2}$/;

/** The URI of the binding with that key. */
export const uriOfKey = (key: string): string => key.replace(MARK, '');

/** The key of a binding: that of the one with the same URI in whose place it comes, else one that no other has. */
function keyOf(uri: string, replaced: readonly Binding[], kept: readonly Binding[]): string {
  const before = replaced.find((binding) => binding.uri === uri);
  if (before !== undefined) return before.key;
  let key = uri;
  for (let number = 2; kept.some((binding) => binding.key === key); number++) key = `${uri};sidetone-contact=${number}`;
  return key;
}

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

/**
 * The Contact header fields of a 200 (§10.3 step 8). A URI stands there once, and where it is one of the request's with
 * what became of that: what another device has bound by the same one would be taken for its own.
 */
export function contactFields(
  { bound, stored, removed }: Pick<Extract<RegisterOutcome, { readonly status: 200 }>, 'bound' | 'stored' | 'removed'>,
  now: number,
): readonly (readonly [string, string])[] {
  const shown = new Map(bound.toSorted((one, other) => one.expiresAt - other.expiresAt).map((each) => [each.uri, each]));
  for (const key of removed) shown.delete(uriOfKey(key));
  for (const binding of stored) shown.set(binding.uri, binding);
  return bound.filter((binding) => shown.get(binding.uri) === binding).map((binding) => contactField(binding, now));
}

function contactField({ uri, expiresAt, instance, regId }: Binding, now: number): readonly [string, string] {
  const name = instance === '' ? '' : `;+sip.instance="${instance}"${regId === 0 ? '' : `;reg-id=${regId}`}`;
  return ['contact', `<${uri}>;expires=${Math.max(0, Math.ceil((expiresAt - now) / 1000))}${name}`];
}
