/**
 * SIP over TCP and TLS (RFC 3261 §18): connections in both directions, reused in both, each with limits of time, bytes
 * and work.
 *
 * Connections that we open are counted apart from those that others open, so that nobody outside can keep us from
 * calling.
 */
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
  type TlsOptions,
  Server as TlsServer,
} from 'node:tls';
import { Shares } from '../../bounds/shares.ts';
import type { Clock } from '../../clock.ts';
import {
  SIP_CONNECT_TIMEOUT_MS,
  SIP_CONNECTION_TURN_MESSAGES,
  SIP_INBOUND_CONNECTIONS_MAX,
  SIP_OUTBOUND_CONNECTIONS_MAX,
  SIP_OUTBOUND_CONNECTIONS_PER_HOST,
  SIP_TLS_HANDSHAKES_OF_STRANGERS,
  SIP_TLS_HANDSHAKES_PER_STRANGER,
  SIP_TURN_MESSAGES,
  SIP_TURN_MS,
} from '../../limits.ts';
import type { SendFailure } from '../../sip/flow.ts';
import { RefusalLimit } from '../../sip/refusal-limit.ts';
import { sourceOf } from '../../sip/source.ts';
import type { TlsMaterial } from './certificate.ts';
import { Connection, type ConnectionKind, type StreamTransport } from './connection.ts';
import { InboundConnections } from './inbound-connections.ts';

/** PEM text. */
export interface TlsIdentity {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** The target of a message over a stream. */
export interface StreamTarget {
  readonly transport: StreamTransport;
  /** The number of a connection to reuse, 0 for none. */
  readonly flow: number;
  readonly host: string;
  readonly port: number;
  /** The name that a TLS certificate must be valid for. */
  readonly name: string;
  /** Names our own certificate and authorities. `""` means those of the platform. */
  readonly identity: string;
  /** Whether a new connection is opened where there is none. */
  readonly opens: boolean;
  /** How long a new connection may take to come up, in milliseconds. Absent: SIP_CONNECT_TIMEOUT_MS. */
  readonly connectMs?: number;
}

type Remote = Pick<StreamTarget, 'host' | 'port'>;

interface StreamOptions {
  readonly clock: Clock;
  readonly tls: TlsOptions & Pick<ConnectionOptions, 'ca'>;
  /**
   * The authorities and the client certificate of connections that we open under that name. Undefined when it has none
   * of its own.
   */
  tlsOf(identity: string): TlsIdentity | undefined;
  /**
   * Whether an address is a trunk's or a registered device's. It is asked when a connection comes in, and again at each
   * message of a stranger.
   */
  isKnown(address: string): boolean;
  /** Whether connections from an address are closed: new ones at once, those that are up at their next message. */
  isBanned(address: string): boolean;
  onMessage(bytes: Uint8Array, connection: Connection): void;
  /** A connection that we opened did not come up. `reason` is the code of the system or of TLS. */
  onRefused(connection: Connection, reason: string): void;
  /** A connection is closed that a device was registered over, or one that we had opened. */
  onLost(connection: Connection): void;
}

/** The connections of one listener. */
export class Streams {
  readonly #options: StreamOptions;
  readonly #byFlow = new Map<number, Connection>();
  readonly #byRemote = new Map<string, Connection>();
  readonly #servers: Server[] = [];
  readonly #inbound = new InboundConnections();
  readonly #firstFlow: number;
  /** The connections whose TLS handshake is under way, by their far ends. `release` gives the place of one back. */
  readonly #handshakes = new Map<string, { readonly socket: Socket; readonly release: () => void }>();
  /** The handshakes of strangers, each of which takes the processor for as long as many messages do. */
  readonly #strangersHandshakes = new RefusalLimit(SIP_TLS_HANDSHAKES_PER_STRANGER, SIP_TLS_HANDSHAKES_OF_STRANGERS);
  /** Connections whose messages wait for a turn of the event loop, in order. */
  readonly #backlog = new Set<Connection>();
  #tls: StreamOptions['tls'];
  readonly #outbound = new Shares({
    all: SIP_OUTBOUND_CONNECTIONS_MAX,
    ofApp: SIP_OUTBOUND_CONNECTIONS_PER_HOST,
    reserve: 0,
    reservedOfApp: 0,
  });
  #flows = 0;

  /** Flow numbers start above those of the datagram sockets. */
  constructor(firstFlow: number, options: StreamOptions) {
    this.#firstFlow = firstFlow;
    this.#options = options;
    this.#tls = options.tls;
  }

  /** Uses another certificate for connections from now on; those that are up go on. */
  useTls(material: TlsMaterial): void {
    this.#tls = material;
    for (const server of this.#servers) if (server instanceof TlsServer) server.setSecureContext(material);
  }

  get size(): number {
    return this.#byFlow.size;
  }

  /** Listens. Resolves with the bound port and rejects when the address is taken. */
  listen(transport: StreamTransport, host: string, port: number): Promise<number> {
    const accept = (socket: Socket) => this.#accept(transport, socket);
    const server =
      transport === 'tls'
        ? createTlsServer({ ...this.#tls, handshakeTimeout: SIP_CONNECT_TIMEOUT_MS }, accept)
        : createServer(accept);
    if (transport === 'tls') server.on('connection', (socket: Socket) => this.#shakeHands(socket));
    // The runtime tells of a handshake that fails or takes too long, and leaves its connection open.
    server.on('tlsClientError', (_: Error, socket: Socket) => socket.destroy());
    server.maxConnections = SIP_INBOUND_CONNECTIONS_MAX;
    this.#servers.push(server);
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.removeListener('error', reject);
        server.on('error', () => {});
        const address = server.address();
        resolve(typeof address === 'object' && address !== null ? address.port : port);
      });
    });
  }

  #accept(transport: StreamTransport, socket: Socket): void {
    const remote = remoteOf(socket);
    // The place that the handshake had is the connection's now.
    if (remote !== undefined) this.#handshakes.get(`${remote.host} ${remote.port}`)?.release();
    const kind = this.#admit(socket, remote);
    if (remote !== undefined && kind !== undefined) this.#add(socket, kind, { transport, ...remote, identity: '' });
  }

  /** Closes a socket from outside unless its far end may have one more. */
  #admit(socket: Socket, remote: Remote | undefined): 'known' | 'stranger' | undefined {
    const isKnown = remote !== undefined && this.#options.isKnown(remote.host);
    if (remote !== undefined && !this.#options.isBanned(remote.host) && this.#inbound.admits(remote.host, isKnown))
      return isKnown ? 'known' : 'stranger';
    socket.destroy();
    return undefined;
  }

  /** A TLS handshake begins: it takes a place of its address, as a connection does, until it is over. */
  #shakeHands(socket: Socket): void {
    const remote = remoteOf(socket);
    const kind = this.#admit(socket, remote);
    if (remote === undefined || kind === undefined) return;
    const isKnown = kind === 'known';
    if (!isKnown && !this.#strangersHandshakes.allow(remote.host, this.#options.clock.now())) {
      socket.destroy();
      return;
    }
    const key = `${remote.host} ${remote.port}`;
    this.#inbound.opened(remote.host, isKnown);
    const release = () => {
      if (this.#handshakes.get(key)?.socket !== socket) return;
      this.#handshakes.delete(key);
      this.#inbound.closed(remote.host, isKnown);
    };
    this.#handshakes.set(key, { socket, release });
    socket.once('close', release);
  }

  /** Sends over the connection of that flow, else over one to that address, else over a new one if it may be opened. */
  send(target: StreamTarget, bytes: Uint8Array, failed: (why: SendFailure) => void): void {
    const { transport, flow, host } = target;
    const known = this.#byFlow.get(flow);
    const reused = known !== undefined && known.transport === transport && known.remoteHost === host ? known : undefined;
    const connection = reused ?? this.#byRemote.get(keyOf(target)) ?? (target.opens ? this.#open(target) : undefined);
    if (connection === undefined) failed('refused');
    else connection.write(bytes, failed);
  }

  /** Whether a connection of a device from that address and port is up. */
  has(transport: StreamTransport, host: string, port: number): boolean {
    return this.#byRemote.has(keyOf({ transport, host, port, identity: '' }));
  }

  /** Keeps the connection that a device has registered over until its binding expires, in milliseconds. */
  keep(transport: StreamTransport, host: string, port: number, until: number, isProxy: boolean): void {
    this.#byRemote.get(keyOf({ transport, host, port, identity: '' }))?.keep(until, isProxy);
  }

  close(): Promise<void> {
    for (const connection of [...this.#byFlow.values()]) connection.close();
    for (const { socket } of [...this.#handshakes.values()]) socket.destroy();
    return Promise.all(this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))).then(
      () => {},
    );
  }

  #open(target: StreamTarget): Connection | undefined {
    const { transport, host, port } = target;
    if (!this.#outbound.take(sourceOf(host))) return undefined;
    try {
      const socket = transport === 'tls' ? connectTls(this.#tlsOptions(target)) : createConnection({ host, port });
      return this.#add(socket, 'outbound', target);
    } catch {
      // A certificate or key that is none.
      this.#outbound.give(sourceOf(host));
      return undefined;
    }
  }

  #tlsOptions({ host, port, name, identity }: StreamTarget): ConnectionOptions {
    const own = identity === '' ? undefined : this.#options.tlsOf(identity);
    const ca = own?.ca ?? this.#tls.ca;
    return {
      host,
      port,
      rejectUnauthorized: true,
      ...(/^[0-9.]+$|:/.test(name) ? {} : { servername: name }),
      ...(ca === undefined ? {} : { ca }),
      ...(own?.cert === undefined || own.key === undefined ? {} : { cert: own.cert, key: own.key }),
    };
  }

  #add(socket: Socket, kind: ConnectionKind, remote: Omit<StreamTarget, 'flow' | 'name' | 'opens'>): Connection {
    const { transport, host, port, connectMs } = remote;
    const key = keyOf(remote);
    const { clock } = this.#options;
    const flow = this.#firstFlow + ++this.#flows;
    const connection = new Connection({
      ...{ flow, transport, socket, host, port, kind, clock, connectMs },
      onMessage: (bytes, from) => (this.#options.isBanned(host) ? from.close() : this.#options.onMessage(bytes, from)),
      onBacklog: (from) => this.#wait(from),
      isKnown: (address) => this.#options.isKnown(address),
      onKnown: () => this.#inbound.becameKnown(host),
      // A connection that does not come up is no trouble where UDP is left to try.
      onRefused: (gone, reason) => connectMs === undefined && this.#options.onRefused(gone, reason),
      onClosed: (gone) => {
        this.#byFlow.delete(gone.flow);
        this.#backlog.delete(gone);
        if (this.#byRemote.get(key) === gone) this.#byRemote.delete(key);
        if (gone.kind === 'outbound') this.#outbound.give(sourceOf(host));
        else this.#inbound.closed(host, gone.kind === 'known');
        if (gone.isKept || gone.kind === 'outbound') this.#options.onLost(gone);
      },
    });
    if (kind !== 'outbound') this.#inbound.opened(host, kind === 'known');
    this.#byFlow.set(connection.flow, connection);
    this.#byRemote.set(key, connection);
    return connection;
  }

  #wait(connection: Connection): void {
    if (this.#backlog.size === 0) setImmediate(() => this.#turn());
    this.#backlog.add(connection);
  }

  /**
   * One turn: each connection that waits has its share, until the turn's budget is used up, and again while little time
   * has passed. The others come first in the next turn.
   */
  #turn(): void {
    const { clock } = this.#options;
    const until = clock.now() + SIP_TURN_MS;
    let left = SIP_TURN_MESSAGES;
    do left -= this.#round(left);
    while (left > 0 && this.#backlog.size > 0 && clock.now() < until);
    if (this.#backlog.size > 0) setImmediate(() => this.#turn());
  }

  /** Each connection that waits has its share, of `most` messages in all. Returns how many were worked on. */
  #round(most: number): number {
    let left = most;
    for (const connection of [...this.#backlog]) {
      const share = Math.min(left, SIP_CONNECTION_TURN_MESSAGES);
      if (share === 0) break;
      const done = connection.work(share);
      left -= done;
      this.#backlog.delete(connection);
      if (done < share) connection.resume();
      else this.#backlog.add(connection);
    }
    return most - left;
  }
}

/** The far end of an accepted socket. Undefined when it is gone already. */
function remoteOf({ remoteAddress, remotePort }: Socket): Remote | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  return { host: remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress, port: remotePort };
}

/** What makes two connections the same for a message. */
const keyOf = ({ transport, host, port, identity }: Pick<StreamTarget, 'transport' | 'host' | 'port' | 'identity'>): string =>
  `${transport} ${host} ${port} ${identity}`;
