/** Requests within a dialog that need its answer only: the probe by OPTIONS (RFC 3261 §11.2) and BYE (§15). */
import { type AgentContext, contactFor, type RequestOwner } from '../agent-context.ts';
import type { Credentials } from '../message/digest.ts';
import type { SipResponse } from '../message/message.ts';
import { OutgoingRequest } from '../outgoing-request.ts';
import { type Dialog, dialogRequest, mayComeBack, nextHop } from './dialog.ts';

/**
 * `gone`: the far end does not know the dialog (481, 408). `unresponsive`: Timer F ran out. `away`: the connection of a
 * device is gone. Any other answer is a sign of life.
 */
export type ProbeOutcome = 'alive' | 'gone' | 'unresponsive' | 'away';

/** Sends one probe. `onOutcome` is called once. */
export function sendProbe(
  context: AgentContext,
  dialog: Dialog,
  credentials: Credentials | undefined,
  onOutcome: (outcome: ProbeOutcome) => void,
): void {
  const peer = nextHop(dialog);
  const request = dialogRequest(dialog, 'OPTIONS');
  request.headers.add('contact', contactFor(context, peer)).add('accept', 'application/sdp');
  const onResponse = ({ status }: SipResponse) => {
    if (status >= 200) onOutcome(status === 481 || status === 408 ? 'gone' : 'alive');
  };
  const onFailure: RequestOwner['onFailure'] = (why) => onOutcome(mayComeBack(dialog, why) ? 'away' : 'unresponsive');
  const owner = { onResponse, onFailure };
  const authentication = { credentials: () => credentials, nextNumber: () => ++dialog.localNumber };
  new OutgoingRequest(context, request, peer, owner, authentication).send();
}

/** Ends the dialog by BYE. `finish` is called at its final response, or when there is none. */
export function sendBye(context: AgentContext, dialog: Dialog, credentials: Credentials | undefined, finish: () => void): void {
  const request = dialogRequest(dialog, 'BYE');
  const owner = { onResponse: ({ status }: SipResponse) => (status >= 200 ? finish() : undefined), onFailure: finish };
  const authentication = { credentials: () => credentials, nextNumber: () => ++dialog.localNumber };
  new OutgoingRequest(context, request, nextHop(dialog), owner, authentication).send();
}
