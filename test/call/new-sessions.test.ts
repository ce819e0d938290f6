/** What is left behind by a Session that cannot begin: no place in a Room, and nobody who is called. */
import { describe, expect, test } from 'bun:test';
import type { DialRefused, Leg } from '../../src/call/ports/leg.ts';
import type { CommandContext, DialRequest } from '../../src/call/ports/sessions.ts';
import { NewSessions } from '../../src/call/session/new-sessions.ts';
import { mayReach } from '../../src/destinations.ts';
import type { SessionState } from '../../src/machine/session/session.ts';
import { type Problem, problems } from '../../src/problem.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const CONTEXT: CommandContext = { appUuid: 'app', operationUuid: 'op', idempotencyKey: undefined, traceparent: '' };
const DIAL: DialRequest = { from: '+15550001', to: '+15550002', ring_timeout_sec: 30, room_id: 'room' };
const FORMAT = { encoding: 'mulaw', sample_rate: 8_000 } as const;
const CONNECT = {
  ...{ websocket: { url: 'wss://bot.test' }, room_id: 'room' },
  media_format: { from_session: FORMAT, to_session: FORMAT },
};

interface Hindrance {
  /** Why no trunk takes the call. */
  readonly unavailable?: DialRefused;
  /** How many Sessions may still begin when somebody looks, one look after the other; then none. */
  readonly roomFor?: number;
  /** What its first step is refused with. */
  readonly begun?: Problem;
  readonly isDraining?: boolean;
}

function world({ unavailable, roomFor = Number.POSITIVE_INFINITY, begun, isDraining = false }: Hindrance = {}) {
  const orders: string[] = [];
  const seats = new Set<string>();
  const states: SessionState[] = [];
  let looks = 0;
  const order = (name: string) => () => void orders.push(name);
  const leg: Leg = {
    audio: undefined,
    ...{ start: order('start'), ring: order('ring'), startEarlyMedia: order('early'), answer: order('answer') },
    ...{ reject: order('reject'), cancel: order('cancel'), hangup: order('hangup') },
  };
  const sessions = new NewSessions(
    {
      ...{ clock: new VirtualClock(), orphanTimeoutMs: 1, records: { find: async () => undefined } },
      reachOf: async () => mayReach({ allowed: ['+1'], blocked: [] }),
      mayCallFrom: async () => true,
    },
    {
      actors: { get: () => undefined, hasRoomFor: () => looks++ < roomFor },
      bots: { add: () => {}, order: async () => undefined },
      hasOthers: false,
      begin: (state) => {
        states.push(state);
        return { listener: () => {}, begin: async (_, answer) => begun ?? answer ?? { status: 202, body: {} } };
      },
      isDraining: () => isDraining,
      rooms: () => ({
        reserve: async ({ roomId, sessionUuid, muted }) => {
          seats.add(sessionUuid);
          return { roomId, room: 1, muted, voiceActivityEvents: false };
        },
        release: (_, sessionUuid) => void seats.delete(sessionUuid),
      }),
      dialer: () => ({
        dial: async () => {
          orders.push('dial');
          return unavailable === undefined ? { leg } : { unavailable };
        },
      }),
      webSockets: () => () => {
        orders.push('connect');
        return leg;
      },
    },
  );
  return { sessions, leg, orders, seats, states };
}

describe('a dial into a Room', () => {
  const refusals: readonly (readonly [DialRefused, number])[] = [
    ['unknown_device', 404],
    ['no_trunk', 503],
    ['unknown_trunk', 400],
    ['no_node', 503],
    ['no_capacity', 529],
    ['no_ports', 503],
    ['draining', 503],
  ];
  test.each(refusals)('that is refused as %s is %i, and gives its place back', async (unavailable, status) => {
    const { sessions, orders, seats } = world({ unavailable });
    expect(await sessions.dial(DIAL, CONTEXT)).toMatchObject({ status });
    expect([orders, seats.size]).toEqual([['dial'], 0]);
  });

  test('that finds no more room for its application by then gives its place back, and calls nobody', async () => {
    const { sessions, orders, seats } = world({ roomFor: 1 });
    expect(await sessions.dial(DIAL, CONTEXT)).toMatchObject({ status: 529 });
    expect([orders, seats.size]).toEqual([['dial', 'hangup'], 0]);
  });

  test('whose first step is not stored calls nobody, and one that is not permitted reserves nothing', async () => {
    const unstored = world({ begun: problems.unavailable('The database is away.', 2) });
    expect(await unstored.sessions.dial(DIAL, CONTEXT)).toMatchObject({ status: 503 });
    expect(unstored.orders).toEqual(['dial', 'hangup']);
    for (const [hindrance, to, status] of [
      [{ isDraining: true }, DIAL.to, 503],
      [{}, '+4420', 403],
    ] as const) {
      const { sessions, orders, seats } = world(hindrance);
      expect(await sessions.dial({ ...DIAL, to }, CONTEXT)).toMatchObject({ status });
      expect([orders, seats.size]).toEqual([[], 0]);
    }
  });

  test('to a device has no number that was dialled', async () => {
    const { sessions, states } = world();
    for (const to of [DIAL.to, 'sip:alice']) expect(await sessions.dial({ ...DIAL, to }, CONTEXT)).toMatchObject({ status: 202 });
    expect(states.map(({ did }) => did)).toEqual([DIAL.to, '']);
  });
});

test('A bot that finds no more room for its application by then gives its place back; one that cannot begin is not connected', async () => {
  const late = world({ roomFor: 1 });
  expect(await late.sessions.connectWebsocket(CONNECT, CONTEXT)).toMatchObject({ status: 529 });
  expect([late.orders, late.seats.size]).toEqual([[], 0]);
  const unstored = world({ begun: problems.unavailable('The database is away.', 2) });
  expect(await unstored.sessions.connectWebsocket(CONNECT, CONTEXT)).toMatchObject({ status: 503 });
  expect(unstored.orders).toEqual(['connect', 'hangup']);
});

test('A call that comes in is told apart by whether there is no room for it, or it cannot be taken now', async () => {
  const cases: readonly (readonly [Hindrance, 'full' | 'away'])[] = [
    [{ roomFor: 0 }, 'full'],
    [{ isDraining: true, roomFor: 0 }, 'away'],
    [{ begun: problems.unavailable('The database is away.', 2) }, 'away'],
  ];
  for (const [hindrance, expected] of cases) {
    const { sessions, leg } = world(hindrance);
    const refused: string[] = [];
    const call = {
      callerId: '',
      did: '',
      appUuid: 'app',
      leg,
      refuse: (why: string) => void refused.push(why),
      listen: () => {},
    };
    expect([await sessions.incoming(call), refused]).toEqual([undefined, [expected]]);
  }
});
