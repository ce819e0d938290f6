/**
 * A client transaction of either kind: the bytes of its request, the peer it was sent to, and the owner who is told the
 * outcome.
 */
import type { Timed } from '../deadlines.ts';
import { isReliable, type Peer } from '../flow.ts';
import { Headers, NO_BODY, type SipRequest, type SipResponse } from '../message/message.ts';
import { serialize } from '../message/serializer.ts';
import type { TransactionHost } from './host.ts';
import {
  type InviteClient,
  type InviteClientEffect,
  type InviteClientInput,
  inviteClientDeadline,
  startInviteClient,
  stepInviteClient,
} from './invite-client.ts';
import { type NonInviteClient, nonInviteClientDeadline, startNonInviteClient, stepNonInviteClient } from './non-invite-client.ts';

/**
 * The sender of the request. It is told exactly one final response, timeout or failure to send; a 2xx to INVITE may be
 * told again.
 */
export interface ClientOwner {
  onResponse(response: SipResponse, transaction: ClientTransaction): void;
  /** Timer B or F ran out. RFC 3261 §8.1.3.1 treats it as a 408. */
  onTimeout(transaction: ClientTransaction): void;
  /** The transport could not send the request. RFC 3261 §8.1.3.1 treats it as a 503. */
  onUnreachable(transaction: ClientTransaction): void;
  /** Whether a request that may not have arrived is still wanted. Without this function it counts as unreachable. */
  isWanted?(transaction: ClientTransaction): boolean;
}

export class ClientTransaction implements Timed {
  place = -1;
  at = 0;
  readonly key: string;
  readonly request: SipRequest;
  readonly peer: Peer;
  /** The peer that the last response came from. Undefined before the first one. */
  source: Peer | undefined;
  readonly #host: TransactionHost<ClientTransaction>;
  readonly #owner: ClientOwner;
  readonly #bytes: Uint8Array;
  readonly #machine: InviteClient | NonInviteClient;
  #ack: Uint8Array | undefined;
  /** Whether the request has been sent again after its connection was lost. */
  #isRepeated = false;

  constructor(host: TransactionHost<ClientTransaction>, key: string, request: SipRequest, peer: Peer, owner: ClientOwner) {
    this.#host = host;
    this.key = key;
    this.request = request;
    this.peer = peer;
    this.#owner = owner;
    this.#bytes = serialize(request);
    const reliable = isReliable(peer.transport);
    this.#machine = (request.method === 'INVITE' ? startInviteClient : startNonInviteClient)(reliable, host.now);
    host.transmit(this.#bytes, peer, key);
    this.#schedule();
  }

  /** Takes a response that matched this transaction. */
  receive(response: SipResponse, source: Peer): void {
    const { status } = response;
    this.source = source;
    this.#step(status < 200 ? 'provisional' : status < 300 ? 'success' : 'failure', response);
  }

  due(): void {
    this.#step('clock', undefined);
  }

  /** The transport could not deliver the request. */
  unreachable(): void {
    this.#step('unreachable', undefined);
  }

  /**
   * The connection closed before anything came back on it. The request is sent once more, on another one: for a far end
   * that has it, it is a retransmission (RFC 3261 §17.2.3). Once a response has come, responses come on other
   * connections (§18.2.2).
   */
  lost(): void {
    if (this.#machine.state !== 'calling' && this.#machine.state !== 'trying') return;
    if (this.#isRepeated || this.#owner.isWanted?.(this) !== true) {
      this.unreachable();
      return;
    }
    this.#isRepeated = true;
    this.#host.transmit(this.#bytes, this.peer, this.key);
  }

  #step(input: InviteClientInput, response: SipResponse | undefined): void {
    const machine = this.#machine;
    const { now } = this.#host;
    this.#perform('K' in machine ? stepNonInviteClient(machine, input, now) : stepInviteClient(machine, input, now), response);
  }

  #perform(effects: readonly InviteClientEffect[], response: SipResponse | undefined): void {
    this.#schedule();
    for (const effect of effects) {
      if (effect === 'send') this.#host.transmit(this.#bytes, this.peer, this.key);
      else if (effect === 'ack' && response !== undefined) {
        this.#ack = serialize(ackOfFailure(this.request, response));
        this.#host.transmit(this.#ack, this.peer, '');
      } else if (effect === 'ack again' && this.#ack !== undefined) this.#host.transmit(this.#ack, this.peer, '');
      else if (effect === 'pass' && response !== undefined) this.#owner.onResponse(response, this);
      else if (effect === 'timeout') this.#owner.onTimeout(this);
      else if (effect === 'unreachable') this.#owner.onUnreachable(this);
      else if (effect === 'done') this.#host.forget(this);
    }
  }

  #schedule(): void {
    const machine = this.#machine;
    this.#host.deadlines.set(this, 'K' in machine ? nonInviteClientDeadline(machine) : inviteClientDeadline(machine));
  }
}

/** The ACK of a failure response (RFC 3261 §17.1.1.3): it has the top Via of the request and the To of the response. */
function ackOfFailure(request: SipRequest, response: SipResponse): SipRequest {
  const headers = new Headers()
    .add('via', request.headers.get('via') ?? '')
    .add('max-forwards', '70')
    .add('from', request.headers.get('from') ?? '')
    .add('to', response.headers.get('to') ?? '')
    .add('call-id', request.headers.get('call-id') ?? '')
    .add('cseq', `${Number.parseInt(request.headers.get('cseq') ?? '', 10)} ACK`);
  for (const route of request.headers.fields('route')) headers.add('route', route);
  return { kind: 'request', method: 'ACK', uri: request.uri, headers, body: NO_BODY };
}
