/** The transfers of one call: the REFER of ours that runs, and the one of the far end. */
import { type AgentContext, domainFor } from '../agent-context.ts';
import type { Credentials } from '../message/digest.ts';
import { replacesOf } from '../message/replaces.ts';
import type { ServerTransaction } from '../transaction/server.ts';
import type { CallEvent } from './call-event.ts';
import { type Dialog, localDomain } from './dialog.ts';
import { IncomingRefer, OutgoingRefer, referTarget } from './refer.ts';

interface TransferOwner {
  readonly credentials: Credentials | undefined;
  /** Whether the call is ours, so that the far end has not dialled our domain. */
  readonly isOurs: boolean;
  /** The dialog of the call while it is up. */
  dialog(): Dialog | undefined;
  emit(event: CallEvent): void;
}

export class Transfers {
  readonly #context: AgentContext;
  readonly #owner: TransferOwner;
  #ours: OutgoingRefer | undefined;
  #theirs: IncomingRefer | undefined;

  constructor(context: AgentContext, owner: TransferOwner) {
    this.#context = context;
    this.#owner = owner;
  }

  /**
   * Asks the far end to call `referTo`, a name-addr, in our place (RFC 3515). It is given our domain as the far end
   * knows it. `refer` events follow, of the last REFER alone: the one before has had its time.
   */
  refer(referTo: (ownDomain: string) => string): void {
    const dialog = this.#owner.dialog();
    if (dialog === undefined) return;
    this.#ours?.abandon();
    // A device that we called reaches us as we reach it: From has neither port nor transport (RFC 3261 §19.1.1).
    const isDevice = dialog.peer.profile?.staysOnFlow === true;
    const domain = this.#owner.isOurs && isDevice ? domainFor(this.#context, dialog.peer) : localDomain(dialog);
    this.#ours = new OutgoingRefer(this.#context, dialog, this.#owner.credentials, referTo(domain), (outcome) =>
      this.#owner.emit({ type: 'refer', outcome }),
    );
  }

  onRefer(transaction: ServerTransaction): void {
    const dialog = this.#owner.dialog();
    const target = referTarget(transaction.request);
    if (dialog === undefined) transaction.respond(403);
    else if (this.isOwed) transaction.respond(491);
    else if (target === undefined) transaction.respond(400);
    else {
      this.#theirs = new IncomingRefer(this.#context, dialog, this.#owner.credentials, transaction);
      const replaces = replacesOf(target);
      this.#owner.emit({ type: 'refer_requested', target, ...(replaces === undefined ? {} : { replaces }) });
    }
  }

  onNotify(transaction: ServerTransaction): void {
    const event = transaction.request.headers.get('event')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
    // A 481 may end the dialog of a far end that sends what nobody asked for (RFC 5057 §5.1), such as keys or lamps.
    if (event !== '' && event !== 'refer') transaction.respond(489);
    else if (this.#ours === undefined) transaction.respond(481);
    else this.#ours.onNotify(transaction);
  }

  /** Whether the far end waits for the outcome of a transfer. This node alone can tell it. */
  get isOwed(): boolean {
    return this.#theirs?.isOpen === true;
  }

  /** Another node has the call now: this one tells nothing of a transfer of the far end. */
  abandon(): void {
    this.#theirs?.abandon();
  }

  /** The call is over: the far end's transfer is told as done. */
  close(): void {
    this.#theirs?.close(200);
  }
}
