/**
 * The transaction layer (RFC 3261 §17): finds the transaction of each message, makes new ones, and hands the rest up.
 * Sends nothing itself:
 * `transmit` appends to the outputs.
 */
import { hexHash } from '../../hash.ts';
import { SIP_TRANSACTIONS_OF_CALLS } from '../../limits.ts';
import { Deadlines } from '../deadlines.ts';
import { defaultPort, type Entropy, type Peer, type SendFailure } from '../flow.ts';
import { parseCSeq, type SipMessage, type SipRequest, type SipResponse } from '../message/message.ts';
import { makeResponse } from '../message/response.ts';
import { serialize } from '../message/serializer.ts';
import { tagOf } from '../message/uri.ts';
import { MAGIC_COOKIE, parseVia, parseViaLeniently, stampVia, type Via } from '../message/via.ts';
import { type ClientOwner, ClientTransaction } from './client.ts';
import { ServerTransaction } from './server.ts';
import { ServersOfCalls } from './servers-of-calls.ts';

/** The transaction user (RFC 3261 §5): the user agent above this layer. */
interface TransactionUser {
  onRequest(transaction: ServerTransaction): void;
  /** The call that a request is of. Undefined where it is of none. */
  callOf(request: SipRequest): object | undefined;
  /** An ACK arrived that belongs to no transaction: it acknowledges a 2xx (RFC 3261 §13.3.1.4), or it is stray. */
  onAck(request: SipRequest): void;
}

/** The length of a tag that is computed: 96 bits, as in one that is drawn. */
const TAG_HEX_DIGITS = 24;

export class TransactionLayer {
  readonly deadlines = new Deadlines();
  /** The time of the input being worked on, ms. */
  now = 0;
  readonly #entropy: Entropy;
  readonly #most: number;
  readonly #user: TransactionUser;
  readonly #transmit: (bytes: Uint8Array, peer: Peer, ticket: string) => void;
  readonly #clients = new Map<string, ClientTransaction>();
  readonly #servers = new Map<string, ServerTransaction>();
  readonly #merging = new Map<string, ServerTransaction>();
  readonly #ofCalls = new ServersOfCalls();
  /** What the tags of stateless responses are computed with, so that nobody else can. */
  #tagSecret: string | undefined;

  /** `most`: client and server transactions, each. */
  constructor(
    entropy: Entropy,
    most: number,
    user: TransactionUser,
    transmit: (bytes: Uint8Array, peer: Peer, ticket: string) => void,
  ) {
    this.#entropy = entropy;
    this.#most = most;
    this.#user = user;
    this.#transmit = transmit;
  }

  get size(): number {
    return this.#clients.size + this.#servers.size;
  }

  /** Sends bytes. `ticket` names the client transaction to tell when they cannot be delivered; `""` names none. */
  transmit(bytes: Uint8Array, peer: Peer, ticket: string): void {
    this.#transmit(bytes, peer, ticket);
  }

  newBranch(): string {
    return MAGIC_COOKIE + this.#entropy.token();
  }

  /** Starts a client transaction for a request whose top Via is ours. Undefined when there are too many. */
  request(request: SipRequest, branch: string, peer: Peer, owner: ClientOwner): ClientTransaction | undefined {
    const isOfCall = request.method === 'CANCEL' || tagOf(request.headers.get('to')) !== undefined;
    if (this.#clients.size >= this.#placesFor(isOfCall)) return undefined;
    const key = `${branch} ${request.method}`;
    const transaction = new ClientTransaction(this, key, request, peer, owner);
    this.#clients.set(key, transaction);
    return transaction;
  }

  /** The transport says that what was sent with this ticket did not go out, or may not have arrived. */
  sendFailed(ticket: string, why: SendFailure): void {
    const transaction = this.#clients.get(ticket);
    if (why === 'lost') transaction?.lost();
    else transaction?.unreachable();
  }

  receive(message: SipMessage, source: Peer): void {
    if (message.kind === 'response') this.#receiveResponse(message, source);
    else this.#receiveRequest(message, source);
  }

  /** Answers a request without keeping state: one that could not be parsed, or that is not from a known source. */
  refuse(request: SipRequest, status: number, source: Peer, fields: readonly (readonly [string, string])[] = []): void {
    const value = request.headers.get('via');
    const via = value === undefined ? undefined : parseViaLeniently(value);
    if (value === undefined || via === undefined) return;
    request.headers.values[request.headers.names.indexOf('via')] = stampVia(value, via, source);
    const response = makeResponse(request, status, this.#statelessTag(request, via));
    for (const [name, text] of fields) response.headers.add(name, text);
    this.transmit(serialize(response), responsePeer(via, source), '');
  }

  /** Whether this request came before from the same host, and its transaction is still there. */
  knows(request: SipRequest, source: Peer): boolean {
    const via = parseVia(request.headers.get('via') ?? '');
    if (via === undefined) return false;
    const method = request.method === 'ACK' ? 'INVITE' : request.method;
    return this.#servers.get(serverKey(request, via, method))?.source.host === source.host;
  }

  /** The INVITE transaction that a CANCEL is about (§9.2). */
  inviteOf(cancel: SipRequest): ServerTransaction | undefined {
    const via = parseVia(cancel.headers.get('via') ?? '');
    return via === undefined ? undefined : this.#servers.get(serverKey(cancel, via, 'INVITE'));
  }

  /** Whether this request came before, on another path, and is being worked on (§8.2.2.2). */
  isMerged(transaction: ServerTransaction): boolean {
    const first = this.#merging.get(transaction.mergeKey);
    return first !== undefined && first !== transaction;
  }

  /** Drops a transaction and cancels its timer. */
  forget(transaction: ClientTransaction | ServerTransaction): void {
    this.deadlines.set(transaction, Infinity);
    if (transaction instanceof ClientTransaction) this.#clients.delete(transaction.key);
    else {
      this.#servers.delete(transaction.key);
      this.#ofCalls.delete(transaction);
      if (this.#merging.get(transaction.mergeKey) === transaction) this.#merging.delete(transaction.mergeKey);
    }
  }

  /** The transactions beyond which a request is refused. The last tenth is for calls, which else could not be ended. */
  #placesFor(isOfCall: boolean): number {
    return isOfCall ? this.#most : Math.ceil(this.#most * (1 - SIP_TRANSACTIONS_OF_CALLS));
  }

  /** The To tag of a response for which no state is kept: the same one where the request comes again (§8.2.7). */
  #statelessTag(request: SipRequest, via: Via): string {
    this.#tagSecret ??= this.#entropy.token();
    return hexHash('SHA-256', `${this.#tagSecret} ${serverKey(request, via, request.method)}`).slice(0, TAG_HEX_DIGITS);
  }

  /** Whether a request is answered alike whenever it comes, unless it has to wait for its answer. */
  #isRepeatable(request: SipRequest): boolean {
    if (request.method === 'CANCEL') return this.inviteOf(request) === undefined;
    return request.method !== 'INVITE' && this.#user.callOf(request) === undefined;
  }

  /** The To tag of the responses to a request. A CANCEL is answered with that of its INVITE (RFC 3261 §9.2). */
  #tagFor(request: SipRequest, via: Via, source: Peer): string {
    const cancelled = request.method === 'CANCEL' ? this.inviteOf(request) : undefined;
    if (cancelled !== undefined && cancelled.source.host === source.host) return cancelled.tag;
    return request.method === 'INVITE' ? this.#entropy.token() : this.#statelessTag(request, via);
  }

  #receiveResponse(response: SipResponse, source: Peer): void {
    // §8.1.3.3: more than one Via is a response that was not for us.
    const { headers } = response;
    const value = headers.get('via');
    if (value === undefined || headers.list('via').length > 1) return;
    const via = parseVia(value);
    const cseq = parseCSeq(headers.get('cseq'));
    if (via === undefined || cseq === undefined) return;
    this.#clients.get(`${via.branch} ${cseq.method}`)?.receive(response, source);
  }

  #receiveRequest(request: SipRequest, source: Peer): void {
    const { headers } = request;
    const value = headers.get('via') ?? '';
    const via = parseVia(value);
    if (via === undefined) return;
    const ack = request.method === 'ACK';
    const key = serverKey(request, via, ack ? 'INVITE' : request.method);
    const known = this.#servers.get(key);
    if (known !== undefined) {
      known.receive(request);
      // The ACK of a 2xx has a branch of its own (§17.1.1.3). Some far ends give it that of the re-INVITE.
      if (!ack || !known.isAcceptedByCall) return;
    }
    if (ack) {
      this.#user.onAck(request);
      return;
    }
    headers.values[headers.names.indexOf('via')] = stampVia(value, via, source);
    const peer = responsePeer(via, source);
    const isCancel = request.method === 'CANCEL';
    const call = isCancel ? undefined : this.#user.callOf(request);
    const isOfCall = isCancel ? this.inviteOf(request) !== undefined : call !== undefined;
    if (this.#servers.size >= this.#placesFor(isOfCall)) {
      this.transmit(serialize(makeResponse(request, 503, this.#statelessTag(request, via))), peer, '');
      return;
    }
    const mergeKey = request.method === 'INVITE' ? mergeKeyOf(request) : '';
    const tag = this.#tagFor(request, via, source);
    const transaction = new ServerTransaction(this, key, mergeKey, request, source, peer, tag);
    const isRepeatable = this.#isRepeatable(request);
    this.#servers.set(key, transaction);
    if (mergeKey !== '' && !this.#merging.has(mergeKey)) this.#merging.set(mergeKey, transaction);
    if (call !== undefined) this.#ofCalls.add(call, transaction);
    this.#user.onRequest(transaction);
    const crowded = call === undefined ? undefined : this.#ofCalls.beyond(call);
    if (crowded !== undefined) this.forget(crowded);
    // The same answer goes to what comes again (RFC 3261 §8.2.7). Kept for 32 s each, those to a flood of OPTIONS from
    // the address of a trunk, which anybody can write on a datagram, would leave no place for calls.
    if (isRepeatable && transaction.finalStatus !== undefined) this.forget(transaction);
  }
}

function mergeKeyOf(request: SipRequest): string {
  const { headers } = request;
  if (tagOf(headers.get('to')) !== undefined) return '';
  return `${headers.get('call-id')} ${tagOf(headers.get('from')) ?? ''} ${headers.get('cseq')}`;
}

/**
 * The key of a server transaction (RFC 3261 §17.2.3). A client without the magic cookie (RFC 2543) is matched by its
 * request instead.
 */
function serverKey(request: SipRequest, via: Via, method: string): string {
  if (via.branch.startsWith(MAGIC_COOKIE) && via.branch.length > MAGIC_COOKIE.length) {
    return `${via.branch} ${via.host.toLowerCase()}:${via.port ?? ''} ${method}`;
  }
  const { headers } = request;
  const number = Number.parseInt(headers.get('cseq') ?? '', 10);
  return `${headers.get('call-id')} ${tagOf(headers.get('from')) ?? ''} ${number} ${request.uri} ${via.host}:${via.port ?? ''} ${via.branch} ${method}`;
}

/**
 * The peer that responses are sent to (RFC 3261 §18.2.2, RFC 3581 §4). `maddr` is not followed. Where the connection is
 * gone, a response is worth a new one.
 */
function responsePeer(via: Via, source: Peer): Peer {
  const answersToSource = source.transport === 'udp' && via.parameters.has('rport');
  const port = answersToSource ? source.port : (via.port ?? defaultPort(source.transport));
  return source.profile?.staysOnFlow === true
    ? { ...source, port, profile: { ...source.profile, staysOnFlow: false } }
    : { ...source, port };
}
