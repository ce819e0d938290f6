/**
 * One SIP connection over TCP or TLS, with its deadlines.
 *
 *   stranger --its address is a trunk's or a device's now--> known
 *
 * A stranger must complete a message every SIP_FIRST_MESSAGE_MS, and may send SIP_STRANGER_MESSAGES_MAX in that time.
 * A known connection must complete its first one by then, and is closed after many idle periods, unless a device is
 * registered over it: that one is kept while it is bound.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';
import { codeOf } from '../../error-facts.ts';
import {
  SIP_CONNECT_TIMEOUT_MS,
  SIP_CONNECTION_IDLE_MS,
  SIP_CONNECTION_IDLE_PERIODS_MAX,
  SIP_CONNECTION_TURN_MESSAGES,
  SIP_CONNECTION_UNANSWERED_MAX,
  SIP_FIRST_MESSAGE_MS,
  SIP_FLOW_REPLY_MS,
  SIP_FULL_READ_BYTES,
  SIP_LATE_MS,
  SIP_STRANGER_MESSAGES_MAX,
  SIP_UNACKNOWLEDGED_MS,
  SIP_WRITE_BUFFER_MAX_BYTES,
} from '../../limits.ts';
import { native } from '../../media/native.ts';
import type { SendFailure } from '../../sip/flow.ts';
import { StreamFraming } from '../../sip/message/framing.ts';

export type StreamTransport = 'tcp' | 'tls';

export type ConnectionKind = 'outbound' | 'known' | 'stranger';

interface ConnectionOptions {
  /** The number of the connection. */
  readonly flow: number;
  readonly transport: StreamTransport;
  readonly socket: Socket;
  readonly host: string;
  readonly port: number;
  readonly kind: ConnectionKind;
  readonly clock: Clock;
  /** How long it may take to come up, in milliseconds. */
  readonly connectMs?: number | undefined;
  onMessage(bytes: Uint8Array, connection: Connection): void;
  /** The connection has bytes that it has not read for want of budget: `work` is to be called in a later turn. */
  onBacklog(connection: Connection): void;
  /** Whether an address is a trunk's or a registered device's. */
  isKnown(address: string): boolean;
  /** The connection is no stranger's any more. */
  onKnown(): void;
  /** A connection that we opened did not come up. `reason` is the code of the system or of TLS. */
  onRefused(connection: Connection, reason: string): void;
  onClosed(connection: Connection): void;
}

const PING = new Uint8Array([0x0d, 0x0a, 0x0d, 0x0a]);
const PONG = new Uint8Array([0x0d, 0x0a]);

/** One connection. Bytes that are written before it is up wait, within SIP_WRITE_BUFFER_MAX_BYTES. */
export class Connection {
  readonly flow: number;
  readonly transport: StreamTransport;
  readonly remoteHost: string;
  readonly remotePort: number;
  readonly #options: ConnectionOptions;
  readonly #socket: Socket;
  readonly #clock: Clock;
  readonly #framing = new StreamFraming();
  #kind: ConnectionKind;
  #up: boolean;
  #over = false;
  /** Whether a whole message or keepalive has come. */
  #heard = false;
  /** When the idle period began, in milliseconds: at the last bytes that came, or at the end of the one before. */
  #quietSince: number;
  #idlePeriods = 0;
  /** The time until which a device is registered over this connection, in milliseconds. */
  #keptUntil = 0;
  /** Whether a device is registered over it from behind a proxy, so that it is the connection of many. */
  #isProxy = false;
  /** The messages of a stranger since then, in milliseconds. */
  #count = 0;
  #countedSince = 0;
  /** Closes the connection when no whole message comes in time. */
  #cancelDeadline: () => void = () => {};
  #cancelIdle: () => void = () => {};
  /** Closes the connection of a device that says nothing to a request of ours. */
  #cancelReply: (() => void) | undefined;
  /**
   * The senders that are told when their bytes are not delivered: bytes from before the connection was up, and bytes
   * that nothing has come in reply to. A far end that is gone without a word is found out by the first message to it.
   */
  #unanswered: ((why: SendFailure) => void)[] = [];
  /** Since when each read has brought SIP_FULL_READ_BYTES, in milliseconds. Undefined: the last one did not. */
  #fullSince: number | undefined;
  /** When a backlog was last worked off, in milliseconds. */
  #resumedAt = 0;
  /** Whether what is written waits for the end of the turn. */
  #gathers = false;

  constructor(options: ConnectionOptions) {
    const { transport, socket, kind, clock, connectMs = SIP_CONNECT_TIMEOUT_MS } = options;
    this.flow = options.flow;
    this.transport = transport;
    this.#options = options;
    this.#socket = socket;
    this.remoteHost = options.host;
    this.remotePort = options.port;
    this.#kind = kind;
    this.#clock = clock;
    this.#up = kind !== 'outbound';
    this.#quietSince = clock.now();
    if (this.#up) this.#expectMessage();
    socket.setNoDelay(true);
    this.#watch(this.#up ? SIP_CONNECTION_IDLE_MS : connectMs);
    socket.on(transport === 'tls' ? 'secureConnect' : 'connect', () => {
      this.#up = true;
      this.#quietSince = clock.now();
      this.#watch(SIP_CONNECTION_IDLE_MS);
      // A firewall that has forgotten the connection drops what we send: the system would try for 15 minutes. A device
      // may be out of reach for longer than this, and opens its connection itself.
      const fd = descriptorOf(socket);
      if (fd !== undefined) native.userTimeout(fd, SIP_UNACKNOWLEDGED_MS);
    });
    socket.on('data', (chunk: Buffer) => {
      this.#idlePeriods = 0;
      this.#quietSince = clock.now();
      this.#measure(chunk.length);
      this.#unanswered.length = 0;
      this.#hearReply();
      this.#framing.push(chunk);
      // What is not read in this turn waits: the socket is not read meanwhile, so that the peer is held back.
      if (this.work(SIP_CONNECTION_TURN_MESSAGES) >= SIP_CONNECTION_TURN_MESSAGES && !this.#over) {
        socket.pause();
        options.onBacklog(this);
      }
    });
    // The 'close' event follows every error.
    socket.on('error', (error) => this.#refuse(codeOf(error) ?? error.message));
    socket.on('close', () => this.#end());
  }

  get kind(): ConnectionKind {
    return this.#kind;
  }

  /** Whether the far end has been ahead of us for so long that a new call from it is refused. */
  get isLate(): boolean {
    return this.#fullSince !== undefined && this.#clock.now() - this.#fullSince >= SIP_LATE_MS;
  }

  /** Notes how much a read brought. What comes after a pause is not late. */
  #measure(bytes: number): void {
    const now = this.#clock.now();
    if (bytes < SIP_FULL_READ_BYTES || now - this.#resumedAt >= SIP_LATE_MS) this.#fullSince = undefined;
    if (bytes >= SIP_FULL_READ_BYTES) this.#fullSince ??= now;
  }

  /**
   * Works on at most `most` messages of what has arrived, and returns on how many. Fewer than `most` means that no
   * whole one is left.
   */
  work(most: number): number {
    for (let done = 0; done < most; done++) {
      const frame = this.#over ? undefined : this.#framing.next();
      if (frame === undefined) return done;
      this.#heard = true;
      this.#recognize();
      this.#expectMessage();
      if (this.#isFlooding()) this.#drop();
      else if (frame.type === 'message') this.#options.onMessage(frame.bytes, this);
      else if (frame.type === 'ping') this.write(PONG, () => {});
      else this.#drop();
    }
    return most;
  }

  /**
   * Counts a message or keepalive of a stranger. True when it has sent more than its share: the system holds megabytes
   * of such a flood for each connection, which would be worked on for minutes after their senders are gone.
   */
  #isFlooding(): boolean {
    if (this.#kind !== 'stranger') return false;
    const now = this.#clock.now();
    if (now - this.#countedSince >= SIP_FIRST_MESSAGE_MS) {
      this.#countedSince = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count > SIP_STRANGER_MESSAGES_MAX;
  }

  /** Reads on after a backlog. */
  resume(): void {
    this.#resumedAt = this.#clock.now();
    this.#socket.resume();
  }

  /**
   * Queues bytes. `failed` is called when the connection does not come up, cannot take them, or closes before anything
   * has come in reply.
   */
  write(bytes: Uint8Array, failed: (why: SendFailure) => void): void {
    if (this.#over || this.#socket.destroyed) {
      failed('refused');
      return;
    }
    if (this.#socket.writableLength + bytes.length > SIP_WRITE_BUFFER_MAX_BYTES) {
      // The peer does not read. The bytes it was sent are lost with the connection.
      failed('refused');
      this.#drop();
      return;
    }
    this.#unanswered.push(failed);
    if (this.#up && this.#unanswered.length > SIP_CONNECTION_UNANSWERED_MAX) this.#unanswered.shift();
    this.#gather();
    this.#socket.write(bytes);
    if (this.isKept && isAnswered(bytes, this.#isProxy)) this.#expectReply();
  }

  /**
   * A phone that went away without a word (asleep, another network) leaves a connection that the system holds for up
   * to 15 minutes. Who is called over it waits no longer than this, and the next call finds no contact.
   */
  #expectReply(): void {
    this.#cancelReply ??= this.#clock.at(this.#clock.now() + SIP_FLOW_REPLY_MS, () => this.#drop());
  }

  #hearReply(): void {
    this.#cancelReply?.();
    this.#cancelReply = undefined;
  }

  /** What is written in one turn of the event loop goes out at its end, at once: each piece costs a system call. */
  #gather(): void {
    if (this.#gathers) return;
    this.#gathers = true;
    this.#socket.cork();
    setImmediate(() => this.#release());
  }

  #release(): void {
    if (!this.#gathers) return;
    this.#gathers = false;
    this.#socket.uncork();
  }

  /** Ends the connection. What was written before is sent, as far as the system takes it. */
  #drop(): void {
    this.#release();
    this.#socket.destroy();
  }

  /**
   * A device is registered over this connection until then, in milliseconds. Others may be, too: the last to expire
   * counts, and one that is taken back leaves the time as it is. `isProxy`: it is behind a proxy, which the connection
   * is with.
   */
  keep(until: number, isProxy: boolean): void {
    this.#isProxy ||= isProxy;
    this.#keptUntil = Math.max(this.#keptUntil, until);
    this.#know();
  }

  /** Whether a device is registered over this connection. */
  get isKept(): boolean {
    return this.#clock.now() < this.#keptUntil;
  }

  close(): void {
    this.#drop();
  }

  /** Restarts the deadline of a stranger at each whole message; that of a known connection ends with the first one. */
  #expectMessage(): void {
    this.#cancelDeadline();
    if (this.#kind === 'outbound' || (this.#kind === 'known' && this.#heard)) return;
    this.#cancelDeadline = this.#clock.at(this.#clock.now() + SIP_FIRST_MESSAGE_MS, () => {
      if (this.#heard) this.#recognize();
      if (this.#kind === 'stranger' || !this.#heard) this.#drop();
    });
  }

  /** A stranger's address may have come to belong to a trunk or a device since. */
  #recognize(): void {
    if (this.#kind === 'stranger' && this.#options.isKnown(this.remoteHost)) this.#know();
  }

  #know(): void {
    if (this.#kind !== 'stranger' || this.#over) return;
    this.#kind = 'known';
    this.#cancelDeadline();
    this.#options.onKnown();
  }

  /** Looks at the connection again after so long. */
  #watch(ms: number): void {
    this.#cancelIdle();
    this.#cancelIdle = this.#clock.at(this.#clock.now() + ms, () => this.#look());
  }

  /** Says why the connection did not come up. An error of one that was up says nothing here. */
  #refuse(reason: string): void {
    if (!this.#up && !this.#over) this.#options.onRefused(this, reason);
  }

  #look(): void {
    if (!this.#up) {
      this.#refuse('ETIMEDOUT');
      this.#drop();
      return;
    }
    const now = this.#clock.now();
    const left = this.#quietSince + SIP_CONNECTION_IDLE_MS - now;
    if (left > 0) this.#watch(left);
    else this.#onIdle(now);
  }

  /**
   * The side that opened the connection keeps it alive. The other side only closes it after many idle periods, and not
   * while a device is registered over it: many devices never ask for a sign of life. The ping that such a one is sent
   * keeps its router's mapping, is ignored by it (RFC 3261 §7.5), and makes TCP notice a device that is gone.
   */
  #onIdle(now: number): void {
    const { isKept } = this;
    if (!isKept && ++this.#idlePeriods >= SIP_CONNECTION_IDLE_PERIODS_MAX) {
      this.#drop();
      return;
    }
    this.#quietSince = now;
    this.#watch(SIP_CONNECTION_IDLE_MS);
    if (isKept || this.#kind === 'outbound') this.write(PING, () => {});
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#cancelDeadline();
    this.#cancelIdle();
    this.#hearReply();
    this.#options.onClosed(this);
    const unanswered = this.#unanswered;
    this.#unanswered = [];
    for (const failed of unanswered) failed(this.#up ? 'lost' : 'refused');
  }
}

/**
 * Whether bytes are a request that is answered soon: no response, ACK or keepalive. A proxy says 100 to INVITE, and to
 * others nothing while the phone behind it says nothing, as long as the transaction lives (RFC 4320 §4.1).
 */
function isAnswered(bytes: Uint8Array, isProxy: boolean): boolean {
  const start = String.fromCharCode(...bytes.subarray(0, 4));
  if (isProxy) return start === 'INVI';
  return start !== 'SIP/' && start !== 'ACK ' && /^[A-Z]/.test(start);
}

/** The descriptor of a socket of the runtime, which has it and does not declare it. */
function descriptorOf(socket: object): number | undefined {
  const handle: unknown = '_handle' in socket ? socket._handle : undefined;
  const isHandle = typeof handle === 'object' && handle !== null && 'fd' in handle;
  return isHandle && typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined;
}
