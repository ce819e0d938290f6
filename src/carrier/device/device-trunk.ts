/** How calls with devices are carried: the terms of a trunk that none of the operator's trunks is. */
import { SIP_CONNECT_FALLBACK_MS } from '../../limits.ts';
import { defaultPort, type Peer, type PeerProfile } from '../../sip/flow.ts';
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
  codecs: ['PCMU', 'PCMA', 'G722'],
  settings: { srtp: 'optional' },
  tlsKey: undefined,
};

/** What is special about devices: they are reached where their messages come from. */
export const DEVICE_PROFILE: PeerProfile = { staysOnTls: true, staysOnFlow: true };

/** The peer that calls to a contact are sent to: where its REGISTER came from, over the same connection. */
export const peerOf = ({ uri, transport, host, port }: Binding): Peer => ({
  ...{ transport, host, port, flow: 0 },
  profile: uri.startsWith('sips:') ? { ...DEVICE_PROFILE, isSips: true } : DEVICE_PROFILE,
});

/**
 * The peer of a contact over TCP whose connection is gone. A phone without NAT before it takes connections at its
 * Contact (RFC 3261 §18.1.1). Undefined where the Contact is another host, or the port that the phone used for the
 * connection, and over TLS: phones have no certificate for that.
 */
export function contactPeerOf({ uri, transport, host, port: used }: Binding): Peer | undefined {
  const contact = parseUri(uri);
  if (transport !== 'tcp' || contact === undefined || plainHost(contact.host) !== host) return undefined;
  const port = contact.port ?? defaultPort(transport);
  const profile = { ...DEVICE_PROFILE, staysOnFlow: false };
  return port === used ? undefined : { transport, host, port, flow: 0, connectMs: SIP_CONNECT_FALLBACK_MS, profile };
}
