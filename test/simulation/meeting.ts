/**
 * A meeting over nodes: callers whose calls are on several nodes join one Room, commands about it and them arrive at
 * any node, and meanwhile nodes leave, stand still, or are cut off. It has randomness of its own, so that the rest of a
 * plan is as it is without one.
 */

import type { PhoneWill } from './phone.ts';
import { type Action, type CallCommand, phone, type RoomCommand, sending } from './plan.ts';
import { Random } from './random.ts';

/** The numbers of its Rooms and calls, which the rest of a plan has not. */
const ROOM = 10;
const FIRST_CALL = 20;
/** The application keeps to one Room as a rule, so that those who come later find the others. */
const ROOMS = [ROOM, ROOM, ROOM, ROOM, ROOM, ROOM + 1] as const;
const SHARE = 0.75;
/** It takes some seconds until a node is taken for dead, and some more until everybody is back. */
const LASTS_MIN_MS = 16_000;

const MEMBER_COMMANDS: readonly [CallCommand, ...CallCommand[]] = [
  ...['join', 'join', 'join', 'leave', 'mute', 'unmute', 'member_volume', 'hold', 'unhold'],
  ...['play', 'collect', 'record', 'stop_recording', 'inspect', 'hangup'],
] as const;
const ROOM_COMMANDS: readonly [RoomCommand, ...RoomCommand[]] = [
  ...['room_play', 'room_play', 'room_stop', 'room_volume', 'room_record', 'room_stop_record'],
  ...['list_rooms', 'list_members', 'list_members', 'delete_room'],
] as const;

export interface Meeting {
  readonly mostMembers: number;
  readonly actions: readonly Action[];
  readonly activeMs: number;
}

const SURELY = { isKeyed: true, isDoubled: false } as const;

/** A call that comes in at a node, is dialled, perhaps into the Room, or is one of a bot; and joins. */
function caller(random: Random, call: number): Action[] {
  const at = random.between(300, 4_000);
  const kind = random.int(0, 9);
  const direction = kind < 7 ? 'inbound' : 'outbound';
  const room = random.pick(ROOMS);
  const isSeated = random.chance(0.3) ? room : undefined;
  const will = {
    ...phone(random, direction),
    reaction: random.chance(0.9) ? 'answers' : 'silent',
    ...{ hangsUpAfterMs: random.between(6_000, 60_000) },
    ...{ reactsAfterMs: random.between(100, 1_500), isDeaf: random.chance(0.03) },
  } satisfies PhoneWill;
  const begin: Action =
    kind < 7
      ? { do: 'incoming', at, call, will }
      : kind < 9
        ? { do: 'dial', at, call, will, room: isSeated, sending: SURELY, detects: false }
        : {
            ...{ do: 'bot', at, call, room: isSeated, sending: SURELY },
            will: { connects: true, connectsAfterMs: random.between(10, 400), closesAfterMs: random.between(3_000, 60_000) },
          };
  const about = { do: 'call_command', call, sending: SURELY } as const;
  const commands = Array.from({ length: random.int(0, 6) }, (): Action => {
    const command = random.pick(MEMBER_COMMANDS);
    const after = random.between(1_000, 20_000);
    return { ...about, at: at + after, room: random.pick(ROOMS), command, sending: sending(random) };
  });
  return [
    begin,
    ...(kind < 7 ? [{ ...about, at: at + random.between(30, 400), room, command: 'answer' } as const] : []),
    // A caller who is not answered in time, or finds the Room full, comes again.
    { ...about, at: at + random.between(500, 2_500), room, command: 'join' },
    { ...about, at: at + random.between(3_000, 6_000), room, command: 'join' },
    ...commands,
  ];
}

/** What befalls a node, or all of them, while members are in the Room. */
function blow(random: Random, nodes: number, activeMs: number): Action {
  const at = random.between(4_500, activeMs * 0.8);
  const place = random.chance(0.5) ? 'home' : random.int(0, nodes - 1);
  const forMs = random.between(random.chance(0.3) ? 50 : 3_000, 14_000);
  switch (random.int(0, 12)) {
    case 0:
    case 1:
      return { do: 'crash', at, place, downMs: random.between(10, random.chance(0.5) ? 12_000 : 1_500) };
    case 2:
    case 3:
      return { do: 'part', at, place, forMs, withDatabase: true };
    case 4:
      return { do: 'part', at, place, forMs, withDatabase: false };
    case 9:
    case 10:
      return { do: 'pause', at, place, forMs };
    case 11:
      return { do: 'stop', at, place, downMs: random.between(10, 4_000) };
    case 5:
      return { do: 'database_away', at, place, forMs };
    case 6:
    case 7:
      return {
        ...{ do: 'drain', at, place, mode: random.chance(0.85) ? 'move' : 'wait', deadlineSec: undefined },
        forMs: random.between(1_000, 20_000),
      };
    case 8:
      return { do: 'lose_worker', at, place };
    default:
      return { do: 'bus_flaky', at, drops: 0.2, doubles: 0.2, slow: random.between(1, 200), forMs };
  }
}

/**
 * The home of a Room stands still while somebody joins: another node takes the Room, others join it there, and the old
 * home goes on with the join before it is declared dead.
 */
function haltedJoins(seed: number, actions: readonly Action[]): readonly Action[] {
  const random = new Random(seed, 11);
  if (!random.chance(0.3)) return [];
  const joins = actions.flatMap((action) => (action.do === 'call_command' && action.command === 'join' ? [action] : []));
  const [first, ...others] = joins;
  if (first === undefined) return [];
  const halted = random.pick([first, ...others]);
  const at = halted.at + random.between(1, 120);
  const forMs = random.between(2_500, 6_000);
  const again = joins
    .filter(({ call }) => call !== halted.call)
    .map((join) => ({ ...join, at: at + random.between(1_800, forMs) }));
  return [{ do: 'pause', at, place: 'home', forMs }, ...again];
}

export function meetingOf(seed: number, nodes: number, activeMs: number): Meeting | undefined {
  const random = new Random(seed, 10);
  if (!random.chance(SHARE)) return undefined;
  const lasts = Math.max(activeMs, LASTS_MIN_MS);
  const callers = Array.from({ length: random.int(3, 5) }, (_, each) => caller(random, FIRST_CALL + each));
  const rooms = Array.from({ length: random.int(0, 5) }, (): Action => {
    const command = random.pick(ROOM_COMMANDS);
    const at = random.between(command === 'delete_room' ? lasts / 2 : 1_500, lasts);
    return { do: 'room_command', at, room: random.pick(ROOMS), command, sending: sending(random) };
  });
  const made = [ROOM, ROOM + 1].slice(0, random.chance(0.4) ? 2 : 1);
  const actions: Action[] = [
    ...made.map((room): Action => ({ do: 'room_command', at: room - ROOM, room, command: 'create_room', sending: SURELY })),
    ...callers.flat(),
    ...rooms,
    ...Array.from({ length: random.int(0, 3) + (random.chance(0.8) ? 1 : 0) }, () => blow(random, nodes, lasts)),
  ];
  actions.push(...haltedJoins(seed, actions));
  // Nothing goes wrong any more when everything has healed.
  return { mostMembers: random.pick([2, 3, 4, 4] as const), actions: actions.filter(({ at }) => at < lasts), activeMs: lasts };
}
