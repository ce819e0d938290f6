/**
 * The real app on a real PostgreSQL; only the calls behind it are played by a small fake that keeps Sessions in a map.
 */
import {
  type Answer,
  accepted,
  type CommandContext,
  type SessionCommand,
  type Sessions,
  type SessionView,
} from '../../src/call/ports/sessions.ts';
import type { Refusal } from '../../src/call/ports/trunks.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import type { Store } from '../../src/database/store.ts';
import { createHttpApp, type HttpApp, type HttpDeps } from '../../src/http/app.ts';
import { newUuid } from '../../src/id.ts';
import { isProblem, type Problem, problems } from '../../src/problem.ts';
import { openTestStore, type TestStore } from '../database/open.ts';
import { httpDeps, OPERATOR_TOKEN } from '../support/http-deps.ts';
import { noCarrier } from '../support/no-carrier.ts';
import { OpenApiCheck } from '../support/openapi-check.ts';

/** A request that the carrier refused, as it tells the operator API. */
const REFUSAL: Refusal = {
  at: Date.UTC(2026, 0, 2),
  firstAt: Date.UTC(2026, 0, 1),
  count: 3,
  source: '203.0.113.9',
  transport: 'udp',
  method: 'INVITE',
  from: 'sip:100@203.0.113.9',
  to: 'sip:+15550002@192.0.2.1',
  status: 403,
  reason: 'The source address is in no trunk',
  remedy: 'Add it',
};

interface FakeSessions extends Sessions {
  readonly live: Map<string, SessionView & { appUuid: string }>;
  readonly commands: { uuid: string; command: SessionCommand; context: CommandContext }[];
  /** The next command or dial ends as this instead. */
  next: Problem | Error | undefined;
  isDraining: boolean;
  /** The Session that the next dial makes; a new one unless told. */
  dialled: string | undefined;
}

export interface Platform {
  readonly app: HttpApp;
  /** Every answer is held against the OpenAPI document. */
  readonly check: OpenApiCheck;
  readonly testStore: TestStore;
  readonly sessions: FakeSessions;
  readonly hooks: string[];
  now: () => number;
  /** A request as an application, JSON in. */
  call(as: AppSecrets, method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  operator(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  raw(path: string, init?: RequestInit): Promise<Reply>;
  /** A live Session of the application. */
  session(as: AppSecrets, more?: Partial<SessionView>): string;
  close(): Promise<void>;
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Whatever JSON came; undefined for anything else. */
  readonly body: ReturnType<typeof JSON.parse>;
}

export async function openPlatform(
  more: Partial<HttpDeps> | ((store: Store, clock: Clock) => Partial<HttpDeps>) = {},
  known?: TestStore,
): Promise<Platform> {
  const testStore = known ?? (await openTestStore());
  const sessions = fakeSessions(testStore);
  const hooks: string[] = [];
  const time = { skew: 0 };
  const wall = systemClock();
  const given = typeof more === 'function' ? more(testStore.store, wall) : more;
  // A test that plays a part itself answers with what it needs, not with a whole body.
  const isPlayed = ['sessions', 'rooms', 'recordings', 'messages', 'charges'].some((part) => part in given);
  const app = createHttpApp({
    ...httpDeps(testStore.store, wall),
    sessions,
    clock: {
      ...wall,
      now: () => platform.now(),
      at: (deadline, fire) => wall.at(wall.now() + (deadline - platform.now()), fire),
    },
    ready: async () => ({ database: await testStore.store.ready(), media: true, sip: true }),
    onTrunksChanged: () => void hooks.push('trunks'),
    onDeviceChanged: (username) => void hooks.push(`device ${username}`),
    carrier: { ...noCarrier, refusals: () => [REFUSAL] },
    ...given,
  });
  const document = await app.fetch(new Request('http://127.0.0.1/openapi.json'));
  const check = new OpenApiCheck(await document.json());
  const raw: Platform['raw'] = async (path, init) => {
    const response = await app.fetch(new Request(`http://127.0.0.1${path}`, init));
    const text = await response.text();
    const wrong = check.fault(init?.method ?? 'GET', path, response, text);
    if (wrong !== undefined && !(isPlayed && response.ok)) throw new Error(wrong);
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text !== '' ? JSON.parse(text) : undefined,
    };
  };
  const send = (authorization: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    raw(path, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const platform: Platform = {
    app,
    check,
    testStore,
    sessions,
    hooks,
    now: () => wall.now() + time.skew,
    raw,
    call: (as, ...rest) => send(`Bearer ${as.appUuid}:${as.apiKey}`, ...rest),
    operator: (...rest) => send(`Bearer ${OPERATOR_TOKEN}`, ...rest),
    session(as, view = {}) {
      const uuid = newUuid();
      sessions.live.set(uuid, {
        session_uuid: uuid,
        type: 'phone_in',
        state: 'ringing',
        created_at: '2026-01-01T00:00:00.000Z',
        caller_id: '+15550001',
        did: '+15550002',
        ...view,
        appUuid: as.appUuid,
      });
      return uuid;
    },
    close: testStore.close,
  };
  return platform;
}

function fakeSessions(testStore: TestStore): FakeSessions {
  /** Stores the answer in the commit of the effect, as an actor does. */
  const admit = async (context: CommandContext, answer: Answer): Promise<Answer | Problem> => {
    const { next } = fake;
    fake.next = undefined;
    if (next instanceof Error) throw next;
    if (isProblem(next)) return next;
    const { appUuid, idempotencyKey: key } = context;
    if (key !== undefined) await testStore.store.journal.commit({ events: [], answer: { appUuid, key, ...answer } });
    return answer;
  };
  const view = ({ appUuid: _, ...rest }: SessionView & { appUuid: string }): SessionView => rest;
  const fake: FakeSessions = {
    live: new Map(),
    commands: [],
    next: undefined,
    dialled: undefined,
    async dial(request, context) {
      if (request.from !== '+15550100') return problems.callerId();
      return await admit(context, accepted(context.operationUuid, { session_uuid: fake.dialled ?? newUuid() }));
    },
    connectWebsocket: async () => problems.notConfigured('WebSocket'),
    owns: async (appUuid, uuid) => fake.live.get(uuid)?.appUuid === appUuid,
    async command(uuid, command, context) {
      fake.commands.push({ uuid, command, context });
      return await admit(context, accepted(context.operationUuid));
    },
    isDraining: false,
    isHere: (uuid) => fake.live.has(uuid),
    ingest: () => undefined,
    async get(appUuid, uuid) {
      const found = fake.live.get(uuid);
      return found?.appUuid === appUuid ? view(found) : undefined;
    },
    list: async (appUuid, filter) =>
      [...fake.live.values()]
        .filter((each) => each.appUuid === appUuid && (filter.states.length === 0 || filter.states.includes(each.state)))
        .slice(0, filter.limit)
        .map(view),
  };
  return fake;
}
