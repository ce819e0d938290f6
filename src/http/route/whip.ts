/**
 * Calls from browsers by WHIP (RFC 9725): `POST` of an SDP offer begins one, `PATCH` trickles or restarts ICE, `DELETE`
 * hangs up. Outside admission: it takes the token of a browser in place of an application's key, and SDP in place of
 * JSON. Any page may call it, since a token is what lets in and no cookie counts (CORS).
 */
import type { Peers } from '../../call/ports/peers.ts';
import type { BrowserCalls, WebrtcToken, WhipChange } from '../../call/ports/webrtc.ts';
import { bucketOf, spend, type TokenBuckets } from '../../call/rate/token-buckets.ts';
import type { Clock } from '../../clock.ts';
import type { Store } from '../../database/store.ts';
import { isUuid } from '../../id.ts';
import { AUTHORIZATION_MAX_CHARS, SDP_MAX_BYTES } from '../../limits.ts';
import type { Log } from '../../log.ts';
import { isProblem, type Problem, problems } from '../../problem.ts';
import { newTraceparent } from '../../tracing/tracing.ts';
import { boundedBody } from '../bounded-body.ts';
import { failureResponse } from '../failure.ts';
import type { HttpMetrics } from '../metrics.ts';
import type { HttpPeer } from '../pipelining.ts';
import { problemResponse } from '../response.ts';
import { WrongTokens } from '../wrong-tokens.ts';

/** The path that offers are sent to. The URL of a call is below it. */
export const WHIP_PATH = '/v1/whip';
const OFFER = 'application/sdp';
const FRAGMENT = 'application/trickle-ice-sdpfrag';
const METHODS = { endpoint: 'OPTIONS, POST', call: 'DELETE, OPTIONS, PATCH' } as const;

export interface WhipDeps {
  /** Calls from browsers, or undefined when no part of the platform takes them. */
  readonly browserCalls?: BrowserCalls | undefined;
  readonly store: Pick<Store, 'webrtcTokens'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<HttpMetrics, 'request'>;
  readonly publicUrl: string;
  readonly peer?: (request: Request) => HttpPeer | undefined;
  readonly draining: () => boolean;
  /** The other nodes of a cluster, with which the rate of offers is shared. */
  readonly peers?: Pick<Peers, 'take'> | undefined;
}

const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Location, ETag, Retry-After',
  'x-content-type-options': 'nosniff',
} as const;

export class WhipDoor {
  readonly #deps: WhipDeps;
  readonly #tokens: TokenBuckets;
  readonly #guesses = new WrongTokens();

  constructor(deps: WhipDeps, tokens: TokenBuckets) {
    this.#deps = deps;
    this.#tokens = tokens;
  }

  /** Answers a request for the endpoint, or for the call of that Session. Never rejects. */
  async answer(request: Request, sessionUuid?: string): Promise<Response> {
    const { clock, metrics, log } = this.#deps;
    const started = clock.now();
    const traceparent = newTraceparent();
    const path = sessionUuid === undefined ? WHIP_PATH : `${WHIP_PATH}/:session_uuid`;
    let response: Response;
    try {
      const outcome = await this.#serve(request, sessionUuid);
      response = isProblem(outcome) ? problemResponse(outcome, traceparent) : outcome;
    } catch (error) {
      response = failureResponse(error, path, log, traceparent);
    }
    for (const [name, value] of Object.entries({ ...CORS, traceparent })) response.headers.set(name, value);
    metrics.request(request.method, path, response.status, (clock.now() - started) / 1000);
    return response;
  }

  async #serve(request: Request, sessionUuid: string | undefined): Promise<Response | Problem> {
    const { method } = request;
    const allowed = sessionUuid === undefined ? METHODS.endpoint : METHODS.call;
    if (method === 'OPTIONS') return preflight(allowed);
    if (!allowed.split(', ').includes(method)) return problems.methodNotAllowed(allowed);
    const token = await this.#authenticate(request, sessionUuid !== undefined);
    if (isProblem(token)) return token;
    if (sessionUuid === undefined) return this.#begin(request, token);
    if (!isUuid(sessionUuid)) return problems.notFound('Session');
    if (method === 'PATCH') return this.#change(request, token, sessionUuid);
    const wasThere = await this.#deps.browserCalls?.hangUp(token, sessionUuid);
    if (isProblem(wasThere)) return wasThere;
    return wasThere === true ? new Response('', { headers: { 'content-type': 'text/plain' } }) : problems.notFound('Session');
  }

  /**
   * The token of the request; of a call that was `begun` with it, also when it has expired. Who guesses is slowed down.
   */
  async #authenticate(request: Request, begun: boolean): Promise<WebrtcToken | Problem> {
    const header = request.headers.get('authorization') ?? '';
    const given = header.length <= AUTHORIZATION_MAX_CHARS ? /^Bearer +(\S+)$/i.exec(header)?.[1] : undefined;
    // RFC 9110 §11.6.1: also without credentials it is 401, with the challenge. The rule of the API's keys is another.
    if (given === undefined) return problems.missingWebrtcToken();
    const { webrtcTokens } = this.#deps.store;
    const token = await (begun ? webrtcTokens.findBegun(given) : webrtcTokens.find(given));
    if (token !== undefined) return token;
    const address = this.#deps.peer?.(request)?.address;
    const waitSec = address === undefined ? undefined : this.#guesses.count(address, this.#deps.clock.now());
    return waitSec === undefined ? problems.invalidWebrtcToken() : problems.rateLimited(waitSec);
  }

  async #begin(request: Request, token: WebrtcToken): Promise<Response | Problem> {
    const { browserCalls, draining, publicUrl } = this.#deps;
    if (browserCalls === undefined) return problems.notConfigured('WebRTC');
    if (typeOf(request) !== OFFER) return problems.unsupportedMediaType(OFFER);
    const offer = await boundedBody(request, SDP_MAX_BYTES);
    if (isProblem(offer)) return offer;
    const begun = await spend(await this.#takeOffer(token), async () =>
      draining() ? problems.draining() : await browserCalls.create(token, offer),
    );
    if (isProblem(begun)) return begun;
    const location = `${publicUrl}${WHIP_PATH}/${begun.sessionUuid}`;
    const headers = { 'content-type': OFFER, location, etag: begun.etag, 'cache-control': 'no-store' };
    return new Response(begun.answer, { status: 201, headers });
  }

  /** Takes a token of the bucket of offers, which is the whole cluster's. */
  async #takeOffer({ tokenId }: WebrtcToken): Promise<(() => void) | number> {
    const { clock, peers } = this.#deps;
    if (peers !== undefined) return await peers.take(tokenId, ['whip_offer']);
    return this.#tokens.take([bucketOf('whip_offer', tokenId)], clock.now());
  }

  async #change(request: Request, token: WebrtcToken, sessionUuid: string): Promise<Response | Problem> {
    const type = typeOf(request);
    if (type !== FRAGMENT && type !== OFFER) return problems.unsupportedMediaType(FRAGMENT);
    const body = await boundedBody(request, SDP_MAX_BYTES);
    if (isProblem(body)) return body;
    const kind = type === OFFER ? 'offer' : 'fragment';
    const change: WhipChange = { kind, body, ifMatch: request.headers.get('if-match') ?? undefined };
    const { browserCalls, clock } = this.#deps;
    const done = await this.#tokens.spend(bucketOf('whip_patch', token.tokenId), clock.now(), async () =>
      browserCalls === undefined ? problems.notFound('Session') : await browserCalls.patch(token, sessionUuid, change),
    );
    if (done === undefined) return new Response(null, { status: 204 });
    if (isProblem(done)) return done;
    if ('answer' in done) return new Response(done.answer, { status: 200, headers: { 'content-type': OFFER } });
    return new Response(done.fragment, { status: 200, headers: { 'content-type': FRAGMENT, etag: done.etag } });
  }
}

const preflight = (allowed: string): Response =>
  new Response(null, {
    status: 204,
    headers: {
      allow: allowed,
      'accept-post': OFFER,
      'accept-patch': `${FRAGMENT}, ${OFFER}`,
      'access-control-allow-methods': allowed,
      'access-control-allow-headers': 'Authorization, Content-Type, If-Match',
      'access-control-max-age': '86400',
    },
  });

const typeOf = (request: Request): string =>
  (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
