/** The row of a Session: what is stored of its state, for other nodes, a restart, and the list of calls. */
import type { SessionRow } from '../../database/journal/journal.ts';
import type { Event } from '../../event/event.ts';
import { runningText } from '../../machine/session/operation/running.ts';
import type { SessionState } from '../../machine/session/session.ts';

/** What a row has beside the state of its Session. */
interface RowFacts {
  readonly nodeId: string;
  /** How often the Session was taken over. */
  readonly epoch: number;
  /** The trunk of its call, or `""`. */
  readonly trunk: string;
  /** What another node needs to go on with the call, as JSON. Undefined where that is not stored. */
  readonly call: string | undefined;
}

/** The row of a Session after a step that emitted `events`. */
export const sessionRow = (
  state: SessionState,
  events: readonly Event[],
  { nodeId, epoch, trunk, call }: RowFacts,
): SessionRow => ({
  sessionUuid: state.sessionUuid,
  appUuid: state.appUuid,
  nodeId,
  epoch,
  type: state.type,
  state: state.phase,
  callerId: state.callerId,
  did: state.did,
  answered: state.answeredAt !== undefined,
  clientState: state.clientState,
  roomId: state.membership?.phase === 'joined' ? state.membership.roomId : '',
  running: runningText(state, call),
  trunk,
  createdAt: state.createdAt,
  answeredAt: state.answeredAt,
  endedAt: state.endedAt,
  summary: summaryOf(events),
});

/** Whether a row has to be written anew, with regard to the one that was stored last. */
export const isChanged = (row: SessionRow, stored: SessionRow | undefined): boolean =>
  row.state !== stored?.state ||
  row.answered !== stored.answered ||
  row.roomId !== stored.roomId ||
  row.running !== stored.running;

/** The facts of `session.ended` that the list of calls shows, as JSON; `""` before the end. */
function summaryOf(events: readonly Event[]): string {
  const ended = events.find((event) => event.event === 'session.ended');
  if (ended === undefined) return '';
  const { answered, duration_seconds, hangup_cause, hangup_by, quality, sip } = ended;
  return JSON.stringify({ answered, duration_seconds, hangup_cause, hangup_by, quality, sip });
}
