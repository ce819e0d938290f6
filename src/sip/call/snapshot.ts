/** A call that is up as plain data, with which another node goes on (its dialog, RFC 3261 §12, and whose it was). */
import type { Peer } from '../flow.ts';
import type { Dialog } from './dialog.ts';

/** A call that is up, as another node needs it to go on with it. It is plain data. */
export interface CallSnapshot {
  readonly direction: 'inbound' | 'outbound';
  readonly dialog: Omit<Dialog, 'peer'>;
  readonly peer: Omit<Peer, 'flow' | 'fallback' | 'via'>;
  readonly farAllowsUpdate: boolean;
}

export function snapshotOf(dialog: Dialog, direction: CallSnapshot['direction'], farAllowsUpdate: boolean): CallSnapshot {
  const { peer, ...rest } = dialog;
  const { flow: _, fallback: __, via: ___, ...far } = peer;
  return { direction, dialog: rest, peer: far, farAllowsUpdate };
}

/** The dialog as this node has it from now on. `ahead` is added to its CSeq (RFC 3261 §12.2.2 allows gaps). */
export const dialogOfSnapshot = ({ dialog, peer }: CallSnapshot, ahead: number): Dialog => ({
  ...dialog,
  remoteNumber: dialog.remoteNumber,
  localNumber: dialog.localNumber + ahead,
  peer: { ...peer, flow: 0 },
});
