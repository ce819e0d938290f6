/**
 * A registration kept alive (RFC 3261 §10.2): REGISTER, again before it runs out, again after failures. Each round
 * begins with a search for the addresses of the registrar, which are tried one after the other (RFC 3263 §4.3): the
 * next one after silence, a failure to send, or 503.
 *
 *   unregistered --200--> registered --refresh 200--> registered
 *        ^ 423: longer expiry; 401/407: credentials; else retry later
 */
import {
  SIP_REGISTER_EXPIRES_SEC,
  SIP_REGISTER_REFUSED_MAX_SEC,
  SIP_REGISTER_RETRY_SEC,
  SIP_REGISTER_SILENT_MS,
  SIP_RETRIES_MAX,
  SIP_SERVICE_ROUTE_MAX_CHARS,
} from '../limits.ts';
import { type AgentContext, contactFor, type RequestOwner } from './agent-context.ts';
import type { Timed } from './deadlines.ts';
import type { Peer } from './flow.ts';
import { ALLOWED } from './message/capability.ts';
import type { Credentials } from './message/digest.ts';
import { Headers, NO_BODY, parseDeltaSeconds, type SipRequest, type SipResponse } from './message/message.ts';
import { isSameAddress, parseNameAddress, parseUri } from './message/uri.ts';
import { OutgoingRequest } from './outgoing-request.ts';

export type RegistrationState = 'registered' | 'refused' | 'unreachable' | 'unregistered';

export interface RegistrationOptions {
  /** The Request-URI: `sip:` and the domain of the registrar. */
  readonly registrar: string;
  /** The address of record: `sip:user@domain`. */
  readonly address: string;
  /**
   * Finds the addresses of the registrar, in the order in which they are tried, and calls `found` with them and the
   * time, at once or later.
   */
  resolve(found: (peers: readonly Peer[], now: number) => void): void;
  /** The Route of an outbound proxy. */
  readonly route?: string;
  readonly credentials: Credentials;
  /** Called after each outcome of a REGISTER. `status` is the status of the response, 0 when none came. */
  onState(state: RegistrationState, status: number): void;
}

export class Registration implements RequestOwner, Timed {
  place = -1;
  at = 0;
  readonly #context: AgentContext;
  readonly #options: RegistrationOptions;
  readonly #callId: string;
  readonly #tag: string;
  #number = 0;
  #state: RegistrationState = 'unregistered';
  #sipStatus: number | undefined;
  #expiresSec = SIP_REGISTER_EXPIRES_SEC;
  /** When the binding expires, in milliseconds. */
  #until: number | undefined;
  #tooBrief = 0;
  #stopped = false;
  #onStopped: () => void = () => {};
  #outgoing: OutgoingRequest | undefined;
  /** The peer that is asked, and those that are left to try after it in this round. */
  #peer: Peer | undefined;
  #others: readonly Peer[] = [];
  /** The peer that took the binding, and when, in milliseconds. */
  #boundAt: Peer | undefined;
  #boundSince = -Infinity;
  /** When the next round begins, in milliseconds. Undefined while one is under way. */
  #restsUntil: number | undefined;
  /** The routes that the last binding came with. */
  #serviceRoute: readonly string[] = [];
  /** Refusals since the last binding. */
  #refusals = 0;
  /** The number of the round. What a search of an earlier round finds comes too late. */
  #round = 0;

  constructor(context: AgentContext, options: RegistrationOptions) {
    this.#context = context;
    this.#options = options;
    // §10.2: all REGISTERs of one binding share a Call-ID and count their CSeq.
    this.#callId = context.entropy.token();
    this.#tag = context.entropy.token();
  }

  get state(): RegistrationState {
    return this.#state;
  }

  /** The status of the answer to the last REGISTER, 0 where none came. Undefined before the first outcome. */
  get sipStatus(): number | undefined {
    return this.#sipStatus;
  }

  /** When the binding expires, in milliseconds. Undefined while there is none. */
  get until(): number | undefined {
    return this.#state === 'registered' ? this.#until : undefined;
  }

  /** The peer that has taken the binding. Undefined while there is none. */
  get boundAt(): Peer | undefined {
    return this.#state === 'registered' ? this.#boundAt : undefined;
  }

  /** The Route header fields of requests other than REGISTER while the binding lasts (RFC 3608 §5). */
  get serviceRoute(): readonly string[] {
    return this.#state === 'registered' ? this.#serviceRoute : [];
  }

  /** Registers now, whatever is under way. */
  start(now: number): void {
    this.#context.layer.now = now;
    this.#begin();
  }

  /**
   * Removes the binding at the registrar, which lasts until it expires, also where it could not be refreshed. `over` is
   * called when that has answered, or when there is nothing to do.
   */
  stop(now: number, over: () => void = () => {}): void {
    this.#context.layer.now = now;
    if (this.#stopped) {
      over();
      return;
    }
    this.#stopped = true;
    this.#onStopped = over;
    this.#abandon();
    if (this.#boundAt !== undefined && (this.#until ?? 0) > now) this.#send(this.#boundAt, 0);
    else over();
    this.#state = 'unregistered';
  }

  /** Ends without a word, also in the middle of a stop: another registration makes the same binding anew. */
  letGo(): void {
    this.#stopped = true;
    this.#state = 'unregistered';
    this.#abandon();
    this.#onStopped();
  }

  /**
   * A connection to that address has closed. Where the binding was made over it, calls do not come in any more if we
   * are behind a NAT, so it is made anew (RFC 5626 §4.4): at once, but not within SIP_REGISTER_RETRY_SEC of the last
   * time, as some registrars close every connection.
   */
  flowLost(from: Pick<Peer, 'transport' | 'host' | 'port'>, now: number): void {
    const { layer } = this.#context;
    const bound = this.#boundAt;
    if (bound === undefined || this.#restsUntil === undefined || this.until === undefined) return;
    if (bound.transport !== from.transport || bound.host !== from.host || bound.port !== from.port) return;
    layer.now = now;
    const at = Math.max(now, this.#boundSince + SIP_REGISTER_RETRY_SEC * 1000);
    if (at === now) this.#begin();
    else if (at < this.#restsUntil) this.#again((at - now) / 1000);
  }

  /** The peer has not answered and there is another one, or the time of the next round has come. */
  due(): void {
    if (!this.#tryNext()) this.#begin();
  }

  onResponse(response: SipResponse): void {
    const { status } = response;
    if (this.#stopped) {
      if (status >= 200) this.#onStopped();
      return;
    }
    // The peer is there: it has as long as its transaction.
    this.#context.layer.deadlines.set(this, Infinity);
    if (status < 200) return;
    if (status < 300) {
      this.#tooBrief = 0;
      this.#refusals = 0;
      this.#boundAt = this.#peer;
      this.#boundSince = this.#context.layer.now;
      this.#serviceRoute = serviceRouteOf(response);
      const granted = this.#granted(response);
      this.#until = this.#context.layer.now + granted * 1000;
      this.#to('registered', status);
      this.#again(granted > 60 ? granted - 30 : Math.max(1, granted / 2));
      return;
    }
    if (status === 423 && this.#tooBrief++ < SIP_RETRIES_MAX) {
      const least = parseDeltaSeconds(response.headers.get('min-expires'));
      if (least !== undefined && least <= 86_400 && least > this.#expiresSec) {
        this.#expiresSec = least;
        if (this.#peer !== undefined) this.#send(this.#peer, least);
        return;
      }
    }
    if (status === 503 && this.#tryNext()) return;
    this.#to('refused', status);
    const asked = parseDeltaSeconds(response.headers.get('retry-after'));
    // Many a registrar bans a client that repeats a refused password.
    const pause = SIP_REGISTER_RETRY_SEC * (status < 500 ? 2 ** Math.min(this.#refusals++, 10) : 1);
    this.#again(asked === undefined ? Math.min(SIP_REGISTER_REFUSED_MAX_SEC, pause) : Math.max(1, Math.min(3600, asked)));
  }

  onFailure(): void {
    if (this.#stopped) this.#onStopped();
    if (this.#stopped || this.#tryNext()) return;
    this.#to('unreachable', 0);
    this.#again(SIP_REGISTER_RETRY_SEC);
  }

  /** The expiry, in seconds, of our own binding among the bindings that the registrar lists (RFC 3261 §10.2.4). */
  #granted(response: SipResponse): number {
    const ours = parseNameAddress(this.#outgoing?.request.headers.get('contact') ?? '')?.uri ?? '';
    const bindings = response.headers.list('contact').flatMap((value) => {
      const contact = parseNameAddress(value);
      return contact === undefined ? [] : [{ uri: contact.uri, expires: parseDeltaSeconds(contact.parameters.get('expires')) }];
    });
    const told = bindings.filter(({ uri, expires }) => expires !== undefined && isSameAddress(uri, ours));
    // A registrar that rewrites our address lists it in its own words: a single binding can only be ours.
    const [mine] = told.length > 0 ? told : bindings.length === 1 ? bindings : [];
    const said = mine?.expires ?? parseDeltaSeconds(response.headers.get('expires'));
    // The freshest of several is ours: it was made just now, for as long as we asked at most.
    const likely = bindings.flatMap(({ expires = Infinity }) => (expires <= this.#expiresSec ? [expires] : []));
    return said ?? (likely.length > 0 ? Math.max(...likely) : this.#expiresSec);
  }

  /** Begins a round. */
  #begin(): void {
    this.#abandon();
    this.#restsUntil = undefined;
    const round = ++this.#round;
    this.#options.resolve((peers, now) => {
      if (this.#stopped || round !== this.#round) return;
      this.#context.layer.now = now;
      this.#others = peers;
      if (!this.#tryNext()) this.onFailure();
    });
  }

  /** Asks the next peer of this round. False when none is left. */
  #tryNext(): boolean {
    const [next, ...others] = this.#others;
    if (next === undefined) return false;
    this.#abandon();
    this.#others = others;
    this.#send(next, this.#expiresSec);
    return true;
  }

  /** Forgets the request and the peers of this round. An answer that comes late is not heard. */
  #abandon(): void {
    const { layer } = this.#context;
    const transaction = this.#outgoing?.transaction;
    if (transaction !== undefined) layer.forget(transaction);
    this.#others = [];
    layer.deadlines.set(this, Infinity);
  }

  #send(peer: Peer, expiresSec: number): void {
    const { registrar, address, credentials, route } = this.#options;
    this.#peer = peer;
    if (this.#others.length > 0) this.#context.layer.deadlines.set(this, this.#context.layer.now + SIP_REGISTER_SILENT_MS);
    const headers = new Headers();
    if (route !== undefined) headers.add('route', route);
    headers
      .add('max-forwards', '70')
      .add('from', `<${address}>;tag=${this.#tag}`)
      .add('to', `<${address}>`)
      .add('call-id', this.#callId)
      .add('cseq', `${++this.#number} REGISTER`)
      .add('contact', contactFor(this.#context, peer, peer.profile?.contactUser ?? parseUri(address)?.user))
      .add('expires', String(expiresSec))
      .add('allow', ALLOWED)
      // A registrar may refuse a client whose proxy adds a Path, unless it knows of them (RFC 3327 §5.3).
      .add('supported', 'path')
      .add('user-agent', this.#context.product);
    const request: SipRequest = { kind: 'request', method: 'REGISTER', uri: registrar, headers, body: NO_BODY };
    const nextNumber = () => {
      // It is asked for after a challenge: the peer is there, and has as long as its transaction.
      this.#context.layer.deadlines.set(this, Infinity);
      return ++this.#number;
    };
    const authentication = { credentials: () => credentials, nextNumber };
    this.#outgoing = new OutgoingRequest(this.#context, request, peer, this, authentication).send();
  }

  /** Begins the next round after so long. */
  #again(seconds: number): void {
    this.#others = [];
    this.#restsUntil = this.#context.layer.now + seconds * 1000;
    this.#context.layer.deadlines.set(this, this.#restsUntil);
  }

  #to(state: RegistrationState, status: number): void {
    this.#state = state;
    this.#sipStatus = status;
    this.#options.onState(state, status);
  }
}

/** The Service-Route of a 2xx. Empty where there is none, and where a value of it is no loose route (RFC 3608 §6.3). */
function serviceRouteOf({ headers }: SipResponse): readonly string[] {
  const routes = headers.list('service-route');
  const isLoose = (route: string) => parseUri(parseNameAddress(route)?.uri ?? '')?.parameters.has('lr') === true;
  return routes.every(isLoose) && routes.join().length <= SIP_SERVICE_ROUTE_MAX_CHARS ? routes : [];
}
