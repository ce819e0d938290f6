/** Rows of Sessions and Rooms for tests. */

import type { FoundSession } from '../../src/database/call/sessions.ts';
import type { RoomRow, SessionRow } from '../../src/database/journal/journal.ts';
import { newAppUuid, newSessionUuid, newUuid } from '../../src/id.ts';

export const sessionRow = (more: Partial<SessionRow> = {}): SessionRow => ({
  sessionUuid: newSessionUuid(),
  appUuid: newAppUuid(),
  nodeId: 'node-a',
  epoch: 0,
  type: 'phone_in',
  state: 'new',
  callerId: '+15550001',
  did: '+15550002',
  answered: false,
  clientState: '',
  roomId: '',
  running: '',
  trunk: '',
  answeredAt: undefined,
  summary: '',
  createdAt: Date.now(),
  endedAt: undefined,
  ...more,
});

export const roomRow = (more: Partial<RoomRow> = {}): RoomRow => ({
  roomId: newUuid(),
  appUuid: newAppUuid(),
  nodeId: 'node-a',
  epoch: 0,
  voiceActivityEvents: false,
  holdMusicUrl: '',
  volume: undefined,
  deleting: false,
  playback: '',
  createdAt: Date.now(),
  deletedAt: undefined,
  ...more,
});

export const ended = (row: SessionRow, at = Date.now()): SessionRow => ({ ...row, state: 'ended', endedAt: at });

/** What is read of a Session that is to be shown by itself. */
export function recordOf(row: SessionRow): FoundSession {
  const { epoch, roomId, running, trunk, answeredAt, summary, ...shown } = row;
  return shown;
}
