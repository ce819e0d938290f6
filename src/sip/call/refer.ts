/**
 * Transfers within a call (RFC 3515):
 *
 *   ours     REFER --202--> accepted --NOTIFY 100--> … --NOTIFY 2xx--> completed
 *              \--3xx..6xx--> failed                   \--NOTIFY 3xx..6xx, terminated--> failed
 *   theirs   REFER --202, NOTIFY 100--> open --the call ends--> NOTIFY 200
 *                                            \--60 s-----------> NOTIFY 503
 *
 * What a REFER of the far end asks for is left to the owner of the call. Refer-Sub (RFC 4488) and subscriptions
 * refreshed by SUBSCRIBE are left out: an implicit subscription lives as long as the transfer.
 */
import { SIP_REFER_OPEN_MS, SIP_REFER_TARGET_MAX_CHARS } from '../../limits.ts';
import { type AgentContext, contactFor } from '../agent-context.ts';
import type { Timed } from '../deadlines.ts';
import { contentType } from '../message/capability.ts';
import type { Credentials } from '../message/digest.ts';
import type { SipRequest, SipResponse } from '../message/message.ts';
import { reasonPhrase } from '../message/response.ts';
import { parseNameAddress } from '../message/uri.ts';
import { NO_OWNER, OutgoingRequest } from '../outgoing-request.ts';
import type { ServerTransaction } from '../transaction/server.ts';
import { type Dialog, dialogRequest, nextHop } from './dialog.ts';

/** `accepted`: the far end will try. `status` is that of its refusal, or of the call it tried; 0 when none came. */
export type ReferOutcome =
  | { readonly phase: 'accepted' }
  | { readonly phase: 'completed' }
  | { readonly phase: 'refused' | 'failed'; readonly status: number };

const decoder = new TextDecoder();
const encoder = new TextEncoder();

function send(
  context: AgentContext,
  dialog: Dialog,
  credentials: Credentials | undefined,
  request: SipRequest,
  owner = NO_OWNER,
): OutgoingRequest {
  const peer = nextHop(dialog);
  request.headers.add('contact', contactFor(context, peer));
  const authentication = { credentials: () => credentials, nextNumber: () => ++dialog.localNumber };
  return new OutgoingRequest(context, request, peer, owner, authentication).send();
}

/** A REFER of ours and the subscription it makes. */
export class OutgoingRefer {
  readonly #onOutcome: (outcome: ReferOutcome) => void;
  readonly #outgoing: OutgoingRequest;
  #isOver = false;
  #isAccepted = false;

  /**
   * Sends REFER. `referTo` is a name-addr. `onOutcome` is called with `accepted`, or not, and then once more with the
   * end.
   */
  constructor(
    context: AgentContext,
    dialog: Dialog,
    credentials: Credentials | undefined,
    referTo: string,
    onOutcome: (outcome: ReferOutcome) => void,
  ) {
    this.#onOutcome = onOutcome;
    const request = dialogRequest(dialog, 'REFER');
    const self = parseNameAddress(dialog.local)?.uri;
    request.headers.add('refer-to', referTo);
    if (self !== undefined) request.headers.add('referred-by', `<${self}>`);
    const onResponse = ({ status }: SipResponse) => {
      if (status >= 300) this.#end({ phase: 'refused', status });
      else if (status >= 200) this.#accept();
    };
    const owner = { onResponse, onFailure: () => this.#end({ phase: 'refused', status: 0 }) };
    this.#outgoing = send(context, dialog, credentials, request, owner);
  }

  /** No outcome is told any more: its time is over, and another REFER is sent. */
  abandon(): void {
    this.#isOver = true;
  }

  /** Takes a NOTIFY of the subscription (RFC 3515 §2.4.5). It may come before the 202. */
  onNotify(notify: ServerTransaction): void {
    const { headers, body } = notify.request;
    const [event, ...parameters] = (headers.get('event') ?? '').split(';').map((part) => part.trim().toLowerCase());
    if (this.#isOver || event !== 'refer' || !this.#isNamed(parameters)) {
      notify.respond(481);
      return;
    }
    notify.respond(200);
    this.#accept();
    const isFragment = contentType(headers) === 'message/sipfrag';
    const status = isFragment ? Number(/^SIP\/2\.0 ([1-6][0-9]{2})/i.exec(decoder.decode(body.subarray(0, 64)))?.[1] ?? 0) : 0;
    const isTerminated = headers.get('subscription-state')?.trim().toLowerCase().startsWith('terminated') === true;
    if (status >= 300) this.#end({ phase: 'failed', status });
    else if (status >= 200) this.#end({ phase: 'completed' });
    else if (isTerminated) this.#end({ phase: 'failed', status });
  }

  /** Whether a NOTIFY is of this REFER, by the `id` that tells several in one dialog apart (RFC 3515 §2.4.6). */
  #isNamed(parameters: readonly string[]): boolean {
    const id = parameters.find((each) => each.startsWith('id='));
    const number = Number.parseInt(this.#outgoing.request.headers.get('cseq') ?? '', 10);
    return id === undefined || Number(id.slice('id='.length)) === number;
  }

  #accept(): void {
    if (this.#isAccepted || this.#isOver) return;
    this.#isAccepted = true;
    this.#onOutcome({ phase: 'accepted' });
  }

  #end(outcome: ReferOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onOutcome(outcome);
  }
}

/** The target of a REFER that came in. Undefined when it has none, more than one, or one that is too long. */
export function referTarget({ headers }: SipRequest): string | undefined {
  const values = headers.fields('refer-to');
  const uri = values.length === 1 ? parseNameAddress(values[0] ?? '')?.uri : undefined;
  return uri === undefined || uri.length > SIP_REFER_TARGET_MAX_CHARS ? undefined : uri;
}

/** A REFER of the far end, until the call ends or SIP_REFER_OPEN_MS have passed. */
export class IncomingRefer implements Timed {
  place = -1;
  at = 0;
  readonly #context: AgentContext;
  readonly #dialog: Dialog;
  readonly #credentials: Credentials | undefined;
  readonly #id: string;
  #isOver = false;

  /** Answers 202 and sends the first NOTIFY. */
  constructor(context: AgentContext, dialog: Dialog, credentials: Credentials | undefined, refer: ServerTransaction) {
    this.#context = context;
    this.#dialog = dialog;
    this.#credentials = credentials;
    this.#id = String(Number.parseInt(refer.request.headers.get('cseq') ?? '0', 10));
    const response = refer.make(202);
    response.headers.add('contact', contactFor(context, refer.source));
    refer.send(response);
    this.#notify(100, `active;expires=${SIP_REFER_OPEN_MS / 1000}`);
    context.layer.deadlines.set(this, context.layer.now + SIP_REFER_OPEN_MS);
  }

  get isOpen(): boolean {
    return !this.#isOver;
  }

  /** Nothing more is told. */
  abandon(): void {
    this.#isOver = true;
    this.#context.layer.deadlines.set(this, Infinity);
  }

  /** Tells the end: 200 when the call has ended. */
  close(status: 200 | 503): void {
    if (this.#isOver) return;
    this.abandon();
    this.#notify(status, 'terminated;reason=noresource');
  }

  due(): void {
    this.close(503);
  }

  #notify(status: number, state: string): void {
    const request = dialogRequest(this.#dialog, 'NOTIFY');
    request.headers.add('event', `refer;id=${this.#id}`).add('subscription-state', state);
    request.headers.add('content-type', 'message/sipfrag;version=2.0');
    const body = encoder.encode(`SIP/2.0 ${status} ${reasonPhrase(status)}\r\n`);
    send(this.#context, this.#dialog, this.#credentials, { ...request, body });
  }
}
