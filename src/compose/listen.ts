/**
 * The HTTP port. It is bound before anything else, so that URLs can name it; requests that arrive during start-up wait
 * until the platform is ready.
 */
import { isIP } from 'node:net';
import type { Config } from '../config.ts';
import { codeOf } from '../error-facts.ts';
import type { HttpApp } from '../http/app.ts';
import type { HttpPeer } from '../http/pipelining.ts';
import { problemResponse } from '../http/response.ts';
import { MEDIA_ROUTE, sentMediaPath } from '../http/route/recording-media.ts';
import { HTTP_BODY_CEILING_BYTES, HTTP_IDLE_TIMEOUT_SEC, HTTP_WAIT_FOR_START_MAX, UNAVAILABLE_RETRY_SEC } from '../limits.ts';
import { problems } from '../problem.ts';
import { originAt } from '../settings/load.ts';
import { startError } from '../start-error.ts';
import { newTraceparent } from '../tracing/tracing.ts';

/** The bound port, and what routes may do to the connections behind requests. */
export interface HttpListener {
  readonly port: number;
  /** The origin of every URL that is handed out. */
  readonly publicUrl: string;
  /** Hands all requests, those that wait and those to come, to the app. */
  ready(app: HttpApp): void;
  disableIdleTimeout(request: Request): void;
  setIdleTimeout(request: Request, seconds: number): void;
  peer(request: Request): HttpPeer | undefined;
  /** The path of a recording's URL as it was sent. */
  sentPath(request: Request): string | undefined;
  /** Refuses new connections and closes all. */
  stop(): Promise<void>;
}

/**
 * Binds the port. Throws, in one line, when it is taken. A body, and a head after the first of its connection, must be
 * whole within `idleTimeoutSec`: the bytes that trickle in put nothing off. The first head has the 12 s of Bun.
 */
export function listen(settings: Pick<Config, 'http' | 'publicUrl'>, idleTimeoutSec = HTTP_IDLE_TIMEOUT_SEC): HttpListener {
  let app: HttpApp | undefined;
  /** The requests of the server behind those that were made of them: only those have a connection and a route. */
  const received = new WeakMap<Request, Request>();
  const own = (request: Request): Request => received.get(request) ?? request;
  const up = Promise.withResolvers<HttpApp>();
  const answer = (request: Request): Response | Promise<Response> => {
    // An HTTP/1.0 request without Host has no origin in its URL (HAProxy's health check is one). Its path may be `//`,
    // which is no reference to a path.
    if (request.url.startsWith('/')) {
      const whole = new Request(publicUrl + request.url, request);
      received.set(whole, request);
      return answer(whole);
    }
    if (app !== undefined) return app.fetch(request);
    return server.pendingRequests > HTTP_WAIT_FOR_START_MAX ? starting() : up.promise.then((each) => each.fetch(request));
  };
  const server = bound(settings.http, {
    hostname: settings.http.host,
    port: settings.http.port,
    idleTimeout: idleTimeoutSec,
    maxRequestBodySize: HTTP_BODY_CEILING_BYTES,
    fetch: answer,
    routes: { [MEDIA_ROUTE]: answer },
    // The runtime's own page tells the paths of files, and its line of the log the whole URL.
    error: (error) => app?.failed(error) ?? starting(),
  });
  const port = server.port ?? settings.http.port;
  const publicUrl = settings.publicUrl ?? originAt(settings.http.host, port);
  return {
    port,
    publicUrl,
    ready(each) {
      app = each;
      up.resolve(each);
    },
    disableIdleTimeout: (request) => server.timeout(own(request), 0),
    setIdleTimeout: (request, seconds) => server.timeout(own(request), seconds),
    peer: (request) => server.requestIP(own(request)) ?? undefined,
    sentPath: (request) => sentMediaPath(own(request)),
    stop: () => server.stop(true),
  };
}

function bound({ host, port }: Config['http'], options: Bun.Serve.Options<undefined>): Bun.Server<undefined> {
  try {
    return Bun.serve(options);
  } catch (error) {
    throw startError('HTTP_HOST, HTTP_PORT', `port ${port} of ${host} cannot be bound`, unknownName(host, error) ?? error);
  }
}

/** A name that cannot be looked up has the code of whatever went wrong last (ENOTTY), which tells nobody anything. */
function unknownName(host: string, error: unknown): string | undefined {
  const code = codeOf(error);
  const isOfPort = code === 'EADDRINUSE' || code === 'EACCES' || code === 'EADDRNOTAVAIL';
  return isIP(host) === 0 && !isOfPort ? 'the name has no address' : undefined;
}

function starting(): Response {
  const problem = problems.unavailable('Service is starting. See Retry-After header.', UNAVAILABLE_RETRY_SEC);
  return problemResponse(problem, newTraceparent());
}
