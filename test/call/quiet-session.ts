/** A Session's actor with nothing around it but its journal and its clock, and what the test gives it. */
import type { Leg } from '../../src/call/ports/leg.ts';
import { type ActorEnvironment, SessionActor } from '../../src/call/session/session-actor.ts';
import type { Clock } from '../../src/clock.ts';
import type { Journal } from '../../src/database/journal/journal.ts';
import { NO_HISTORY } from '../../src/history/call-history.ts';
import { silentLog } from '../../src/log.ts';
import type { SessionState } from '../../src/machine/session/session.ts';
import { noRecordings } from '../support/no-recordings.ts';

export const quietSession = (
  state: SessionState,
  journal: Journal,
  clock: Clock,
  nodeId: string,
  more: Partial<ActorEnvironment> = {},
  leg?: Leg,
): SessionActor =>
  new SessionActor(state, leg, {
    journal,
    clock,
    log: silentLog,
    nodeId,
    mediaRoom: () => undefined,
    audioOf: () => undefined,
    away: () => undefined,
    onMembership() {},
    enteredAt: () => undefined,
    onRoomMoved() {},
    onSeated() {},
    payments: undefined,
    recordings: noRecordings,
    media: { openPlaylist: async (urls) => ({ urls, release() {} }) },
    onNews() {},
    named: async () => undefined,
    history: NO_HISTORY,
    keepsCalls: false,
    onEnded() {},
    ...more,
  });
