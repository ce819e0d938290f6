/** A dialog (RFC 3261 §12): who the two ends are, their sequence numbers, and the way between them. */
import { detached } from '../../bounds/detached.ts';
import { SIP_CONNECT_FALLBACK_MS, SIP_ROUTES_MAX } from '../../limits.ts';
import { defaultPort, type Peer } from '../flow.ts';
import { Headers, NO_BODY, parseCSeq, type SipRequest, type SipResponse } from '../message/message.ts';
import { formatHostPort, parseHostPort, parseNameAddress, parseUri, plainHost, tagOf } from '../message/uri.ts';

export interface Dialog {
  readonly callId: string;
  readonly localTag: string;
  readonly remoteTag: string;
  /** The whole From of our requests, tag included. */
  readonly local: string;
  /** The whole To of our requests, tag included. */
  readonly remote: string;
  localNumber: number;
  /** The CSeq number of the far end's last request. Undefined until it sent one (RFC 3261 §12.1.2). */
  remoteNumber: number | undefined;
  readonly routes: readonly string[];
  /** The far end's Contact; changes with target refresh (§12.2). */
  target: string;
  /** The peer that the dialog's messages came from. One that stays on its flow may have another one later. */
  peer: Peer;
}

/** The key of a dialog among all dialogs of one user agent (RFC 3261 §12). */
export const dialogKey = (callId: string, localTag: string, remoteTag: string): string => `${callId} ${localTag} ${remoteTag}`;

/** The URI of the first Contact, by itself. */
export function contactOf(headers: Headers): string | undefined {
  const value = headers.get('contact');
  if (value === undefined) return undefined;
  const contact = parseNameAddress(value.includes(',') ? (headers.list('contact')[0] ?? '') : value);
  return contact === undefined || parseUri(contact.uri) === undefined ? undefined : detached(contact.uri);
}

/** The URI of the Contact with the highest q (RFC 3261 §8.1.3.4), the first one of equals. */
export function preferredContact(headers: Headers): string | undefined {
  let best: { readonly uri: string; readonly q: number } | undefined;
  for (const value of headers.list('contact')) {
    const contact = parseNameAddress(value);
    const q = /^(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)$/.exec(contact?.parameters.get('q') ?? '1')?.[0] ?? '0';
    if (contact === undefined || parseUri(contact.uri) === undefined || Number(q) <= (best?.q ?? -1)) continue;
    best = { uri: contact.uri, q: Number(q) };
  }
  return best?.uri;
}

/**
 * The dialog that a response with a To tag makes for the client (RFC 3261 §12.1.2). Undefined when the response cannot
 * make one.
 */
export function dialogOfResponse(request: SipRequest, response: SipResponse, peer: Peer): Dialog | undefined {
  const { headers } = response;
  const remote = headers.get('to');
  const remoteTag = tagOf(remote);
  const local = request.headers.get('from');
  const routes = headers.list('record-route').reverse();
  if (remote === undefined || local === undefined || routes.length > SIP_ROUTES_MAX) return undefined;
  return standingAlone({
    callId: request.headers.get('call-id') ?? '',
    localTag: tagOf(local) ?? '',
    remoteTag: remoteTag ?? '',
    local,
    remote,
    localNumber: parseCSeq(request.headers.get('cseq'))?.number ?? 0,
    remoteNumber: undefined,
    routes,
    target: contactOf(headers) ?? request.uri,
    peer,
  });
}

/** The dialog that an INVITE makes for the server (RFC 3261 §12.1.1). Undefined when the request cannot open one. */
export function dialogOfRequest(request: SipRequest, localTag: string, source: Peer): Dialog | undefined {
  const { headers } = request;
  const from = headers.get('from');
  const to = headers.get('to');
  const target = contactOf(headers);
  const routes = headers.list('record-route');
  if (from === undefined || to === undefined || target === undefined || routes.length > SIP_ROUTES_MAX) return undefined;
  return standingAlone({
    callId: headers.get('call-id') ?? '',
    localTag,
    remoteTag: tagOf(from) ?? '',
    local: `${to};tag=${localTag}`,
    remote: from,
    localNumber: 0,
    remoteNumber: parseCSeq(headers.get('cseq'))?.number,
    routes,
    target,
    peer: source,
  });
}

/** The same without the message that it was read from, which a long call would hold else. */
function standingAlone(dialog: Dialog): Dialog {
  return {
    ...dialog,
    callId: detached(dialog.callId),
    localTag: detached(dialog.localTag),
    remoteTag: detached(dialog.remoteTag),
    local: detached(dialog.local),
    remote: detached(dialog.remote),
    routes: dialog.routes.map(detached),
  };
}

/**
 * A request within the dialog (RFC 3261 §12.2.1.1), without Via and Contact. ACK takes the number of its INVITE, others
 * the next one.
 */
export function dialogRequest(dialog: Dialog, method: string, number?: number): SipRequest {
  const headers = new Headers();
  const sequence = number ?? ++dialog.localNumber;
  const first = dialog.routes[0];
  let uri = dialog.target;
  if (first !== undefined) {
    const route = parseNameAddress(first);
    const loose = route !== undefined && parseUri(route.uri)?.parameters.has('lr') === true;
    if (loose || route === undefined) for (const each of dialog.routes) headers.add('route', each);
    else {
      // A strict router ahead (§12.2.1.1): it wants to be the Request-URI, and the target comes last.
      uri = route.uri;
      for (const each of dialog.routes.slice(1)) headers.add('route', each);
      headers.add('route', `<${dialog.target}>`);
    }
  }
  headers.add('max-forwards', '70').add('from', dialog.local).add('to', dialog.remote);
  headers.add('call-id', dialog.callId).add('cseq', `${sequence} ${method}`);
  return { kind: 'request', method, uri, headers, body: NO_BODY };
}

/**
 * A Refer-To for the far end of the dialog, with a Replaces that its user agent takes for this dialog (RFC 3891 §3).
 */
export function replacing({ target, callId, localTag, remoteTag }: Dialog): string {
  const replaces = encodeURIComponent(`${callId};to-tag=${remoteTag};from-tag=${localTag}`);
  return `<${target}${target.includes('?') ? '&' : '?'}Replaces=${replaces}>`;
}

/** The host of our own address in the dialog, with its port if it has one: the far end knows us by it. */
export function localDomain({ local }: Dialog): string {
  const uri = parseUri(parseNameAddress(local)?.uri ?? '');
  return uri === undefined ? '' : formatHostPort(uri.host, uri.port);
}

/**
 * Whether a request within the dialog has failed because the connection of a device is gone. The device registers over
 * another one then, with which the call goes on.
 */
export const mayComeBack = ({ peer }: Dialog, why: 'timeout' | 'unreachable'): boolean =>
  why === 'unreachable' && peer.profile?.staysOnFlow !== undefined;

/** The peer that a request of the dialog is sent to: the first route, else the target (RFC 3261 §8.1.2). */
export function nextHop(dialog: Dialog): Peer {
  const first = dialog.routes[0];
  const routed = first === undefined ? undefined : parseNameAddress(first)?.uri;
  const peer = peerOfUri(routed ?? dialog.target, dialog.peer);
  if (peer === undefined) return dialog.peer;
  if (routed === undefined && isOnFlow(dialog.peer, peer)) return withContact(dialog.peer, peer);
  // A device may write any address there, of a victim or of this platform. Like its Path it is believed for the port.
  const isDevice = dialog.peer.profile?.staysOnFlow !== undefined;
  if (isDevice && peer.host !== dialog.peer.host) return dialog.peer;
  // A far end behind NAT that writes its private address into Contact is where its packets come from, not there.
  if (routed === undefined && isUnreachableFrom(peer.host, dialog.peer.host)) return dialog.peer;
  // Descriptions may hold keys of the audio.
  if (dialog.peer.profile?.staysOnTls === true && dialog.peer.transport === 'tls' && peer.transport !== 'tls') return dialog.peer;
  const isSame = peer.host === dialog.peer.host && peer.port === dialog.peer.port;
  return isSame ? peer : { ...peer, fallback: dialog.peer };
}

/**
 * Whether a far end is reached on its flow, and not at its Contact: over its connection, or at the port of its
 * datagrams where its Contact names another host. A phone on UDP without a NAT may listen on another port.
 */
const isOnFlow = (seen: Peer, contact: Peer): boolean =>
  seen.profile?.staysOnFlow === true && (seen.transport !== 'udp' || contact.host !== seen.host || contact.transport !== 'udp');

/** A peer on its flow: where its connection is gone, a phone on TCP without a NAT is reached at its Contact. */
const withContact = (seen: Peer, { transport, host, port }: Peer): Peer =>
  seen.transport === 'tcp' && transport === 'tcp' && host === seen.host && port !== seen.port
    ? { ...seen, fallback: { transport, host, port, flow: 0, connectMs: SIP_CONNECT_FALLBACK_MS } }
    : seen;

/** The far end of a call: the peer that it began with, and its dialog once there is one. */
export interface FarEnd {
  readonly peer: Peer | undefined;
  readonly dialog: Dialog | undefined;
}

/**
 * Whether requests of a call may come from that address: the far end's, that of the next hop towards it, or one in the
 * ranges that its trunk had when the call began.
 */
export function mayComeFrom(
  host: string,
  { peer, dialog }: FarEnd,
  isWithin: (host: string, ranges: readonly string[]) => boolean,
): boolean {
  if (peer?.host === host || dialog?.peer.host === host) return true;
  if (dialog !== undefined && nextHop(dialog).host === host) return true;
  const ranges = peer?.profile?.ranges;
  return ranges !== undefined && isWithin(host, ranges);
}

/** The peer that a URI names, over the transport it names or that of `like`. Undefined when it is no SIP URI. */
function peerOfUri(text: string, like: Peer): Peer | undefined {
  const uri = parseUri(text);
  if (uri === undefined || uri.host === '') return undefined;
  // A maddr is where the message goes, in place of the host (RFC 3261 §19.1.1, RFC 3263 §4).
  const host = plainHost((parseHostPort(uri.parameters.get('maddr') ?? '') ?? uri).host);
  const named = uri.parameters.get('transport')?.toLowerCase();
  const transport =
    uri.scheme === 'sips' || named === 'tls'
      ? 'tls'
      : named === 'tcp'
        ? like.transport === 'tls'
          ? 'tls'
          : 'tcp'
        : named === 'udp'
          ? 'udp'
          : like.transport;
  // The name that it was resolved from: the servers of a domain need not know each other's calls.
  if (uri.port === undefined && host.toLowerCase() === like.name?.toLowerCase() && transport === like.transport) return like;
  const port = uri.port ?? defaultPort(transport);
  const name = like.name !== undefined && host === like.host ? { name: like.name } : {};
  const profile = like.profile === undefined ? {} : { profile: like.profile };
  const isPortless = uri.port === undefined ? { isPortless: true } : {};
  return { transport, host, port, flow: transport === like.transport ? like.flow : 0, ...isPortless, ...name, ...profile };
}

/** The private networks (RFC 1918, 6598, 3927, 4193, 4291 and loopback). */
const PRIVATE = [
  /^10\./,
  /^127\./,
  /^169\.254\./,
  /^192\.168\./,
  /^172\.(?:1[6-9]|2[0-9]|3[01])\./,
  /^100\.(?:6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7])\./,
  /^f[cd][0-9a-f]{2}:/,
  /^fe[89ab][0-9a-f]:/,
  /^::1$/,
];

/** Whether `host` is an address of a private network that `seen`, the address packets come from, is not in. */
export function isUnreachableFrom(host: string, seen: string): boolean {
  if (host.startsWith('0.')) return true;
  const network = PRIVATE.find((each) => each.test(host));
  return network !== undefined && !network.test(seen);
}
