/**
 * The planned hand-over of a call to another node, make before break:
 *
 *   node that drains                         the other
 *     prepare: the dialog ────────────────────► opens audio, re-INVITE ─► the far end follows
 *     commit: the Session as it is now ───────► takes the row, goes on
 *     gives back what it held ◄──── committed
 */
import type { SessionState } from '../../machine/session/session.ts';
import type { LegSnapshot } from './leg.ts';

export type MoveRequest =
  | { readonly type: 'prepare'; readonly sessionUuid: string; readonly snapshot: LegSnapshot; readonly ahead: number }
  | {
      readonly type: 'commit';
      readonly sessionUuid: string;
      readonly epoch: number;
      readonly state: SessionState;
      /** The sender's clock. */
      readonly now: number;
      readonly traceparent: string;
    }
  | { readonly type: 'abort'; readonly sessionUuid: string };

export type MoveReply =
  | { readonly type: 'prepared' }
  | { readonly type: 'committed' }
  /** `asked`: the far end may have been asked to follow. */
  | { readonly type: 'failed'; readonly why: string; readonly asked: boolean };

export interface MovePeers {
  /** The result is undefined when there was no answer. A commit is refused by the other node from the timeout on. */
  ask(nodeId: string, request: MoveRequest): Promise<MoveReply | undefined>;
  serve(answer: (request: MoveRequest, from: string, until: number) => Promise<MoveReply>): void;
  /** Another node for a call over that trunk, near a Room if one may take it there. */
  place(appUuid: string, trunk: string, near: readonly string[]): Promise<string | undefined>;
}
