import type { Rooms } from '../../src/call/ports/rooms.ts';
import { problems } from '../../src/problem.ts';

/** An application without Rooms, for tests of everything else. */
export const noRooms: Rooms = {
  create: async () => problems.notConfigured('Rooms'),
  list: () => [],
  isHere: () => false,
  knows: async () => false,
  get: () => undefined,
  opening: () => undefined,
  order: async () => problems.notFound('Room'),
  join: async () => problems.notFound('Room'),
  leave: async () => problems.notFound('Room'),
  members: () => [],
  live: () => [],
};
