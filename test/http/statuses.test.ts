/**
 * Every operation of the OpenAPI document is driven into every problem that it documents. The parts below the HTTP
 * floor are wrapped: they answer as a test wants, or fail as a bug or a database that is away would.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { CommandContext } from '../../src/call/ports/sessions.ts';
import type { AppSecrets } from '../../src/database/app/apps.ts';
import { StoreUnavailable } from '../../src/database/journal/journal.ts';
import { newUuid } from '../../src/id.ts';
import { type Problem, problems } from '../../src/problem.ts';
import { OPERATOR_TOKEN } from '../support/http-deps.ts';
import { noCarrier } from '../support/no-carrier.ts';
import type { DescribedOperation, OpenApiDocument } from '../support/openapi-check.ts';
import { openPlatform, type Platform } from './platform.ts';

const READ_TOKEN = 'reading-token-of-the-tests';
const UUID = '3f2b8c1e-5a4d-4c6b-9e8f-1a2b3c4d5e6f';
const OK = { status: 202, body: {} };

/** What the wrapped parts do: answer, answer this, throw that, or not answer until `release`. */
const below: { answer: unknown; error: Error | undefined; isHeld: boolean; release: () => void } = {
  answer: undefined,
  error: undefined,
  isHeld: false,
  release() {},
};

/** The answer of a part that finds nothing. */
const NOTHING = Symbol('nothing');

/** Admission's own use of the database goes on whatever is injected. */
const ADMISSION = new Set(['keyHashes', 'onChange', 'begin', 'mark', 'keep', 'release', 'finish']);

/** Wraps a part, so that its methods do what `below` says. */
function wrapped<T extends object>(part: T): T {
  return new Proxy(part, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver);
      if (typeof value !== 'function' || ADMISSION.has(String(name))) return value;
      return (...given: unknown[]) => {
        if (below.error !== undefined) throw below.error;
        if (below.isHeld)
          return new Promise((resolve) => {
            const before = below.release;
            below.release = () => {
              before();
              resolve(OK);
            };
          });
        if (below.answer === NOTHING) return undefined;
        return below.answer === undefined ? Reflect.apply(value, target, given) : below.answer;
      };
    },
  });
}

const MESSAGE = {
  messageUuid: UUID,
  from: '',
  to: '',
  text: '',
  status: 'sent',
  segments: 1,
  encoding: 'gsm7',
  errorCode: '',
  errorMessage: '',
  createdAt: 0,
  updatedAt: 0,
};

let platform: Platform;
let app: AppSecrets;
let document: OpenApiDocument;
beforeAll(async () => {
  let address = 0;
  platform = await openPlatform((store) => {
    const parts = [
      'apps',
      'credentials',
      'numbers',
      'callerIds',
      'terminals',
      'trunks',
      'devices',
      'events',
      'tail',
      'calls',
      'messages',
      'webrtcTokens',
      'consoleCookies',
    ] as const;
    const wrappedStore = { ...store };
    for (const part of parts) Object.assign(wrappedStore, { [part]: wrapped(store[part]) });
    const answering = (methods: Readonly<Record<string, (...given: never[]) => unknown>>) => wrapped(methods);
    /** Stores the answer in the commit of the effect, as an actor does. */
    const admitted = async (_uuid: string, _command: unknown, { appUuid, idempotencyKey: key }: CommandContext) => {
      if (key !== undefined) await store.journal.commit({ events: [], answer: { appUuid, key, ...OK } });
      return OK;
    };
    const played = {
      sessions: answering({
        owns: async () => true,
        command: admitted,
        dial: async () => OK,
        connectWebsocket: async () => OK,
        get: async () => ({}),
        list: async () => [],
        isHere: () => true,
        ingest: () => undefined,
      }),
      rooms: answering({
        get: () => ({}),
        list: () => [],
        members: () => [{ uuid: UUID, muted: false }],
        live: () => [],
        create: async () => OK,
        order: async () => OK,
        join: async () => OK,
        leave: async () => OK,
        isHere: () => true,
        knows: async () => true,
        opening: () => undefined,
        bring: async () => undefined,
      }),
      recordings: answering({
        kept: async () => [],
        use: () => undefined,
        terms: () => ({}),
        isLive: () => true,
        list: async () => [{ recording_uuid: `rec_${UUID}` }],
        find: async () => ({ state: 'ended' }),
        remove: async () => 'removed',
      }),
      messages: answering({ send: async () => OK, get: async () => MESSAGE, list: async () => [] }),
      charges: Object.assign(answering({ charge: async () => OK }), { provider: 'sandbox' }),
      nodes: answering({ list: async () => [], drain: async () => true, undrain: async () => true }),
    };
    return Object.assign(played as object, {
      store: wrappedStore,
      carrier: wrapped({ ...noCarrier }),
      operatorReadToken: READ_TOKEN,
      // A new far end for each request, unless it asks to be one that is known.
      peer: (request: Request) => ({ address: request.headers.get('x-far-end') ?? `192.0.2.${address++}`, port: 1 }),
    });
  });
  platform.now = () => Date.now() + ahead;
  app = await platform.testStore.store.apps.create({ name: 'statuses' });
  document = (await platform.raw('/openapi.json')).body;
});
afterAll(() => platform.close());

interface Driven {
  readonly method: string;
  readonly path: string;
  readonly described: DescribedOperation;
  readonly isOperator: boolean;
}

/** Sends a request that works, but for what is given. */
async function send(
  { method, path, described, isOperator }: Driven,
  more: { headers?: Record<string, string>; body?: string } = {},
) {
  const example = described.requestBody?.content['application/json']?.example;
  const body = more.body ?? (described.requestBody === undefined ? undefined : JSON.stringify(example ?? {}));
  const token = isOperator ? OPERATOR_TOKEN : `${app.appUuid}:${app.apiKey}`;
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...more.headers,
  };
  return platform.raw(path, { method, headers, ...(body === undefined ? {} : { body }) });
}

async function answering<T>(answer: unknown, work: () => Promise<T>): Promise<T> {
  below.answer = answer;
  try {
    return await work();
  } finally {
    below.answer = undefined;
  }
}

async function failing<T>(error: Error, work: () => Promise<T>): Promise<T> {
  below.error = error;
  try {
    return await work();
  } finally {
    below.error = undefined;
  }
}

/** The problems that a part below the HTTP floor decides, where the answer is a value of its own. */
const DECIDED: Readonly<Record<string, unknown>> = {
  'createApiKey 409': 'too_many',
  'rotateWebhookSecret 409': 'too_many',
  'createWebrtcToken 403': false,
  'createWebrtcToken 409': 'too_many',
  'createWebrtcTokenForApplication 409': 'too_many',
  'setTrunk 409': false,
  'setDevice 409': 'taken',
  'setDevice 404': 'no_app',
  'replayEvent 409': 'pending',
  'eraseCall 409': 'live',
  'removeRecording 409': 'active',
  'playForApplication 409': problems.conflict('Not now'),
  'eraseCall 404': 'unknown',
  'sendIngest 409': { used: true, expiresAt: Number.POSITIVE_INFINITY, ingest: { accept: () => false } },
  'sendIngest 403': { used: false, expiresAt: 0 },
  'createApiKey 404': 'no_app',
  'rotateWebhookSecret 404': 'no_app',
  'replayEvent 404': 'unknown',
};

/** What lets an operation be admitted that finds nothing otherwise, and so would give its rate token back. */
const TOKEN = { tokenId: UUID, token: '', expiresAt: 0 };
const INGEST = {
  used: false,
  expiresAt: Number.POSITIVE_INFINITY,
  operationUuid: UUID,
  ingest: { accept: () => true, write: async () => true, end() {}, fail() {}, over: new Promise(() => {}) },
};
const ADMITTED: Readonly<Record<string, unknown>> = { createWebrtcToken: TOKEN, revokeWebrtcToken: TOKEN, sendIngest: INGEST };

const PROBLEM: Readonly<Record<number, Problem>> = {
  403: problems.forbidden('Not permitted'),
  409: problems.conflict('Not now'),
  413: problems.tooManyResults(),
  502: problems.source({ reason: 'unreachable', retryable: true }),
  529: problems.noCapacity(2),
};

/** Brings an operation to answer with that status. Returns the status that came. */
async function drive(driven: Driven, status: number): Promise<number> {
  const name = `${driven.described.operationId} ${status}`;
  const key = `key-${newUuid()}`;
  if (name in DECIDED) return (await answering(DECIDED[name], () => send(driven))).status;
  switch (status) {
    case 400:
      return (await send(driven, { headers: { authorization: 'Basic eDp5' } })).status;
    case 401:
      return (
        await send(driven, { headers: { authorization: `Bearer ${driven.isOperator ? 'wrong-token' : `${app.appUuid}:wrong`}` } })
      ).status;
    case 404:
      return (await missing(driven)).status;
    case 405:
      return (await platform.raw(driven.path, { method: 'OPTIONS' })).status;
    case 413: {
      const tooLong = await send(driven, { headers: { 'content-length': String(2 ** 40) } });
      return tooLong.status;
    }
    case 415:
      if (driven.described.operationId === 'sendIngest')
        return (await send(driven, { headers: { 'content-encoding': 'gzip' }, body: 'x' })).status;
      return (await send(driven, { headers: { 'content-type': 'text/plain' }, body: 'x' })).status;
    case 422: {
      // The key was used for another command.
      const headers = { 'idempotency-key': key };
      await platform.call(app, 'POST', `/v1/sessions/${newUuid()}/hold`, {}, headers);
      return (await send(driven, { headers })).status;
    }
    case 409:
      return await whileHeld(driven, key);
    case 429:
      return await answering(ADMITTED[driven.described.operationId], () => exhausted(driven));
    case 500:
      return (await failing(new Error('a bug'), () => send(driven, keyed(driven, key)))).status;
    case 503:
      return (await failing(new StoreUnavailable('away'), () => send(driven, keyed(driven, key)))).status;
    case 403:
      if (driven.described.operationId === 'followEvents') {
        const signed = { ...driven, path: `${driven.path}?signed=true` };
        return (await send(signed, { headers: { authorization: `Bearer ${READ_TOKEN}` } })).status;
      }
      if (driven.isOperator) return (await send(driven, { headers: { authorization: `Bearer ${READ_TOKEN}` } })).status;
  }
  return (await answering(PROBLEM[status], () => send(driven, keyed(driven, key)))).status;
}

/** A charge has to carry a key. */
const keyed = ({ described }: Driven, key: string) =>
  described.operationId === 'charge' ? { headers: { 'idempotency-key': key } } : {};

/** A second request with the key of one that is still being carried out. */
async function whileHeld(driven: Driven, key: string): Promise<number> {
  const headers = { 'idempotency-key': key };
  below.isHeld = true;
  const first = send(driven, { headers });
  let status = 0;
  // The first one needs a few turns until its mark is in the database.
  for (let tries = 0; tries < 20 && status !== 409; tries++) {
    const second = send(driven, { headers });
    status = await Promise.race([
      second.then((reply) => reply.status),
      new Promise<number>((resolve) => setTimeout(resolve, 50, 0)),
    ]);
  }
  below.isHeld = false;
  below.release();
  below.release = () => {};
  await first;
  return status;
}

async function exhausted(driven: Driven): Promise<number> {
  for (let n = 0; n < 400; n++) {
    const headers = driven.isOperator
      ? { authorization: 'Bearer wrong-token', 'x-far-end': `far end of ${driven.described.operationId}` }
      : keyed(driven, newUuid()).headers;
    const { status } = await send(driven, headers === undefined ? {} : { headers });
    if (status === 429) return status;
  }
  return 0;
}

/** A path whose resource is not there: the parts say so, or the identifier is none. */
async function missing(driven: Driven) {
  const plain = await send(driven, keyed(driven, newUuid()));
  if (plain.status === 404) return plain;
  for (const nothing of [NOTHING, false]) {
    const absent = await answering(nothing, () => send(driven));
    if (absent.status === 404) return absent;
  }
  const path = driven.path.replaceAll(UUID, 'nothing').replace(/app_nothing/, `app_${newUuid()}`);
  const unknown = await send({ ...driven, path });
  if (unknown.status === 404) return unknown;
  return answering(problems.notFound('Resource'), () => send(driven, keyed(driven, newUuid())));
}

/** It asks nothing below the HTTP floor that could fail. */
const BEYOND = new Set(['createConsoleLogin 500']);

let ahead = 0;

const VALUES: Readonly<Record<string, string>> = {
  app_uuid: `app_${UUID}`,
  webhook_id: `evt_${UUID}`,
  recording_uuid: `rec_${UUID}`,
  e164: '+15550177',
  terminal_number: '0010000',
  name: 'acme',
  username: 'alice',
};

test('every operation answers with every problem that it documents, and with no other', async () => {
  const wrong: string[] = [];
  let driven = 0;
  for (const [template, operations] of Object.entries(document.paths)) {
    // Recordings and WHIP have doors of their own, which are driven in recording-media.test.ts and whip.test.ts.
    if (template.startsWith('/v1/media/') || template.startsWith('/v1/whip')) continue;
    for (const [method, described] of Object.entries(operations)) {
      const path = template.replaceAll(/\{([a-z0-9_]+)\}/g, (_, name: string) => VALUES[name] ?? UUID);
      const one = { method: method.toUpperCase(), path, described, isOperator: path.startsWith('/operator') };
      const statuses = Object.keys(described.responses).map(Number);
      for (const status of statuses.filter((each) => each >= 400 && !BEYOND.has(`${described.operationId} ${each}`))) {
        driven += 1;
        // Every bucket is full again.
        ahead += 3_600_000;
        const came = await drive(one, status).catch((error: unknown) => String(error));
        if (came !== status) wrong.push(`${described.operationId} ${status}: ${came}`);
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(driven).toBeGreaterThan(600);
}, 120_000);

/** Every operation whose `operationId` passes, ready to be sent. */
const operationsOf = (isAsked: (described: DescribedOperation) => boolean): Driven[] =>
  Object.entries(document.paths).flatMap(([template, operations]) =>
    Object.entries(operations)
      .filter(([, described]) => isAsked(described))
      .map(([method, described]) => {
        const path = template.replaceAll(/\{([a-z0-9_]+)\}/g, (_, name: string) => VALUES[name] ?? UUID);
        return { method: method.toUpperCase(), path, described, isOperator: path.startsWith('/operator') };
      }),
  );

test('whatever begins a Session answers with 529 where there is no room for one, and documents it', async () => {
  ahead += 3_600_000;
  const begins = operationsOf(({ operationId }) => ['dial', 'connectWebsocket', 'dialForApplication'].includes(operationId));
  expect(begins.length).toBe(3);
  for (const driven of begins) {
    const { status, headers } = await answering(problems.noCapacity(2), () => send(driven));
    expect([driven.described.operationId, status, headers.get('retry-after')]).toEqual([driven.described.operationId, 529, '2']);
  }
  expect(document.components.responses.Problem529).toMatchObject({ description: expect.not.stringContaining('Every channel') });
});

interface DocumentedParameters {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: { readonly parameters: Readonly<Record<string, { readonly name: string; readonly required: boolean }>> };
}
interface DocumentedOperation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly $ref?: string }[];
}

test('an operation that is refused without an Idempotency-Key documents it as required, and no other does', async () => {
  const { paths, components }: DocumentedParameters = JSON.parse((await platform.raw('/openapi.json')).text);
  const isRequired = new Map<string, boolean>();
  for (const { operationId, parameters = [] } of Object.values(paths).flatMap((operations) => Object.values(operations)))
    for (const { $ref } of parameters) {
      const parameter = components.parameters[$ref?.split('/').at(-1) ?? ''];
      if (parameter?.name === 'Idempotency-Key') isRequired.set(operationId, parameter.required);
    }
  const commands = operationsOf(({ operationId }) => isRequired.has(operationId));
  expect(commands.length).toBeGreaterThan(30);
  const refused = [];
  for (const driven of commands) {
    ahead += 3_600_000;
    const { text } = await answering(OK, () => send(driven));
    if (text.includes('Idempotency-Key: is required')) refused.push(driven.described.operationId);
  }
  expect(refused).toEqual(['charge']);
  expect([...isRequired].flatMap(([operationId, required]) => (required ? [operationId] : []))).toEqual(refused);
});
