/**
 * Messages between nodes, over NATS core (`nats.ts`): requests with three outcomes, and news that nobody answers.
 * Nothing is sent while the connection is down, because the client would keep it and deliver it after its caller was
 * told that it failed. PostgreSQL is the truth; what is lost here costs promptness, or is a command with an unknown
 * outcome.
 */
import type { Clock } from '../../clock.ts';
import { StoreUnavailable } from '../../database/journal/journal.ts';
import { stackOf } from '../../error-facts.ts';
import { NATS_FIRST_MS, NODE_PING_TIMEOUT_MS } from '../../limits.ts';
import type { Log } from '../../log.ts';
import type { Reach } from '../../machine/room/home-watch.ts';
import { type Envelope, Envelopes } from './envelope.ts';
import { Offsets } from './offset.ts';
import type { OpenTransport, Transport, TransportMessage } from './transport.ts';

export type Outcome =
  | { readonly outcome: 'answered'; readonly body: unknown }
  /** Nobody got it: it may be tried elsewhere. */
  | { readonly outcome: 'not_delivered' }
  /** It may have been taken, or be taken still until its deadline. */
  | { readonly outcome: 'unknown' };

/** Answers a request. `from` is the node that asks. */
type Answerer = (body: unknown, from: string) => Promise<unknown> | unknown;

export interface BusOptions {
  readonly open: OpenTransport;
  readonly masterKey: Uint8Array;
  readonly nodeId: string;
  /** The name of the cluster in subjects. */
  readonly cluster: string;
  readonly clock: Clock;
  readonly log: Log;
  /** NATS is reached again, after news of the others may have been lost. */
  onBack(): void;
}

export interface BusLoad {
  readonly sent: number;
  readonly received: number;
  /** Messages that were not ours, or came twice. */
  readonly dropped: number;
  readonly unknown: number;
}

const PING = 'ping';
const NOT_REACHED =
  'NATS is not reached yet, and is tried again and again: see the host, the password and the TLS of NATS_URL; commands for calls of other nodes are refused';

const DENIED =
  'NATS denies this node a subject, so that nodes do not hear each other: let its user publish and subscribe to sidetone.> and _INBOX.>, and start this node again';

export class Bus {
  readonly #options: BusOptions;
  readonly #envelopes: Envelopes;
  readonly #offsets = new Offsets();
  readonly #answerers = new Map<string, Answerer>();
  readonly #hearers = new Map<string, (body: unknown) => void>();
  #transport: Transport | undefined;
  #isUp = false;
  #closed = false;
  readonly #load = { sent: 0, received: 0, dropped: 0, unknown: 0 };

  constructor(options: BusOptions) {
    this.#options = options;
    this.#envelopes = new Envelopes(options.masterKey, options.nodeId);
    this.#answerers.set(PING, () => ({ clock: options.clock.now() }));
  }

  get connected(): boolean {
    return this.#isUp;
  }

  load(): BusLoad {
    return this.#load;
  }

  /** Connects, for as long as it takes: a node without NATS serves its own calls. Resolves at the first connection. */
  async start(): Promise<void> {
    const { open, log, clock, nodeId, onBack } = this.#options;
    let isLate = false;
    const cancel = clock.at(clock.now() + NATS_FIRST_MS, () => {
      isLate = !this.#closed;
      if (isLate) log.warn({}, NOT_REACHED);
    });
    const changed = (isUp: boolean): void => {
      const wasUp = this.#isUp;
      this.#isUp = isUp && !this.#closed;
      if (!isUp && wasUp) log.warn({}, 'NATS is away: commands for calls of other nodes are refused');
      if (!isUp || wasUp) return;
      log.info({}, 'NATS is back');
      onBack();
    };
    let isDenied = false;
    const denied = (subject: string): void => {
      // Each message to another node would be told else.
      if (!isDenied) log.error({ subject }, DENIED);
      isDenied = true;
    };
    const transport = await open(`sidetone ${nodeId}`, changed, denied).finally(cancel);
    if (this.#closed) {
      await transport.close();
      return;
    }
    this.#transport = transport;
    this.#isUp = true;
    if (isLate) log.info({}, 'NATS is reached');
    transport.subscribe(this.#subjectOf(nodeId, '>'), (message) => void this.#take(message));
    for (const [kind, heard] of this.#hearers) this.#subscribe(transport, kind, heard);
  }

  /** Answers requests of one kind to this node. */
  answer(kind: string, answerer: Answerer): void {
    this.#answerers.set(kind, answerer);
  }

  /** Hears news of one kind, from all nodes but this one. */
  hear(kind: string, heard: (body: unknown) => void): void {
    this.#hearers.set(kind, heard);
    if (this.#transport !== undefined) this.#subscribe(this.#transport, kind, heard);
  }

  #subscribe(transport: Transport, kind: string, heard: (body: unknown) => void): void {
    const subject = this.#newsOf(kind);
    transport.subscribe(subject, (message) => {
      const envelope = this.#open(message, subject);
      if (envelope === undefined || envelope.from === this.#options.nodeId) return;
      if (this.#envelopes.isFresh(envelope, this.#options.clock.now())) heard(envelope.body);
      else this.#load.dropped++;
    });
  }

  /** Tells all nodes. It is lost where NATS is away. */
  tell(kind: string, body: unknown): void {
    if (!this.#isUp) return;
    const subject = this.#newsOf(kind);
    this.#transport?.publish(subject, this.#envelopes.seal(subject, body).text);
  }

  /** Tells whether a node answers. `nobody`: NATS knows none of that name. `unknown`: NATS is not reached. */
  async ping(nodeId: string): Promise<Reach> {
    const { clock } = this.#options;
    const asked = clock.now();
    const { outcome, body } = { body: undefined, ...(await this.#request(nodeId, PING, {}, NODE_PING_TIMEOUT_MS, undefined)) };
    if (outcome !== 'answered') return !this.#isUp ? 'unknown' : outcome === 'not_delivered' ? 'nobody' : 'silent';
    if (hasClock(body)) this.#offsets.measured(nodeId, asked, body.clock, clock.now());
    return 'answers';
  }

  /** How far the clock of a node is ahead of mine, in milliseconds. Undefined: it was not pinged lately. */
  lead(nodeId: string): number | undefined {
    return this.#offsets.lead(nodeId);
  }

  /**
   * Asks a node. `deadlineMs` from now on it refuses the request; `timeoutMs` is when this side gives it up. The body
   * gets the deadline, in the other node's clock, as `until`.
   */
  async ask(nodeId: string, kind: string, body: object, timeoutMs: number, deadlineMs: number): Promise<Outcome> {
    const { clock } = this.#options;
    const started = clock.now();
    if (this.#offsets.theirs(nodeId, started, started) === undefined && (await this.ping(nodeId)) !== 'answers')
      return { outcome: 'not_delivered' };
    const now = clock.now();
    const theirs = this.#offsets.theirs(nodeId, now, now);
    if (theirs === undefined) return { outcome: 'not_delivered' };
    const result = await this.#request(
      nodeId,
      kind,
      { ...body, until: theirs.earliest + deadlineMs },
      timeoutMs,
      theirs.earliest,
    );
    if (result.outcome === 'unknown') {
      this.#load.unknown++;
      this.#offsets.doubt(nodeId);
    }
    return result;
  }

  async #request(nodeId: string, kind: string, body: object, timeoutMs: number, time: number | undefined): Promise<Outcome> {
    const transport = this.#transport;
    if (transport === undefined || !this.#isUp) return { outcome: 'not_delivered' };
    const subject = this.#subjectOf(nodeId, kind);
    const { text, nonce } = this.#envelopes.seal(subject, body, time);
    this.#load.sent++;
    const reply = await transport.request(subject, text, timeoutMs);
    if (typeof reply === 'string') return { outcome: reply === 'nobody' ? 'not_delivered' : 'unknown' };
    const envelope = this.#opened(subject, reply.text);
    if (envelope?.answers !== nonce) {
      this.#load.dropped++;
      return { outcome: 'unknown' };
    }
    return { outcome: 'answered', body: envelope.body };
  }

  async #take(message: TransportMessage): Promise<void> {
    const { clock, log, nodeId } = this.#options;
    const { subject } = message;
    const kind = subject.slice(this.#subjectOf(nodeId, '').length);
    const envelope = this.#open(message, subject);
    const answerer = this.#answerers.get(kind);
    if (envelope === undefined || answerer === undefined) return;
    if ((kind !== PING && envelope.time === undefined) || !this.#envelopes.isFresh(envelope, clock.now())) {
      this.#load.dropped++;
      return;
    }
    try {
      const answer = await answerer(envelope.body, envelope.from);
      if (this.#isUp) message.respond(this.#envelopes.seal(subject, answer, undefined, envelope.nonce).text);
    } catch (error) {
      // Whoever asked hears nothing, and asks again or gives up.
      if (error instanceof StoreUnavailable) log.warn({ kind }, 'another node was not answered: the database is away');
      else log.error({ kind, error: stackOf(error) }, 'a bug in an answer to another node');
    }
  }

  #open(message: TransportMessage, subject: string): Envelope | undefined {
    const envelope = this.#opened(subject, message.text);
    // NATS brings our own news back to us.
    if (envelope?.from !== this.#options.nodeId) this.#load.received++;
    if (envelope === undefined) this.#load.dropped++;
    return envelope;
  }

  /** Opens a message. The result is undefined where it is not one of ours. */
  #opened(subject: string, text: string): Envelope | undefined {
    try {
      return this.#envelopes.open(subject, text);
    } catch {
      return undefined;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#isUp = false;
    await this.#transport?.close();
  }

  #subjectOf(nodeId: string, kind: string): string {
    return `sidetone.${this.#options.cluster}.node.${nodeId}.${kind}`;
  }

  #newsOf(kind: string): string {
    return `sidetone.${this.#options.cluster}.changed.${kind}`;
  }
}

const hasClock = (body: unknown): body is { readonly clock: number } =>
  typeof body === 'object' && body !== null && 'clock' in body && typeof body.clock === 'number';
