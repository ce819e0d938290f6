/**
 * The ACK of a 2xx (RFC 3261 §13.2.2.4). It belongs to no transaction and is sent again whenever its 2xx comes again.
 */
import type { AgentContext } from '../agent-context.ts';
import type { Peer } from '../flow.ts';
import { Headers, type SipRequest } from '../message/message.ts';
import { serialize } from '../message/serializer.ts';
import { formatVia } from '../message/via.ts';
import { type Dialog, dialogRequest, nextHop } from './dialog.ts';

export interface Acknowledgement {
  readonly bytes: Uint8Array;
  readonly peer: Peer;
}

/** Makes the ACK for the INVITE as it was last sent: same CSeq number, same credentials. */
export function acknowledgement(context: AgentContext, dialog: Dialog, invite: SipRequest): Acknowledgement {
  const peer = nextHop(dialog);
  const { host, port } = context.local(peer);
  const number = Number.parseInt(invite.headers.get('cseq') ?? '0', 10);
  const bare = dialogRequest(dialog, 'ACK', number);
  const headers = new Headers().add('via', formatVia(peer.transport, host, port, context.layer.newBranch()));
  headers.names.push(...bare.headers.names);
  headers.values.push(...bare.headers.values);
  for (const name of ['authorization', 'proxy-authorization']) {
    for (const value of invite.headers.fields(name)) headers.add(name, value);
  }
  return { bytes: serialize({ ...bare, headers }), peer };
}

export function sendAcknowledgement(context: AgentContext, ack: Acknowledgement): void {
  context.layer.transmit(ack.bytes, ack.peer, '');
}
