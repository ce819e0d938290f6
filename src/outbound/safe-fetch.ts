/**
 * This is `Outbound` over the runtime's `fetch`. The URL's host is replaced by the screened address, with the name in
 * `Host` and in TLS server name indication, so the certificate is still checked against the name. Redirects are not
 * followed.
 */
import { remembered } from '../bounds/remembered.ts';
import { unlessAborted } from '../bounds/unless-aborted.ts';
import { URLS_REMEMBERED_MAX } from '../limits.ts';
import { safeConnect } from './connect.ts';
import { atFirstThatConnects, isUnconnected } from './either-version.ts';
import { type GetRequest, type GetResponse, httpGet } from './http-get.ts';
import { type Outbound, OutboundError, type OutboundFailure, type OutboundRequest, type OutboundResponse } from './outbound.ts';
import { pinnedTo } from './pinned.ts';
import { type Resolver, resolveScreened, systemResolver } from './resolve.ts';
import { type Cidr, mayUsePort, parseCidr } from './screen.ts';

/** Everything the platform may open towards the outside, all through one screen. */
export interface ScreenedOutbound extends Outbound {
  /**
   * GET for audio: read only as fast as it is wanted, redirects followed and screened. Rejects with `OutboundError`
   * only.
   */
  get(request: GetRequest): Promise<GetResponse>;
}

/**
 * Makes the outbound connections of a node. `allow` are CIDRs that may be reached although private; the configuration
 * has checked them.
 */
export function createOutbound(allow: readonly string[], resolver: Resolver = systemResolver): ScreenedOutbound {
  const cidrs = allow.map(parseCidr).filter((cidr) => cidr !== undefined);
  return {
    fetch: (request) => screenedFetch(request, cidrs, resolver),
    get: (request) => httpGet(request, (to) => safeConnect(to, cidrs, resolver), checkedUrl),
  };
}

/** Rejects with `rejected` what is no http(s) URL, carries userinfo, or names a port of another protocol. */
function checkedUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base);
  if (url === null) throw new OutboundError('rejected', 'not a URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new OutboundError('rejected', 'neither http nor https');
  if (url.username !== '' || url.password !== '') throw new OutboundError('rejected', 'userinfo in the URL');
  if (url.port !== '' && !mayUsePort(Number(url.port))) throw new OutboundError('rejected', 'a port of another protocol');
  return url;
}

/** The same for a URL that is posted to again and again, as that of a webhook is. Nobody changes what it gives. */
const knownUrl = remembered((text) => checkedUrl(text), URLS_REMEMBERED_MAX);

async function screenedFetch(request: OutboundRequest, allow: readonly Cidr[], resolver: Resolver): Promise<OutboundResponse> {
  const { signal } = request;
  try {
    const url = knownUrl(request.url);
    const found = resolveScreened(url.hostname, request.owner ?? '', allow, resolver);
    const addresses = 'then' in found ? await unlessAborted(found, signal) : found;
    const init = {
      method: request.method,
      headers: request.headers,
      redirect: 'manual' as const,
      // The header alone closes the connection afterwards, and an idle one of another request may still be taken.
      keepalive: request.headers.connection !== 'close',
      signal,
      ...(request.body === undefined ? {} : { body: request.body }),
    };
    const sent = (address: string) => fetch(...pinnedTo(address, url, init));
    const { status, headers, body } = await atFirstThatConnects(addresses, sent, isUnconnected);
    return { status, headers, body: body ?? undefined };
  } catch (error) {
    throw signal.aborted ? new OutboundError('timeout', 'given up') : asOutboundError(error);
  }
}

/** Any failure of `fetch`, before the response's header or inside its body, in our own words. */
function asOutboundError(error: unknown): OutboundError {
  if (error instanceof OutboundError) return error;
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
  return new OutboundError(failureOf(code, error), code === '' ? 'the connection failed' : code);
}

/** The codes of an answer that came, and is none. */
const BROKEN_HTTP =
  /^(Malformed_HTTP|Invalid_HTTP|HPE_|InvalidHTTP|InvalidContentLength|ResponseHeadersTooLarge|UnrequestedUpgrade|UnsupportedTransfer)/i;

function failureOf(code: string, error: unknown): OutboundFailure {
  if (error instanceof DOMException && (error.name === 'TimeoutError' || error.name === 'AbortError')) return 'timeout';
  if (BROKEN_HTTP.test(code)) return 'invalid_response';
  if (/CERT|SSL|TLS|EPROTO|VERIFY|SIGNED/.test(code)) return 'tls';
  if (code === 'ETIMEDOUT') return 'timeout';
  return 'unreachable';
}
