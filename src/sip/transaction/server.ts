/** A server transaction of either kind: its request, the peer that responses go to, and the last response sent. */
import type { Timed } from '../deadlines.ts';
import { isReliable, type Peer } from '../flow.ts';
import type { SipRequest, SipResponse } from '../message/message.ts';
import { makeResponse } from '../message/response.ts';
import { serialize } from '../message/serializer.ts';
import type { TransactionHost } from './host.ts';
import {
  type InviteServer,
  type InviteServerEffect,
  type InviteServerInput,
  inviteServerDeadline,
  startInviteServer,
  stepInviteServer,
} from './invite-server.ts';
import { type NonInviteServer, startNonInviteServer, stepNonInviteServer } from './non-invite-server.ts';

/** The part of the user agent that answers an INVITE. */
export interface ServerOwner {
  /** The ACK of a 2xx arrived on the branch of the INVITE itself. */
  onAck(ack: SipRequest): void;
  /** Our failure response was never acknowledged (timer H). */
  onUnacknowledged(): void;
}

export class ServerTransaction implements Timed {
  place = -1;
  at = 0;
  readonly key: string;
  /** Call-ID, From tag and CSeq of a request outside a dialog. They find merged requests (RFC 3261 §8.2.2.2). */
  readonly mergeKey: string;
  readonly request: SipRequest;
  /** The peer that sent the request. */
  readonly source: Peer;
  /** The peer that responses are sent to (RFC 3261 §18.2.2). */
  readonly peer: Peer;
  /** The To tag of every response except 100. */
  readonly tag: string;
  owner: ServerOwner | undefined;
  readonly #host: TransactionHost<ServerTransaction>;
  readonly #machine: InviteServer | NonInviteServer;
  #last: Uint8Array | undefined;
  #finalStatus: number | undefined;

  constructor(
    host: TransactionHost<ServerTransaction>,
    key: string,
    mergeKey: string,
    request: SipRequest,
    source: Peer,
    peer: Peer,
    tag: string,
  ) {
    this.#host = host;
    this.key = key;
    this.mergeKey = mergeKey;
    this.request = request;
    this.source = source;
    this.peer = peer;
    this.tag = tag;
    const reliable = isReliable(source.transport);
    this.#machine = request.method === 'INVITE' ? startInviteServer(reliable) : startNonInviteServer(reliable);
  }

  /** A response to this request, to be completed and handed to `send`. */
  make(status: number, body?: Uint8Array): SipResponse {
    return makeResponse(this.request, status, this.tag, body);
  }

  /** Makes and sends a response without more header fields. */
  respond(status: number): void {
    this.send(this.make(status));
  }

  /** Sends a response unless a final one went out already; returns whether it was sent. */
  send(response: SipResponse): boolean {
    const { status } = response;
    const effects = this.#step(status < 200 ? 'provisional' : status < 300 ? 'success' : 'failure');
    if (!effects.includes('send')) return false;
    this.#last = serialize(response);
    if (status >= 200) this.#finalStatus = status;
    this.#perform(effects, undefined);
    return true;
  }

  /** Sends the bytes of a response again: a 2xx until its ACK, a reliable 18x until its PRACK. */
  sendAgain(bytes: Uint8Array): void {
    this.#host.transmit(bytes, this.peer, '');
  }

  /** The status of the final response. Undefined until one is sent. */
  get finalStatus(): number | undefined {
    return this.#finalStatus;
  }

  /** Whether it was answered with a 2xx whose ACK is not the affair of an owner of its own, but of its call. */
  get isAcceptedByCall(): boolean {
    return this.owner === undefined && this.#finalStatus !== undefined && this.#finalStatus < 300;
  }

  /** The bytes of the last response that was sent. */
  get lastBytes(): Uint8Array | undefined {
    return this.#last;
  }

  /** Takes a retransmission of the request, or the ACK on this branch. */
  receive(request: SipRequest): void {
    this.#perform(this.#step(request.method === 'ACK' ? 'ack' : 'request'), request);
  }

  due(): void {
    this.#perform(this.#step('clock'), undefined);
  }

  #step(input: InviteServerInput): readonly InviteServerEffect[] {
    const machine = this.#machine;
    const { now } = this.#host;
    return 'J' in machine ? stepNonInviteServer(machine, input, now) : stepInviteServer(machine, input, now);
  }

  #perform(effects: readonly InviteServerEffect[], request: SipRequest | undefined): void {
    const machine = this.#machine;
    this.#host.deadlines.set(this, 'J' in machine ? machine.J : inviteServerDeadline(machine));
    for (const effect of effects) {
      if (effect === 'send' && this.#last !== undefined) this.#host.transmit(this.#last, this.peer, '');
      else if (effect === 'pass ack' && request !== undefined) this.owner?.onAck(request);
      else if (effect === 'timeout') this.owner?.onUnacknowledged();
      else if (effect === 'done') this.#host.forget(this);
    }
  }
}
