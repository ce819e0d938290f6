/**
 * The plan of a simulation: what the application, the far ends and the faults do, each at its time. It is drawn from
 * the seed before anything runs, and each action carries all that it needs, so that a plan with actions left out is a
 * plan too: that is how a failing one is shrunk.
 */
import type { BotWill } from './far-end.ts';
import type { ReceiverMood } from './faults.ts';
import { meetingOf } from './meeting.ts';
import type { PhoneWill } from './phone.ts';
import { Random } from './random.ts';
import { MAX_MEMBERS } from './settings.ts';

/** Commands of the application about one of the plan's calls, named as in `application.ts`. */
const CALL_COMMANDS = [
  'answer',
  'answer',
  'answer',
  'play',
  'play',
  'play',
  'play_silence',
  'stop_playback',
  'pause',
  'resume',
  'collect',
  'collect',
  'cancel_collect',
  'send_digits',
  'record',
  'record',
  'stop_recording',
  'mask',
  'hold',
  'unhold',
  'transfer',
  'join',
  'join',
  'join',
  'leave',
  'mute',
  'unmute',
  'member_volume',
  'collect_card',
  'collect_cvv',
  'charge',
  'charge',
  'hangup',
  'hangup',
  'reject',
  'cancel',
  'inspect',
] as const;
const ROOM_COMMANDS = [
  'create_room',
  'room_play',
  'room_play',
  'room_stop',
  'room_volume',
  'room_record',
  'room_stop_record',
  'delete_room',
] as const;

export type CallCommand = (typeof CALL_COMMANDS)[number];
export type RoomCommand = (typeof ROOM_COMMANDS)[number] | 'list_rooms' | 'list_members';

/** How the application sends a command. */
export interface Sending {
  /** It has an Idempotency-Key, and is sent again until it is answered. */
  readonly isKeyed: boolean;
  /** It is sent twice at once. */
  readonly isDoubled: boolean;
}

/** A node by its place, or the one that mixes the Room with the most members at that moment. */
export type Place = number | 'home';

export type Action = { readonly at: number } & (
  | { readonly do: 'incoming'; readonly call: number; readonly will: PhoneWill }
  | {
      readonly do: 'dial';
      readonly call: number;
      readonly will: PhoneWill;
      readonly room: number | undefined;
      readonly sending: Sending;
      readonly detects: boolean;
    }
  | {
      readonly do: 'bot';
      readonly call: number;
      readonly will: BotWill;
      readonly room: number | undefined;
      readonly sending: Sending;
    }
  | {
      readonly do: 'call_command';
      readonly call: number;
      readonly room: number;
      readonly command: CallCommand;
      readonly sending: Sending;
    }
  | { readonly do: 'room_command'; readonly room: number; readonly command: RoomCommand; readonly sending: Sending }
  | { readonly do: 'message'; readonly sending: Sending }
  | { readonly do: 'crash'; readonly place: Place; readonly downMs: number }
  | { readonly do: 'database_away'; readonly place: Place | 'all'; readonly forMs: number }
  | { readonly do: 'database_flaky'; readonly fails: number; readonly loses: number; readonly forMs: number }
  | { readonly do: 'database_slow'; readonly factor: number; readonly forMs: number }
  | { readonly do: 'receiver'; readonly mood: ReceiverMood; readonly forMs: number }
  | { readonly do: 'lose_worker'; readonly place: Place }
  | { readonly do: 'store_full'; readonly forMs: number }
  | {
      readonly do: 'drain';
      readonly place: Place;
      readonly mode: 'wait' | 'move';
      readonly deadlineSec: number | undefined;
      readonly forMs: number;
    }
  | { readonly do: 'pause'; readonly place: Place; readonly forMs: number }
  | { readonly do: 'stop'; readonly place: Place; readonly downMs: number }
  | { readonly do: 'part'; readonly place: Place; readonly forMs: number; readonly withDatabase: boolean }
  | { readonly do: 'bus_flaky'; readonly drops: number; readonly doubles: number; readonly slow: number; readonly forMs: number }
);

export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  /** The database is one that other processes could use, so that what others left is told apart by time. */
  readonly isShared: boolean;
  /** Callers meet in a Room over nodes (`meeting.ts`). */
  readonly meets: boolean;
  /** The members that a Room may have. */
  readonly mostMembers: number;
  /** Answered calls of a node that is lost go on at another one (CALL_TAKEOVER). */
  readonly takesOver: boolean;
  readonly actions: readonly Action[];
  /** The milliseconds in which something is begun. Then everything heals, and must end. */
  readonly activeMs: number;
}

export function phone(random: Random, direction: PhoneWill['direction']): PhoneWill {
  return {
    direction,
    reaction: random.pick(['answers', 'answers', 'answers', 'answers', 'busy', 'silent'] as const),
    reactsAfterMs: random.between(100, 4_000),
    hasEarlyMedia: random.chance(0.3),
    hangsUpAfterMs: random.between(200, random.chance(0.5) ? 40_000 : 8_000),
    keys: random.chance(0.4) ? random.pick(['12', '1234#', '4580458045804580#', '9#', '5326105300985846#', '123#'] as const) : '',
    keysAfterMs: random.between(100, 9_000),
    isDeaf: random.chance(0.06),
  };
}

const CALLS_MAX = 6;

export const sending = (random: Random): Sending => ({ isKeyed: random.chance(0.75), isDoubled: random.chance(0.06) });

/** A call is answered, and joins the first Room: a conference, whose cap is in reach. */
function conference(random: Random, number: number, at: number): Action[] {
  const about = { do: 'call_command', call: number, room: 0, sending: { isKeyed: true, isDoubled: false } } as const;
  return [
    { ...about, at: at + random.between(50, 300), command: 'answer' },
    { ...about, at: at + random.between(1_000, 6_000), command: 'join' },
  ];
}

function call(random: Random, number: number, rooms: number, activeMs: number, isConference: boolean): Action[] {
  const at = random.between(0, activeMs * 0.7);
  const room = random.int(0, rooms - 1);
  const isSeated = random.chance(0.2) ? room : undefined;
  const kind = random.int(0, 9);
  const begin: Action =
    kind < 4
      ? { do: 'incoming', at, call: number, will: phone(random, 'inbound') }
      : kind < 8
        ? {
            do: 'dial',
            at,
            call: number,
            will: phone(random, 'outbound'),
            room: isSeated,
            sending: sending(random),
            detects: random.chance(0.2),
          }
        : {
            do: 'bot',
            at,
            call: number,
            room: isSeated,
            sending: sending(random),
            will: {
              connects: random.chance(0.85),
              connectsAfterMs: random.between(10, 800),
              closesAfterMs: random.between(100, 30_000),
            },
          };
  const commands = Array.from({ length: random.int(0, 7) }, (): Action => {
    const command = random.pick(CALL_COMMANDS);
    return { do: 'call_command', at: at + random.between(30, 15_000), call: number, room, command, sending: sending(random) };
  });
  return [begin, ...commands, ...(isConference ? conference(random, number, at) : [])];
}

/** What goes wrong between nodes. */
function parting(random: Random, nodes: number, at: number): Action {
  const forMs = random.between(50, 12_000);
  if (random.chance(0.5)) return { do: 'part', at, place: random.int(0, nodes - 1), forMs, withDatabase: random.chance(0.4) };
  const [drops, doubles] = [random.between(0, 0.4), random.between(0, 0.3)];
  return { do: 'bus_flaky', at, drops, doubles, slow: random.chance(0.3) ? random.between(5, 300) : 1, forMs };
}

function fault(random: Random, nodes: number, activeMs: number): Action {
  const at = random.between(0, activeMs);
  const forMs = random.between(50, random.chance(0.3) ? 15_000 : 3_000);
  const place = random.int(0, nodes - 1);
  if (nodes > 1 && random.chance(0.35)) return parting(random, nodes, at);
  switch (random.int(0, 9)) {
    case 0:
    case 1:
    case 2:
      return { do: 'crash', at, place, downMs: random.between(10, 5_000) };
    case 3:
      return { do: 'database_away', at, place: random.chance(0.5) ? 'all' : place, forMs };
    case 4:
    case 5:
      return { do: 'database_flaky', at, fails: random.between(0, 0.4), loses: random.between(0, 0.4), forMs };
    case 6:
      return { do: 'database_slow', at, factor: random.between(2, 200), forMs };
    case 7:
    case 8:
      return {
        do: 'receiver',
        at,
        mood: random.pick(['fails', 'hangs', 'unheard', 'slow', 'moody', 'moody'] as const),
        forMs: forMs * 2,
      };
    default:
      return random.chance(0.7) ? { do: 'lose_worker', at, place } : { do: 'store_full', at, forMs };
  }
}

/** The operator drains a node: it hands its calls over, or waits for their ends. */
function drain(random: Random, nodes: number, activeMs: number): Action {
  return {
    do: 'drain',
    at: random.between(0, activeMs),
    place: random.int(0, nodes - 1),
    mode: random.chance(0.8) ? 'move' : 'wait',
    deadlineSec: random.chance(0.2) ? random.int(1, 10) : undefined,
    forMs: random.between(1_000, 20_000),
  };
}

/** Plain calls on nodes that are drained, or lost, while the database and the bus are not well either. */
function relocation(random: Random, number: number, nodes: number, activeMs: number): Action[] {
  const at = random.between(0, activeMs / 4);
  const isLost = random.chance(0.4);
  const calls = Array.from({ length: random.int(1, 3) }, (_, each): Action[] => {
    const will: PhoneWill = {
      ...phone(random, 'outbound'),
      ...{ reaction: 'answers', reactsAfterMs: 300, hangsUpAfterMs: random.between(4_000, 60_000), keys: '', isDeaf: false },
    };
    const call = number + each;
    const sending = { isKeyed: true, isDoubled: false };
    const join: Action = { do: 'call_command', at: at + random.between(1_000, 4_000), call, room: 0, command: 'join', sending };
    return [{ do: 'dial', at, call, will, room: undefined, sending, detects: false }, ...(random.chance(0.5) ? [join] : [])];
  });
  const place = random.int(0, nodes - 1);
  const leaves: Action[] = isLost
    ? [{ do: 'part', at: at + 6_500, place, forMs: random.between(4_000, 15_000), withDatabase: true }]
    : [drain(random, nodes, activeMs), { ...drain(random, nodes, activeMs), at: at + random.between(1_500, 5_000) }];
  const left = leaves.at(-1)?.at ?? at;
  const around = (ms: number) => Math.max(0, left + random.between(-ms, ms));
  const [fails, loses] = [random.between(0, 0.3), random.between(0.1, 0.5)];
  const all: Action[] = [
    ...calls.flat(),
    ...leaves,
    ...(random.chance(0.5)
      ? [{ do: 'database_flaky', at: around(500), fails, loses, forMs: random.between(500, 6_000) } as const]
      : []),
    ...(random.chance(0.3) ? [parting(random, nodes, around(500))] : []),
    ...(random.chance(0.3) ? [{ do: 'crash', at: around(2_000), place, downMs: random.between(10, 9_000) } as const] : []),
  ];
  // Nothing goes wrong any more when everything has healed.
  return all.filter((action) => action.at < activeMs);
}

/** A call in which a card and its CVV are keyed in and charged, and perhaps a crash while the provider works. */
function payment(random: Random, number: number, nodes: number, activeMs: number): Action[] {
  const at = random.between(0, Math.max(1, activeMs - 16_000));
  const about = { do: 'call_command', call: number, room: 0, sending: { isKeyed: true, isDoubled: false } } as const;
  const will: PhoneWill = {
    ...phone(random, 'outbound'),
    ...{ reaction: 'answers', reactsAfterMs: 300, hangsUpAfterMs: 30_000, isDeaf: false },
    ...{ keys: '4111111111111111#wwwwwwwwww123#', keysAfterMs: 1_500 },
  };
  return [
    { do: 'dial', at, call: number, will, room: undefined, sending: { isKeyed: true, isDoubled: false }, detects: true },
    { ...about, at: at + 900, command: 'collect_card' },
    { ...about, at: at + 8_000, command: 'collect_cvv' },
    { ...about, at: at + 12_500, command: 'charge' },
    ...(random.chance(0.5)
      ? [{ do: 'crash', at: at + random.between(12_550, 15_000), place: random.int(0, nodes - 1), downMs: 1_000 } as const]
      : []),
  ];
}

/** The nodes of a seed, where nobody says how many: every third one is a cluster. */
const nodesOf = (seed: number): number => (seed % 3 === 0 ? 3 : 1);

/** Draws the plan of a seed. */
export function planOf(seed: number, nodes = nodesOf(seed)): Plan {
  const random = new Random(seed, 1);
  const activeMs = random.between(5_000, 40_000);
  const rooms = random.int(1, 3);
  const isConference = random.chance(0.25);
  const calls = Array.from({ length: random.int(1, 6) }, (_, number) =>
    call(random, number, rooms, activeMs, isConference),
  ).flat();
  const ofRooms = Array.from({ length: rooms * random.int(0, 4) }, (_, number): Action => {
    const command = number < rooms ? 'create_room' : random.pick(ROOM_COMMANDS);
    const at = number < rooms ? random.between(0, activeMs / 3) : random.between(0, activeMs);
    return { do: 'room_command', at, room: number % rooms, command, sending: sending(random) };
  });
  const messages = Array.from({ length: random.chance(0.3) ? random.int(1, 3) : 0 }, (): Action => {
    return { do: 'message', at: random.between(0, activeMs), sending: sending(random) };
  });
  const faults = Array.from({ length: random.int(0, 6) }, () => fault(random, nodes, activeMs));
  const isShared = random.chance(0.5);
  const paid = random.chance(0.12) ? payment(random, CALLS_MAX, nodes, activeMs) : [];
  const takesOver = nodes > 1 ? random.chance(0.5) : seed % 4 === 0;
  const drains = Array.from({ length: nodes > 1 && random.chance(0.4) ? random.int(1, 3) : 0 }, () =>
    drain(random, nodes, activeMs),
  );
  const moved = nodes > 1 && random.chance(0.35) ? relocation(random, CALLS_MAX + 1, nodes, activeMs) : [];
  const others = [...calls, ...ofRooms, ...messages, ...faults, ...paid, ...drains, ...moved];
  const meeting = nodes > 1 ? meetingOf(seed, nodes, activeMs) : undefined;
  const actions = [...others, ...(meeting?.actions ?? [])].sort((a, b) => a.at - b.at);
  const { mostMembers, activeMs: lasts } = meeting ?? { mostMembers: MAX_MEMBERS, activeMs };
  return { seed, nodes, isShared, meets: meeting !== undefined, mostMembers, takesOver, actions, activeMs: lasts };
}
