/** The sockets of the carrier. Every SIP message is sent and received here. */
import { isIP } from 'node:net';
import { ThrottledLog } from '../../bounds/throttled-log.ts';
import type { Clock } from '../../clock.ts';
import type { SipListen } from '../../config.ts';
import { SIP_CONNECTION_COMPLAINT_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Peer, Place, SendFailure } from '../../sip/flow.ts';
import { startError } from '../../start-error.ts';
import { readTls, type TlsFiles, type TlsMaterial, watchTls } from './certificate.ts';
import type { Connection } from './connection.ts';
import { type DatagramSocket, openDatagramSocket } from './datagram.ts';
import { boundTowards, ownAddress, reaches, spoken } from './own-address.ts';
import { createResolver, type Resolver } from './resolver.ts';
import { StrangerLimit } from './stranger-limit.ts';
import { Streams, type TlsIdentity } from './stream.ts';

interface ListenerOptions {
  readonly listen: readonly SipListen[];
  /** Files for `tls` in `listen` and for trunks over TLS. `caFile` holds authorities beside the system's own. */
  readonly tls: TlsFiles | undefined;
  /** Our addresses as far ends are told them. Empty: the bound ones. */
  readonly advertise: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** The authorities and the client certificate that a profile names (sip/flow.ts). */
  tlsOf(identity: string): TlsIdentity | undefined;
  /** Whether an address is a trunk's or a registered device's. */
  isKnown(address: string): boolean;
  /** Whether nothing is heard from an address: its datagrams and connections are dropped. */
  isBanned(address: string): boolean;
  /** `isLate`: it has waited on its connection for longer than a new call may. */
  onMessage(bytes: Uint8Array, source: Peer, isLate: boolean): void;
  /** A connection is closed that a device was registered over. */
  onLost(source: Pick<Peer, 'transport' | 'host' | 'port'>): void;
}

export interface BoundPort {
  readonly transport: SipListen['transport'];
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  readonly ports: readonly BoundPort[];
  readonly resolver: Resolver;
  /** Sends bytes. `failed` is called later, when it is known that they were not sent, or may not have arrived. */
  send(bytes: Uint8Array, peer: Peer, failed: (why: SendFailure) => void): void;
  /**
   * Our address as that peer reaches it: the advertised one, else the bound one, else that of the interface on the way.
   */
  local(peer: Peer): { readonly host: string; readonly port: number };
  /** Whether a connection to just that address and port is up. */
  isConnected(place: Place): boolean;
  /**
   * Keeps the connection that a device has registered over, if it is one, until its binding expires. `isProxy`: it is
   * that of a proxy before the device.
   */
  keep(place: Place, until: number, isProxy: boolean): void;
  /** The datagrams that were lost because too many waited to be worked on. */
  lost(): number;
  /** Reads the TLS certificate anew, for connections from now on. */
  reloadCertificate(): void;
  close(): Promise<void>;
}

/** Opens every socket; rejects, with all closed again, when one cannot be bound. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const datagrams: DatagramSocket[] = [];
  const ports: BoundPort[] = [];
  const strangers = new StrangerLimit(
    (address) => options.isKnown(address),
    (done) => setImmediate(done),
  );
  const { tls = {} } = options;
  const streams = new Streams(options.listen.length, {
    ...options,
    tls: certificateOf(tls),
    onMessage(bytes, { transport, remoteHost: host, remotePort: port, flow, isLate }) {
      options.onMessage(bytes, { transport, host, port, flow }, isLate);
    },
    onLost: ({ transport, remoteHost: host, remotePort: port }) => options.onLost({ transport, host, port }),
    onRefused: refusedConnections(options),
  });
  const certificate = watchTls(tls, options.log, (material) => streams.useTls(material));
  const close = async () => {
    certificate.close();
    for (const socket of datagrams) socket.close();
    await streams.close();
  };
  const resolver = createResolver(options.clock, () => spoken(options.listen));
  try {
    for (const { transport, host, port } of options.listen) {
      const failed = (error: unknown): never => {
        throw startError('SIP_LISTEN', `port ${port} of ${host} cannot be bound for ${transport}`, error);
      };
      if (transport === 'udp') {
        const flow = datagrams.length + 1;
        const admits = (from: string) => !options.isBanned(from) && strangers.admits(from);
        const socket = await openDatagramSocket(host, port, admits, ({ bytes, ...from }) =>
          options.onMessage(bytes, { transport: 'udp', ...from, flow }, false),
        ).catch(failed);
        datagrams.push(socket);
        ports.push({ transport, host, port: socket.port });
      } else ports.push({ transport, host, port: await streams.listen(transport, host, port).catch(failed) });
    }
  } catch (error) {
    await close();
    throw error;
  }

  const send = senderOver(datagrams, streams, resolver);

  return {
    ports,
    resolver,
    send,
    local: (peer) => ownAddress(ports, options.advertise, peer),
    isConnected: ({ transport, host, port }) => transport !== 'udp' && streams.has(transport, host, port),
    keep: ({ transport, host, port }, until, isProxy) =>
      transport !== 'udp' && streams.keep(transport, host, port, until, isProxy),
    lost: () => datagrams.reduce((sum, socket) => sum + socket.lost(), 0),
    reloadCertificate: certificate.reload,
    close,
  };
}

/** Logs why a connection that we opened did not come up: a carrier refuses us, or its certificate is not trusted. */
function refusedConnections({ log, clock }: ListenerOptions): (connection: Connection, reason: string) => void {
  const throttled = new ThrottledLog(log, clock, SIP_CONNECTION_COMPLAINT_MS);
  return ({ transport, remoteHost: host, remotePort: port }, reason) => {
    const key = `${transport} ${host} ${port} ${reason}`;
    throttled.say('warn', key, { transport, host, port, reason }, 'a SIP connection could not be opened');
  };
}

function certificateOf(files: TlsFiles): TlsMaterial {
  try {
    return readTls(files);
  } catch (error) {
    throw startError('SIP_TLS_CERT, SIP_TLS_KEY', 'the certificate and its key cannot be read', error);
  }
}

/** Sends each message over the socket of its peer's transport, once the name of the peer is an address. */
function senderOver(datagrams: readonly DatagramSocket[], streams: Streams, resolver: Resolver): Listener['send'] {
  type Failed = (why: SendFailure) => void;
  const sendTo = (bytes: Uint8Array, peer: Peer, host: string, port: number, failed: Failed): void => {
    if (peer.transport !== 'udp') {
      const { transport, flow, name = peer.host, profile, connectMs } = peer;
      const identity = profile?.tls ?? '';
      const opens = profile?.staysOnFlow !== true;
      streams.send({ transport, flow, host, port, name, identity, opens, connectMs }, bytes, failed);
      return;
    }
    const taken = datagrams[peer.flow - 1];
    const socket = taken !== undefined && reaches(taken.host, host) ? taken : boundTowards(datagrams, host);
    if (socket === undefined || !socket.send(bytes, host, port)) failed('refused');
  };

  const send = (bytes: Uint8Array, peer: Peer, failed: Failed): void => {
    const { fallback } = peer;
    // A Contact that cannot be reached does not lose the request: it goes to where the dialog's messages came from.
    const later = (why: SendFailure) =>
      queueMicrotask(() => (fallback === undefined || why === 'lost' ? failed(why) : send(bytes, fallback, failed)));
    if (isIP(peer.host) !== 0) {
      sendTo(bytes, peer, peer.host, peer.port, later);
      return;
    }
    const port = peer.isPortless === true ? undefined : peer.port;
    void resolver.resolve(peer.host, port, peer.transport).then((found) => {
      if (found === undefined) later('refused');
      else sendTo(bytes, peer, found.host, found.port, later);
    });
  };
  return send;
}
