/** The SIP dialogs of other nodes, as the carrier sees them, and this node's, as the others do. */
import type { Peer } from '../../sip/flow.ts';

export interface OtherDialogs {
  /** Resolves with whether another node has the dialog of a request, and has taken it. */
  take(bytes: Uint8Array, source: Peer): Promise<boolean>;
  /** Has the node that received a request send what answers it. */
  answer(nodeId: string, bytes: Uint8Array, peer: Peer): void;
}

export interface OwnDialogs {
  /** Takes a request that another node received, if its dialog is here. `source.via` is that node. */
  takeStray(bytes: Uint8Array, source: Peer): boolean;
  /** Sends a response of another node to a request that this one received. */
  sendFor(bytes: Uint8Array, peer: Peer): void;
}
