/** Recordings through the real app: their buckets, at instants of the test’s own, and what each route answers. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { RecordedView, Removal } from '../../src/call/ports/recordings.ts';
import { RecordingRegistry } from '../../src/call/recording/recording-registry.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import type { RecordingQuery } from '../../src/database/call/recordings.ts';
import { newUuid } from '../../src/id.ts';
import { problems } from '../../src/problem.ts';
import { noRecordings } from '../support/no-recordings.ts';
import { noRooms } from '../support/no-rooms.ts';
import { openPlatform, type Platform } from './platform.ts';
import { roomSummary } from './sample-bodies.ts';

/** What an application keeps, newest first. */
const kept: readonly RecordedView[] = ['rec_3', 'rec_2', 'rec_1'].map((uuid, index) => ({
  recording_uuid: uuid,
  session_uuid: newUuid(),
  state: 'ended',
  created_at: new Date(1_000_000_000_000 - index).toISOString(),
  ended_at: new Date(1_000_000_001_000).toISOString(),
  duration: 1,
  media_url: '',
  expires_at: '',
}));

/** The live recordings of every Session but this one. */
const live = ['rec_1', 'rec_2'].map((recording_uuid) => ({ recording_uuid, state: 'active' }));
const gone = newUuid();
let removal: Removal | undefined;

const BOTH = { direction: 'both', channels: 'mono' } as const;

let platform: Platform;
let app: AppSecrets;
let running: () => number;
/** Rooms refuse what they are told while this is set. */
let refused = false;
const roomId = newUuid();

beforeAll(async () => {
  platform = await openPlatform({
    recordings: Object.assign(Object.create(noRecordings), {
      terms: RecordingRegistry.prototype.terms.bind(noRecordings),
      isLive: (_: string, sessionUuid: string, uuid: string) => (sessionUuid === gone ? undefined : uuid === 'rec_1'),
      list: (_: string, sessionUuid: string) => (sessionUuid === gone ? undefined : Promise.resolve(live)),
      find: async (appUuid: string, uuid: string) => (appUuid === app.appUuid ? { ...kept[0], recording_uuid: uuid } : undefined),
      remove: async () => removal,
      kept: async (appUuid: string, query: RecordingQuery) => (appUuid === app.appUuid ? kept.slice(0, query.limit) : []),
    }),
    rooms: {
      ...noRooms,
      get: (_, asked) => (asked === roomId ? room : undefined),
      order: async () => (refused ? problems.recordingNotActive() : { status: 202, body: {} }),
    },
  });
  app = await platform.testStore.store.apps.create({ name: 'a' });
  running = platform.now;
}, 60_000);
afterAll(() => platform.close());

const room = roomSummary(roomId);

type Request = readonly [path: string, body: unknown];

/** Statuses of so many requests at one instant, `afterMs` from the last. */
let instant = Date.now();
async function burst(requests: readonly Request[], afterMs = 0): Promise<number[]> {
  instant += afterMs;
  platform.now = () => instant;
  try {
    const statuses: number[] = [];
    for (const [path, body] of requests) statuses.push((await platform.call(app, 'POST', path, body)).status);
    return statuses;
  } finally {
    platform.now = running;
  }
}
/** Makes so many requests, of each kind in turn. */
const times = (count: number, first: Request, ...others: Request[]): Request[] => {
  const of = [first, ...others];
  return Array.from({ length: count }, (_, at) => of[at % of.length] ?? first);
};
const admitted = (statuses: readonly number[]) => [statuses.filter((each) => each === 202).length, statuses.at(-1)];

describe('the buckets of recordings', () => {
  const of = () => `/v1/sessions/${platform.session(app)}`;

  test('creating takes four, and one a second; of each Session its own', async () => {
    const create = [`${of()}/recordings`, BOTH] as const;
    expect(await burst(times(5, create))).toEqual([202, 202, 202, 202, 429]);
    expect(await burst(times(2, create), 999)).toEqual([429, 429]);
    expect(await burst(times(2, create), 1)).toEqual([202, 429]);
    expect(await burst([[`${of()}/recordings`, BOTH]])).toEqual([202]);
  });

  test('stopping takes twenty; mask, unmask and seek share twenty', async () => {
    const session = of();
    const on = (what: string) => [`${session}/recordings/rec_1/${what}`, {}] as const;
    const seek = [`${session}/playback/seek`, { position_ms: 0 }] as const;
    expect(admitted(await burst(times(21, on('stop'))))).toEqual([20, 429]);
    expect(admitted(await burst(times(21, on('mask'), on('unmask'), seek)))).toEqual([20, 429]);
    for (const each of [on('mask'), on('unmask'), seek]) expect(await burst([each])).toEqual([429]);
    // 20 a second.
    expect(await burst(times(2, on('unmask')), 50)).toEqual([202, 429]);
  });

  test('record and its stop in a Room share eight, and three a second', async () => {
    const path = `/api/v1/rooms/${roomId}/playback/record`;
    const both = times(9, [path, {}] as const, [`${path}/stop`, {}] as const);
    expect(admitted(await burst(both))).toEqual([8, 429]);
    expect(await burst([[`${path}/stop`, {}]])).toEqual([429]);
    expect(admitted(await burst(both.slice(0, 4), 1_000))).toEqual([3, 429]);
    await burst([], 10_000);
    refused = true;
    expect(new Set(await burst(times(30, [`${path}/stop`, {}] as const)))).toEqual(new Set([409]));
    refused = false;
    expect(admitted(await burst(both))).toEqual([8, 429]);
  });

  test('are left as they were by what is refused, whatever refuses it', async () => {
    const session = of();
    const create = (body: unknown) => [`${session}/recordings`, body] as const;
    const bad = times(
      20,
      create({}),
      create({ ...BOTH, channels: 'stereo' }),
      create({ ...BOTH, direction: 'session_in' }),
      create('{'),
    );
    expect(new Set(await burst(bad))).toEqual(new Set([400]));
    for (const status of [404, 409, 503]) {
      for (let asked = 0; asked < 6; asked++) {
        platform.sessions.next =
          status === 404
            ? problems.notFound('Session')
            : status === 409
              ? problems.conflict('no')
              : problems.notConfigured('Recording');
        expect(await burst([create(BOTH)])).toEqual([status]);
      }
    }
    expect(await burst(times(5, create(BOTH)))).toEqual([202, 202, 202, 202, 429]);
  });
});

describe('the list of what an application keeps', () => {
  const listed = async (query: string) => (await platform.call(app, 'GET', `/v1/recordings${query}`)).body;

  test('has an `after` where there is more, and none on its last page', async () => {
    expect(await listed('')).toEqual({ recordings: kept, after: '' });
    expect(await listed('?limit=3')).toEqual({ recordings: kept, after: '' });
    expect(await listed(`?session_uuid=${newUuid()}&room_id=${newUuid()}`)).toEqual({ recordings: kept, after: '' });
    const first = await listed('?limit=2');
    expect(first).toEqual({ recordings: kept.slice(0, 2), after: Buffer.from('999999999999 rec_2').toString('base64url') });
  });

  test.each([
    ['?page=2', 'query: has a parameter that is not one of session_uuid, room_id, created_after, created_before, after, limit'],
    ['?limit=0', 'limit: must be a whole number from 1 to 1000'],
    ['?limit=1001', 'limit: must be a whole number from 1 to 1000'],
    ['?limit=1&limit=2', 'limit: must be given once'],
    ['?session_uuid=1', 'session_uuid: must be a lowercase UUID v4'],
    ['?room_id=rec_1', 'room_id: must be a lowercase UUID v4'],
    ['?created_after=today', 'created_after: must be an RFC 3339 date-time'],
    ['?created_before=2026-02-30T00:00:00Z', 'created_before: must be an RFC 3339 date-time'],
    ['?after=rec_1', 'after: must be the `after` of an earlier page'],
  ])('refuses %s', async (query, message) => {
    expect(await listed(query)).toEqual({ code: 'invalid_request', message });
  });
});

describe('a recording', () => {
  const session = () => `/v1/sessions/${platform.session(app)}/recordings`;

  test('tells speech as its configuration says, where it is to tell it at all', async () => {
    const voice_activity_config = { sensitivity: 1, speech_duration_ms: 20, silence_duration_ms: 30 };
    const told = async (enable_voice_activity_events: boolean) => {
      const body = { ...BOTH, enable_voice_activity_events, voice_activity_config };
      expect((await platform.call(app, 'POST', session(), body)).status).toBe(202);
      const last = platform.sessions.commands.at(-1)?.command;
      return last?.type === 'record' ? last.terms.voiceActivity : null;
    };
    expect(await told(true)).toEqual({ sensitivity: 1, speechDurationMs: 20, silenceDurationMs: 30 });
    expect(await told(false)).toBeUndefined();
  });

  test('that is live is found in its Session, by its name or among all', async () => {
    const ask = async (method: string, path: string) => {
      const { status, body } = await platform.call(app, method, path);
      return status < 300 ? body : body.message;
    };
    const here = session();
    const there = `/v1/sessions/${gone}/recordings`;
    expect(await ask('GET', here)).toEqual({ recordings: live });
    expect(await ask('GET', `${here}/rec_2`)).toEqual(live[1]);
    expect(await ask('GET', `${here}/rec_3`)).toBe('Recording not found');
    expect(await ask('POST', `${here}/rec_3/stop`)).toBe('Recording not found');
    for (const path of [there, `${there}/rec_1`]) expect(await ask('GET', path)).toBe('Session not found');
    expect(await ask('POST', `${there}/rec_1/stop`)).toBe('Session not found');
  });

  test('is found after its call by its name, and removed where it is over and its store can be reached', async () => {
    const uuid = `rec_${newUuid()}`;
    const ask = async (method: string, name: string, by = app) =>
      (await platform.call(by, method, `/v1/recordings/${name}`)).status;
    const other = await platform.testStore.store.apps.create({ name: 'other' });
    expect([await ask('GET', uuid), await ask('GET', uuid, other), await ask('GET', 'rec_1')]).toEqual([200, 404, 404]);
    removal = 'removed';
    expect([await ask('DELETE', uuid, other), await ask('DELETE', 'rec_1')]).toEqual([404, 404]);
    for (const [what, status] of [
      ['removed', 204],
      ['active', 409],
      ['out_of_reach', 503],
      ['off', 503],
      [undefined, 404],
    ] as const) {
      removal = what;
      expect([what, await ask('DELETE', uuid)]).toEqual([what, status]);
    }
  });
});
