/** SIP requests that came to the wrong node, and what answers them, over the bus. */
import type { OtherDialogs, OwnDialogs } from '../../call/ports/other-dialogs.ts';
import { NODE_PING_TIMEOUT_MS } from '../../limits.ts';
import type { Peer } from '../../sip/flow.ts';
import type { Bus } from '../bus/bus.ts';
import type { Members } from '../membership/members.ts';

interface DialogsOptions {
  readonly bus: Pick<Bus, 'ask' | 'answer'>;
  /** The members of the cluster, or undefined until it is started. */
  members(): Pick<Members, 'rows' | 'isSuspect'> | undefined;
  readonly nodeId: string;
}

const REQUEST = 'sip.request';
const ANSWER = 'sip.answer';

export class Dialogs implements OtherDialogs {
  readonly #options: DialogsOptions;

  constructor(options: DialogsOptions) {
    this.#options = options;
  }

  /** Takes what other nodes received for calls of this one. */
  serve(own: OwnDialogs): void {
    const { bus } = this.#options;
    bus.answer(REQUEST, (body, from) => ({
      taken: isMessage(body) && own.takeStray(Buffer.from(body.bytes, 'base64'), { ...body.peer, via: from }),
    }));
    bus.answer(ANSWER, (body) => {
      if (isMessage(body)) own.sendFor(Buffer.from(body.bytes, 'base64'), body.peer);
      return {};
    });
  }

  async take(bytes: Uint8Array, source: Peer): Promise<boolean> {
    const { members, nodeId } = this.#options;
    const known = members();
    const others = known?.rows.filter((row) => row.nodeId !== nodeId && !known.isSuspect(row.nodeId)) ?? [];
    const answers = await Promise.all(others.map((row) => this.#ask(row.nodeId, REQUEST, bytes, source)));
    return answers.some((body) => typeof body === 'object' && body !== null && 'taken' in body && body.taken === true);
  }

  answer(nodeId: string, bytes: Uint8Array, peer: Peer): void {
    void this.#ask(nodeId, ANSWER, bytes, peer);
  }

  async #ask(nodeId: string, kind: string, bytes: Uint8Array, peer: Peer): Promise<unknown> {
    const body = { bytes: Buffer.from(bytes).toString('base64'), peer };
    const result = await this.#options.bus.ask(nodeId, kind, body, NODE_PING_TIMEOUT_MS, NODE_PING_TIMEOUT_MS);
    return result.outcome === 'answered' ? result.body : undefined;
  }
}

// What comes here is under the cluster's own key; this says what another release may have changed.
const isMessage = (body: unknown): body is { readonly bytes: string; readonly peer: Peer } =>
  typeof body === 'object' && body !== null && 'bytes' in body && typeof body.bytes === 'string' && 'peer' in body;
