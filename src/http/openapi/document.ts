/** OpenAPI 3.1, from the same routes and shapes that are served. */
import { UUID_V4 } from '../../id.ts';
import { BODY_MAX_BYTES } from '../../limits.ts';
import { IDEMPOTENCY_KEY } from '../admission/idempotency.ts';
import type { Route } from '../request-context.ts';
import { ANSWER_EXAMPLES, PROBLEM_EXAMPLES } from './answers.ts';
import { OPERATIONS, type Operation } from './operations.ts';
import { ref, type Schema } from './schema.ts';
import { SCHEMAS } from './schemas.ts';
import { WEBHOOK_PARAMETERS, webhooks } from './webhooks.ts';
import { whipPaths } from './whip.ts';

/** What each status says. */
const PROBLEMS: Readonly<Record<number, string>> = {
  400: 'The request is malformed, or a value is not of the documented shape.',
  401: 'The key or token is missing or wrong.',
  403: 'The credentials do not permit this.',
  404: 'There is no such resource, or it is another application’s.',
  405: 'The path takes other methods; `Allow` names them.',
  409: 'The state does not permit this now, or (with `Retry-After`) a request with the same Idempotency-Key is still processing.',
  413: 'The body is too large, or too many results match.',
  415: 'The body is not `application/json`, or is compressed.',
  422: 'The Idempotency-Key was used with another request, or the shape of a dial is wrong.',
  429: 'Too many requests; `Retry-After` says when to come back.',
  500: 'A bug; the log has it under `support_id`.',
  502: 'An audio source could not be opened; `detail` says why.',
  503: 'Temporarily unavailable when it has `Retry-After`, else not configured.',
  529: 'There is no room for another Session: the trunks, the application or the node have as many as they may; `Retry-After` says when to come back.',
};

/** What the parts of the reference are about. */
const TAGS: Readonly<Record<string, string>> = {
  Sessions: 'Calls and connections to bots: placed, answered, held, transferred, ended.',
  Playback: 'Files, streams and pushed audio, played to a Session.',
  DTMF: 'Digits, collected from the far end or sent to it.',
  Payments: 'Cards, keyed in out of everybody’s sight, and charged.',
  Messages: 'Short messages (SMS).',
  Rooms: 'Sessions that hear each other.',
  Recordings: 'What was said, kept as WAV.',
  Browsers: 'Calls from browsers by WebRTC.',
  Application: 'The settings of the application that asks.',
  Webhooks: 'What the platform posts to the application.',
  'Operator: applications': 'Applications, their keys and secrets.',
  'Operator: numbers': 'Which number, caller ID and terminal belongs to whom.',
  'Operator: trunks': 'Carriers, their state, and what was refused.',
  'Operator: events': 'The event log, followed and replayed.',
  'Operator: calls': 'Calls, live and ended, and what happened in them.',
  'Operator: nodes': 'The nodes of a cluster.',
  'Operator: console': 'Logins to the console.',
};

const header = (name: string) => ({ $ref: `#/components/headers/${name}` });
const HEADERS: Readonly<Record<string, object>> = {
  traceparent: { description: 'The trace of the request (W3C Trace Context).', schema: { type: 'string' } },
  'Retry-After': { description: 'Whole seconds.', schema: { type: 'integer', minimum: 1 } },
  Allow: { description: 'The methods that the path takes.', schema: { type: 'string' } },
  'Idempotent-Replayed': {
    description: '`true` when this is the answer to an earlier request with the key.',
    schema: { enum: ['true'] },
  },
  'WWW-Authenticate': { schema: { type: 'string' } },
  ETag: { description: 'Changes with the content.', schema: { type: 'string' } },
  'Accept-Ranges': { description: '`bytes`; `none` while it is recorded.', schema: { enum: ['bytes', 'none'] } },
  'Content-Range': { description: 'RFC 9110 §14.4.', schema: { type: 'string' } },
  'Content-Disposition': { description: 'The name of the file.', schema: { type: 'string' } },
};
const headers = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, header(name)]));

const KEY_FIELD = {
  name: 'Idempotency-Key',
  in: 'header',
  description: 'A request with the same key and body is carried out once, within 24 hours.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: IDEMPOTENCY_KEY.source },
} as const;
const PARAMETERS = {
  IdempotencyKey: { ...KEY_FIELD, required: false },
  RequiredIdempotencyKey: { ...KEY_FIELD, required: true },
  OperationId: {
    name: 'Operation-Id',
    in: 'header',
    required: false,
    description: 'The `operation_uuid` that the answer and the events name.',
    schema: { type: 'string', pattern: UUID_V4.source },
  },
} as const;

/** The header fields of a command, by their names in `PARAMETERS`. */
const commandParameters = ({ isKeyRequired = false }: Operation): readonly (keyof typeof PARAMETERS)[] => [
  isKeyRequired ? 'RequiredIdempotencyKey' : 'IdempotencyKey',
  'OperationId',
];

/** The header fields of a delivery: each is always there. */
const deliveryParameters = () =>
  Object.fromEntries(
    Object.entries(WEBHOOK_PARAMETERS).map(([name, field]) => [name, { ...field, in: 'header', required: true }]),
  );

/** The document of all routes and events. `media`: and of recordings under their signed URLs. */
export function openapiDocument(routes: readonly Route[], publicUrl: string, media: boolean): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/\/:([a-z0-9_]+)/g, '/{$1}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route) };
  }
  Object.assign(paths, whipPaths('/v1/whip'));
  if (media)
    for (const kind of ['pull', 'live'] as const) {
      const [get, head] = [mediaOperation(kind, 'GET'), mediaOperation(kind, 'HEAD')];
      paths[`/v1/media/{recording_uuid}/${kind}`] = { get, head };
    }
  const posted = webhooks();
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sidetone',
      version: '1',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description: 'A programmable voice platform. Commands answer 202; what comes of them arrives as signed, ordered webhooks.',
    },
    servers: [{ url: publicUrl }],
    tags: [...new Set([...routes.map(({ tag }) => tag), 'Webhooks'])].map((name) => ({ name, description: TAGS[name] ?? name })),
    paths,
    webhooks: posted,
    components: {
      securitySchemes: {
        application: { type: 'http', scheme: 'bearer', description: '`<app_uuid>:<api_key>`' },
        operator: { type: 'http', scheme: 'bearer', description: 'The operator token.' },
        browser: { type: 'http', scheme: 'bearer', description: 'A token of `POST /v1/webrtc-tokens`.' },
      },
      parameters: { ...PARAMETERS, ...deliveryParameters() },
      headers: HEADERS,
      responses: Object.fromEntries(Object.keys(PROBLEMS).map((status) => [`Problem${status}`, problemOf(Number(status))])),
      schemas: schemasOf({ paths, posted }, { ...SCHEMAS, ...requestSchemas(routes) }),
    },
  };
}

/** The schemas that the operations and webhooks refer to, directly or through another one. */
function schemasOf(operations: object, known: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> {
  const used = new Map<string, Schema>();
  const collect = (value: object): void => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      const schema = known[name];
      if (schema === undefined || used.has(name)) continue;
      used.set(name, schema);
      collect(schema);
    }
  };
  collect({ operations, problem: ref('Problem') });
  return Object.fromEntries(used);
}

/** The name of the schema of an operation's body: `DialRequest`. */
const requestName = (operationId: string): string => `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Request`;

/** The bodies that the routes take, by the names of their schemas. */
const requestSchemas = (routes: readonly Route[]): Readonly<Record<string, Schema>> =>
  Object.fromEntries(
    routes.flatMap((route) =>
      route.shape === undefined ? [] : [[requestName(operationFacts(route).id), { ...route.shape.schema }]],
    ),
  );

/** The statuses of a problem that a route may answer with. */
function problemStatuses(route: Route): readonly number[] {
  const { more = [], less = [] } = operationFacts(route);
  const hasParameter = /\/:/.test(route.path);
  const isOperator = route.auth === 'operator';
  const all = [
    400,
    401,
    405,
    500,
    503,
    ...((route.maxBytes ?? BODY_MAX_BYTES) === Number.POSITIVE_INFINITY ? [] : [413]),
    ...(hasParameter && route.resource !== undefined ? [404] : []),
    ...(route.takesBody ? [415] : []),
    ...(route.command === true ? [409, 422] : []),
    ...(route.buckets === undefined && !isOperator ? [] : [429]),
    ...(isOperator && route.method !== 'GET' ? [403] : []),
    ...more,
  ];
  return [...new Set(all)].filter((status) => !less.includes(status)).sort((a, b) => a - b);
}

function operationFacts({ method, path }: Pick<Route, 'method' | 'path'>): Operation {
  const facts = OPERATIONS[`${method} ${path}`];
  if (facts === undefined) throw new Error(`${method} ${path} has no entry in openapi/operations.ts`);
  return facts;
}

function operationOf(route: Route): object {
  const facts = operationFacts(route);
  const [status, description] = route.success;
  const names = [...route.path.matchAll(/\/:([a-z0-9_]+)/g)].map(([, name = '']) => name);
  return {
    operationId: facts.id,
    summary: route.summary,
    tags: [route.tag],
    security: [{ [route.auth]: [] }],
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string', ...route.forms?.[name] } })),
      ...(route.command === true ? commandParameters(facts).map((name) => ({ $ref: `#/components/parameters/${name}` })) : []),
      ...(facts.headers ?? []).map((each) => ({ ...each, in: 'header', required: false })),
      ...(route.query ?? []).map((each) => ({ ...each, in: 'query', required: false })),
    ],
    ...bodyOf(route, facts),
    responses: {
      [status]: {
        description,
        headers: headers(
          'traceparent',
          ...(route.command === true ? ['Idempotent-Replayed'] : []),
          ...(facts.answerHeaders ?? []),
        ),
        ...contentOf(facts.answer),
      },
      ...Object.fromEntries(problemStatuses(route).map((each) => [each, { $ref: `#/components/responses/Problem${each}` }])),
    },
  };
}

/** A route that takes audio says so; one whose body has no fields takes none, or `{}`. */
function bodyOf(route: Route, { id, example }: Operation): { readonly requestBody?: object } {
  if (route.path.startsWith('/v1/ingest/'))
    return {
      requestBody: { required: true, content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } } },
    };
  const schema = route.shape?.schema;
  if (schema === undefined || isBare(schema)) return {};
  const content = { schema: ref(requestName(id)), ...(example === undefined ? {} : { example }) };
  return { requestBody: { required: !route.optionalBody, content: { 'application/json': content } } };
}

const contentOf = (answer: string | undefined): { readonly content?: object } => {
  if (answer === undefined) return {};
  const isMediaType = answer.includes('/');
  const schema: Schema = isMediaType ? { type: 'string' } : ref(answer);
  const example = ANSWER_EXAMPLES[answer];
  const content = { schema, ...(example === undefined ? {} : { example }) };
  return { content: { [isMediaType ? answer : 'application/json']: content } };
};

function problemOf(status: number): object {
  const hasRetry = [409, 429, 503, 529].includes(status);
  return {
    description: PROBLEMS[status],
    headers: {
      traceparent: header('traceparent'),
      ...(hasRetry ? { 'Retry-After': header('Retry-After') } : {}),
      ...(status === 405 ? { Allow: header('Allow') } : {}),
      ...(status === 401 ? { 'WWW-Authenticate': header('WWW-Authenticate') } : {}),
      // The key keeps a refusal of the shape or the policy (contract §10).
      ...(status === 403 || status === 422 ? { 'Idempotent-Replayed': header('Idempotent-Replayed') } : {}),
    },
    content: { 'application/json': { schema: ref('Problem'), example: PROBLEM_EXAMPLES[status] } },
  };
}

const MEDIA_IDS = {
  pull: { GET: 'getRecordingMedia', HEAD: 'headRecordingMedia' },
  live: { GET: 'listenToRecording', HEAD: 'headLiveRecording' },
} as const;

/** A signed URL needs no key: it is one. HEAD answers as GET does, without a body and without ranges. */
function mediaOperation(kind: 'pull' | 'live', method: 'GET' | 'HEAD'): object {
  const isGet = method === 'GET';
  const audio = isGet ? { content: { 'audio/wav': { schema: { type: 'string', format: 'binary' } } } } : {};
  const problem = (description: string, headers: Readonly<Record<string, object>> = {}) => ({
    description,
    headers: { traceparent: header('traceparent'), ...headers },
    ...(isGet ? { content: { 'application/json': { schema: ref('Problem') } } } : {}),
  });
  const parameter = (name: string, where: 'path' | 'query' | 'header', required: boolean) => ({
    name,
    in: where,
    required,
    schema: { type: 'string' },
  });
  const finite = kind === 'pull';
  const fileHeaders = headers('traceparent', 'Accept-Ranges', 'Content-Disposition', ...(finite ? ['ETag'] : []));
  const wav = { headers: fileHeaders, ...audio };
  const part = { headers: { ...fileHeaders, ...headers('Content-Range') }, ...audio };
  const fields = isGet ? ['Range', 'If-Range', 'If-Match', 'If-None-Match'] : ['If-Match', 'If-None-Match'];
  const summary = finite ? 'A recording from its beginning' : 'A recording from where it is now';
  return {
    operationId: MEDIA_IDS[kind][method],
    summary: isGet ? summary : `The header fields of: ${summary.toLowerCase()}`,
    tags: ['Recordings'],
    security: [],
    parameters: [
      parameter('recording_uuid', 'path', true),
      parameter('expires', 'query', true),
      parameter('signature', 'query', true),
      ...(finite ? fields.map((name) => parameter(name, 'header', false)) : []),
    ],
    responses: {
      200: { description: finite ? 'WAV; without an end while it is recorded' : 'WAV without an end', ...wav },
      ...(finite && isGet ? { 206: { description: 'A range of a finished recording', ...part } } : {}),
      ...(finite ? { 304: { description: 'Not modified', headers: fileHeaders } } : {}),
      403: problem('The URL was altered, or has expired'),
      404: problem(finite ? 'Recording not found' : 'Recording not found, or not live'),
      405: problem('Another method than GET and HEAD', { Allow: header('Allow') }),
      410: problem('Removed after its retention'),
      ...(finite ? { 412: problem('If-Match does not name the recording') } : {}),
      ...(finite && isGet ? { 416: problem('The range is beyond the end', headers('Content-Range')) } : {}),
      500: problem('A bug; the log has it under `support_id`'),
      503: problem('Temporarily unavailable; see Retry-After', { 'Retry-After': header('Retry-After') }),
    },
  };
}

const isBare = (schema: object): boolean => !('properties' in schema) && !('anyOf' in schema);
