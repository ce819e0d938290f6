/** Requests of the runtime's `fetch` to an address that is known already. */
import { isIPv6 } from 'node:net';

interface PinnedRequest extends BunFetchRequestInit {
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns the URL and the options of a request that goes to `address`. The name stays in `Host` and in TLS server name
 * indication, so the certificate is still checked against the name. The body of the answer comes as it was sent.
 */
export function pinnedTo(address: string, url: URL, request: PinnedRequest): [string, BunFetchRequestInit] {
  const port = url.port === '' ? '' : `:${url.port}`;
  const pinned = `${url.protocol}//${isIPv6(address) ? `[${address}]` : address}${port}${url.pathname}${url.search}`;
  // No content coding: a decompressed body would have no bound of its own.
  const headers = { 'accept-encoding': 'identity', ...request.headers, host: url.host };
  const plain = { ...request, headers, decompress: false };
  return [pinned, url.protocol === 'https:' ? { ...plain, tls: { serverName: url.hostname } } : plain];
}
