/** A call that is up as plain data, with which another node goes on (its dialog, RFC 3261 §12, and whose it was). */
import type { Peer } from '../flow.ts';
import type { Dialog } from './dialog.ts';
import type { SessionTimer } from './session-timer.ts';

/** A call that is up, as another node needs it to go on with it. It is plain data. */
export interface CallSnapshot {
  readonly direction: 'inbound' | 'outbound';
  readonly dialog: Omit<Dialog, 'peer'>;
  readonly peer: Omit<Peer, 'flow' | 'fallback' | 'via'>;
  readonly farAllowsUpdate: boolean;
  /** The session timer. Absent where the call has none, and where a node of an older release made the snapshot. */
  readonly timer?: SessionTimer | undefined;
}

export function snapshotOf(dialog: Dialog, more: Pick<CallSnapshot, 'direction' | 'farAllowsUpdate' | 'timer'>): CallSnapshot {
  const { peer, ...rest } = dialog;
  const { flow: _, fallback: __, via: ___, ...far } = peer;
  return { ...more, dialog: rest, peer: far };
}

/** The dialog as this node has it from now on. `ahead` is added to its CSeq (RFC 3261 §12.2.2 allows gaps). */
export const dialogOfSnapshot = ({ dialog, peer }: CallSnapshot, ahead: number): Dialog => ({
  ...dialog,
  remoteNumber: dialog.remoteNumber,
  localNumber: dialog.localNumber + ahead,
  peer: { ...peer, flow: 0 },
});
