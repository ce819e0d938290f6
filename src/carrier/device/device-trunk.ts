/** How calls with devices are carried: the terms of a trunk that none of the operator's trunks is. */
import { SIP_CONNECT_FALLBACK_MS } from '../../limits.ts';
import { defaultPort, type Peer, type PeerProfile } from '../../sip/flow.ts';
import { edgeOf } from '../../sip/message/path.ts';
import { parseUri, plainHost } from '../../sip/message/uri.ts';
import type { Binding } from '../../sip/registrar.ts';
import type { Trunk } from '../trunk/trunk.ts';

/**
 * A device may encrypt its audio over TLS and need not, speaks G.711 and G.722, and may be anywhere: what is not known
 * of its network is learnt from where its packets come from.
 */
export const DEVICE_TRUNK: Trunk = {
  name: '',
  uri: '',
  username: undefined,
  password: undefined,
  register: false,
  inboundCidrs: [],
  maxChannels: undefined,
  codecs: undefined,
  settings: { srtp: 'optional' },
  tlsKey: undefined,
};

/** What is special about devices: they are reached where their messages come from. */
export const DEVICE_PROFILE: PeerProfile = { staysOnTls: true, staysOnFlow: true };

/**
 * The peer that calls to a contact are sent to: where its REGISTER came from, over the same connection. For a phone
 * behind a proxy that is the proxy, as the first URI of its Path is (RFC 3327 §5.2). That URI is believed for no more
 * than the port of a connection (`contactPeerOf`): any device may write any address there, of a victim or of this
 * platform, and behind a NAT the proxy's own is a private one.
 */
export const peerOf = ({ uri, transport, host, port }: Binding): Peer => ({
  ...{ transport, host, port, flow: 0 },
  profile: uri.startsWith('sips:') ? { ...DEVICE_PROFILE, isSips: true } : DEVICE_PROFILE,
});

/**
 * How a proxy says that the connection or the NAT binding of the phone behind it is gone: Flow Failed (RFC 5626 §11.4),
 * and Kamailio's own status for that.
 */
export const FLOW_FAILED: ReadonlySet<number> = new Set([430, 477]);

/** The Route of what is sent to a contact out of dialogs. */
export const routeTo = ({ path }: Pick<Binding, 'path'>): readonly (readonly [string, string])[] =>
  path === '' ? [] : [['route', path]];

/**
 * The peer of a contact over a connection that is gone, where a new one may be opened. Undefined where none may.
 *
 *   behind a proxy  its address, and the port of the first URI of Path. None over TLS where that URI names no TLS: it
 *                   may be that of the socket towards the phone
 *   else            over TCP: a phone without NAT before it takes connections at its Contact (RFC 3261 §18.1.1). None
 *                   where the Contact is another host, or the port that the phone used for the connection; and none
 *                   over TLS, as phones have no certificate for that
 */
export function contactPeerOf({ uri, transport, host, port: used, path }: Omit<Binding, 'key'>): Peer | undefined {
  const edge = edgeOf(path, transport);
  const contact = parseUri(uri);
  if (transport === 'udp' || contact === undefined) return undefined;
  if (edge !== undefined && transport === 'tls' && !edge.isTls) return undefined;
  if (edge === undefined && (transport !== 'tcp' || plainHost(contact.host) !== host)) return undefined;
  const port = edge?.port ?? contact.port ?? defaultPort(transport);
  const name = edge === undefined ? {} : { name: edge.host };
  const profile = { ...DEVICE_PROFILE, staysOnFlow: false };
  return port === used ? undefined : { transport, host, port, flow: 0, connectMs: SIP_CONNECT_FALLBACK_MS, ...name, profile };
}
