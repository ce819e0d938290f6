/** The opening handshake, the client's side (RFC 6455 §4.1). Pure. */
import { createHash } from 'node:crypto';
import type { ResponseHead } from '../outbound/http-response.ts';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export interface HandshakeRequest {
  readonly url: URL;
  /** 16 random bytes in base64. */
  readonly key: string;
  readonly subprotocol: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** The request's bytes as text; names and values have been checked for CR and LF. */
export function handshakeRequest({ url, key, subprotocol, headers }: HandshakeRequest): string {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${key}`,
    'Sec-WebSocket-Version: 13',
    ...(subprotocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${subprotocol}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  return `${lines.join('\r\n')}\r\n\r\n`;
}

/** What the server agreed to, or why this is no WebSocket. */
export function handshakeAnswer(
  { status, headers }: ResponseHead,
  { key, subprotocol }: Pick<HandshakeRequest, 'key' | 'subprotocol'>,
): { readonly subprotocol: string } | { readonly refused: 'http_4xx' | 'http_5xx' | 'policy' | 'internal' } {
  if (status >= 500) return { refused: 'http_5xx' };
  if (status >= 400) return { refused: 'http_4xx' };
  // A redirect is not followed: where audio goes is for the application to say.
  if (status >= 300) return { refused: 'policy' };
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const upgraded =
    status === 101 &&
    headers.get('upgrade')?.toLowerCase() === 'websocket' &&
    tokens(headers.get('connection')).includes('upgrade') &&
    headers.get('sec-websocket-accept') === accept &&
    headers.get('sec-websocket-extensions') === null;
  const agreed = headers.get('sec-websocket-protocol') ?? '';
  return upgraded && (agreed === '' || agreed === subprotocol) ? { subprotocol: agreed } : { refused: 'internal' };
}

const tokens = (field: string | null): string[] => (field ?? '').split(',').map((token) => token.trim().toLowerCase());
