/**
 * SIP over TCP and TLS (RFC 3261 §18): connections in both directions, reused in both, each with limits of time, bytes
 * and work.
 *
 * An address that belongs to no trunk may hold few connections, and must complete a message every SIP_FIRST_MESSAGE_MS.
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
import {
  SIP_CONNECT_TIMEOUT_MS,
  SIP_CONNECTION_IDLE_MS,
  SIP_CONNECTION_IDLE_PERIODS_MAX,
  SIP_CONNECTION_TURN_MESSAGES,
  SIP_FIRST_MESSAGE_MS,
  SIP_INBOUND_CONNECTIONS_MAX,
  SIP_INBOUND_CONNECTIONS_OF_STRANGERS,
  SIP_INBOUND_CONNECTIONS_PER_STRANGER,
  SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS,
  SIP_OUTBOUND_CONNECTIONS_MAX,
  SIP_TURN_MESSAGES,
  SIP_WRITE_BUFFER_MAX_BYTES,
} from '../../limits.ts';
import { StreamFraming } from '../../sip/message/framing.ts';

import type { TlsMaterial } from './certificate.ts';

export type StreamTransport = 'tcp' | 'tls';

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
}

interface StreamOptions {
  readonly tls: TlsOptions & Pick<ConnectionOptions, 'ca'>;
  /**
   * The authorities and the client certificate of connections that we open under that name. Undefined when it has none
   * of its own.
   */
  tlsOf(identity: string): TlsIdentity | undefined;
  /** Whether an address belongs to a trunk. It is asked when a connection comes in. */
  isTrunk(address: string): boolean;
  /** Whether connections from an address are closed at once. */
  isBanned(address: string): boolean;
  onMessage(bytes: Uint8Array, connection: Connection): void;
}

interface ConnectionHost {
  onMessage(bytes: Uint8Array, connection: Connection): void;
  /** The connection has bytes that it has not read for want of budget: `work` is to be called in a later turn. */
  onBacklog(connection: Connection): void;
  onClosed(connection: Connection): void;
}

type ConnectionKind = 'outbound' | 'trunk' | 'stranger';

const PING = new Uint8Array([0x0d, 0x0a, 0x0d, 0x0a]);
const PONG = new Uint8Array([0x0d, 0x0a]);

/** One connection. Bytes that are written before it is up wait, within SIP_WRITE_BUFFER_MAX_BYTES. */
export class Connection {
  readonly flow: number;
  readonly transport: StreamTransport;
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly kind: ConnectionKind;
  readonly #socket: Socket;
  readonly #host: ConnectionHost;
  readonly #framing = new StreamFraming();
  #up: boolean;
  #over = false;
  #idlePeriods = 0;
  /** Closes the connection when no whole message comes in time. */
  #deadline: ReturnType<typeof setTimeout> | undefined;
  /** Called when the connection fails before it is up, so that nothing that was written can have arrived. */
  #failures: (() => void)[] = [];

  constructor(
    flow: number,
    transport: StreamTransport,
    socket: Socket,
    remote: { readonly host: string; readonly port: number },
    kind: ConnectionKind,
    host: ConnectionHost,
  ) {
    this.flow = flow;
    this.transport = transport;
    this.#socket = socket;
    this.remoteHost = remote.host;
    this.remotePort = remote.port;
    this.kind = kind;
    this.#host = host;
    this.#up = kind !== 'outbound';
    if (this.#up) this.#expectMessage();
    socket.setNoDelay(true);
    socket.setTimeout(this.#up ? SIP_CONNECTION_IDLE_MS : SIP_CONNECT_TIMEOUT_MS);
    socket.on('timeout', () => this.#onIdle());
    socket.on(transport === 'tls' ? 'secureConnect' : 'connect', () => {
      this.#up = true;
      this.#failures = [];
      socket.setTimeout(SIP_CONNECTION_IDLE_MS);
    });
    socket.on('data', (chunk: Buffer) => {
      this.#idlePeriods = 0;
      this.#framing.push(chunk);
      // What is not read in this turn waits: the socket is not read meanwhile, so that the peer is held back.
      if (this.work(SIP_CONNECTION_TURN_MESSAGES) >= SIP_CONNECTION_TURN_MESSAGES && !this.#over) {
        socket.pause();
        host.onBacklog(this);
      }
    });
    // The 'close' event follows every error.
    socket.on('error', () => {});
    socket.on('close', () => this.#end());
  }

  /**
   * Works on at most `most` messages of what has arrived, and returns on how many. Fewer than `most` means that no
   * whole one is left.
   */
  work(most: number): number {
    for (let done = 0; done < most; done++) {
      const frame = this.#over ? undefined : this.#framing.next();
      if (frame === undefined) return done;
      this.#expectMessage();
      if (frame.type === 'message') this.#host.onMessage(frame.bytes, this);
      else if (frame.type === 'ping') this.write(PONG, () => {});
      else this.#socket.destroy();
    }
    return most;
  }

  /** Reads on after a backlog. */
  resume(): void {
    this.#socket.resume();
  }

  /** Queues bytes. `failed` is called when the connection does not come up or cannot take them. */
  write(bytes: Uint8Array, failed: () => void): void {
    if (this.#over || this.#socket.destroyed) {
      failed();
      return;
    }
    if (this.#socket.writableLength + bytes.length > SIP_WRITE_BUFFER_MAX_BYTES) {
      // The peer does not read. The bytes it was sent are lost with the connection.
      failed();
      this.#socket.destroy();
      return;
    }
    if (!this.#up) this.#failures.push(failed);
    this.#socket.write(bytes);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Restarts the deadline of a stranger at each whole message; that of a trunk ends with the first one. */
  #expectMessage(): void {
    const isFirst = this.#deadline === undefined;
    if (this.kind === 'outbound' || (this.kind === 'trunk' && !isFirst)) {
      clearTimeout(this.#deadline);
      return;
    }
    clearTimeout(this.#deadline);
    this.#deadline = setTimeout(() => this.#socket.destroy(), SIP_FIRST_MESSAGE_MS);
  }

  /** The side that opened the connection keeps it alive. The other side only closes it after many idle periods. */
  #onIdle(): void {
    if (!this.#up || ++this.#idlePeriods >= SIP_CONNECTION_IDLE_PERIODS_MAX) {
      this.#socket.destroy();
      return;
    }
    this.#socket.setTimeout(SIP_CONNECTION_IDLE_MS);
    if (this.kind === 'outbound') this.write(PING, () => {});
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#deadline);
    this.#host.onClosed(this);
    const failures = this.#failures;
    this.#failures = [];
    for (const failed of failures) failed();
  }
}

/** Counts inbound connections and decides which ones are taken. */
class InboundConnections {
  readonly #byAddress = new Map<string, number>();
  #all = 0;
  #strangers = 0;

  /** Whether one more connection of that address may be taken. */
  admits(address: string, isTrunk: boolean): boolean {
    const own = this.#byAddress.get(address) ?? 0;
    if (this.#all >= SIP_INBOUND_CONNECTIONS_MAX) return false;
    if (isTrunk) return own < SIP_INBOUND_CONNECTIONS_PER_TRUNK_ADDRESS;
    return own < SIP_INBOUND_CONNECTIONS_PER_STRANGER && this.#strangers < SIP_INBOUND_CONNECTIONS_OF_STRANGERS;
  }

  opened(address: string, isTrunk: boolean): void {
    this.#count(address, isTrunk, 1);
  }

  closed(address: string, isTrunk: boolean): void {
    this.#count(address, isTrunk, -1);
  }

  #count(address: string, isTrunk: boolean, by: 1 | -1): void {
    const own = (this.#byAddress.get(address) ?? 0) + by;
    if (own > 0) this.#byAddress.set(address, own);
    else this.#byAddress.delete(address);
    this.#all += by;
    if (!isTrunk) this.#strangers += by;
  }
}

/** The connections of one listener. */
export class Streams {
  readonly #options: StreamOptions;
  readonly #byFlow = new Map<number, Connection>();
  readonly #byRemote = new Map<string, Connection>();
  readonly #servers: Server[] = [];
  readonly #inbound = new InboundConnections();
  readonly #firstFlow: number;
  /** Releases the place of a connection whose TLS handshake is under way, by its far end. */
  readonly #handshakes = new Map<string, () => void>();
  /** Connections whose messages wait for a turn of the event loop, in order. */
  readonly #backlog = new Set<Connection>();
  #tls: StreamOptions['tls'];
  #outbound = 0;
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
    if (remote !== undefined) this.#handshakes.get(`${remote.host} ${remote.port}`)?.();
    const isTrunk = remote !== undefined && this.#options.isTrunk(remote.host);
    if (remote === undefined || this.#options.isBanned(remote.host) || !this.#inbound.admits(remote.host, isTrunk)) {
      socket.destroy();
      return;
    }
    this.#add(transport, socket, remote, isTrunk ? 'trunk' : 'stranger');
  }

  /** A TLS handshake begins: it takes a place of its address, as a connection does, until it is over. */
  #shakeHands(socket: Socket): void {
    const remote = remoteOf(socket);
    const isTrunk = remote !== undefined && this.#options.isTrunk(remote.host);
    if (remote === undefined || this.#options.isBanned(remote.host) || !this.#inbound.admits(remote.host, isTrunk)) {
      socket.destroy();
      return;
    }
    const key = `${remote.host} ${remote.port}`;
    this.#inbound.opened(remote.host, isTrunk);
    const release = () => {
      if (this.#handshakes.get(key) !== release) return;
      this.#handshakes.delete(key);
      this.#inbound.closed(remote.host, isTrunk);
    };
    this.#handshakes.set(key, release);
    socket.once('close', release);
  }

  /** Sends over the connection of that flow, else over one to that address, else over a new one. */
  send(target: StreamTarget, bytes: Uint8Array, failed: () => void): void {
    const { transport, flow, host } = target;
    const known = this.#byFlow.get(flow);
    const reused = known !== undefined && known.transport === transport && known.remoteHost === host ? known : undefined;
    const connection = reused ?? this.#byRemote.get(keyOf(target)) ?? this.#open(target);
    if (connection === undefined) failed();
    else connection.write(bytes, failed);
  }

  close(): Promise<void> {
    for (const connection of [...this.#byFlow.values()]) connection.close();
    return Promise.all(this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))).then(
      () => {},
    );
  }

  #open(target: StreamTarget): Connection | undefined {
    const { transport, host, port } = target;
    if (this.#outbound >= SIP_OUTBOUND_CONNECTIONS_MAX) return undefined;
    try {
      const socket = transport === 'tls' ? connectTls(this.#tlsOptions(target)) : createConnection({ host, port });
      return this.#add(transport, socket, { host, port }, 'outbound', target.identity);
    } catch {
      // A certificate or key that is none.
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

  #add(
    transport: StreamTransport,
    socket: Socket,
    remote: { readonly host: string; readonly port: number },
    kind: ConnectionKind,
    identity = '',
  ): Connection {
    const key = keyOf({ transport, ...remote, identity });
    const connection = new Connection(this.#firstFlow + ++this.#flows, transport, socket, remote, kind, {
      onMessage: (bytes, from) => this.#options.onMessage(bytes, from),
      onBacklog: (from) => this.#wait(from),
      onClosed: (gone) => {
        this.#byFlow.delete(gone.flow);
        this.#backlog.delete(gone);
        if (this.#byRemote.get(key) === gone) this.#byRemote.delete(key);
        if (kind === 'outbound') this.#outbound--;
        else this.#inbound.closed(remote.host, kind === 'trunk');
      },
    });
    if (kind === 'outbound') this.#outbound++;
    else this.#inbound.opened(remote.host, kind === 'trunk');
    this.#byFlow.set(connection.flow, connection);
    this.#byRemote.set(key, connection);
    return connection;
  }

  #wait(connection: Connection): void {
    if (this.#backlog.size === 0) setImmediate(() => this.#turn());
    this.#backlog.add(connection);
  }

  /**
   * One turn: each connection that waits has its share, until the turn's budget is used up. The others come first in
   * the next turn.
   */
  #turn(): void {
    let left = SIP_TURN_MESSAGES;
    for (const connection of [...this.#backlog]) {
      if (left <= 0) break;
      const most = Math.min(left, SIP_CONNECTION_TURN_MESSAGES);
      const done = connection.work(most);
      left -= done;
      this.#backlog.delete(connection);
      if (done < most) connection.resume();
      else this.#backlog.add(connection);
    }
    if (this.#backlog.size > 0) setImmediate(() => this.#turn());
  }
}

/** The far end of an accepted socket. Undefined when it is gone already. */
function remoteOf({ remoteAddress, remotePort }: Socket): { readonly host: string; readonly port: number } | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  return { host: remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress, port: remotePort };
}

/** What makes two connections the same for a message. */
const keyOf = ({ transport, host, port, identity }: Pick<StreamTarget, 'transport' | 'host' | 'port' | 'identity'>): string =>
  `${transport} ${host} ${port} ${identity}`;
