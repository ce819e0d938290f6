/**
 * What a REGISTER does to the contacts of a user (RFC 3261 §10.3), once its sender is known. Pure: the bindings so far
 * go in, those to store and the answer come out.
 */
import { DEVICE_CONTACTS_MAX, DEVICE_URI_MAX_CHARS, SIP_REGISTER_MAX_SEC, SIP_REGISTER_MIN_SEC } from '../limits.ts';
import type { Peer } from './flow.ts';
import { parseCSeq, parseDeltaSeconds, type SipRequest } from './message/message.ts';
import { parseNameAddress, requestUri } from './message/uri.ts';
import type { TransportName } from './message/via.ts';

/** One contact of a user: the URI that it gave, and where its packets come from, which is where calls are sent. */
export interface Binding {
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

/** Decides about a REGISTER from `source`. `bindings` are those of the user; what has expired among them is ignored. */
export function register(request: SipRequest, bindings: readonly Binding[], source: Peer, now: number): RegisterOutcome {
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
  // The last one counts where a contact is given more than once.
  const changes = new Map<string, Binding | undefined>();
  for (const value of contacts) {
    const contact = parseNameAddress(value);
    const uri = contact === undefined ? undefined : requestUri(contact.uri);
    if (contact === undefined || uri === undefined || uri.length > DEVICE_URI_MAX_CHARS) return { status: 400 };
    if (live.some((binding) => binding.uri === uri && isOvertaken(binding))) return { status: 500 };
    const asked = parseDeltaSeconds(contact.parameters.get('expires')) ?? parseDeltaSeconds(headers.get('expires'));
    if (asked === 0) {
      changes.set(uri, undefined);
      continue;
    }
    if (asked !== undefined && asked < SIP_REGISTER_MIN_SEC) return { status: 423 };
    const seconds = Math.min(asked ?? SIP_REGISTER_MAX_SEC, SIP_REGISTER_MAX_SEC);
    const { transport, host, port } = source;
    const userAgent = (headers.get('user-agent') ?? '').replace(/[\x00-\x1f\x7f]/g, ' ').slice(0, USER_AGENT_MAX_CHARS);
    const expiresAt = Math.floor(now) + seconds * 1000;
    changes.set(uri, { uri, callId, cseq, expiresAt, transport, host, port, userAgent });
  }
  const stored = [...changes.values()].filter((binding) => binding !== undefined);
  const removed = [...changes].filter(([, binding]) => binding === undefined).map(([uri]) => uri);
  const bound = [...live.filter(({ uri }) => !changes.has(uri)), ...stored];
  return bound.length > DEVICE_CONTACTS_MAX ? { status: 403 } : { status: 200, bound, stored, removed };
}

/** The Contact header field of a binding in a 200 (§10.3 step 8). */
export const contactField = ({ uri, expiresAt }: Binding, now: number): readonly [string, string] => [
  'contact',
  `<${uri}>;expires=${Math.max(0, Math.ceil((expiresAt - now) / 1000))}`,
];
