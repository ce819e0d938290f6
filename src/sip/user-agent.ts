/**
 * The user agent (RFC 3261 §8): bytes, orders and the time go in, bytes and events come out. It owns no socket and no
 * clock. The driver calls `receive` and `advance`, takes the outputs with `take`, and calls again at `nextDeadline`.
 */
import { SIP_CALLS_MAX, SIP_RETRY_AFTER_SEC, SIP_TRANSACTIONS_MAX } from '../limits.ts';
import { contactFor } from './agent-context.ts';
import { Call } from './call/call.ts';
import type { CallContext } from './call/call-context.ts';
import { dialogKey, mayComeFrom } from './call/dialog.ts';
import { isTooSmall, refuseInterval } from './call/session-timer.ts';
import type { CallSnapshot } from './call/snapshot.ts';
import { UasInvite } from './call/uas-invite.ts';
import type { Entropy, Peer, Place, SendFailure } from './flow.ts';
import { ALLOWED, methodRefusal, SUPPORTED, supportedBy, unsupportedTags } from './message/capability.ts';
import type { Credentials, Hash } from './message/digest.ts';
import { Headers, NO_BODY, type SipRequest, type SipResponse } from './message/message.ts';
import { readableInstead, withSessionDescription } from './message/multipart.ts';
import { parseMessage } from './message/parser.ts';
import { parseUri, tagOf } from './message/uri.ts';
import { seenBy } from './message/via.ts';
import { OutgoingRequest } from './outgoing-request.ts';
import { Registration, type RegistrationOptions } from './registration.ts';
import { TransactionLayer } from './transaction/layer.ts';
import type { ServerTransaction } from './transaction/server.ts';
import type { Probed, UserAgentOutput } from './user-agent-output.ts';
import { WithoutTcp } from './without-tcp.ts';

/**
 * The verdict about a request. `refuse` answers 403, a challenge 401, and `busySec` 503 with that Retry-After, all
 * without keeping state; `ignore` answers nothing.
 */
export type Screened =
  | 'accept'
  | 'refuse'
  | 'ignore'
  | { readonly challenge: readonly (readonly [string, string])[] }
  | { readonly busySec: number };

export interface UserAgentOptions {
  readonly entropy: Entropy;
  readonly hash: Hash;
  /** The value of User-Agent. */
  readonly product: string;
  /** The address to write into Via and Contact of what goes to that peer. */
  local(peer: Peer): { readonly host: string; readonly port: number };
  /**
   * Decides about a request that belongs to no call with its source. `status` is what the request would be refused with
   * anyway, because it is malformed. Without this function every request is accepted.
   */
  screen?(request: SipRequest, source: Peer, status: number | undefined): Screened;
  /** The source of a request outside of all calls, with the profile of whoever sends it, who may share an address. */
  senderOf?(request: SipRequest, source: Peer): Peer;
  /** Whether an address is in the ranges of a profile (flow.ts). Without this function none is. */
  isWithin?(host: string, ranges: readonly string[]): boolean;
  /** What challenges in the call of an INVITE from there are answered with. Without this function they are not. */
  credentialsOf?(source: Peer, request: SipRequest): Credentials | undefined;
  /** Takes a REGISTER that was accepted. False, or without this function, REGISTER is a method that is not for us. */
  registrar?(transaction: ServerTransaction): boolean;
  /**
   * Takes a request within a dialog that is none of ours, because another node may have it. True: it is taken care of.
   * A user agent that has no such function answers it by 481.
   */
  stray?(bytes: Uint8Array, source: Peer): boolean;
  readonly maxTransactions?: number;
  readonly maxCalls?: number;
  /** The session interval that we propose in an INVITE, in seconds (RFC 4028). */
  readonly sessionExpiresSec: number;
}

/** How a message came. */
export interface Arrival {
  /** A request that belongs to no dialog is no other node's. */
  readonly isOurs?: boolean;
  /** It has waited for longer than a new call may. */
  readonly isLate?: boolean;
}

export interface InviteOptions {
  readonly peer: Peer;
  readonly uri: string;
  /** A name-addr without tag. */
  readonly from: string;
  readonly to: string;
  readonly body: Uint8Array;
  readonly credentials: Credentials | undefined;
  /** A new one is made when it is left out. */
  readonly callId?: string;
  /** Further header fields. Names are canonical, values have no CR or LF. */
  readonly fields: readonly (readonly [string, string])[];
}

export class UserAgent {
  readonly #options: UserAgentOptions;
  readonly #layer: TransactionLayer;
  readonly #context: CallContext<Call>;
  readonly #dialogs = new Map<string, Call>();
  readonly #calls = new Set<Call>();
  #outputs: UserAgentOutput[] = [];
  #lastCall = 0;
  #draining = false;

  constructor(options: UserAgentOptions) {
    this.#options = options;
    const most = options.maxTransactions ?? SIP_TRANSACTIONS_MAX;
    const user = {
      onRequest: (transaction: ServerTransaction) => {
        this.#onRequest(transaction);
        const { request, source, finalStatus: status = 0 } = transaction;
        const isNew = request.method === 'INVITE' && tagOf(request.headers.get('to')) === undefined;
        if (isNew && status >= 400) this.#outputs.push({ type: 'refused', request, source, status, isLate: false });
      },
      onAck: (ack: SipRequest) => this.#onAck(ack),
      callOf: (request: SipRequest) => this.#callOf(request),
    };
    this.#layer = new TransactionLayer(options.entropy, most, user, (bytes, peer, ticket) =>
      this.#outputs.push({ type: 'send', bytes, peer, ticket }),
    );
    this.#context = {
      layer: this.#layer,
      entropy: options.entropy,
      hash: options.hash,
      withoutTcp: new WithoutTcp(),
      product: options.product,
      local: (peer) => options.local(peer),
      enter: (key, call) => this.#dialogs.set(key, call),
      leave: (key, call) => {
        if (this.#dialogs.get(key) === call) this.#dialogs.delete(key);
      },
      tell: (call, event) => this.#outputs.push({ type: 'call', call, event }),
      closed: (call) => this.#calls.delete(call),
    };
  }

  /**
   * Takes one whole message from the transport. It never throws on what the message contains. A new call that is late
   * is answered 503, without Retry-After: the far end sends it elsewhere, and goes on with other calls here.
   */
  receive(bytes: Uint8Array, source: Peer, now: number, { isOurs = false, isLate = false }: Arrival = {}): void {
    this.#layer.now = now;
    const parsed = parseMessage(bytes);
    if (parsed.ok && parsed.message.kind === 'response') this.#layer.receive(withSessionDescription(parsed.message), source);
    else if (parsed.ok && parsed.message.kind === 'request') {
      const { message } = parsed;
      const call = this.#callOf(message);
      if (!this.#admits(message, source, call)) return;
      if (isLate && this.#isNewCall(message, source)) {
        this.#layer.refuse(message, 503, source);
        this.#outputs.push({ type: 'refused', request: message, source, status: 503, isLate });
        return;
      }
      const isStray = call === undefined && !isOurs && this.#isStray(message, source);
      if (isStray && this.#options.stray?.(bytes, source) === true) return;
      const sender = () => this.#options.senderOf?.(message, source) ?? source;
      this.#layer.receive(
        withSessionDescription(message),
        call === undefined ? securedBy(message, sender()) : within(call, source),
      );
    } else if (!parsed.ok && parsed.refuse !== undefined) {
      const { request, status } = parsed.refuse;
      const verdict = this.#options.screen?.(request, source, status) ?? 'accept';
      if (verdict !== 'ignore') this.#layer.refuse(request, verdict === 'accept' ? status : 403, source);
    }
  }

  #isNewCall(request: SipRequest, source: Peer): boolean {
    return request.method === 'INVITE' && tagOf(request.headers.get('to')) === undefined && !this.#layer.knows(request, source);
  }

  /** Whether a request, of no call here, is within a dialog all the same. */
  #isStray(request: SipRequest, source: Peer): boolean {
    const { stray } = this.#options;
    if (stray === undefined || request.method === 'CANCEL' || tagOf(request.headers.get('to')) === undefined) return false;
    return !this.#layer.knows(request, source);
  }

  /** Tells whether a message is a request within one of the dialogs of this user agent. */
  has(bytes: Uint8Array): boolean {
    const parsed = parseMessage(bytes);
    return parsed.ok && parsed.message.kind === 'request' && this.#callOf(parsed.message) !== undefined;
  }

  /** Whether a request may be worked on: its source is known, or takes part in the call that the request is about. */
  #admits(request: SipRequest, source: Peer, call: Call | undefined): boolean {
    const { screen } = this.#options;
    if (screen === undefined || this.#layer.knows(request, source)) return true;
    if (request.method === 'CANCEL' && this.#layer.inviteOf(request)?.source.host === source.host) return true;
    if (call !== undefined && this.#isWith(call, source.host)) return true;
    const verdict = screen(request, source, undefined);
    if (request.method !== 'ACK') {
      if (verdict === 'refuse') this.#layer.refuse(request, 403, source);
      else if (typeof verdict === 'object' && 'busySec' in verdict)
        this.#layer.refuse(request, 503, source, [['retry-after', String(verdict.busySec)]]);
      else if (typeof verdict === 'object') this.#layer.refuse(request, 401, source, verdict.challenge);
    }
    return verdict === 'accept';
  }

  /** The transport could not deliver what was sent with this ticket, or does not know whether it was delivered. */
  sendFailed(ticket: string, now: number, why: SendFailure = 'refused'): void {
    this.#layer.now = now;
    this.#layer.sendFailed(ticket, why);
  }

  /** Lets every timer fire that is due. */
  advance(now: number): void {
    this.#layer.now = now;
    this.#layer.deadlines.advance(now);
  }

  /** The time at which `advance` is to be called next, in milliseconds. Infinity means not before another input. */
  nextDeadline(): number {
    return this.#layer.deadlines.next();
  }

  /** The outputs since the last `take`, in order. */
  take(): UserAgentOutput[] {
    if (this.#outputs.length === 0) return [];
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  /** Starts a call. Undefined when the limit of calls is reached. */
  invite(options: InviteOptions, now: number): Call | undefined {
    this.#layer.now = now;
    if (this.#calls.size >= this.#maxCalls) return undefined;
    const { entropy } = this.#options;
    const headers = new Headers()
      .add('max-forwards', '70')
      .add('from', `${options.from};tag=${entropy.token()}`)
      .add('to', options.to)
      .add('call-id', options.callId ?? entropy.token())
      .add('cseq', '1 INVITE')
      .add('contact', contactFor(this.#context, options.peer))
      .add('allow', ALLOWED)
      .add('supported', supportedBy(options.peer))
      .add('user-agent', this.#options.product);
    if (options.peer.profile?.sessionTimer !== false)
      headers.add('session-expires', String(this.#options.sessionExpiresSec)).add('min-se', '90');
    for (const [name, value] of options.fields) {
      if (name === 'max-forwards') headers.set(name, value);
      else headers.add(name, value);
    }
    headers.add('content-type', 'application/sdp');
    const call = this.#newCall('outbound', options.credentials);
    call.dial({ kind: 'request', method: 'INVITE', uri: options.uri, headers, body: options.body }, options.peer);
    return call;
  }

  /** Goes on with a call of another node. Undefined when the limit of calls is reached. */
  resume(snapshot: CallSnapshot, ahead: number, credentials: Credentials | undefined, now: number): Call | undefined {
    this.#layer.now = now;
    if (this.#calls.size >= this.#maxCalls) return undefined;
    const call = this.#newCall(snapshot.direction, credentials);
    call.resume(snapshot, ahead);
    return call;
  }

  /** A device that was reached at one place is at another one: so are its calls. */
  moved(from: Place, to: Peer): void {
    for (const call of this.#calls) call.moved(from, to);
  }

  /** The device user at a place has perhaps started anew, and does not know its calls any more. */
  restarted(place: Place, username: string): void {
    for (const call of this.#calls) call.restarted(place, username);
  }

  /** Makes a registration that keeps itself alive once started. `name` names it in `registration` outputs. */
  register(name: string, options: Omit<RegistrationOptions, 'onState'>): Registration {
    return new Registration(this.#context, {
      ...options,
      onState: (state, status) => this.#outputs.push({ type: 'registration', name, state, status }),
    });
  }

  /** Sends OPTIONS (RFC 3261 §11), by way of `route` if there is one. The outcome comes as a `probed` output. */
  probe(probed: Probed, uri: string, peer: Peer, now: number, route?: string): void {
    this.#layer.now = now;
    const { entropy, product } = this.#options;
    const { host } = this.#options.local(peer);
    let number = 1;
    const began = now;
    const headers = new Headers();
    if (route !== undefined) headers.add('route', route);
    headers
      .add('max-forwards', '70')
      .add('from', `<sip:sidetone@${host.includes(':') ? `[${host}]` : host}>;tag=${entropy.token()}`)
      .add('to', `<${uri}>`)
      .add('call-id', entropy.token())
      .add('cseq', '1 OPTIONS')
      .add('contact', contactFor(this.#context, peer))
      .add('accept', 'application/sdp')
      .add('user-agent', product);
    const report = (status: number, seenAt = '') =>
      this.#outputs.push({ type: 'probed', ...probed, status, tookMs: this.#layer.now - began, seenAt });
    const owner = {
      onResponse: ({ status, headers }: SipResponse) => (status >= 200 ? report(status, seenBy(headers.get('via'))) : undefined),
      onFailure: () => report(0),
    };
    const request: SipRequest = { kind: 'request', method: 'OPTIONS', uri, headers, body: NO_BODY };
    new OutgoingRequest(this.#context, request, peer, owner, { credentials: () => undefined, nextNumber: () => ++number }).send();
  }

  /** Answers INVITE and OPTIONS outside a dialog with 503 from now on, or no longer. */
  drain(on = true): void {
    this.#draining = on;
  }

  /** Whether a call is up with that address. */
  hasCallWith(host: string): boolean {
    for (const call of this.#calls) if (this.#isWith(call, host)) return true;
    return false;
  }

  #isWith(call: Call, host: string): boolean {
    return mayComeFrom(host, call.farEnd, (address, ranges) => this.#options.isWithin?.(address, ranges) === true);
  }

  load(): { readonly dialogs: number; readonly transactions: number } {
    return { dialogs: this.#calls.size, transactions: this.#layer.size };
  }

  /** The number of timers and dialog keys held. Tests use it to see that nothing leaks. */
  holdings(): { readonly deadlines: number; readonly keys: number } {
    return { deadlines: this.#layer.deadlines.size, keys: this.#dialogs.size };
  }

  get #maxCalls(): number {
    return this.#options.maxCalls ?? SIP_CALLS_MAX;
  }

  #newCall(direction: 'inbound' | 'outbound', credentials: Credentials | undefined): Call {
    const call = new Call(this.#context, ++this.#lastCall, direction, credentials);
    this.#calls.add(call);
    return call;
  }

  #callOf(request: SipRequest): Call | undefined {
    const { headers } = request;
    return this.#dialogs.get(
      dialogKey(headers.get('call-id') ?? '', tagOf(headers.get('to')) ?? '', tagOf(headers.get('from')) ?? ''),
    );
  }

  #onAck(ack: SipRequest): void {
    this.#callOf(ack)?.onAck(ack);
  }

  #onRequest(transaction: ServerTransaction): void {
    const { request } = transaction;
    const { method, headers } = request;
    if (method === 'CANCEL') {
      this.#onCancel(transaction);
      return;
    }
    if (method === 'REGISTER' && this.#options.registrar?.(transaction) === true) return;
    const refusal = methodRefusal(method);
    if (refusal !== undefined) {
      this.#refuse(transaction, refusal, 'allow', ALLOWED);
      return;
    }
    const unknown = unsupportedTags(headers);
    if (unknown.length > 0) {
      this.#refuse(transaction, 420, 'unsupported', unknown.join(', '));
      return;
    }
    if (parseUri(request.uri) === undefined) {
      transaction.respond(/^sips?:/i.test(request.uri) ? 400 : 416);
      return;
    }
    if (tagOf(headers.get('to')) !== undefined) {
      const call = this.#callOf(request);
      const instead = readableInstead(request);
      if (call === undefined) transaction.respond(481);
      else if (instead !== undefined) this.#refuse(transaction, 415, ...instead);
      else call.onRequest(transaction);
      return;
    }
    if (headers.get('max-forwards') === '0' && method !== 'OPTIONS') transaction.respond(483);
    else if (method === 'INVITE') this.#onInvite(transaction);
    else if (method === 'OPTIONS') this.#onOptions(transaction);
    else if (method === 'REFER') transaction.respond(403);
    else transaction.respond(481);
  }

  #onInvite(transaction: ServerTransaction): void {
    const { request } = transaction;
    const instead = readableInstead(request);
    if (this.#layer.isMerged(transaction)) transaction.respond(482);
    else if (this.#draining) this.#refuse(transaction, 503, 'retry-after', String(SIP_RETRY_AFTER_SEC));
    else if (this.#calls.size >= this.#maxCalls) transaction.respond(503);
    else if (instead !== undefined) this.#refuse(transaction, 415, ...instead);
    else if (isTooSmall(request.headers, transaction.source)) refuseInterval(transaction);
    else {
      const call = this.#newCall('inbound', this.#options.credentialsOf?.(transaction.source, request));
      if (!call.begin(transaction)) {
        this.#calls.delete(call);
        transaction.respond(400);
        return;
      }
      this.#outputs.push({ type: 'invite', call, request, source: transaction.source });
    }
  }

  #onCancel(transaction: ServerTransaction): void {
    const invite = this.#layer.inviteOf(transaction.request);
    if (invite === undefined) {
      transaction.respond(481);
      return;
    }
    transaction.respond(200);
    if (invite.owner instanceof UasInvite) this.#dialogs.get(inviteKey(invite))?.onCancel(transaction.request);
  }

  #onOptions(transaction: ServerTransaction): void {
    const response = transaction.make(this.#draining ? 503 : 200);
    if (this.#draining) response.headers.add('retry-after', String(SIP_RETRY_AFTER_SEC));
    response.headers.add('allow', ALLOWED).add('accept', 'application/sdp').add('supported', SUPPORTED);
    response.headers.add('contact', contactFor(this.#context, transaction.source));
    transaction.send(response);
  }

  #refuse(transaction: ServerTransaction, status: number, name: string, value: string): void {
    const response = transaction.make(status);
    response.headers.add(name, value);
    transaction.send(response);
  }
}

/**
 * The source of a request within a call, with the profile that the call began with: an edit of its trunk is none of
 * its.
 */
function within(call: Call, { profile: _, ...source }: Peer): Peer {
  const profile = call.farEnd.peer?.profile;
  return profile === undefined ? source : { ...source, profile };
}

/**
 * The source of a request outside of all calls, as one of `sips:` URIs where the request was sent to one, or came from
 * one by its top Record-Route, or its Contact without any (RFC 3261 §12.1.1).
 */
function securedBy({ uri, headers }: SipRequest, source: Peer): Peer {
  const from = headers.get('record-route') ?? headers.get('contact') ?? '';
  const isSips = source.transport === 'tls' && (/^sips:/i.test(uri) || /^[^<]*<?sips:/i.test(from));
  return isSips ? { ...source, profile: { ...source.profile, isSips } } : source;
}

const inviteKey = ({ request, tag }: ServerTransaction): string =>
  dialogKey(request.headers.get('call-id') ?? '', tag, tagOf(request.headers.get('from')) ?? '');
