/** The HTTP door. Admission has its order in `admission/admission.ts`; below are the routes. */

import { Hono } from 'hono';
import type { Charges } from '../call/ports/charges.ts';
import type { Messages } from '../call/ports/messages.ts';
import type { Recordings } from '../call/ports/recordings.ts';
import type { Rooms } from '../call/ports/rooms.ts';
import type { Sessions } from '../call/ports/sessions.ts';
import { TokenBuckets } from '../call/rate/token-buckets.ts';
import type { Clock } from '../clock.ts';
import type { Store } from '../database/store.ts';
import type { HistorySink } from '../history/call-history.ts';
import type { Log } from '../log.ts';
import { problems } from '../problem.ts';
import type { RecordingUrls } from '../recording-storage/signed-url.ts';
import { admission } from './admission/admission.ts';
import { linkTrace, newTraceparent } from './admission/trace.ts';
import type { HttpMetrics } from './metrics.ts';
import { openapiDocument } from './openapi.ts';
import type { OperatorHooks } from './operator/hooks.ts';
import { operatorRoutes } from './operator/operator.ts';
import { type HttpPeer, PipelineLimit } from './pipelining.ts';
import type { RequestContext, Route } from './request-context.ts';
import { problemResponse } from './response.ts';
import { applicationRoutes } from './route/application.ts';
import { dtmfRoutes } from './route/dtmf.ts';
import { ingestRoutes } from './route/ingest.ts';
import { messageRoutes } from './route/messages.ts';
import { paymentRoutes } from './route/payments.ts';
import { playbackRoutes } from './route/playback.ts';
import { publicRoutes } from './route/public.ts';
import { MEDIA_PATH, RecordingMediaDoor, wasSigned } from './route/recording-media.ts';
import { recordingRoutes } from './route/recordings.ts';
import { roomRoutes } from './route/rooms.ts';
import { sessionRoutes } from './route/sessions.ts';
import { webSocketRoutes } from './route/websocket.ts';

export interface HttpDeps extends OperatorHooks {
  readonly sessions: Sessions;
  readonly rooms: Rooms;
  readonly messages: Messages;
  readonly charges: Charges;
  readonly recordings: Recordings;
  /** Undefined where nothing is recorded. */
  readonly recordingUrls?: Pick<RecordingUrls, 'verify'> | undefined;
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
  /** Requests the server is busy with. */
  readonly inFlight?: () => number;
  /** The far end of a request's connection. */
  readonly peer?: (request: Request) => HttpPeer | undefined;
  /** The path of a recording's URL as it was sent, from a server that tidies URLs. */
  readonly sentPath?: (request: Request) => string | undefined;
  /** Tells what is up, by name: `{database, media, sip}`. */
  readonly ready: () => Promise<Readonly<Record<string, boolean>>>;
  /** The levels of the rate limits, where bots share them. */
  readonly tokens?: TokenBuckets;
  /** SIGTERM was heard. */
  readonly draining: () => boolean;
}

export interface HttpApp {
  /** Web standards in, web standards out. Never rejects. */
  fetch(request: Request): Promise<Response>;
  /** Responses with a recording that are fed by this process. */
  listeners(): number;
}

/** Every route of the platform. */
const routesOf = (deps: HttpDeps): readonly Route[] => [
  ...sessionRoutes(deps.sessions),
  ...webSocketRoutes(deps.sessions),
  ...playbackRoutes(deps.sessions),
  ...ingestRoutes(deps.sessions, deps.clock, deps),
  ...dtmfRoutes(deps.sessions),
  ...paymentRoutes(deps.sessions, deps.charges),
  ...messageRoutes(deps.messages),
  ...roomRoutes(deps.rooms, deps.sessions),
  ...recordingRoutes(deps.sessions, deps.rooms, deps.recordings),
  ...applicationRoutes(deps.store.apps),
  ...operatorRoutes(deps.store, deps.clock, deps),
];

export function createHttpApp(deps: HttpDeps): HttpApp {
  const { store, clock, metrics } = deps;
  const routes = routesOf(deps);
  const app = new Hono();

  const admit = admission({
    clock,
    log: deps.log,
    apps: store.apps,
    credentials: store.credentials,
    idempotency: store.idempotency,
    operatorToken: deps.operatorToken,
    operatorReadToken: deps.operatorReadToken,
    tokens: deps.tokens ?? new TokenBuckets(),
    draining: deps.draining,
    peer: deps.peer,
    now: () => clock.now(),
  });
  for (const route of routes)
    app.on(route.method, route.path, async (context) => {
      const started = clock.now();
      const asked = contextOf(context.req.raw, route, context.req.param());
      const response = await admit(asked);
      const tookMs = clock.now() - started;
      metrics.request(route.method, route.path, response.status, tookMs / 1000);
      if (route.method !== 'GET') tell(deps.history, asked, response.status, tookMs);
      return response;
    });

  const openapi = () => openapiDocument(routes, deps.publicUrl, deps.recordingUrls !== undefined);
  const open = publicRoutes({ metrics, ready: deps.ready, openapi });
  for (const [path, handler] of open) app.get(path, handler);
  const media = new RecordingMediaDoor(deps);
  app.all(MEDIA_PATH, (context) => media.answer(context.req.raw));

  // A known path with another method: 405, and what it does take.
  const methods = new Map<string, Set<string>>([...open.keys()].map((path) => [path, new Set(['GET', 'HEAD'])]));
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
    problemResponse(wasSigned(req.raw.url) ? problems.forbidden('Forbidden') : problems.noRoute(), newTraceparent()),
  );

  const pipeline = new PipelineLimit((done) => setImmediate(done));
  const fetch = async (request: Request): Promise<Response> => {
    // Two Host fields come as one (RFC 9112 §3.2 wants them refused).
    const response =
      request.headers.get('host')?.includes(',') === true
        ? problemResponse(problems.invalid('Host: must be given once'), newTraceparent())
        : await app.fetch(request);
    linkTrace(deps.log, request, response);
    if (pipeline.isSpent(() => deps.peer?.(request))) response.headers.set('connection', 'close');
    return response;
  };
  return { fetch, listeners: () => media.listeners };
}

/** Puts an application's command into the timeline of the Session that it named or made. */
function tell(history: HistorySink | undefined, context: RequestContext, status: number, tookMs: number): void {
  const { route, params, path, operationUuid } = context;
  const sessionUuid = route.path.startsWith('/v1/sessions/:uuid') ? params.uuid : context.sessionUuid;
  if (history === undefined || sessionUuid === undefined || context.appUuid === '') return;
  history.add(sessionUuid, {
    kind: 'command',
    method: route.method,
    path,
    status,
    operation_uuid: operationUuid,
    took_ms: Math.round(tookMs * 10) / 10,
  });
}

function contextOf(request: Request, route: Route, params: Record<string, string>): RequestContext {
  const url = new URL(request.url);
  return {
    request,
    route,
    params,
    path: url.pathname,
    query: url.searchParams,
    traceparent: newTraceparent(),
    raw: undefined,
    body: undefined,
    appUuid: '',
    mayOnlyRead: false,
    operationUuid: '',
    keyed: undefined,
    find: () => undefined,
    work: undefined,
    sessionUuid: undefined,
    refund: undefined,
  };
}
