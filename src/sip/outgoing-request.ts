/**
 * A request of ours until its outcome. It carries our Via, and is sent again with credentials when it is challenged
 * (RFC 3261 §22).
 */
import { SIP_CHALLENGES_MAX, SIP_CONNECT_FALLBACK_MS, SIP_REALMS_MAX, SIP_UDP_REQUEST_MAX_BYTES } from '../limits.ts';
import type { AgentContext, Authentication, RequestOwner } from './agent-context.ts';
import { isAt, type Peer, type Place } from './flow.ts';
import { authorization, type Challenge, challengesOf } from './message/digest.ts';
import { Headers, type SipRequest, type SipResponse } from './message/message.ts';
import { serialize } from './message/serializer.ts';
import { formatVia } from './message/via.ts';
import type { ClientOwner, ClientTransaction } from './transaction/client.ts';

export class OutgoingRequest implements ClientOwner {
  peer: Peer;
  /** The request as it was last sent, credentials included. */
  request: SipRequest;
  transaction: ClientTransaction | undefined;
  /** The peer as it was last sent to: over TCP when the request was too long for UDP. */
  sentTo: Peer;
  /** Whether the peer has taken no connection, so that UDP it is, however long the request. */
  #isTcpRefused = false;
  #isAbandoned = false;
  readonly #context: AgentContext;
  readonly #owner: RequestOwner;
  readonly #authentication: Authentication;
  /** The last challenge of each realm that asked, and how often it did: several proxies may ask (RFC 3261 §22.3). */
  readonly #challenges = new Map<string, { readonly challenge: Challenge; readonly times: number }>();
  readonly #nonceCounts = new Map<string, number>();

  /** `request` must have no Via. Nothing is sent before `send`. */
  constructor(context: AgentContext, request: SipRequest, peer: Peer, owner: RequestOwner, authentication: Authentication) {
    this.#context = context;
    this.request = request;
    this.peer = peer;
    this.sentTo = peer;
    this.#owner = owner;
    this.#authentication = authentication;
  }

  send(): this {
    const branch = this.#context.layer.newBranch();
    this.#address(this.peer, branch);
    const { transport, profile } = this.peer;
    if (transport === 'udp' && profile?.tcp === true && !this.#isWithoutTcp) {
      const { fallback: _, ...peer } = this.peer;
      if (serialize(this.request).length > SIP_UDP_REQUEST_MAX_BYTES)
        this.#address({ ...peer, transport: 'tcp', flow: 0, connectMs: SIP_CONNECT_FALLBACK_MS }, branch);
    }
    this.transaction = this.#context.layer.request(this.request, branch, this.sentTo, this);
    if (this.transaction === undefined) this.#owner.onFailure('unreachable');
    return this;
  }

  /** Nobody waits for the outcome any more: what has been sent stays sent, and is not tried over UDP as well. */
  abandon(): void {
    this.#isAbandoned = true;
  }

  get #isWithoutTcp(): boolean {
    return this.#isTcpRefused || this.#context.withoutTcp.has(this.peer, this.#context.layer.now);
  }

  /** Gives the request a Via for that peer. */
  #address(peer: Peer, branch: string): void {
    const { host, port } = this.#context.local(peer);
    const headers = new Headers().add('via', formatVia(peer.transport, host, port, branch));
    const from = this.request.headers;
    for (let i = 0; i < from.names.length; i++) {
      const name = from.names[i];
      const value = from.values[i];
      if (name !== undefined && value !== undefined && name !== 'via') headers.add(name, value);
    }
    this.request = { ...this.request, headers };
    this.sentTo = peer;
  }

  /** Sends the request again with changed header fields, which a 422 or 423 asks for. */
  sendWith(change: (headers: Headers) => void): void {
    const headers = new Headers();
    headers.names.push(...this.request.headers.names);
    headers.values.push(...this.request.headers.values);
    headers.set('cseq', `${this.#authentication.nextNumber()} ${this.request.method}`);
    change(headers);
    this.#authorize(headers);
    this.request = { ...this.request, headers };
    this.send();
  }

  /**
   * The far end, which was reached at one place, is at another one. True: the request was sent to it, so that what
   * belongs to it goes there from now on.
   */
  moved(from: Place, to: Peer): boolean {
    if (this.peer.profile?.staysOnFlow === undefined || !isAt(this.peer, from)) return false;
    this.peer = to;
    this.sentTo = to;
    return true;
  }

  onResponse(response: SipResponse, transaction: ClientTransaction): void {
    const { source } = transaction;
    const { profile, transport } = this.peer;
    // A device whose connection broke answers over another one, on which it is reached then (RFC 3261 §18.2.2).
    if (profile?.staysOnFlow === true && transport !== 'udp' && source !== undefined && !isAt(source, this.peer))
      this.moved(this.peer, { ...source, profile });
    // The response belongs to an earlier attempt: the request has been sent again since.
    if (transaction !== this.transaction && response.status >= 300) return;
    if ((response.status === 401 || response.status === 407) && this.#answerChallenge(response)) return;
    this.#owner.onResponse(response);
  }

  onTimeout(transaction: ClientTransaction): void {
    if (transaction === this.transaction) this.#owner.onFailure('timeout');
  }

  onUnreachable(transaction: ClientTransaction): void {
    if (transaction !== this.transaction) return;
    const isFallbackLeft = this.sentTo.transport !== this.peer.transport;
    if (isFallbackLeft) {
      this.#isTcpRefused = true;
      this.#context.withoutTcp.add(this.peer, this.#context.layer.now);
    }
    if (isFallbackLeft && !this.#isAbandoned) this.send();
    else this.#owner.onFailure('unreachable');
  }

  isWanted(transaction: ClientTransaction): boolean {
    return transaction === this.transaction && !this.#isAbandoned;
  }

  #answerChallenge(response: SipResponse): boolean {
    const challenges = this.#authentication.credentials() === undefined ? [] : challengesOf(response);
    const asked = challenges.map((challenge) => {
      const key = `${challenge.header} ${challenge.realm}`;
      return { key, challenge, times: (this.#challenges.get(key)?.times ?? 0) + 1 };
    });
    // The same answer to the same question would be refused again, unless only the nonce was old.
    const isHopeful = asked.some(({ challenge, times }) => times === 1 || challenge.stale);
    if (!isHopeful || asked.some(({ times }) => times > SIP_CHALLENGES_MAX)) return false;
    for (const { key, challenge, times } of asked) this.#challenges.set(key, { challenge, times });
    if (this.#challenges.size > SIP_REALMS_MAX) return false;
    this.sendWith(() => {});
    return true;
  }

  /** Answers every challenge so far in the header fields of the next attempt, each nonce with its next count. */
  #authorize(headers: Headers): void {
    const credentials = this.#authentication.credentials();
    if (credentials === undefined) return;
    for (const { challenge } of this.#challenges.values()) removeAll(headers, challenge.header);
    for (const { challenge } of this.#challenges.values()) {
      const nonceCount = (this.#nonceCounts.get(challenge.nonce) ?? 0) + 1;
      this.#nonceCounts.set(challenge.nonce, nonceCount);
      const { method, uri, body } = this.request;
      const input = { method, uri, nonceCount, cnonce: this.#context.entropy.token(), body };
      headers.add(challenge.header, authorization(this.#context.hash, challenge, credentials, input));
    }
  }
}

function removeAll(headers: Headers, name: string): void {
  for (let i = headers.names.length - 1; i >= 0; i--) {
    if (headers.names[i] === name) {
      headers.names.splice(i, 1);
      headers.values.splice(i, 1);
    }
  }
}

/** The owner of a request whose outcome nobody needs, such as the BYE of a call that is over. */
export const NO_OWNER: RequestOwner = { onResponse() {}, onFailure() {} };
