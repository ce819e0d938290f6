/** A Session as the interface shows it (interface, Session). */
import { timestampSeconds } from '../../clock.ts';
import type { SessionView } from '../ports/sessions.ts';

export function view(of: {
  readonly sessionUuid: string;
  readonly type: string;
  readonly state: string;
  readonly createdAt: number;
  readonly callerId: string;
  readonly did: string;
  /** What its application made the Session with. A list does not show it. */
  readonly clientState?: string;
}): SessionView {
  return {
    session_uuid: of.sessionUuid,
    type: of.type,
    state: of.state,
    created_at: timestampSeconds(of.createdAt),
    caller_id: of.callerId,
    did: of.did,
    ...(of.clientState === undefined || of.clientState === '' ? {} : { client_state: of.clientState }),
  };
}
