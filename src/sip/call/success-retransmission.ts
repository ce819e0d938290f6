/** Repeats a 2xx to an INVITE or re-INVITE until its ACK comes (RFC 3261 §13.3.1.4), over any transport. */
import { SIP_T1_MS, SIP_T2_MS } from '../../limits.ts';
import type { AgentContext } from '../agent-context.ts';
import type { Timed } from '../deadlines.ts';
import { parseCSeq } from '../message/message.ts';
import type { ServerTransaction } from '../transaction/server.ts';

export class SuccessRetransmission implements Timed {
  place = -1;
  at = 0;
  /** The CSeq number that the ACK must carry. */
  readonly number: number;
  /** Whether the 2xx carried our offer. Then the ACK brings the answer. */
  readonly offered: boolean;
  readonly #context: AgentContext;
  readonly #transaction: ServerTransaction;
  readonly #bytes: Uint8Array;
  readonly #giveUp: () => void;
  readonly #until: number;
  #interval = SIP_T1_MS;

  /** Construct it right after the 2xx was sent. `giveUp` is called once, 64*T1 later, unless `stop` comes first. */
  constructor(context: AgentContext, transaction: ServerTransaction, offered: boolean, giveUp: () => void) {
    this.#context = context;
    this.#transaction = transaction;
    this.#bytes = transaction.lastBytes ?? new Uint8Array(0);
    this.#giveUp = giveUp;
    this.number = parseCSeq(transaction.request.headers.get('cseq'))?.number ?? 0;
    this.offered = offered;
    this.#until = context.layer.now + 64 * SIP_T1_MS;
    context.layer.deadlines.set(this, context.layer.now + this.#interval);
  }

  stop(): void {
    this.#context.layer.deadlines.set(this, Infinity);
  }

  due(now: number): void {
    if (now >= this.#until) {
      this.#giveUp();
      return;
    }
    this.#transaction.sendAgain(this.#bytes);
    this.#interval = Math.min(this.#interval * 2, SIP_T2_MS);
    this.#context.layer.deadlines.set(this, Math.min(now + this.#interval, this.#until));
  }
}
