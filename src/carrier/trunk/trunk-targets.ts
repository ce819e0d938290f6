/**
 * The peers that requests over a trunk go to. A REGISTER goes to the outbound proxy, else to the address of the trunk.
 * A call goes the way that the registrar has named in Service-Route (RFC 3608), unless an outbound proxy is set:
 *
 *   REGISTER --> uri        200 with Service-Route: <sip:edge;lr>
 *   INVITE   --> edge       with Route: <sip:edge;lr>
 *
 * Calls go to the trunk's own address, with the same Route, where the first route is no address that we can reach, as
 * one within the carrier's network is not.
 */
import { isIP } from 'node:net';
import { isUnreachableFrom } from '../../sip/call/dialog.ts';
import { defaultPort, type Peer } from '../../sip/flow.ts';
import { parseNameAddress, parseUri, plainHost } from '../../sip/message/uri.ts';
import type { BoundPort } from '../socket/listener.ts';
import type { Resolver } from '../socket/resolver.ts';
import { isLoopback, nextHopOf, routeOf, type Trunk, type TrunkAddress, trunkProfile } from './trunk.ts';
import type { TrunkAddresses } from './trunk-addresses.ts';

interface TrunkTargetsOptions {
  readonly addresses: TrunkAddresses;
  /** The ports that we listen on. None while no socket is open. */
  ports(): readonly BoundPort[];
  resolver(): Resolver | undefined;
  /** The Service-Route of the trunk's registration, wherever in the cluster that is. Empty when there is none. */
  serviceRoute(trunk: Trunk): readonly string[];
}

export class TrunkTargets {
  readonly #options: TrunkTargetsOptions;

  constructor(options: TrunkTargetsOptions) {
    this.#options = options;
  }

  /** Whether we listen on TCP. */
  get hasTcp(): boolean {
    return this.#options.ports().some(({ transport }) => transport === 'tcp');
  }

  /** The Route header fields of a request that begins a call. */
  routes(trunk: Trunk): readonly string[] {
    const { route } = routeOf(trunk);
    return route === undefined ? this.#options.serviceRoute(trunk) : [route];
  }

  /** The peers of the trunk itself, to be tried in order. Empty when its name has no address. */
  async own(trunk: Trunk): Promise<readonly Peer[]> {
    const own = isLoopback(trunk) ? this.#ownPort() : undefined;
    if (own !== undefined) return [own];
    const address = nextHopOf(trunk);
    if (address === undefined || isLoopback(trunk)) return [];
    const peers = await this.#find(trunk, address);
    this.#options.addresses.learn(
      address.host,
      peers.map(({ host }) => host),
    );
    return peers;
  }

  /** The peers that a call over the trunk is tried with, in order. Empty when there is no address. */
  async ofCall(trunk: Trunk): Promise<readonly Peer[]> {
    const own = await this.own(trunk);
    const hop = nextHopOf(trunk);
    const [first] = routeOf(trunk).route === undefined ? this.#options.serviceRoute(trunk) : [];
    const address = first === undefined || hop === undefined ? undefined : addressOf(first, hop);
    if (address === undefined) return own;
    const seen = own[0]?.host;
    const routed = (await this.#find(trunk, address)).filter(({ host }) => seen === undefined || !isUnreachableFrom(host, seen));
    const isRouted = (peer: Peer) => routed.some(({ host, port }) => host === peer.host && port === peer.port);
    return [...routed, ...own.filter((peer) => !isRouted(peer))];
  }

  async #find(trunk: Trunk, { host, port, transport }: TrunkAddress): Promise<readonly Peer[]> {
    const found = (await this.#options.resolver()?.targets(host, port, transport)) ?? [];
    const more = { ...(isIP(host) === 0 ? { name: host } : {}), profile: trunkProfile(trunk, this.hasTcp) };
    return found.map((each) => ({ transport, host: each.host, port: each.port, flow: 0, ...more }));
  }

  /** Our own port, over UDP where there is one, as a process of this machine reaches it. */
  #ownPort(): Peer | undefined {
    const ports = this.#options.ports();
    const port = ports.find(({ transport }) => transport === 'udp') ?? ports.find(({ transport }) => transport === 'tcp');
    if (port === undefined) return undefined;
    const host = port.host === '0.0.0.0' ? '127.0.0.1' : port.host === '::' ? '::1' : port.host;
    return { transport: port.transport, host, port: port.port, flow: 0 };
  }
}

/**
 * The address of a route, over the transport that it names or that of `hop`. Undefined where it would leave TLS, since
 * descriptions may hold keys of the audio.
 */
function addressOf(route: string, hop: TrunkAddress): TrunkAddress | undefined {
  const uri = parseUri(parseNameAddress(route)?.uri ?? '');
  if (uri === undefined || uri.host === '') return undefined;
  const named = uri.scheme === 'sips' ? 'tls' : (uri.parameters.get('transport')?.toLowerCase() ?? hop.transport);
  if (named !== 'udp' && named !== 'tcp' && named !== 'tls') return undefined;
  if (hop.transport === 'tls' && named !== 'tls') return undefined;
  // A host without a port has the default one, or is a domain of services.
  const port = uri.port ?? (isIP(uri.host) === 0 ? undefined : defaultPort(named));
  return { host: plainHost(uri.host), port, transport: named };
}
