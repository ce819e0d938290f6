/** Requests of the runtime's `fetch` to an address that is known already. */
import { isIPv6 } from 'node:net';

interface PinnedRequest extends BunFetchRequestInit {
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns the URL and the options of a request that goes to `address`. The name stays in `Host` and in TLS server name
 * indication, so the certificate is still checked against the name.
 */
export function pinnedTo(address: string, url: URL, request: PinnedRequest): [string, BunFetchRequestInit] {
  const port = url.port === '' ? '' : `:${url.port}`;
  const pinned = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}${port}${url.pathname}${url.search}`;
  const headers = { ...request.headers, host: url.host };
  return [pinned, { ...request, headers, ...(url.protocol === 'https:' ? { tls: { serverName: url.hostname } } : {}) }];
}
