/** Makes the legs of dials to devices. */
import { isIP } from 'node:net';
import type { DeviceDirectory } from '../../call/ports/devices.ts';
import type { DialOptions, DialRefused, Leg } from '../../call/ports/leg.ts';
import type { Peer } from '../../sip/flow.ts';
import { receivedFrom } from '../../sip/message/path.ts';
import type { Binding } from '../../sip/registrar.ts';
import type { PhoneLegOptions } from '../leg/phone-leg.ts';
import { DeviceLeg } from './device-leg.ts';
import { contactPeerOf, peerOf } from './device-trunk.ts';

interface DeviceDialOptions {
  readonly directory: DeviceDirectory;
  now(): number;
  localHost(peer: Peer): string;
  /** Whether a connection of this process to the place of a contact is up. */
  isConnected(contact: Binding): boolean;
  /** Whether a contact of that user has answered pings, and does not any more. */
  isSilent(username: string, contact: Binding): boolean;
  /** The terms of a call with a device at that address. `transport` carries its signalling. */
  legOptions(address: () => string, transport: Peer['transport'] | undefined): PhoneLegOptions;
}

export class DeviceDial {
  readonly #options: DeviceDialOptions;

  constructor(options: DeviceDialOptions) {
    this.#options = options;
  }

  /** The leg of a dial to `sip:` and a user name. Nothing is sent before its `start`. */
  dial(order: DialOptions): { readonly leg: Leg } | { readonly unavailable: DialRefused } {
    const { directory, now, localHost, isConnected, isSilent, legOptions } = this.#options;
    const username = order.to.slice('sip:'.length);
    if (directory.find(username)?.appUuid !== order.appUuid) return { unavailable: 'unknown_device' };
    const leg = new DeviceLeg(
      legOptions(() => '127.0.0.1', undefined),
      {
        order,
        contacts: async () => onceAtEachPlace((await directory.bindings(username)).filter(({ expiresAt }) => expiresAt > now())),
        options: (contacts) => {
          const [first] = contacts;
          // Keys are given away over TLS only; the other contacts are offered the same ports in clear.
          const transport = contacts.some((each) => each.transport === 'tls') ? 'tls' : undefined;
          const terms = legOptions(() => first?.host ?? '127.0.0.1', transport);
          // The audio comes from where a proxy before the device saw it, unless the proxy relays that.
          const sources = contacts.flatMap(({ host, path }) => [host, ...receivedFrom(path)]);
          return { ...terms, rtpSources: () => sources.filter((address) => isIP(address) !== 0) };
        },
        peerOf: (contact) => (isConnected(contact) ? undefined : contactPeerOf(contact)) ?? peerOf(contact),
        localHost: (contact) => localHost(peerOf(contact)),
        isSilent: (contact) => isSilent(username, contact),
      },
    );
    return { leg };
  }
}

/**
 * A phone is rung once by one URI at one place. It is bound twice so after a node of the release before has taken its
 * REGISTER, which knows no keys.
 */
function onceAtEachPlace(bindings: readonly Binding[]): readonly Binding[] {
  const nameOf = ({ uri, transport, host, port, path }: Binding) => `${uri} ${transport} ${host} ${port} ${path}`;
  return [...new Map(bindings.map((binding) => [nameOf(binding), binding])).values()];
}
