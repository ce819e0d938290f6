/** A client transaction of either kind, with what it carries: the request's bytes, its peer, and who wants the outcome. */
import type { Timed } from '../deadlines.ts';
import { isReliable, type Peer } from '../flow.ts';
import { Headers, NO_BODY, type SipRequest, type SipResponse } from '../message/message.ts';
import { serialize } from '../message/serializer.ts';
import {
  type InviteClient,
  type InviteClientEffect,
  inviteClientDeadline,
  startInviteClient,
  stepInviteClient,
} from './invite-client.ts';
import type { TransactionLayer } from './layer.ts';
import {
  type NonInviteClient,
  type NonInviteClientEffect,
  nonInviteClientDeadline,
  startNonInviteClient,
  stepNonInviteClient,
} from './non-invite-client.ts';

/** Who sent the request. Exactly one of a final response, a timeout and unreachable ends what it waits for; 2xx to INVITE may repeat. */
export interface ClientOwner {
  onResponse(response: SipResponse, transaction: ClientTransaction): void;
  /** Timer B or F: as a 408 (RFC 3261 §8.1.3.1). */
  onTimeout(transaction: ClientTransaction): void;
  /** The transport failed: as a 503. */
  onUnreachable(transaction: ClientTransaction): void;
}

export class ClientTransaction implements Timed {
  place = -1;
  at = 0;
  readonly key: string;
  readonly request: SipRequest;
  readonly peer: Peer;
  readonly #layer: TransactionLayer;
  readonly #owner: ClientOwner;
  readonly #bytes: Uint8Array;
  readonly #invite: InviteClient | undefined;
  readonly #other: NonInviteClient | undefined;
  #ack: Uint8Array | undefined;

  constructor(layer: TransactionLayer, key: string, request: SipRequest, peer: Peer, owner: ClientOwner) {
    this.#layer = layer;
    this.key = key;
    this.request = request;
    this.peer = peer;
    this.#owner = owner;
    this.#bytes = serialize(request);
    const reliable = isReliable(peer.transport);
    this.#invite = request.method === 'INVITE' ? startInviteClient(reliable, layer.now) : undefined;
    this.#other = this.#invite === undefined ? startNonInviteClient(reliable, layer.now) : undefined;
    layer.transmit(this.#bytes, peer, key);
    this.#schedule();
  }

  /** A response that matched. */
  receive(response: SipResponse): void {
    const { status } = response;
    if (this.#invite !== undefined) {
      const input = status < 200 ? 'provisional' : status < 300 ? 'success' : 'failure';
      this.#perform(stepInviteClient(this.#invite, input, this.#layer.now), response);
    } else if (this.#other !== undefined) {
      this.#perform(stepNonInviteClient(this.#other, status < 200 ? 'provisional' : 'final', this.#layer.now), response);
    }
  }

  due(): void {
    this.#input('clock');
  }

  /** The transport could not deliver the request. */
  unreachable(): void {
    this.#input('unreachable');
  }

  #input(input: 'clock' | 'unreachable'): void {
    const { now } = this.#layer;
    if (this.#invite !== undefined) this.#perform(stepInviteClient(this.#invite, input, now), undefined);
    else if (this.#other !== undefined) this.#perform(stepNonInviteClient(this.#other, input, now), undefined);
  }

  #perform(effects: readonly (InviteClientEffect | NonInviteClientEffect)[], response: SipResponse | undefined): void {
    this.#schedule();
    for (const effect of effects) {
      if (effect === 'send') this.#layer.transmit(this.#bytes, this.peer, this.key);
      else if (effect === 'ack' && response !== undefined) {
        this.#ack = serialize(ackOfFailure(this.request, response));
        this.#layer.transmit(this.#ack, this.peer, '');
      } else if (effect === 'ack again' && this.#ack !== undefined) this.#layer.transmit(this.#ack, this.peer, '');
      else if (effect === 'pass' && response !== undefined) this.#owner.onResponse(response, this);
      else if (effect === 'timeout') this.#owner.onTimeout(this);
      else if (effect === 'unreachable') this.#owner.onUnreachable(this);
      else if (effect === 'done') this.#layer.forgetClient(this);
    }
  }

  #schedule(): void {
    const at =
      this.#invite !== undefined
        ? inviteClientDeadline(this.#invite)
        : this.#other !== undefined
          ? nonInviteClientDeadline(this.#other)
          : Infinity;
    this.#layer.deadlines.set(this, at);
  }
}

/** RFC 3261 §17.1.1.3: the request's top Via, To of the response. */
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
