/** SIP over TCP and TLS (RFC 3261 §18): connections in both directions, reused in both, each with limits of time and bytes. */
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, createServer as createTlsServer, type TlsOptions } from 'node:tls';
import {
  SIP_CONNECT_TIMEOUT_MS,
  SIP_CONNECTION_IDLE_MS,
  SIP_CONNECTION_IDLE_PERIODS_MAX,
  SIP_CONNECTIONS_MAX,
  SIP_WRITE_BUFFER_MAX_BYTES,
} from '../../limits.ts';
import { StreamFraming } from '../../sip/message/framing.ts';

export type StreamTransport = 'tcp' | 'tls';

interface StreamOptions {
  readonly tls: TlsOptions & Pick<ConnectionOptions, 'ca'>;
  onMessage(bytes: Uint8Array, connection: Connection): void;
}

const PING = new Uint8Array([0x0d, 0x0a, 0x0d, 0x0a]);
const PONG = new Uint8Array([0x0d, 0x0a]);

/** One connection. Bytes that are written before it is up wait, within SIP_WRITE_BUFFER_MAX_BYTES. */
export class Connection {
  readonly flow: number;
  readonly transport: StreamTransport;
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly #socket: Socket;
  readonly #closed: (connection: Connection) => void;
  #up: boolean;
  #over = false;
  #idlePeriods = 0;
  /** Called when the connection fails before it is up, so that nothing that was written can have arrived. */
  #failures: (() => void)[] = [];

  constructor(
    flow: number,
    transport: StreamTransport,
    socket: Socket,
    remote: { readonly host: string; readonly port: number },
    up: boolean,
    onMessage: (bytes: Uint8Array, connection: Connection) => void,
    closed: (connection: Connection) => void,
  ) {
    this.flow = flow;
    this.transport = transport;
    this.#socket = socket;
    this.remoteHost = remote.host;
    this.remotePort = remote.port;
    this.#up = up;
    this.#closed = closed;
    const framing = new StreamFraming();
    socket.setNoDelay(true);
    socket.setTimeout(up ? SIP_CONNECTION_IDLE_MS : SIP_CONNECT_TIMEOUT_MS);
    socket.on('timeout', () => this.#onIdle(!up));
    socket.on(transport === 'tls' ? 'secureConnect' : 'connect', () => {
      this.#up = true;
      this.#failures = [];
      socket.setTimeout(SIP_CONNECTION_IDLE_MS);
    });
    socket.on('data', (chunk: Buffer) => {
      this.#idlePeriods = 0;
      for (const frame of framing.push(chunk)) {
        if (this.#over) return;
        if (frame.type === 'message') onMessage(frame.bytes, this);
        else if (frame.type === 'ping') this.write(PONG, () => {});
        else socket.destroy();
      }
    });
    // The 'close' event follows every error.
    socket.on('error', () => {});
    socket.on('close', () => this.#end());
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

  /** The side that opened the connection keeps it alive. The other side only closes it after many idle periods. */
  #onIdle(ours: boolean): void {
    if (!this.#up || ++this.#idlePeriods >= SIP_CONNECTION_IDLE_PERIODS_MAX) {
      this.#socket.destroy();
      return;
    }
    this.#socket.setTimeout(SIP_CONNECTION_IDLE_MS);
    if (ours) this.write(PING, () => {});
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#closed(this);
    const failures = this.#failures;
    this.#failures = [];
    for (const failed of failures) failed();
  }
}

/** The connections of one listener. */
export class Streams {
  readonly #options: StreamOptions;
  readonly #byFlow = new Map<number, Connection>();
  readonly #byRemote = new Map<string, Connection>();
  readonly #servers: Server[] = [];
  readonly #firstFlow: number;
  #flows = 0;

  /** Flow numbers start above those of the datagram sockets. */
  constructor(firstFlow: number, options: StreamOptions) {
    this.#firstFlow = firstFlow;
    this.#options = options;
  }

  get size(): number {
    return this.#byFlow.size;
  }

  /** Listens. Resolves with the bound port and rejects when the address is taken. */
  listen(transport: StreamTransport, host: string, port: number): Promise<number> {
    const accept = (socket: Socket) => {
      const { remoteAddress, remotePort } = socket;
      if (this.#byFlow.size >= SIP_CONNECTIONS_MAX || remoteAddress === undefined || remotePort === undefined) {
        socket.destroy();
        return;
      }
      const remote = { host: remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress, port: remotePort };
      this.#add(transport, socket, remote, true);
    };
    const server =
      transport === 'tls'
        ? createTlsServer({ ...this.#options.tls, handshakeTimeout: SIP_CONNECT_TIMEOUT_MS }, accept)
        : createServer(accept);
    // A handshake that fails closes its connection. There is nothing else to do.
    server.on('tlsClientError', () => {});
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

  /** Sends over the connection of that flow, else over one to that address, else over a new one. A TLS certificate must be for `name`. */
  send(
    transport: StreamTransport,
    flow: number,
    host: string,
    port: number,
    name: string,
    bytes: Uint8Array,
    failed: () => void,
  ): void {
    const known = this.#byFlow.get(flow);
    const reused = known !== undefined && known.transport === transport && known.remoteHost === host ? known : undefined;
    const connection = reused ?? this.#byRemote.get(`${transport} ${host} ${port}`) ?? this.#open(transport, host, port, name);
    if (connection === undefined) failed();
    else connection.write(bytes, failed);
  }

  close(): Promise<void> {
    for (const connection of [...this.#byFlow.values()]) connection.close();
    return Promise.all(this.#servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())))).then(
      () => {},
    );
  }

  #open(transport: StreamTransport, host: string, port: number, name: string): Connection | undefined {
    if (this.#byFlow.size >= SIP_CONNECTIONS_MAX) return undefined;
    const { ca } = this.#options.tls;
    const servername = /^[0-9.]+$|:/.test(name) ? {} : { servername: name };
    const socket =
      transport === 'tls'
        ? connectTls({ host, port, rejectUnauthorized: true, ...servername, ...(ca === undefined ? {} : { ca }) })
        : createConnection({ host, port });
    return this.#add(transport, socket, { host, port }, false);
  }

  #add(
    transport: StreamTransport,
    socket: Socket,
    remote: { readonly host: string; readonly port: number },
    up: boolean,
  ): Connection {
    const key = `${transport} ${remote.host} ${remote.port}`;
    const connection = new Connection(
      this.#firstFlow + ++this.#flows,
      transport,
      socket,
      remote,
      up,
      (bytes, from) => this.#options.onMessage(bytes, from),
      (gone) => {
        this.#byFlow.delete(gone.flow);
        if (this.#byRemote.get(key) === gone) this.#byRemote.delete(key);
      },
    );
    this.#byFlow.set(connection.flow, connection);
    this.#byRemote.set(key, connection);
    return connection;
  }
}
