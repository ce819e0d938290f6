/** The HTTP door. Admission has its order in `admission/admission.ts`; below are the routes. */

import { Hono } from 'hono';
import { nextTurn } from '../bounds/in-turns.ts';
import { remembered } from '../bounds/remembered.ts';
import { TurnBudget } from '../bounds/turn-budget.ts';
import type { Charges } from '../call/ports/charges.ts';
import type { Messages } from '../call/ports/messages.ts';
import { PEER_STREAM_PATH, type PeerStreams } from '../call/ports/peer-streams.ts';
import type { Peers } from '../call/ports/peers.ts';
import type { Recordings } from '../call/ports/recordings.ts';
import type { Rooms } from '../call/ports/rooms.ts';
import type { Sessions } from '../call/ports/sessions.ts';
import type { BrowserCalls } from '../call/ports/webrtc.ts';
import { TokenBuckets } from '../call/rate/token-buckets.ts';
import type { Clock } from '../clock.ts';
import type { Store } from '../database/store.ts';
import { HTTP_TURN_REQUESTS, URLS_REMEMBERED_MAX } from '../limits.ts';
import type { Log } from '../log.ts';
import { isProblem, type Problem, problems } from '../problem.ts';
import type { RecordingUrls } from '../recording-storage/signed-url.ts';
import type { AnsweredCommand } from '../tracing/spans.ts';
import { newTraceparent } from '../tracing/tracing.ts';
import { admission, performing } from './admission/admission.ts';
import { addCommand } from './admission/command-entry.ts';
import { forwarded, type Perform } from './admission/forwarded.ts';
import { TraceLinks } from './admission/trace.ts';
import { CONSOLE_PATHS, ConsoleDoor } from './console/console-door.ts';
import { ConsoleSessions } from './console/console-sessions.ts';
import { loginRoutes } from './console/logins.ts';
import { failureResponse } from './failure.ts';
import type { Finding } from './mcp/reading.ts';
import { mcpRoute } from './mcp/route.ts';
import type { HttpMetrics } from './metrics.ts';
import { openapiDocument } from './openapi/document.ts';
import { callRoutesOptions } from './operator/calls.ts';
import { sampleEventRoutes } from './operator/events.ts';
import type { OperatorHooks } from './operator/hooks.ts';
import { operatorRoutes } from './operator/operator.ts';
import { type HttpPeer, PipelineLimit } from './pipelining.ts';
import { contextOf, type RequestContext, type Route } from './request-context.ts';
import { answerResponse, problemResponse, withoutLength } from './response.ts';
import { applicationRoutes } from './route/application.ts';
import { dtmfRoutes } from './route/dtmf.ts';
import { ingestRoutes, ingestWork } from './route/ingest.ts';
import { messageRoutes } from './route/messages.ts';
import { paymentRoutes } from './route/payments.ts';
import { playbackRoutes } from './route/playback.ts';
import { publicRoutes } from './route/public.ts';
import { MEDIA_PATH, RecordingMediaDoor, wasSigned } from './route/recording-media.ts';
import { recordingRoutes } from './route/recordings.ts';
import { roomRoutes } from './route/rooms.ts';
import { sessionRoutes } from './route/sessions.ts';
import { webrtcTokenRoutes } from './route/webrtc-tokens.ts';
import { webSocketRoutes } from './route/websocket.ts';
import { WHIP_PATH, WhipDoor } from './route/whip.ts';

export interface HttpDeps extends OperatorHooks {
  readonly sessions: Sessions;
  readonly rooms: Rooms;
  readonly messages: Messages;
  readonly charges: Charges;
  readonly recordings: Recordings;
  /** The recordings, or undefined when nothing is recorded. */
  readonly recordingUrls?: RecordingUrls | undefined;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: HttpMetrics;
  readonly operatorToken: string;
  /** A second token of the operator, for reading only. */
  readonly operatorReadToken?: string | undefined;
  readonly publicUrl: string;
  /** Lifts the server's idle timeout of a request. */
  readonly disableIdleTimeout?: (request: Request) => void;
  /** Sets the server's idle timeout of a request, in seconds. */
  readonly setIdleTimeout?: (request: Request, seconds: number) => void;
  /** A growing recording has a first reader, or none any more. */
  readonly followed?: (path: string, followed: boolean) => void;
  /** The far end of a request's connection. */
  readonly peer?: (request: Request) => HttpPeer | undefined;
  /** The path of a recording's URL as it was sent, from a server that tidies URLs. */
  readonly sentPath?: (request: Request) => string | undefined;
  /** Tells what is up, by name: `{database, media, sip}`. */
  readonly ready: () => Promise<Readonly<Record<string, boolean>>>;
  /** The app calls it with each command when that is answered. It is undefined when nothing is traced. */
  readonly onCommand?: ((command: AnsweredCommand) => void) | undefined;
  /** The other nodes of a cluster; undefined where there are none. */
  readonly peers?: Peers | undefined;
  /** Bodies that go on to and come from other nodes; undefined where there are none. */
  readonly streams?: PeerStreams | undefined;
  /** The levels of the rate limits, where bots share them. */
  readonly tokens?: TokenBuckets;
  /** Examines machine, settings and platform, for the operator's assistant. Undefined where nobody can. */
  readonly doctor?: (() => Promise<readonly Finding[]>) | undefined;
  /** `MCP_WRITE`: an assistant may dial, hang up, and replay events. */
  readonly mcpMayAct?: boolean;
  /** SIGTERM was heard. */
  readonly draining: () => boolean;
  /** Resolves one turn of the event loop later: by setImmediate, unless told. */
  readonly turn?: () => Promise<void>;
  /** Calls from browsers; undefined where none are taken. */
  readonly browserCalls?: BrowserCalls | undefined;
}

export interface HttpApp {
  /** Web standards in, web standards out. Never rejects. */
  fetch(request: Request): Promise<Response>;
  /** The answer in place of one that the server could not begin to send, as of a file that is gone by then. */
  failed(error: unknown): Response;
  readonly perform: Perform;
  /** Responses with a recording that are fed by this process. */
  listeners(): number;
  /** Every route of the platform, for who examines them. */
  readonly routes: readonly Route[];
}

/** Every route of the platform. `serve` answers a request as if it had come over the network. */
const routesOf = (
  deps: HttpDeps,
  consoleSessions: ConsoleSessions,
  serve: (request: Request) => Promise<Response>,
): readonly Route[] => [
  ...sessionRoutes(deps.sessions),
  ...webSocketRoutes(deps.sessions),
  ...playbackRoutes(deps.sessions),
  ...ingestRoutes(deps.sessions, deps.clock, deps, deps.streams),
  ...dtmfRoutes(deps.sessions),
  ...paymentRoutes(deps.sessions, deps.charges),
  ...messageRoutes(deps.messages),
  ...roomRoutes(deps.rooms, deps.sessions),
  ...recordingRoutes(deps.sessions, deps.rooms, deps.recordings),
  ...applicationRoutes(deps.store.apps, deps.recordings),
  ...webrtcTokenRoutes(deps.store, deps.publicUrl),
  ...operatorRoutes(deps.store, deps.clock, deps),
  ...sampleEventRoutes(deps.store, deps.clock, deps.recordingUrls?.sign),
  ...loginRoutes(consoleSessions, deps.publicUrl),
  mcpRoute({
    store: deps.store,
    clock: deps.clock,
    calls: callRoutesOptions(deps.store, deps.clock, deps),
    doctor: deps.doctor,
    mayAct: deps.mcpMayAct === true,
    publicUrl: deps.publicUrl,
    log: deps.log,
    serve,
  }),
];

/** Puts the platform's routes, pages and doors together, behind admission. */
export function createHttpApp(deps: HttpDeps): HttpApp {
  const { store, clock, operatorToken, operatorReadToken, turn = nextTurn } = deps;
  const now = () => clock.now();
  const consoleSessions = new ConsoleSessions({ operatorToken, operatorReadToken, cookies: store.consoleCookies, now });
  const app = new Hono();
  const routes = routesOf(deps, consoleSessions, async (request) => app.fetch(request));

  const options = {
    clock,
    log: deps.log,
    apps: store.apps,
    credentials: store.credentials,
    idempotency: store.idempotency,
    operatorToken,
    operatorReadToken,
    console: consoleSessions,
    tokens: deps.tokens ?? new TokenBuckets(),
    draining: deps.draining,
    turn,
    peer: deps.peer,
    peers: deps.peers,
    now,
  };
  const admit = admission(options);
  const links = new TraceLinks(deps.log, clock);
  for (const route of routes)
    app.on(route.method, route.path, ({ req }) => admitted(deps, admit, links, contextOf(req.raw, route, req.param())));
  const pages = addPages(app, deps, routes);
  const media = addDoors(app, deps, consoleSessions, options.tokens);

  const others = otherMethods(pages, routes);
  app.notFound(({ req }) => others.fetch(req.raw));
  // Most doors answer for their own bugs. This is for the console, for pages, and for what is read without a key.
  app.onError((error, { req }) => failureResponse(error, req.path, deps.log, newTraceparent()));

  const pipeline = new PipelineLimit((done) => void turn().then(done));
  const hostFault = hostCheck();
  const turns = new TurnBudget(HTTP_TURN_REQUESTS, (then) => void turn().then(then));
  const fetch = async (request: Request): Promise<Response> => {
    // The applications have their turns by the keys that they claim to have.
    const begins = turns.take(request.headers.get('authorization') ?? '', () => request.signal.aborted);
    if (begins !== undefined) await begins;
    const isGone = begins !== undefined && request.signal.aborted;
    const wrong = isGone ? problems.invalid('connection: was closed before the request had its turn') : hostFault(request);
    const response = wrong === undefined ? await app.fetch(request) : problemResponse(wrong, newTraceparent());
    withoutLength(request, response);
    links.link(request, response);
    if (pipeline.isSpent(() => deps.peer?.(request)) || asksToClose(request)) response.headers.set('connection', 'close');
    return response;
  };
  const perform = forwarded(deps, routes, performing(options));
  const failed = (error: unknown) => failureResponse(error, 'an answer', deps.log, newTraceparent());
  return { fetch, failed, perform, listeners: () => media.listeners, routes };
}

/**
 * Whether the client has asked that its connection be closed after the answer (RFC 9112 §9.6). The runtime closes it
 * without a word, and a proxy that keeps connections sends its next request on one that is gone.
 */
const asksToClose = ({ headers }: Request): boolean => /(^|,)\s*close\s*(,|$)/i.test(headers.get('connection') ?? '');

/**
 * Tells what is wrong with the Host of a request (RFC 9112 §3.2). The runtime takes two fields as one, and any octets
 * for a host, with which the URL of the request is none.
 */
function hostCheck(): (request: Request) => Problem | undefined {
  const isOrigin = remembered((text) => URL.canParse(text), URLS_REMEMBERED_MAX);
  /** An origin that was right, with the slash after it: nearly all requests have one and the same. */
  let usual = '';
  return ({ url, headers }) => {
    if (headers.get('host')?.includes(',') === true) return problems.invalid('Host: must be given once');
    if (usual !== '' && url.startsWith(usual)) return undefined;
    const path = url.indexOf('/', url.indexOf('//') + 2);
    if (!isOrigin(path < 0 ? url : url.slice(0, path))) return problems.invalid('Host: must be a host, with or without a port');
    if (path >= 0) usual = url.slice(0, path + 1);
    return undefined;
  };
}

/** Takes a request of a route through admission, and tells metrics, timeline and tracing how it was answered. */
async function admitted(
  { clock, metrics, history, onCommand }: HttpDeps,
  admit: ReturnType<typeof admission>,
  links: TraceLinks,
  context: RequestContext,
): Promise<Response> {
  const started = clock.now();
  const { route } = context;
  const response = await admit(context);
  if (context.appUuid !== '' || context.isOperator) links.know(context.request);
  const tookMs = clock.now() - started;
  metrics.request(route.method, route.path, response.status, tookMs / 1000);
  if (route.method !== 'GET' && context.isForwarded !== true) addCommand(history, context, response.status, tookMs);
  if (route.method !== 'GET') onCommand?.(answered(context, response.status, started, clock.now()));
  return response;
}

/** Adds what is read without a key: documentation, metrics, health. Returns the paths. */
function addPages(app: Hono, deps: HttpDeps, routes: readonly Route[]): Iterable<string> {
  const openapi = () =>
    openapiDocument(
      routes.filter(({ isUndocumented }) => isUndocumented !== true),
      deps.publicUrl,
      deps.recordingUrls !== undefined,
    );
  const pages = publicRoutes({ metrics: deps.metrics, ready: deps.ready, openapi });
  for (const [path, handler] of pages) app.get(path, handler);
  return pages.keys();
}

/**
 * Adds the doors that admission does not guard: the console, calls from browsers (WHIP), signed URLs of recordings, and
 * the bodies that go to other nodes. Returns the door to recordings.
 */
function addDoors(app: Hono, deps: HttpDeps, consoleSessions: ConsoleSessions, tokens: TokenBuckets): RecordingMediaDoor {
  const console = new ConsoleDoor({
    sessions: consoleSessions,
    isSecure: deps.publicUrl.startsWith('https:'),
    peer: deps.peer,
    now: () => deps.clock.now(),
  });
  for (const path of CONSOLE_PATHS) app.all(path, ({ req }) => console.answer(req.raw));
  const whip = new WhipDoor(deps, tokens);
  app.all(WHIP_PATH, ({ req }) => whip.answer(req.raw));
  app.all(`${WHIP_PATH}/:session_uuid`, ({ req }) => whip.answer(req.raw, req.param('session_uuid')));
  const media = new RecordingMediaDoor(deps);
  app.all(MEDIA_PATH, ({ req }) => media.answer(req.raw));
  if (deps.streams !== undefined) app.all(PEER_STREAM_PATH, peerStreams(deps, deps.streams, media));
  return media;
}

/**
 * Answers what no route takes: 405 for a known path, and what it does take, else 404. It is an app of its own, because
 * Hono finds its routes by one regular expression only while no path has a second handler for every method.
 */
function otherMethods(open: Iterable<string>, routes: readonly Route[]): Hono {
  const app = new Hono();
  const methods = new Map<string, Set<string>>([...open].map((path) => [path, new Set(['GET', 'HEAD'])]));
  for (const { method, path } of routes) {
    const known = methods.get(path) ?? new Set();
    methods.set(path, known.add(method));
    if (method === 'GET') known.add('HEAD');
  }
  for (const [path, known] of methods) {
    const allow = [...known].sort().join(', ');
    app.all(path, () => problemResponse(problems.methodNotAllowed(allow), newTraceparent()));
  }
  app.notFound(({ req }) =>
    isReader(req.raw)
      ? leadToDocs()
      : problemResponse(wasSigned(req.raw.url) ? problems.forbidden('Forbidden') : problems.noRoute(), newTraceparent()),
  );
  return app;
}

/** Whether a person has opened the platform's address in a browser. Programs do not ask for HTML. */
const isReader = ({ method, url, headers }: Request): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  new URL(url).pathname === '/' &&
  /(^|,)\s*text\/html\s*(;|,|$)/i.test(headers.get('accept') ?? '');

const leadToDocs = (): Response =>
  new Response(null, { status: 302, headers: { location: '/docs', vary: 'accept', traceparent: newTraceparent() } });

/** The door to streaming bodies for other nodes: a token of ours opens one object, once. */
const peerStreams =
  (deps: HttpDeps, streams: PeerStreams, media: RecordingMediaDoor) =>
  async ({ req: { raw: request } }: { readonly req: { readonly raw: Request } }): Promise<Response> => {
    const object = streams.redeem(request);
    const traceparent = newTraceparent();
    if (object === undefined) return problemResponse(problems.noRoute(), traceparent);
    if (object.kind === 'media') return await media.answerPeer(request, object.recordingUuid, object.as);
    const { appUuid, ingestUuid: name } = object;
    const work = ingestWork(deps.sessions, deps.clock, deps, { appUuid, name, request }) ?? problems.notFound('Ingest');
    const outcome = isProblem(work) ? work : await work();
    return isProblem(outcome) ? problemResponse(outcome, traceparent) : answerResponse(outcome, traceparent);
  };

const answered = (context: RequestContext, status: number, startedAt: number, endedAt: number): AnsweredCommand => ({
  method: context.route.method,
  route: context.route.path,
  traceparent: context.traceparent,
  link: context.request.headers.get('traceparent') ?? '',
  status,
  startedAt,
  endedAt,
  operationUuid: context.operationUuid,
  sessionUuid: context.sessionUuid ?? context.params.uuid ?? '',
});
