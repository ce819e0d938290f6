/** What a call needs of its user agent. */
import type { AgentContext } from '../agent-context.ts';
import type { CallEvent } from './call-event.ts';

/** The context of all, a place among the dialogs, and a way to tell the call's events. */
export interface CallContext<Call> extends AgentContext {
  /** Makes the call findable by the key of one of its dialogs. A call that has the key already loses it. */
  enter(key: string, call: Call): void;
  /** Makes the call findable by the key no more. Another call that has taken the key stays so. */
  leave(key: string, call: Call): void;
  /** Tells an event of the call. */
  tell(call: Call, event: CallEvent): void;
  /** Called once, when nothing more may arrive for the call. */
  closed(call: Call): void;
}
