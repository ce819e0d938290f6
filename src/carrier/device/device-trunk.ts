/** How calls with devices are carried: the terms of a trunk that none of the operator's trunks is. */
import type { Peer } from '../../sip/flow.ts';
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

/** The peer that calls to a contact are sent to: where its REGISTER came from, over the same connection if it is up. */
export const peerOf = ({ transport, host, port }: Binding): Peer => ({
  transport,
  host,
  port,
  flow: 0,
  ...(transport === 'tls' ? { profile: { staysOnTls: true } } : {}),
});
